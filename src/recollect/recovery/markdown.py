"""Pages as Markdown with front matter and local pictures: the way into today's site generators.

Hides: the tree of a page, and Markdown's escaping. In `markdown/`: a file for each page (`about.md`) with its title,
date of capture and address in front, and the pictures beside them under their names; links between pages lead to the
Markdown files. Scripts, styles, forms and frames are left out. What Markdown has no form for keeps its text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from recollect.recovery.canonical import resolve
from recollect.recovery.decoding import guessed_charset
from recollect.recovery.filenames import ANY_SYSTEM, NameRules, file_names, host_folder, relative_link
from recollect.recovery.links import base_of, effective_type, parse_html, read_document
from recollect.recovery.ownfiles import OwnFiles
from recollect.recovery.records import Recovered
from recollect.recovery.rehost import main_test
from recollect.recovery.store import Store

FOLDER = "markdown"
_LEFT_OUT = frozenset(
    {"script", "style", "noscript", "template", "head", "form", "iframe", "object", "embed", "applet", "svg", "title"}
)
_BLOCKS = frozenset(
    {
        "p",
        "div",
        "section",
        "article",
        "main",
        "header",
        "footer",
        "nav",
        "aside",
        "center",
        "address",
        "dl",
        "dt",
        "dd",
    }
    | {"figure", "figcaption", "body", "html", "fieldset", "td", "th", "tbody", "thead", "table", "caption", "tr"}
)
_ESCAPED = re.compile(r"([\\`*_\[\]<>])")
_LINE_START = re.compile(r"^([^\S\n]*+\d*+)([#+>.)-])(?=\s)", re.M)
_PICTURE = re.compile(r"image/")
Target = Callable[[str], str | None]


def write_markdown(store: Store, files: OwnFiles, *, name_rules: NameRules = ANY_SYSTEM) -> dict[str, str]:
    """Write pages and pictures; returns URI -> file."""
    is_main = main_test(store)
    wanted = [r for r in store.recovered(redirects=False) if _is_page(r) or _PICTURE.match(r.media_type)]
    place = lambda uri: FOLDER if is_main(uri) else f"{FOLDER}/_hosts/{host_folder(uri, name_rules)}"  # noqa: E731
    names = file_names(((r.uri, r.media_type) for r in wanted), place, name_rules)
    taken = set(names.values())
    for resource in wanted:
        if _is_page(resource):
            name = re.sub(r"\.x?html?$", "", names[resource.uri], flags=re.I) + ".md"
            names[resource.uri] = name if name not in taken else names[resource.uri] + ".md"
            taken.add(names[resource.uri])
    for resource in wanted:
        name = names[resource.uri]
        body = store.content(resource)
        if _is_page(resource):
            body = page_markdown(resource, body, _targets(store, names, name)).encode()
        files.write(name, body)
    return names


def _is_page(resource: Recovered) -> bool:
    return "html" in resource.media_type


def _targets(store: Store, names: dict[str, str], source: str) -> Target:
    def target(uri: str) -> str | None:
        found = store.resolve(uri)
        name = names.get(found.uri) if found is not None else None
        return relative_link(source, name) if name is not None else None

    return target


def page_markdown(resource: Recovered, content: bytes, target: Target) -> str:
    """A page as Markdown; `target` answers with the local file of an address."""
    text = content.decode(guessed_charset(content, resource.charset), "replace")
    kind = effective_type(resource.media_type, resource.uri, content[:1024]) or "text/html"
    document = read_document(content, resource.uri, kind, resource.charset)
    front = {
        "title": (document.title if document else "") or resource.uri,
        "date": f"{resource.captured_at:%Y-%m-%d}",
        "original_url": resource.uri,
        "archived_at": resource.uri_m,
    }
    head = "".join(f"{name}: {_yaml(value)}\n" for name, value in front.items())
    root = parse_html(text)
    body = _Writer(resource.uri, target).page(root) if root is not None else ""
    return f"---\n{head}---\n\n{body}\n"


def _yaml(value: str) -> str:
    """A plain scalar where that is safe, else a quoted one."""
    plain = " ".join(value.split())
    safe = re.fullmatch(r"[\w(][\w ,./()'&=?%~+-]*(?::[\w/][\w ,./()'&=?%~+:-]*)?", plain) and ": " not in plain
    word = plain.lower() in ("", "yes", "no", "true", "false", "null", "on", "off", "~")
    return plain if safe and not word and not plain.endswith(":") else json.dumps(plain, ensure_ascii=False)


class _Writer:
    """One walk over a page, without recursion deeper than its blocks."""

    def __init__(self, base: str, target: Target) -> None:
        self._base = base
        self._target = target

    def page(self, root: Any) -> str:
        self._base = base_of(root, self._base)
        body = root.find(".//body")
        blocks = self._blocks(body if body is not None else root, 0)
        return re.sub(r"\n{3,}", "\n\n", "\n\n".join(block for block in blocks if block.strip())).strip()

    def _blocks(self, element: Any, depth: int) -> list[str]:
        """The blocks inside an element; text beside blocks is a paragraph of its own."""
        blocks: list[str] = []
        inline: list[str] = [_text(element.text)]

        def flush() -> None:
            words = _tidy("".join(inline))
            if words:
                blocks.append(words)
            inline.clear()

        for child in element:
            tag = _tag(child)
            if tag and tag not in _LEFT_OUT:
                block = self._block(child, tag, depth)
                if block is None:
                    inline.append(self._inline(child, tag, depth))
                else:
                    flush()
                    blocks += block
            inline.append(_text(child.tail))
        flush()
        return blocks

    def _block(self, element: Any, tag: str, depth: int) -> list[str] | None:
        if depth > 60:  # deeper markup is not structure
            return [_tidy(_text("".join(element.itertext())))]
        if re.fullmatch("h[1-6]", tag):
            return [f"{'#' * int(tag[1])} {_tidy(self._children(element, depth)).replace(chr(10), ' ')}"]
        if tag in ("ul", "ol", "menu", "dir"):
            return [self._list(element, tag, depth)]
        if tag == "blockquote":
            return [
                "\n".join(f"> {line}".rstrip() for line in "\n\n".join(self._blocks(element, depth + 1)).split("\n"))
            ]
        if tag in ("pre", "xmp", "listing"):
            code = "".join(element.itertext()).strip("\n")
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", code)), default=0))
            return [f"{fence}\n{code}\n{fence}"]
        if tag == "hr":
            return ["---"]
        if tag in _BLOCKS or any(_tag(child) in _BLOCKS for child in element):
            return self._blocks(element, depth + 1)
        return None

    def _list(self, element: Any, tag: str, depth: int) -> str:
        items = []
        for number, item in enumerate((child for child in element if _tag(child) == "li"), 1):
            # Four columns: nested lists are lists for CommonMark and for Python-Markdown.
            mark = f"{number}.".ljust(4) if tag == "ol" else "-   "
            inside = "\n\n".join(self._blocks(item, depth + 1))
            items.append(mark + re.sub(r"\n(?=[^\n])", "\n" + " " * len(mark), inside))
        return "\n".join(items)

    def _children(self, element: Any, depth: int) -> str:
        parts = [_text(element.text)]
        for child in element:
            tag = _tag(child)
            if tag and tag not in _LEFT_OUT:
                parts.append(self._inline(child, tag, depth))
            parts.append(_text(child.tail))
        return "".join(parts)

    def _inline(self, element: Any, tag: str, depth: int) -> str:
        if depth > 60:
            return _text("".join(element.itertext()))
        if tag == "br":
            return "  \n"
        if tag == "img":
            return self._picture(element)
        inside = self._children(element, depth + 1)
        if tag == "a" and element.get("href"):
            address = resolve(self._base, element.get("href"))
            local = self._target(address) if address else None
            return f"[{_tidy(inside) or _text(address or '')}](<{local or _safe(address)}>)" if address else inside
        words = inside.strip()
        if tag in ("b", "strong") and words:
            return f"**{words}**"
        if tag in ("i", "em", "cite") and words:
            return f"*{words}*"
        if tag in ("code", "tt", "kbd", "samp") and words:
            return "`" + "".join(element.itertext()).replace("`", "'").strip() + "`"
        return inside

    def _picture(self, element: Any) -> str:
        address = resolve(self._base, element.get("src") or "")
        local = self._target(address) if address else None
        words = _text(element.get("alt") or "").strip()
        return f"![{words}](<{local}>)" if local else words


def _safe(address: str) -> str:
    return address.replace("<", "%3C").replace(">", "%3E")


def _tag(element: Any) -> str:
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""


def _text(value: str | None) -> str:
    """Text as Markdown: white space as in HTML, what Markdown would take for marks escaped."""
    return _ESCAPED.sub(r"\\\1", re.sub(r"\s+", " ", value)) if value else ""


def _tidy(value: str) -> str:
    lines = [re.sub(r"(?<=\S) {3,}$", "  ", line.lstrip(" ")) for line in value.split("\n")]
    return _LINE_START.sub(r"\1\\\2", "\n".join(lines).strip())
