"""Repoint the links of recovered HTML, CSS and SVG, and leave every other byte as it was.

Hides: tokenizing real-world markup, `base`, `srcset`, `meta refresh`, inline styles, and charsets. The text is worked
on as Latin-1, one character per byte, so nothing outside a rewritten value can change; a value is decoded with the
page's own charset only to know which URI it names. Charsets that are not a superset of ASCII (UTF-16, ISO-2022) are
decoded and encoded whole.

Invariants: linear time on any input; with a rewriter that answers None every reference still names the same resource;
what is inserted is ASCII. A reference to a resource that was not recovered becomes its absolute original URL, or what
`missing` puts in its place; then the address stays in the attribute `data-missing`.
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote, urldefrag, urljoin

from recollect.recovery import css
from recollect.recovery.attributes import LONGEST_BASE, refresh_span, srcset_candidates
from recollect.recovery.decoding import guessed_charset, header_charset

# Answers the local reference for an absolute URI without fragment, or None to leave it at its original URL.
Rewriter = Callable[[str], str | None]


class Use(StrEnum):
    """What a reference is for: whether a browser loads it automatically, and as what."""

    PAGE = "page"  # a link to follow
    FORM = "form"
    REFRESH = "refresh"  # followed without being asked
    FRAME = "frame"
    SCRIPT = "script"
    STYLE = "style"
    IMAGE = "image"
    OTHER = "other"  # media, plugins, fonts, hints to connect


# Answers what stands in for a reference that was not recovered, or None to leave it at its original URL.
Missing = Callable[[str, Use], str | None]
# More attributes of a link that leads out of the site, as (name, value), by the address it leads to.
OutsideAttributes = Callable[[str], tuple[tuple[str, str], ...]]
BLANK_IMAGE = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
# What a browser can load in place of what is missing, without a request.
NEUTRAL: dict[Use, str] = {
    Use.FRAME: "about:blank",
    Use.SCRIPT: "data:text/javascript,",
    Use.STYLE: "data:text/css,",
    Use.IMAGE: BLANK_IMAGE,
    Use.OTHER: "data:,",
}

_LATE = ("data-src", "data-original", "data-href", "data-bg", "data-lazy-src")  # where scripts keep late images
URL_ATTRIBUTES = frozenset(
    ["href", "src", "background", "poster", "action", "formaction", "cite", "longdesc", "lowsrc", "xlink:href", *_LATE]
)
SRCSET_ATTRIBUTES = frozenset(["srcset", "imagesrcset", "data-srcset"])
# (tag, attribute) pairs that hold a URL only there.
_URL_PAIRS = frozenset([("object", "data"), ("html", "manifest"), ("applet", "archive")])
_PARAM_NAMES = frozenset(["movie", "src", "filename", "url"])
_RAW_TEXT = frozenset(["script", "style", "textarea", "title", "xmp", "plaintext", "noembed", "noframes", "iframe"])
# On a local file these would forbid loading what lies beside it: a hash of bytes that changed, a cross-origin demand.
_DROPPED = frozenset(["integrity", "crossorigin", "nonce"])

_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*+|\?xml-stylesheet\b)")
_COMMENT_END = re.compile(r"--!?>|(?<=<!--)-?>")
_FOREIGN = frozenset(["svg", "math"])
_LONGEST_HIDDEN = 2048  # characters of a tag that only some readers see
_ATTRIBUTE = re.compile(
    r"""[\s/]*+(?:(?P<end>>)|(?P<name>=?[^\s/>=]*+)(?:\s*+=\s*+(?:"(?P<dq>[^"]*+)"|'(?P<sq>[^']*+)'|(?P<raw>[^\s>"'][^\s>]*+)?))?)"""
)
_SKIPPED = re.compile(
    r"#|(?:javascript|mailto|data|about|tel|blob|file|sms|callto|ftp|news|irc|magnet):", re.IGNORECASE
)
_META_CHARSET = re.compile(r"charset\s*+=\s*+[\"']?+\s*+([\w.:+-]++)", re.IGNORECASE)
_ACTS = re.compile(r"<(?:meta|link|script)(?=[\s/>])", re.IGNORECASE)
_PROLOGUE = re.compile(r"\ufeff?(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!doctype[^>]*>)?", re.IGNORECASE)
_BEFORE_HEAD = re.compile(r"(?>\s+|<!--(?>.*?-->))*+<(?:html|head)(?=[\s/>])", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace text[start:end] by `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """A name and where its value is; an attribute without value has start == end == -1."""

    name: str
    at: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Tag:
    """A start tag, and for raw text (script, style, title...) where that text ends."""

    name: str
    attributes: tuple[Attribute, ...]
    end: int
    raw_end: int
    start: int = 0


def rewrite_html(
    body: bytes,
    uri: str,
    content_type: str,
    rewriter: Rewriter,
    missing: Missing | None = None,
    policy: str = "",
    outside: OutsideAttributes | None = None,
    *,
    head: str = "",
) -> bytes:
    """The page with its links repointed, `base` taken out, its true charset and the Content-Security-Policy declared
    inside it, `head` behind that."""
    charset = guessed_charset(body, header_charset(content_type))
    text, encode = as_text(body, charset)
    xml = content_type.startswith("application/xhtml")
    page = _Page(text, uri, charset, rewriter, missing, decoded=encode is not None, own_policy=not policy, xml=xml)
    page.outside = outside
    edits = list(page.edits())
    if missing is not None:
        edits.extend(page.disarmed())
    slash = " /" if xml else ""
    if encode is None:
        edits.extend(_declare(page, charset, header_charset(content_type)))
    if policy:
        head = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}"{slash}>{head}'
    if head:
        edits.append(Edit(page.beginning, page.beginning, head))
    changed = apply_edits(text, edits)
    return changed.encode("latin-1") if encode is None else encode(changed)


def rewrite_css(body: bytes, uri: str, content_type: str, rewriter: Rewriter, missing: Missing | None = None) -> bytes:
    """The style sheet with its `url()` and `@import` repointed."""
    charset = guessed_charset(body, header_charset(content_type))
    text, encode = as_text(body, charset)
    changed = apply_edits(text, list(_css_edits(text, 0, uri, charset, rewriter, missing)))
    return changed.encode("latin-1") if encode is None else encode(changed)


def rewrite_svg(body: bytes, uri: str, content_type: str, rewriter: Rewriter, missing: Missing | None = None) -> bytes:
    """An SVG file is read like markup; nothing is declared in it."""
    charset = guessed_charset(body, header_charset(content_type))
    text, encode = as_text(body, charset)
    page = _Page(text, uri, charset, rewriter, missing, decoded=encode is not None, xml=True)
    changed = apply_edits(text, list(page.edits()))
    return changed.encode("latin-1") if encode is None else encode(changed)


def as_text(body: bytes, charset: str) -> tuple[str, Callable[[str], bytes] | None]:
    """The text to work on and, for charsets that are not a superset of ASCII, how to get back to bytes."""
    if not charset.startswith(("utf-16", "utf-32", "utf_16", "utf_32", "iso2022", "iso-2022", "hz")):
        return body.decode("latin-1"), None
    try:
        text = body.decode(charset)
    except UnicodeDecodeError:
        return body.decode("latin-1"), None
    if text.encode(charset) != body:
        return body.decode("latin-1"), None
    return text, lambda changed: changed.encode(charset)


class _Page:
    """One page: where it is, what its references are relative to, and where its charset is or could be declared."""

    def __init__(
        self,
        text: str,
        uri: str,
        charset: str,
        rewriter: Rewriter,
        missing: Missing | None,
        *,
        decoded: bool,
        own_policy: bool = True,
        base: str = "",
        xml: bool = False,
    ) -> None:
        self.text = text
        self.uri = uri
        self.charset = charset
        self.rewriter = rewriter
        self.missing = missing
        self.decoded = decoded
        self.own_policy = own_policy  # leave the Content-Security-Policy that the page declares
        self.tags = list(tags(text, xml=xml))
        self.base = self._find_base(base or uri)
        self._lost: list[str] = []  # addresses of the current tag that were replaced
        self._left: list[str] = []  # addresses of the current tag that a person can follow, and that stay
        self.outside: OutsideAttributes | None = None
        self.meta_charset: tuple[int, int] | None = None

    def edits(self) -> Iterator[Edit]:
        for tag in self.tags:
            yield from self._tag_edits(tag)
            if tag.name == "style":
                style = self.text[tag.end : tag.raw_end]
                yield from _css_edits(style, tag.end, self.base, self.charset, self.rewriter, self.missing)

    @property
    def beginning(self) -> int:
        """Where the head begins, or would: before any text, which would end it, and any tag that could do something."""
        prologue = _PROLOGUE.match(self.text)
        at = prologue.end() if prologue else 0
        for tag in self.tags:
            if _BEFORE_HEAD.match(self.text, at) is None:
                break
            at = tag.end
            if tag.name == "head":
                break
        return at

    def _find_base(self, base: str) -> str:
        for tag in self.tags:
            if tag.name == "base":
                for attribute in tag.attributes:
                    if attribute.name == "href" and attribute.start >= 0:
                        href = self.value(attribute).strip()
                        return _join(base, href) if len(href) <= LONGEST_BASE else base
        return base

    def value(self, attribute: Attribute | None) -> str:
        """An attribute's value as text: decoded with the page's charset, character references resolved."""
        if attribute is None or attribute.start < 0:
            return ""
        raw = self.text[attribute.start : attribute.end]
        if not self.decoded and not raw.isascii():
            raw = raw.encode("latin-1").decode(self.charset, "replace")
        return html.unescape(raw) if "&" in raw else raw

    def _tag_edits(self, tag: Tag) -> list[Edit]:
        self._lost, self._left = [], []
        edits = list(self._attribute_edits(tag))
        if self.outside is not None and self._left and tag.name in ("a", "area"):
            at, own = tag.attributes[0].at, {attribute.name for attribute in tag.attributes}
            more = [(name, value) for name, value in self.outside(self._left[0]) if name not in own]
            text = "".join(f'{name}="{html.escape(ascii_url(value))}" ' for name, value in more)
            edits.insert(0, Edit(at, at, text))
        if self._lost:
            at = tag.attributes[0].at
            addresses = html.escape(" ".join(dict.fromkeys(self._lost)))
            edits.insert(0, Edit(at, at, f'data-missing="{addresses}" '))
        return edits

    def disarmed(self) -> Iterator[Edit]:
        """Tags that act by themselves where this reading sees a comment or text, but another one may see a tag: behind
        `<noscript>`, or in SVG that HTML breaks off. They become elements that mean nothing."""
        known = {tag.start for tag in self.tags}
        for match in _ACTS.finditer(self.text):
            if match.start() in known:
                continue
            limit = match.end() + _LONGEST_HIDDEN
            attributes, end = _attributes(self.text, match.end(), limit)
            values = {item.name: self.value(item).strip().lower() for item in reversed(attributes)}
            rels = frozenset(values.get("rel", "").split())
            is_long = end < 0 and limit < len(self.text)  # not read to its end: each start would read all that follows
            acts = values.get("http-equiv") == "refresh" or values.get("type") == "speculationrules"
            if is_long or acts or rels & _HINTS:
                yield Edit(match.start() + 1, match.start() + 1, "x-")

    def _attribute_edits(self, tag: Tag) -> Iterator[Edit]:
        values = {attribute.name: attribute for attribute in reversed(tag.attributes)}
        localized = False
        for attribute in tag.attributes:
            if attribute.start < 0:
                continue
            if tag.name == "base":
                if attribute.name == "href":
                    yield Edit(attribute.at, attribute.at + len("href"), "data-was-href")
                continue
            replaced = self._replacement(tag.name, attribute, values)
            if replaced is not None:
                localized = True
                yield self._edit(attribute, replaced)
            elif self._is_dropped(tag.name, attribute):
                yield Edit(attribute.at, attribute.at, "data-was-")
        if localized and tag.name in ("link", "script", "img", "audio", "video"):
            for attribute in tag.attributes:
                if attribute.name in _DROPPED:
                    yield Edit(attribute.at, attribute.at, "data-was-")

    def _is_dropped(self, tag: str, attribute: Attribute) -> bool:
        """Attributes that would call out, or forbid the copy to work."""
        if tag == "meta" and attribute.name == "http-equiv" and not self.own_policy:
            return self.value(attribute).strip().lower().startswith("content-security-policy")
        if self.missing is None:
            return False
        if tag == "script" and attribute.name == "type":
            return self.value(attribute).strip().lower() == "speculationrules"
        if tag == "link" and attribute.name == "imagesrcset":
            return True
        return attribute.name in ("ping", "attributionsrc")

    def _refer(self, value: str, use: Use) -> str | None:
        """What a reference becomes; one that is replaced because it is missing is remembered."""
        if self.missing is None:
            return reference(value, self.base, self.uri, self.rewriter)

        def stand_in(uri: str, use: Use) -> str | None:
            assert self.missing is not None
            found = self.missing(uri, use)
            if found is not None:
                self._lost.append(ascii_url(uri))
            elif use == Use.PAGE:
                self._left.append(uri)
            return found

        return reference(value, self.base, self.uri, self.rewriter, stand_in, use)

    def _srcdoc(self, value: str) -> str:
        """A page inside an attribute; its base is that of the page around it."""
        inner = _Page(
            value, self.uri, "utf-8", self.rewriter, self.missing, decoded=True, own_policy=False, base=self.base
        )
        return apply_edits(value, list(inner.edits()))

    def _replacement(self, tag: str, attribute: Attribute, values: dict[str, Attribute]) -> str | None:
        name = attribute.name
        if tag == "iframe" and name == "srcdoc":
            return self._srcdoc(self.value(attribute))
        rels = frozenset(self.value(values.get("rel")).lower().split()) if tag == "link" else frozenset()
        if name == "href" and "canonical" in rels and not rels & _HINTS:
            return reference(self.value(attribute), self.base, self.uri, lambda _: None)
        if name in URL_ATTRIBUTES or (tag, name) in _URL_PAIRS or self._is_param(tag, name, values):
            rel = self.value(values.get("rel")) if tag == "link" else ""
            return self._refer(self.value(attribute), use_of(tag, name, rel))
        if name in SRCSET_ATTRIBUTES:
            return self._srcset(self.value(attribute))
        if name == "style":
            return _css_text(self.value(attribute), self.base, self.rewriter, self.missing)
        if tag == "meta" and name == "content":
            return self._meta(attribute, values)
        if tag == "meta" and name == "charset":
            self.meta_charset = (attribute.start, attribute.end)
        return None

    def _edit(self, attribute: Attribute, value: str) -> Edit:
        escaped = value.replace("&", "&amp;").replace('"', "&quot;").replace("'", "&#39;").replace("<", "&lt;")
        if not self.decoded:
            escaped = escaped.encode("ascii", "xmlcharrefreplace").decode("ascii")
        quoted = self.text[attribute.start - 1] in "\"'"
        return Edit(attribute.start, attribute.end, escaped if quoted else f'"{escaped}"')

    def _is_param(self, tag: str, name: str, values: dict[str, Attribute]) -> bool:
        return tag == "param" and name == "value" and self.value(values.get("name")).lower() in _PARAM_NAMES

    def _meta(self, attribute: Attribute, values: dict[str, Attribute]) -> str | None:
        kind = self.value(values.get("http-equiv")).strip().lower()
        if kind == "refresh":
            value = self.value(attribute)
            span = refresh_span(value)
            if span is not None:
                target = self._refer(value[span[0] : span[1]], Use.REFRESH)
                before = value[: span[0]].rstrip("\"' ")
                word = "" if before.endswith("=") else " url="
                return None if target is None else before + word + target
        elif kind == "content-type":
            found = _META_CHARSET.search(self.text, attribute.start, attribute.end)
            if found:
                self.meta_charset = found.span(1)
        return None

    def _srcset(self, value: str) -> str | None:
        pieces = []
        for url, descriptor in srcset_candidates(value):
            lost = len(self._lost)
            new = self._refer(url, Use.IMAGE)
            if len(self._lost) == lost:  # a candidate that is missing is left out
                pieces.append((url if new is None else new.replace(",", "%2C")) + descriptor)
        return ", ".join(pieces) or (BLANK_IMAGE.replace(",", "%2C") if self._lost else None)


_PAGE_RELS = frozenset(
    [
        "alternate",
        "amphtml",
        "author",
        "bookmark",
        "contents",
        "first",
        "help",
        "home",
        "index",
        "last",
        "license",
        "me",
        "next",
    ]
)
_PAGE_RELS |= frozenset(["prev", "previous", "search", "section", "start", "tag", "top", "up", "via"])


# What a browser acts on without being asked to.
_HINTS = frozenset(["dns-prefetch", "preconnect", "prefetch", "prerender", "preload", "modulepreload", "stylesheet"])
_HINTS |= frozenset(["icon", "manifest", "search", "serviceworker", "import", "subresource", "pingback"])
_BLANK = "".join(map(chr, range(0x21)))  # what browsers drop around an address
_ELSEWHERE = re.compile(
    r"(?:file|ftp|smb|ws|wss|filesystem|view-source):|data:(?!image/(?:png|gif|jpe?g|webp)|[;,])", re.I
)


def use_of(tag: str, name: str, rel: str = "") -> Use:
    """What a browser does with the URL in this attribute of this tag."""
    if name in ("cite", "longdesc", "data-href") or (tag in ("a", "area") and name in ("href", "xlink:href")):
        return Use.PAGE
    if name in ("action", "formaction"):
        return Use.FORM
    if tag in ("frame", "iframe"):
        return Use.FRAME
    if tag == "script":
        return Use.SCRIPT
    if tag == "?xml-stylesheet":
        return Use.STYLE
    if tag == "link":
        rels = frozenset(rel.lower().split())
        return Use.STYLE if "stylesheet" in rels else Use.PAGE if rels & _PAGE_RELS and not rels & _HINTS else Use.OTHER
    if tag in ("img", "input", "image") or name in ("background", "poster", "lowsrc", *_LATE):
        return Use.IMAGE
    return Use.OTHER


def reference(
    value: str, base: str, page: str, rewriter: Rewriter, missing: Missing | None = None, use: Use = Use.OTHER
) -> str | None:
    """What a reference on a page becomes: local, the absolute original, a stand-in, or None for what is not a web
    reference."""
    stripped = re.sub(r"[\t\r\n]", "", value).strip(_BLANK)
    if missing is not None and _ELSEWHERE.match(stripped) and (use is Use.FRAME or stripped[:5].lower() != "data:"):
        return missing(stripped, use)  # another computer's share, or a page inside an address
    if not stripped or (_SKIPPED.match(stripped) and not (stripped[0] == "#" and base != page)):
        return None
    absolute = _join(base, stripped)
    if not absolute.lower().startswith(("http:", "https:")):
        return None
    target, fragment = urldefrag(absolute)
    local = rewriter(target)
    if local is None and missing is not None and (stand_in := missing(target, use)) is not None:
        return stand_in
    if local is None:
        return ascii_url(absolute)
    return local + (f"#{ascii_url(fragment)}" if fragment else "")


def _join(base: str, value: str) -> str:
    try:
        return urljoin(base, value)
    except ValueError:  # an unbalanced bracket in a host, for instance
        return value


def ascii_url(url: str) -> str:
    """The same URL with everything that needs escaping in markup or CSS escaped."""
    return quote(url, safe="%/:=&?~#+!$,;@[]*|{}^`-._", encoding="utf-8", errors="replace")


def tags(text: str, *, xml: bool = False) -> Iterator[Tag]:
    """Every start tag outside comments and raw text; of XML also `?xml-stylesheet`.

    An element of XML, or of SVG and MathML inside HTML, may be closed in its own tag (`<title/>`) and then has no text.
    """
    foreign = 0  # how many `svg` and `math` are open
    at = text.find("<")
    while at >= 0:
        if text.startswith("<!--", at):
            close = _COMMENT_END.search(text, at + 4)
            if close is None:
                return
            at = text.find("<", close.end())
            continue
        match = _TAG.match(text, at)
        if match is None:
            at = text.find("<", at + 1)
            continue
        attributes, end = _attributes(text, match.end())
        if end < 0:
            return
        name = match.group(2).lower()
        closed = text[end - 2] == "/"
        if name in _FOREIGN and not closed:
            foreign = max(0, foreign + (-1 if match.group(1) else 1))
        if not match.group(1):
            is_raw = name in _RAW_TEXT and not (closed and (xml or foreign))
            raw_end = _raw_end(text, name, end) if is_raw else end
            yield Tag(name, attributes, end, raw_end, at)
            end = raw_end
        at = text.find("<", end)


def _raw_end(text: str, name: str, start: int) -> int:
    close = re.compile(f"</{name}(?=[\\s/>])", re.IGNORECASE).search(text, start)
    return close.start() if close else len(text)


def _attributes(text: str, at: int, limit: int = sys.maxsize) -> tuple[tuple[Attribute, ...], int]:
    """The attributes from `at` and the end of the tag, or -1 if it is never closed (browsers then drop it) or not
    before `limit`."""
    found: list[Attribute] = []
    while True:
        match = _ATTRIBUTE.match(text, at, limit)
        if match is None or match.end() == at:
            return tuple(found), -1
        if match.group("end"):
            return tuple(found), match.end()
        group = next((g for g in ("dq", "sq", "raw") if match.group(g) is not None), None)
        start, end = (match.start(group), match.end(group)) if group else (-1, -1)
        found.append(Attribute(match.group("name").lower(), match.start("name"), start, end))
        at = match.end()


def _css_edits(
    text: str,
    offset: int,
    base: str,
    charset: str,
    rewriter: Rewriter,
    missing: Missing | None = None,
    *,
    strings: bool = False,
) -> Iterator[Edit]:
    def stand_in(uri: str, use: Use) -> str | None:
        assert missing is not None
        found = missing(uri, use)
        return None if found is None else f"{found}#{ascii_url(uri)}"  # a style has no attribute to keep the address in

    for found in css.references(text, strings=strings):
        url = found.url
        if not url.isascii() and max(url) <= "\xff":
            url = url.encode("latin-1").decode(charset, "replace")
        use = Use.STYLE if found.is_import else Use.OTHER
        new = reference(url, base, base, rewriter, stand_in if missing is not None else None, use)
        if new is not None:
            safe = css.escape(new)
            yield Edit(offset + found.start, offset + found.end, f'"{safe}"' if found.is_string else f"url({safe})")


def rewritten_css(text: str, base: str, rewriter: Rewriter, missing: Missing, *, strings: bool = False) -> str:
    """A style with its references repointed; with `strings` also those that a variable could hold."""
    return apply_edits(text, list(_css_edits(text, 0, base, "latin-1", rewriter, missing, strings=strings)))


def _css_text(text: str, base: str, rewriter: Rewriter, missing: Missing | None = None) -> str | None:
    edits = list(_css_edits(text, 0, base, "latin-1", rewriter, missing))
    return apply_edits(text, edits) if edits else None


def _declare(page: _Page, charset: str, header: str | None) -> Iterator[Edit]:
    """Say the charset in the page itself, because no server will say it any more."""
    label = _label(charset)
    if page.meta_charset is not None:
        start, end = page.meta_charset
        if guessed_charset(b"", page.text[start:end]) != charset:
            yield Edit(start, end, label)
    elif header is not None or not page.text.isascii():
        at = page.beginning
        yield Edit(at, at, f'<meta charset="{label}">')


def _label(codec: str) -> str:
    """The web's name for a Python codec."""
    name = re.sub(r"^cp(125\d|874)$", r"windows-\1", codec.replace("_", "-"))
    return re.sub(r"^iso8859-", "iso-8859-", name)


def apply_edits(text: str, edits: list[Edit]) -> str:
    """The text with the edits made; of two of one place, the first."""
    pieces: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < at:
            continue  # two readings of one place: the first stands
        pieces += [text[at : edit.start], edit.text]
        at = edit.end
    pieces.append(text[at:])
    return "".join(pieces)
