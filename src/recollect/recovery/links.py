"""What a recovered document says: its links, its title, the beginning of its text.

Hides: broken markup, charsets, base, srcset, meta refresh, inline styles and scripts, frames, old attributes
(background, lowsrc, rollover images), pages inside pages (srcdoc), JSON-LD, CSS, SVG, feeds, sitemaps (gzipped too),
robots.txt, service workers' lists and web app manifests. Pure: bytes in, values out.

A link is followed as a *page* (it may hold more links and can be a soft 404) or an *asset*. An *embedded* link belongs
to the look of its page and should be of about the same date. A *guess* was found where only a program would know
whether it is a URL (a string in a script); it is worth a request only if some archive lists it.
Bounds: no more than MAX_LINKS links of one document; text is cut at MAX_TEXT characters; entities are not expanded and
nothing is loaded from anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from recollect.errors import FormatError
from recollect.recovery.attributes import LONGEST_BASE, refresh_span, srcset_candidates
from recollect.recovery.canonical import resolve
from recollect.recovery.collector import MAX_LINKS, Collector, Document, Link, LinkKind, encode_uri
from recollect.recovery.decoding import decoded, guessed_charset
from recollect.recovery.scriptlinks import is_page_name, json_links, read_manifest, read_script, script_links

__all__ = [
    "MAX_LINKS",
    "Document",
    "Link",
    "document_form",
    "effective_type",
    "encode_uri",
    "media_type_of",
    "read_document",
]

MAX_TEXT = 20_000
_MAX_MARKS = 400


def read_document(content: bytes, uri: str, media_type: str, charset: str | None = None) -> Document | None:
    """Read a decoded payload; None for what holds no links (images, PDF, ...)."""
    form = None
    if content.startswith(_GZIP) and (unpacked := _unpacked(content, uri, media_type)) is not None:
        content, uri_inside = unpacked
        form = document_form("", uri_inside, content[:1024])
    form = form or document_form(media_type, uri, content[:1024])
    if form is None:
        return None
    encoding = guessed_charset(content, charset)
    text = content.decode(encoding, "replace")
    return _READERS[form](text, uri, encoding)


_GZIP = b"\x1f\x8b"
_PACKED = re.compile(r"\.(?:xml|txt|rss|atom|html?)\.gz$", re.I)
_MAX_UNPACKED = 64 * 1024 * 1024  # a sitemap has at most 50 MB (sitemaps.org)


def _unpacked(content: bytes, uri: str, media_type: str) -> tuple[bytes, str] | None:
    """A document that the site itself keeps in gzip (`sitemap.xml.gz`): content and name of what is inside."""
    path = uri.partition("?")[0].partition("#")[0]
    if not _PACKED.search(path) and "xml" not in media_type and "sitemap" not in path.lower():
        return None
    try:
        return decoded(content, "gzip", limit=_MAX_UNPACKED, cut=True), path.removesuffix(".gz")
    except FormatError:
        return None


_BY_MEDIA_TYPE = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/vnd.wap.xhtml+xml": "html",
    "text/css": "css",
    "image/svg+xml": "svg",
    "application/manifest+json": "manifest",
}
_BY_ENDING = {"css": "css", "svg": "svg", "js": "script", "mjs": "script", "webmanifest": "manifest"}
_JSON_TYPES = frozenset({"application/json", "text/json", "text/plain", "application/octet-stream", ""})
_HTML_HEAD = re.compile(rb"<(?:!doctype\s++html|html|head|body|frameset|title|meta)\b", re.I)
_XML_HEAD = re.compile(rb"\s*+(?:<\?xml|<(?:rss|feed|urlset|sitemapindex|rdf:RDF|opml)\b)", re.I)
_DOCTYPE_OF_HTML = re.compile(rb"<!doctype\s++html|<html", re.I)
# Types that servers send for what they do not know, and archives for what they do not know.
_UNTRUSTED = frozenset(
    [
        *("", "text/plain", "application/octet-stream", "binary/octet-stream", "html", "unk", "*/*"),
        *("application/unknown", "content/unknown", "text/unknown", "unknown/unknown", "warc/revisit"),
        *("application/x-unknown-content-type", "application/x-httpd-php"),
    ]
)
_TYPE_OF_FORM = {"html": "text/html", "css": "text/css", "svg": "image/svg+xml"}
_SVG_HEAD = re.compile(rb"<svg\b|<\w++:svg\b", re.I)
_SVG_DOCTYPE = re.compile(rb"<!doctype\s++svg", re.I)
_SPACES = re.compile(rb"(?:\xef\xbb\xbf)?+\s*+")
_BEFORE = {b"<!--": b"-->", b"<?": b">"}


def _is_html(head: bytes) -> bool:
    return _HTML_HEAD.match(head, _root(head)) is not None


def _is_svg(head: bytes) -> bool:
    at = _root(head)
    if _SVG_DOCTYPE.match(head, at):  # with entities of its own, perhaps: <!DOCTYPE svg [ ... ]>
        at = head.find(b"<svg", at)
        return True if at < 0 else _SVG_HEAD.match(head, at) is not None
    return _SVG_HEAD.match(head, at) is not None


def _root(head: bytes) -> int:
    """Where markup begins, behind comments, processing instructions and white space."""
    at = 0
    while True:
        spaces = _SPACES.match(head, at)
        at = spaces.end() if spaces else at
        mark = next((mark for mark in _BEFORE if head.startswith(mark, at)), None)
        end = head.find(_BEFORE[mark], at + len(mark)) if mark is not None else -1
        if mark is None or end < 0:
            return at
        at = end + len(_BEFORE[mark])


def media_type_of(declared: str) -> str:
    """The media type that a header declares; of several the first."""
    return re.split("[;,]", declared, maxsplit=1)[0].strip().lower()


def effective_type(media_type: str, uri: str, head: bytes) -> str:
    """The media type as which a browser will read the copy: the declared one, but where that says nothing, or the name
    of the file says something else, that of its form. So no page stays a page whose links were left as they were."""
    kind = media_type_of(media_type)
    form = document_form(kind, uri, head)
    if form not in _TYPE_OF_FORM or _BY_MEDIA_TYPE.get(kind) == form:
        return "application/xhtml+xml" if kind == "application/vnd.wap.xhtml+xml" else kind
    ending = uri.partition("?")[0].partition("#")[0].lower().rpartition("/")[2].rpartition(".")[2]
    if kind == "text/plain" and not (ending == form or (form == "html" and ending in ("htm", "shtml", "xhtml"))):
        return kind
    return "application/xhtml+xml" if form == "html" and kind.endswith("xml") else _TYPE_OF_FORM[form]


def document_form(media_type: str, uri: str, head: bytes) -> str | None:
    """What kind of document this is, by media type, then (where that says nothing) by its first bytes and its name."""
    kind = media_type_of(media_type)
    path = uri.partition("?")[0].partition("#")[0].lower()
    if path.endswith("/robots.txt") and not _is_html(head):
        return "robots"
    if _is_named(path, "/sitemap", ".txt") and not _is_html(head):
        return "urls"
    if kind in _JSON_TYPES and (path.endswith(".webmanifest") or _is_named(path, "manifest", ".json")):
        return "manifest"
    if kind in _BY_MEDIA_TYPE:
        return _BY_MEDIA_TYPE[kind]
    if "javascript" in kind or "ecmascript" in kind:
        return "script"
    if kind.endswith(("/xml", "+xml")):
        if _DOCTYPE_OF_HTML.match(head, _root(head)):
            return "html"
        return "svg" if _is_svg(head) else "xml"
    if kind in _UNTRUSTED:
        if _is_html(head):
            return "html"
        if _is_svg(head):
            return "svg"
        if _XML_HEAD.match(head):
            return "xml"
        return {"css": "css", "svg": "svg", "js": "script", "mjs": "script", "webmanifest": "manifest"}.get(
            path.rpartition(".")[2]
        )
    return None


_NAME = re.compile(r"[\w.-]*+")


def _is_named(path: str, word: str, ending: str) -> bool:
    """Whether the last name of a path has this word (with `/`: begins with it) and this ending."""
    at = path.rfind(word, 0, len(path) - len(ending))
    return path.endswith(ending) and at >= 0 and _NAME.fullmatch(path, at + len(word)) is not None


# HTML ----------------------------------------------------------------------------------------------------------------

# (tag, attribute) -> (kind, embedded). `link`, `meta`, `param` and `object` have rules of their own below.
_HTML_LINKS: dict[tuple[str, str], tuple[LinkKind, bool]] = {
    ("a", "href"): ("page", False),
    ("a", "xlink:href"): ("page", False),
    ("area", "href"): ("page", False),
    ("frame", "src"): ("page", True),
    ("iframe", "src"): ("page", True),
    ("img", "src"): ("asset", True),
    ("img", "lowsrc"): ("asset", True),
    ("img", "longdesc"): ("page", False),
    ("image", "src"): ("asset", True),
    ("image", "href"): ("asset", True),
    ("image", "xlink:href"): ("asset", True),
    ("use", "href"): ("asset", True),
    ("use", "xlink:href"): ("asset", True),
    ("input", "src"): ("asset", True),
    ("script", "src"): ("asset", True),
    ("embed", "src"): ("asset", True),
    ("audio", "src"): ("asset", True),
    ("video", "src"): ("asset", True),
    ("video", "poster"): ("asset", True),
    ("source", "src"): ("asset", True),
    ("track", "src"): ("asset", True),
    ("bgsound", "src"): ("asset", True),
    ("html", "manifest"): ("asset", True),
    ("xml", "src"): ("asset", True),
}
# On any element: old backgrounds and the attributes from which scripts load pictures late.
_ANY_TAG: dict[str, tuple[LinkKind, bool]] = {
    "background": ("asset", True),
    "data-src": ("asset", True),
    "data-original": ("asset", True),
    "data-lazy-src": ("asset", True),
    "data-bg": ("asset", True),
    "data-background": ("asset", True),
    "data-poster": ("asset", True),
}
_SRCSETS = frozenset({"srcset", "data-srcset", "imagesrcset", "data-lazy-srcset"})
_PAGE_RELS = frozenset(
    {"alternate", "amphtml", "archives", "author", "bookmark", "canonical", "contents", "first", "glossary", "help"}
    | {"home", "index", "last", "license", "me", "next", "prev", "previous", "search", "section", "start", "tag", "top"}
    | {"up", "via", "appendix", "begin", "chapter", "child", "collection", "copyright", "end", "parent", "sitemap"}
    | {"subsection", "toc"}
)
_NO_FETCH_RELS = frozenset({"dns-prefetch", "preconnect", "pingback", "edituri", "wlwmanifest", "profile", "shortlink"})
_META_IMAGES = re.compile(
    r"(?:og:|twitter:)(?:image|video|audio)(?::src|:url|:secure_url)?$|msapplication-\w*logo|thumbnail", re.I
)
_CONDITIONAL = re.compile(r"\[if\b[^\]]*+\]>")
_CONDITIONAL_END = "<![endif]"
_INVISIBLE = frozenset({"script", "style", "noscript", "template", "head", "option"})


def _read_html(text: str, uri: str, charset: str) -> Document:
    root = parse_html(text)
    if root is None:
        return Document("html")
    collector = Collector(base_of(root, uri), charset)
    page = _Page(collector)
    page.walk(root)
    title = root.find(".//title")
    words = " ".join("".join(title.itertext()).split())[:500] if title is not None else ""
    shown = " ".join(page.text.split())[:MAX_TEXT]
    return Document("html", collector.links(), words, shown, page.refresh, page.has_password, tuple(page.marks))


def parse_html(text: str) -> Any:
    """An lxml tree of any markup, however broken; None when there is nothing in it."""
    import lxml.etree
    import lxml.html

    data = text.replace("\0", "").encode("utf-8", "replace")
    if not data.strip():
        return None
    parser = lxml.html.HTMLParser(encoding="utf-8", recover=True, no_network=True, huge_tree=False)
    try:
        return lxml.html.document_fromstring(data, parser=parser)
    except (lxml.etree.LxmlError, ValueError, AssertionError):
        return None


def base_of(root: Any, uri: str) -> str:
    """The address that links of a page are relative to."""
    for element in root.iter("base"):
        if href := element.get("href"):
            return (resolve(uri, href) if len(href) <= LONGEST_BASE else None) or uri
    return uri


class _Page:
    """One walk over a tree: links, text, refresh, whether a password is asked for."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.refresh: str | None = None
        self.has_password = False
        self.marks: dict[str, None] = {}
        self._text: list[str] = []
        self._length = 0

    @property
    def text(self) -> str:
        return " ".join(self._text)

    def walk(self, root: Any) -> None:
        for element in root.iter():
            tag = element.tag
            if not isinstance(tag, str):
                self._special(element)
                continue
            tag = tag.rpartition("}")[2].lower()
            self._words(element, tag)
            if element.attrib:
                self._attributes(element, tag)
            if tag == "style" and element.text:
                _css_links(element.text, self.collector)
            elif tag == "script" and element.text:
                kind = (element.get("type") or "").lower()
                if "json" in kind:
                    json_links(element.text, self.collector)
                else:
                    script_links(element.text, self.collector)

    def _words(self, element: Any, tag: str) -> None:
        if self._length > 2 * MAX_TEXT:
            return
        for part in (element.text if tag not in _INVISIBLE else None, element.tail):
            if part and not part.isspace():
                self._text.append(part)
                self._length += len(part)

    def _special(self, element: Any) -> None:
        """A comment may be Internet Explorer's conditional one, with real links inside."""
        if element.tail and not element.tail.isspace():
            self._text.append(element.tail)
        text = (element.text or "").strip()
        begin = _CONDITIONAL.match(text) if text.endswith(_CONDITIONAL_END) else None
        if begin and (fragment := parse_html(text[begin.end() : -len(_CONDITIONAL_END)])) is not None:
            _Page(self.collector).walk(fragment)

    def _attributes(self, element: Any, tag: str) -> None:
        add = self.collector.add
        special = _SPECIAL_TAGS.get(tag)
        if special is not None:
            special(self, element)
        for name, value in element.attrib.items():
            rule = _HTML_LINKS.get((tag, name)) or _ANY_TAG.get(name)
            if rule is not None:
                add(value, rule[0], embedded=rule[1])
            elif name in ("class", "id") and len(self.marks) < _MAX_MARKS:
                self.marks.update((f"{name}={mark}", None) for mark in value.split()[:10])
            elif name == "style":
                _css_links(value, self.collector)
            elif name in _SRCSETS:
                for candidate in srcset_uris(value):
                    add(candidate, "asset", embedded=True)
            elif name[:2] == "on":
                script_links(value, self.collector)
            elif name == "value" and tag == "option":
                if is_page_name(value):
                    add(value, "page", guess=True)
            elif name == "srcdoc" and tag == "iframe" and (inner := parse_html(value)) is not None:
                _Page(self.collector).walk(inner)
        if tag == "a" and (element.get("href") or "")[:11].lower() == "javascript:":
            script_links(element.get("href"), self.collector)

    def _link(self, element: Any) -> None:
        rels = frozenset((element.get("rel") or "").lower().split())
        if rels & _NO_FETCH_RELS:
            return
        media_type = (element.get("type") or "").lower()
        is_page = bool(rels & _PAGE_RELS) and "stylesheet" not in rels and "icon" not in rels
        feed = "alternate" in rels and media_type.endswith(("rss+xml", "atom+xml", "rdf+xml", "/json"))
        self.collector.add(element.get("href"), "page" if is_page or feed else "asset", embedded=not is_page)

    def _meta(self, element: Any) -> None:
        content = element.get("content") or ""
        if (element.get("http-equiv") or "").lower() == "refresh":
            target = refresh_target(content)
            if target:
                self.collector.add(target, "page")
                self.refresh = self.refresh or resolve(self.collector.base, target)
        elif _META_IMAGES.match(element.get("property") or element.get("name") or ""):
            self.collector.add(content, "asset")

    def _object(self, element: Any) -> None:
        base = element.get("codebase")
        for name in ("data", "code", "classid"):
            value = element.get(name)
            if value and not value.lower().startswith(("clsid:", "java:")):
                target = resolve(resolve(self.collector.base, base) or self.collector.base, value) if base else value
                self.collector.add(target, "asset", embedded=True)
        for archive in (element.get("archive") or "").split(","):
            target = resolve(resolve(self.collector.base, base) or self.collector.base, archive) if base else archive
            self.collector.add(target, "asset", embedded=True)

    def _param(self, element: Any) -> None:
        if (element.get("name") or "").lower() in ("movie", "src", "url", "filename", "file", "flashvars"):
            value = element.get("value") or ""
            if "=" not in value.partition("?")[0]:
                self.collector.add(value, "asset", embedded=True)

    def _input(self, element: Any) -> None:
        self.has_password = self.has_password or (element.get("type") or "").lower() == "password"


