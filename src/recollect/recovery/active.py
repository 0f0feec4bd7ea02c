"""Documents that browsers run, besides HTML: SVG, MathML, XHTML and any XML with such elements in it; PDF.

A Content-Security-Policy cannot be declared inside them, and frames, objects and embeds open them as documents. So they
are cleaned: what runs, navigates, or loads from elsewhere is taken out; what the recovery has is repointed. Hides:
namespaces and prefixes, entities (expanded, within the parser's bounds), handlers, animated addresses, style sheets,
processing instructions. What is written is well-formed XML of the elements that are left.

A PDF keeps its bytes except for the names of its automatic actions, which are changed in place, length for length, also
inside compressed object streams where the changed stream fits into the place of the old one.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from typing import Any

from recollect.errors import FormatError
from recollect.recovery.decoding import decoded, guessed_charset, header_charset
from recollect.recovery.rewrite import Missing, Rewriter, Use, ascii_url, reference, rewritten_css, use_of

# Elements of these namespaces do something; all others are data.
_ACTIVE = frozenset(
    f"http://www.w3.org/{name}"
    for name in ("1999/xhtml", "2000/svg", "1998/Math/MathML", "2001/xml-events", "1999/XSL/Transform")
)
_RUNS = frozenset(["script", "handler", "listener", "base", "applet", "portal", "fencedframe", "noscript", "template"])
_ANIMATIONS = frozenset(["set", "animate", "animatecolor", "animatemotion", "animatetransform"])
_ADDRESSES = frozenset(
    [
        "href",
        "src",
        "data",
        "poster",
        "action",
        "formaction",
        "background",
        "cite",
        "longdesc",
        "lowsrc",
        "dynsrc",
        "manifest",
        "classid",
        "codebase",
        "archive",
        "code",
        "profile",
        "usemap",
        "to",
        "from",
        "values",
        "by",
    ]
)
_DROPPED = frozenset(["ping", "srcset", "imagesrcset", "srcdoc", "attributionsrc", "xml:base", "requiredextensions"])
_DECLARATION = re.compile(r"\ufeff?\s*+<\?xml[^>]*+\?>")
_HREF = re.compile(r"""href\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")
_CONTROLS = re.compile(r"[\x00-\x20]")
_PICTURES = ("data:image/png", "data:image/gif", "data:image/jpeg", "data:image/webp", "data:font/")
_MOST_UNPACKED = 64 * 1024 * 1024
EMPTY = b'<?xml version="1.0" encoding="utf-8"?>\n<empty/>\n'


def clean_xml(
    body: bytes, uri: str, content_type: str, rewriter: Rewriter, missing: Missing, *, packed: bool = False
) -> bytes:
    """The document without what runs or calls out; `packed` for one that the site keeps in gzip (`.svgz`)."""
    if packed:
        try:
            body = decoded(body, "gzip", limit=_MOST_UNPACKED, cut=True)
        except FormatError:
            return b""
    cleaned = _cleaned(body, uri, content_type, rewriter, missing)
    return gzip.compress(cleaned, mtime=0) if packed else cleaned


def _cleaned(body: bytes, uri: str, content_type: str, rewriter: Rewriter, missing: Missing) -> bytes:
    import lxml.etree

    text = body.decode(guessed_charset(body, header_charset(content_type)), "replace")
    declaration = _DECLARATION.match(text)
    text = text[declaration.end() :] if declaration else text.lstrip("\ufeff")
    root = _parsed(text.replace("\0", "").encode("utf-8", "replace"))
    if root is not None and "<!ENTITY" in text:
        # Elements that came out of an entity get their namespaces when they are read again.
        root = _parsed(lxml.etree.tostring(root, encoding="utf-8", with_tail=False))
    if root is None:
        return body if b"<" not in body else EMPTY
    document = _Document(uri, rewriter, missing)
    before = [b'<?xml version="1.0" encoding="utf-8"?>', *document.style_sheets(root)]
    if not document.clean(root):
        return EMPTY
    return b"\n".join([*before, lxml.etree.tostring(root, encoding="utf-8", with_tail=False)])


def _parsed(data: bytes) -> Any:
    import lxml.etree

    parser = lxml.etree.XMLParser(
        recover=True, resolve_entities="internal", no_network=True, load_dtd=False, huge_tree=False, encoding="utf-8"
    )
    try:
        return lxml.etree.fromstring(data, parser=parser)
    except (lxml.etree.LxmlError, ValueError):
        return None


