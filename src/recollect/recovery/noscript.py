"""A page in which nothing runs: for copies that are opened, mailed and put online without a look at their programs.

Hides: where a page can hold a program (elements, handlers, addresses, animations, plug-ins, pages inside attributes),
and how a page shows what its scripts would have shown: `noscript` is opened, and late images are put in their places.
The text is worked on as in `rewrite`, after its links were repointed, so that what is local is known by its address.

Invariant: what is taken out leaves an empty comment or nothing inside a tag, so that its neighbours never join to
another tag. The page also declares a Content-Security-Policy that forbids scripts (`restore`).
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping

from recollect.recovery.decoding import guessed_charset, header_charset
from recollect.recovery.rewrite import Attribute, Edit, Tag, apply_edits, as_text, tags

_GAP = "<!---->"
_PROGRAM = ("javascript:", "vbscript:", "livescript:", "mocha:")
_PLUGINS = frozenset(["object", "embed", "applet", "portal", "fencedframe"])
_ANIMATIONS = frozenset(["set", "animate", "animatecolor", "animatemotion", "animatetransform"])
# What a plug-in element may still show: files in which this copy has nothing that runs.
_SHOWN = (
    *(".png", ".gif", ".jpg", ".jpeg", ".webp", ".avif", ".bmp", ".ico", ".svg", ".html", ".htm", ".txt"),
    *(".mp4", ".m4v", ".webm", ".ogg", ".oga", ".ogv", ".mp3", ".m4a", ".wav", ".flac"),
)
_PLACES = frozenset(["iframe", "frame", "object", "embed", "a", "area", "form", "button", "input"])
_PASSIVE = ("data:image/png", "data:image/gif", "data:image/jpeg", "data:image/webp", "data:,", "data:text/plain")
_LATE = ("data-src", "data-original", "data-lazy-src")
_CONTROLS = re.compile(r"[\x00-\x20]")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*+:|//|#", re.I)
_SCRIPT_END = re.compile(r"</script[^>]*+>?", re.I)
_NOSCRIPT_END = re.compile(r"</noscript[\s/>]", re.I)
_HIDDEN_TAG = re.compile(r"<(?=(?:script|object|embed|applet)(?:[\s/>]|$))", re.I)
_HIDDEN = re.compile(r"(?<=[\s/\"'])(?=on[a-z]{3,30}+\s*+=)|(?=(?:java|vb)script:)", re.I)
# Files that are programs for browsers, or for a double click on Windows.
_TYPES = re.compile(r"(?:text|application)/(?:x-)?(?:java|ecma|vb|j|live)script|application/wasm|application/hta", re.I)
_ENDINGS = (".js", ".mjs", ".cjs", ".jse", ".vbs", ".vbe", ".wsf", ".wsh", ".hta", ".htc", ".wasm")


def is_program(media_type: str, name: str) -> bool:
    """Whether a file is a script: such a copy has none."""
    return bool(_TYPES.match(media_type.strip())) or name.lower().endswith(_ENDINGS)


def without_scripts(body: bytes, content_type: str) -> bytes:
    """The page without scripts, handlers, addresses that are programs, and plug-ins."""
    charset = guessed_charset(body, header_charset(content_type))
    text, encode = as_text(body, charset)
    page = _Page(text, charset if encode is None else "", xml=content_type.startswith("application/xhtml"))
    changed = page.changed()
    return changed.encode("latin-1") if encode is None else encode(changed)


class _Page:
    """`charset` decodes values of a text that is one character per byte; it is empty for text."""

    def __init__(self, text: str, charset: str, *, xml: bool = False) -> None:
        self.text = text
        self.charset = charset
        self.tags = list(tags(text, xml=xml))
        self._opened = [tag.end for tag in self.tags if tag.name == "noscript"]
        self._closed = [match.start() for match in _NOSCRIPT_END.finditer(text)]

    def changed(self) -> str:
        edits = [edit for tag in self.tags for edit in self._tag_edits(tag)]
        return apply_edits(self.text, [*edits, *_hidden_edits(self.text, self.tags)])

    def value(self, item: Attribute) -> str:
        raw = self.text[item.start : item.end] if item.start >= 0 else ""
        if self.charset and not raw.isascii():
            raw = raw.encode("latin-1").decode(self.charset, "replace")
        return html.unescape(raw) if "&" in raw else raw

    def _written(self, value: str) -> str:
        """A value as it is written into the page."""
        escaped = html.escape(value)
        return escaped.encode("ascii", "xmlcharrefreplace").decode() if self.charset else escaped

    def _in_noscript(self, at: int) -> bool:
        opened = bisect_right(self._opened, at)
        return opened > 0 and bisect_right(self._closed, at) == bisect_right(self._closed, self._opened[opened - 1])

    def _tag_edits(self, tag: Tag) -> Iterator[Edit]:
        values = {item.name: self.value(item) for item in reversed(tag.attributes)}
        if tag.name == "script" or tag.name.endswith(":script"):
            close = _SCRIPT_END.match(self.text, tag.raw_end)
            yield Edit(tag.start, close.end() if close else tag.raw_end, _GAP)
        elif tag.name == "noscript" or (tag.name in _PLUGINS and not _is_shown(values)) or self._leaves(tag, values):
            yield Edit(tag.start, tag.end, _GAP)
        else:
            for item in tag.attributes:
                if tag.name == "iframe" and item.name == "srcdoc" and item.start >= 0:
                    inner = self._written(_Page(values["srcdoc"], "").changed())
                    yield Edit(item.at, self._end(item), f'srcdoc="{inner}"')
                elif _runs(tag, item.name, self.value(item)):
                    yield Edit(item.at, self._end(item), "")
            yield from self._late_image(tag, values)

    def _leaves(self, tag: Tag, values: Mapping[str, str]) -> bool:
        """Whether this was to lead browsers without scripts to another page."""
        refreshes = tag.name == "meta" and values.get("http-equiv", "").strip().lower() == "refresh"
        return refreshes and self._in_noscript(tag.start)

    def _late_image(self, tag: Tag, values: Mapping[str, str]) -> Iterator[Edit]:
        """An image whose address a script would have moved into place."""
        late = next((values[name] for name in _LATE if values.get(name)), "").strip()
        if tag.name != "img" or not late or _SCHEME.match(late):
            return
        shown = next((item for item in tag.attributes if item.name == "src"), None)
        if shown is None:
            at = tag.attributes[0].at
            yield Edit(at, at, f'src="{self._written(late)}" ')
        elif values["src"].lstrip().lower().startswith("data:"):
            yield Edit(shown.at, self._end(shown), f'src="{self._written(late)}"')

    def _end(self, item: Attribute) -> int:
        """Where an attribute ends, its quotation mark included."""
        if item.start < 0:
            return item.at + len(item.name)
        mark = self.text[item.start - 1]
        return item.end + (mark in "\"'" and self.text.startswith(mark, item.end))


def _is_shown(values: Mapping[str, str]) -> bool:
    address = (values.get("data") or values.get("src") or "").partition("#")[0].partition("?")[0]
    return address.strip().lower().endswith(_SHOWN)


def _runs(tag: Tag, name: str, value: str) -> bool:
    """Whether an attribute is a program, or makes one."""
    bare = _CONTROLS.sub("", value).lower()
    if name.startswith("on") or bare.startswith(_PROGRAM):
        return True
    if tag.name in _ANIMATIONS:
        moved = bare.rpartition(":")[2] if name == "attributename" else ""
        return moved.startswith("on") or moved in ("href", "src", "srcdoc") or any(one in bare for one in _PROGRAM)
    if bare.startswith("data:") and tag.name in _PLACES:
        return not bare.startswith(_PASSIVE)
    return tag.name == "meta" and name == "content" and any(one in bare for one in _PROGRAM)


def _hidden_edits(text: str, found: list[Tag]) -> Iterator[Edit]:
    """Breaks for programs where another reading may see a tag: in comments, raw text, values and broken tags."""
    known = {tag.start for tag in found}
    yield from (Edit(m.end(), m.end(), " ") for m in _HIDDEN_TAG.finditer(text) if m.start() not in known)
    at = 0
    for tag in found:
        comment = text.find("<!--", at, tag.start)
        for first, last in ((comment, tag.start), (tag.end, tag.raw_end)):
            if first >= 0:
                yield from (Edit(m.end(), m.end(), "x-") for m in _HIDDEN.finditer(text, first, last))
        at = tag.raw_end
    if (rest := text.find("<", at)) >= 0:  # behind the last tag: a comment or a tag that is never closed
        yield from (Edit(m.end(), m.end(), "x-") for m in _HIDDEN.finditer(text, rest))