_SPECIAL_TAGS: dict[str, Callable[[_Page, Any], None]] = {
    "link": _Page._link,
    "meta": _Page._meta,
    "object": _Page._object,
    "applet": _Page._object,
    "param": _Page._param,
    "input": _Page._input,
}


def refresh_target(content: str) -> str | None:
    """The URL of a meta refresh (`5; url='next.html'`), None for one that only reloads."""
    span = refresh_span(content)
    return None if span is None else content[span[0] : span[1]].strip() or None


def srcset_uris(value: str) -> Iterator[str]:
    """The URLs of a srcset."""
    return (candidate.url for candidate in srcset_candidates(value))


# The other kinds -----------------------------------------------------------------------------------------------------


def _css_links(text: str, collector: Collector) -> None:
    lowered = text.lower()
    if "url(" not in lowered and "@import" not in lowered and "\\" not in lowered:
        return
    for reference in css_references(text):
        collector.add(reference, "asset", embedded=True)


def css_references(text: str) -> Iterator[str]:
    """The URLs of a style sheet: url(...) in all spellings and @import strings, comments left out."""
    import tinycss2

    stack = [iter(tinycss2.parse_component_value_list(text, skip_comments=True))]
    importing = False
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            continue
        if node.type == "url" or (node.type == "string" and importing):
            yield node.value
        elif node.type == "function":
            if node.lower_name in ("url", "src", "image-set", "-webkit-image-set"):
                yield from (part.value for part in node.arguments if part.type == "string")
            stack.append(iter(node.arguments))
        elif node.type in ("() block", "[] block", "{} block"):
            stack.append(iter(node.content))
        if node.type == "at-keyword":
            importing = node.lower_value == "import"
        elif node.type not in ("whitespace", "comment"):
            importing = False