class _Document:
    def __init__(self, uri: str, rewriter: Rewriter, missing: Missing) -> None:
        self.uri = uri
        self.rewriter = rewriter
        self.missing = missing

    def style_sheets(self, root: Any) -> list[bytes]:
        """The CSS that the document names and that came back; a transformation (XSLT) could make anything."""
        import lxml.etree

        kept = []
        for node in root.itersiblings(preceding=True):
            if node.tag is not lxml.etree.PI or node.target != "xml-stylesheet" or "xsl" in (node.text or "").lower():
                continue
            match = _HREF.search(node.text or "")
            local = self._local(match[1] or match[2] or "") if match else None
            if local is not None and local.partition("?")[0].partition("#")[0].endswith(".css"):
                kept.append(f'<?xml-stylesheet type="text/css" href="{_escaped(local)}"?>'.encode())
        return kept

    def clean(self, root: Any) -> bool:
        """Whether anything is left."""
        import lxml.etree

        for element in list(root.iter()):
            if not isinstance(element.tag, str):
                if element.tag is not lxml.etree.Comment:
                    _remove(element)
                continue
            namespace, _, local = element.tag.rpartition("}")  # QName refuses names that the parser has let pass
            if namespace.removeprefix("{") not in _ACTIVE:
                continue
            tag = local.lower()
            if (
                tag in _RUNS
                or (tag in _ANIMATIONS and self._moves_addresses(element))
                or self._is_declaration(element, tag)
            ):
                if element is root:
                    return False
                _remove(element)
                continue
            self._attributes(element, tag)
            if tag == "style":
                style = "".join(element.itertext())
                for child in list(element):
                    element.remove(child)
                element.text = rewritten_css(style, self.uri, self.rewriter, self.missing, strings=True)
        return True

    @staticmethod
    def _moves_addresses(element: Any) -> bool:
        name = (element.get("attributeName") or "").strip().lower().rpartition(":")[2]
        return name in _ADDRESSES or name.startswith("on") or name in ("style", "class")

    def _is_declaration(self, element: Any, tag: str) -> bool:
        """`meta` that does something, and `link` to anything but a style sheet or icon that came back."""
        if tag == "meta":
            return element.get("http-equiv") is not None
        if tag != "link":
            return False
        rels = frozenset((element.get("rel") or "").lower().split())
        return not rels <= {"stylesheet", "icon", "shortcut", "alternate"} or self._local(element.get("href")) is None

    def _attributes(self, element: Any, tag: str) -> None:
        lost = []
        for name, value in list(element.attrib.items()):
            plain = name.rpartition("}")[2].lower()
            if plain.startswith("on") or plain in _DROPPED or name == "{http://www.w3.org/XML/1998/namespace}base":
                del element.attrib[name]
            elif plain in _ADDRESSES:
                if (new := self._address(value, tag, plain)) is None:
                    lost.append(ascii_url(value.strip()))
                    del element.attrib[name]
                else:
                    element.attrib[name] = new
            elif "(" in value or "\\" in value or "@" in value:
                element.attrib[name] = rewritten_css(value, self.uri, self.rewriter, self.missing, strings=True)
        if lost:
            element.set("data-missing", " ".join(lost)[:4000])

    def _address(self, value: str, tag: str, name: str) -> str | None:
        """What an address becomes; None for one that has to go."""
        bare = _CONTROLS.sub("", value)
        if not bare or bare.startswith("#") or (tag in _ANIMATIONS and name in ("to", "from", "values", "by")):
            return value  # an animation that is left moves no address
        if bare.lower().startswith(_PICTURES):
            return value
        if tag == "a" and name == "href":
            if ":" in bare.partition("/")[0] and not bare.lower().startswith(("http:", "https:", "mailto:")):
                return None
            return reference(value, self.uri, self.uri, self.rewriter, self.missing, Use.PAGE) or value
        if use_of(tag, name) is Use.PAGE:  # where it says where something comes from
            return None
        return self._local(value)

    def _local(self, value: str | None) -> str | None:
        """The local reference for an address that came back."""
        local: list[str] = []

        def remember(uri: str) -> str | None:
            found = self.rewriter(uri)
            if found is not None:
                local.append(found)
            return found

        new = reference(value or "", self.uri, self.uri, remember)
        return new if local else None


def _remove(element: Any) -> None:
    """Put an empty comment in the place of an element: to join the texts around it takes as long as they are."""
    import lxml.etree

    parent = element.getparent()
    if parent is not None:
        comment = lxml.etree.Comment("")
        comment.tail = element.tail
        parent.replace(element, comment)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


# A name may be spelled with `#4f` for a letter (PDF 1.7, 7.3.5).
def _name(word: str) -> str:
    return "".join(f"(?:{letter}|#{ord(letter):02x}|#{ord(letter):02X})" for letter in word)


_ACTIONS = ("OpenAction", "AA", "JavaScript", "JS", "Launch", "SubmitForm", "GoToR", "ImportData", "RichMedia", "XFA")
_OBJECT_STREAM = re.compile(rb"/ObjStm(?![A-Za-z0-9#])")
_PDF_NAME = re.compile(rf"/(?:{'|'.join(_name(word) for word in _ACTIONS)})(?![A-Za-z0-9#])".encode())


def quiet_pdf(body: bytes) -> bytes:
    """The file without automatic actions, as long as it was: offsets inside it stay right."""
    pieces, at = [], 0
    for start, end, stream in _object_streams(body):
        quiet = _without_actions(stream)
        packed = zlib.compress(quiet, 9) if quiet != stream else b""
        if packed and len(packed) <= end - start:  # readers pass over what follows the end of the packed data
            pieces += [_without_actions(body[at:start]), packed.ljust(end - start, b"\n")]
            at = end
    return b"".join([*pieces, _without_actions(body[at:])])


def _without_actions(data: bytes) -> bytes:
    return _PDF_NAME.sub(lambda match: b"/" + b"x" * (len(match[0]) - 1), data)


def _object_streams(body: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Where packed objects begin and end, and the objects (PDF 1.7, 7.5.7); encrypted ones are left out."""
    end, left = 0, _MOST_UNPACKED
    for match in _OBJECT_STREAM.finditer(body):
        word = body.find(b"stream", match.end(), match.end() + 1000)
        start = word + 6 + (2 if body[word + 6 : word + 8] == b"\r\n" else 1)
        if word < 0 or start <= end:
            continue
        if (end := body.find(b"endstream", start)) < 0:
            return
        unpacker = zlib.decompressobj()
        try:
            stream = unpacker.decompress(body[start:end], left)
        except zlib.error:
            continue
        left -= len(stream)
        if left <= 0:
            return
        if unpacker.eof:
            yield start, end - len(unpacker.unused_data), stream