def _read_css(text: str, uri: str, charset: str) -> Document:
    collector = Collector(uri, charset)
    _css_links(text, collector)
    return Document("css", collector.links())


def _read_robots(text: str, uri: str, charset: str) -> Document:
    collector = Collector(uri, charset)
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower() == "sitemap" and value.strip():
            collector.add(value.split(maxsplit=1)[0], "page")
    return Document("robots", collector.links())


def _read_urls(text: str, uri: str, charset: str) -> Document:
    """A sitemap of one URL a line."""
    collector = Collector(uri, charset)
    for line in text.splitlines():
        if re.match(r"https?://\S+$", line.strip(), re.I):
            collector.add(line.strip(), "page")
    return Document("urls", collector.links())


_XML_STYLESHEET = re.compile(r"""href\s*=\s*["']([^"']+)["']""")
_FEED_TEXT = frozenset({"description", "encoded", "content", "summary"})


def _read_xml(text: str, uri: str, charset: str) -> Document:
    """Sitemaps (loc), RSS and Atom (link, guid, enclosure, logo, and HTML inside), OPML, any xlink:href."""
    collector = Collector(uri, charset)
    for element in _xml_elements(text):
        if not isinstance(element.tag, str):
            if (match := _XML_STYLESHEET.search(element.text or "")) is not None:
                collector.add(match[1], "asset", embedded=True)
            continue
        _xml_links(element, element.tag.rpartition("}")[2].lower(), collector)
    return Document("xml", collector.links())


def _xml_links(element: Any, tag: str, collector: Collector) -> None:
    parent = element.getparent()
    within = parent.tag.rpartition("}")[2].lower() if parent is not None and isinstance(parent.tag, str) else ""
    value = (element.text or "").strip()
    if tag == "loc":
        collector.add(value, "asset" if within in ("image", "video") else "page")
    elif tag == "link":
        collector.add(element.get("href") or value, "page" if element.get("rel") != "enclosure" else "asset")
    elif tag == "guid" and element.get("ispermalink", element.get("isPermaLink", "true")) == "true":
        collector.add(value if value.startswith("http") else None, "page")
    elif tag in ("enclosure", "thumbnail") or (tag == "content" and element.get("url")):
        collector.add(element.get("url"), "asset")
    elif tag in ("logo", "icon") or (tag == "url" and within == "image"):
        collector.add(value, "asset")
    elif tag == "outline":
        collector.add(element.get("xmlUrl") or element.get("htmlUrl"), "page")
    if tag in _FEED_TEXT and "<" in value and (fragment := parse_html(value)) is not None:
        _Page(collector).walk(fragment)
    for name, reference in element.attrib.items():
        if name.endswith("}href"):
            collector.add(reference, "page" if tag == "a" else "asset", embedded=tag != "a")


def _xml_elements(text: str) -> Iterator[Any]:
    import lxml.etree

    parser = lxml.etree.XMLParser(
        recover=True, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, encoding="utf-8"
    )
    try:
        root = lxml.etree.fromstring(text.encode("utf-8", "replace"), parser=parser)
    except (lxml.etree.LxmlError, ValueError):
        return
    if root is None:
        return
    yield from root.itersiblings(preceding=True)
    yield from root.iter()


def _read_svg(text: str, uri: str, charset: str) -> Document:
    collector = Collector(uri, charset)
    for element in _xml_elements(text):
        if not isinstance(element.tag, str):
            continue
        tag = element.tag.rpartition("}")[2].lower()
        for name, reference in element.attrib.items():
            if name.endswith("}href") or (name == "href" and tag in ("image", "use", "a", "script", "feimage")):
                collector.add(reference, "page" if tag == "a" else "asset", embedded=tag != "a")
            elif name == "style" or "url(" in reference:
                _css_links(reference, collector)
        if tag == "style" and element.text:
            _css_links(element.text, collector)
    return Document("svg", collector.links())


_READERS: dict[str, Callable[[str, str, str], Document]] = {
    "html": _read_html,
    "css": _read_css,
    "script": read_script,
    "robots": _read_robots,
    "urls": _read_urls,
    "manifest": read_manifest,
    "xml": _read_xml,
    "svg": _read_svg,
}
