"""Where a page carries its blocks, and the page without them.

Hides: enough of HTML's tokens to distinguish a real `</body>` from one in a comment, a script, a style, a title or an
attribute; charsets in which `<` can be part of another character; XML; framesets. `Scanner` takes a page in pieces, so
that responses can be changed while they pass. Pure.

Invariants: `carry` inserts one run of bytes and changes no other; `strip` takes out exactly that run; a page that
cannot carry anything without changing what browsers make of it is refused with a reason (`Unfit`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, StrEnum, auto

from recollect.protection.marks import BEGIN, ascii_text, utf16_order

MEDIA_TYPE = "application/vnd.recollect"
SCRIPT_OPEN, SCRIPT_CLOSE = f'<script type="{MEDIA_TYPE}">\n', "\n</script>"
# As in Figure 51 of McCown (2007).
COMMENT_OPEN, COMMENT_CLOSE = "<!-- BEGIN_FILE_RECOVERY\n", "\nEND_FILE_RECOVERY -->"
_LONGEST_TAG = 1 << 16
_SUFFIXES = frozenset({".html", ".htm", ".xhtml", ".xht", ".shtml", ".shtm"})
_XML_SUFFIXES = frozenset({".xhtml", ".xht"})
_PAGE_HEAD = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*+-->\s*)*+<(?:!doctype\s+html|html|head|body|frameset)\b",
    re.IGNORECASE | re.DOTALL,
)
_RAW = frozenset({b"script", b"style", b"textarea", b"title", b"xmp", b"iframe", b"noembed", b"noframes"})
_FOREIGN = frozenset({b"svg", b"math"})
# A start or end tag by the rules of HTML's tokenizer: a value follows `=`, and only there do quotes count. What begins
# as a tag and does not match is never closed.
_ATTRIBUTES = rb"(?:[\s/]++|[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|(?![\"'])[^\s>]*+)|(?!\s*+=)))*+>"
_TAG = re.compile(rb"<(/?)([a-zA-Z][^\s/>]*+)" + _ATTRIBUTES)
# Text and tags that decide nothing, in one match: most of a page.
_DULL = re.compile(
    rb"(?:[^<]++|<(?!/?(?:script|style|textarea|title|xmp|iframe|noembed|noframes|svg|math|head|body|frameset|html"
    rb"|plaintext)[\s/>])/?[a-zA-Z][^\s/>]*+" + _ATTRIBUTES + rb")*+",
    re.IGNORECASE,
)
_DOUBLE_BYTES = re.compile(rb"\x1b\$[@B(].*?(?=\x1b\(|\Z)", re.DOTALL)
_CARRIERS = re.compile(
    rb"<script\s+type=[\"']?application/vnd\.recollect[\"']?\s*>[^<]*</script\s*>"
    rb"|<!--\s*BEGIN_FILE_RECOVERY\s+recollect-block/[^<>]*?END_FILE_RECOVERY\s*-->"
    rb"|<a data-recollect-vault=[^<>]*+></a>",
    re.IGNORECASE,
)


class Style(StrEnum):
    """The element that carries blocks."""

    SCRIPT = "script"  # kept by minifiers
    COMMENT = "comment"  # as in McCown (2007); minifiers drop it


class Unfit(StrEnum):
    """Why a page cannot carry blocks."""

    UNCLOSED = "a comment or an element is never closed"
    PLAINTEXT = "its text goes on to the end (<plaintext>)"
    UTF32 = "UTF-32"


class Tag(Enum):
    """The tags that decide where blocks go."""

    HEAD_END = auto()
    BODY = auto()
    FRAMESET = auto()
    BODY_END = auto()
    HTML_END = auto()
    PLAINTEXT = auto()


_TAGS = {
    (b"/", b"head"): Tag.HEAD_END,
    (b"", b"body"): Tag.BODY,
    (b"", b"frameset"): Tag.FRAMESET,
    (b"/", b"body"): Tag.BODY_END,
    (b"/", b"html"): Tag.HTML_END,
    (b"", b"plaintext"): Tag.PLAINTEXT,
}
_COMMENT_END = re.compile(rb"--!?>")
_CDATA_END = re.compile(rb"\]\]>")
_TAG_END = re.compile(rb">")
_NEVER = re.compile(rb"(?!)")


class Scanner:
    """Finds the deciding tags of a page that comes in pieces, one byte per character."""

    def __init__(self, *, is_xml: bool = False) -> None:
        self._is_xml = is_xml
        self._rest = b""
        self._offset = 0  # of the first byte of `_rest`
        self._until: re.Pattern[bytes] | None = None  # what ends the text we are in
        self._takes_end = False  # does its end belong to it, as that of a comment does?
        self._in_tag = False  # does `_rest` begin with a tag whose end was looked for?
        self._foreign = 0  # depth inside svg and math

    @property
    def is_open(self) -> bool:
        """Are we inside a comment, a script or another text that is not markup?"""
        return self._until is not None

    @property
    def pending(self) -> int:
        """How many of the last bytes are not decided yet."""
        return len(self._rest)

    def feed(self, data: bytes, *, final: bool = False) -> list[tuple[Tag, int]]:
        """The deciding tags that are complete now, with the offset at which each begins in the whole page."""
        text = self._rest + data
        found: list[tuple[Tag, int]] = []
        if self._in_tag and not final and b">" not in data and len(text) <= _LONGEST_TAG:
            self._rest = text  # still no end: reading it again from its beginning for each piece takes quadratic time
            return found
        self._in_tag = False
        at = 0
        while at < len(text):
            if self._until is not None:
                at = self._skip_text(text, at, final)
                if self._until is not None:
                    break
            at = _end_of(_DULL.match(text, at))
            if at >= len(text):
                break
            next_at = self._markup(text, at, found, final)
            if next_at < 0:
                break
            at = next_at
        self._offset += at
        self._rest = text[at:]
        return found

    def _skip_text(self, text: bytes, at: int, final: bool) -> int:
        assert self._until is not None
        match = self._until.search(text, at)
        if match is None:
            return len(text) if final else max(at, len(text) - 16)  # the end may be cut: `</scri`
        self._until = None
        return match.end() if self._takes_end else match.start()

    def _markup(self, text: bytes, at: int, found: list[tuple[Tag, int]], final: bool) -> int:
        """Read what begins with `<` at `at`; where to go on, or -1 when more bytes are needed."""
        if not final and len(text) - at < 9:
            return -1  # not enough to distinguish `<![CDATA[` from `<!-`
        if text.startswith(b"<!--", at):
            return self._enter(_COMMENT_END, at + 2, takes_end=True)
        if text.startswith(b"<![CDATA[", at) and (self._is_xml or self._foreign):
            return self._enter(_CDATA_END, at + 9, takes_end=True)
        if text[at + 1 : at + 2] in (b"!", b"?"):
            return self._enter(_TAG_END, at + 2, takes_end=True)
        if not text[at + 1 : at + 3].lstrip(b"/")[:1].isalpha():
            return at + 1
        match = _TAG.match(text, at)
        if match is None:
            return self._unclosed_tag(text, at, final)
        self._tag(match, found)
        return match.end()

    def _unclosed_tag(self, text: bytes, at: int, final: bool) -> int:
        if final:  # browsers drop all that follows
            return self._enter(_NEVER, len(text), takes_end=False)
        if len(text) - at > _LONGEST_TAG:  # an image inside an attribute, most likely
            return self._enter(_TAG_END, at + 1, takes_end=True)
        self._in_tag = True
        return -1

    def _enter(self, end: re.Pattern[bytes], at: int, *, takes_end: bool) -> int:
        self._until, self._takes_end = end, takes_end
        return at

    def _tag(self, match: re.Match[bytes], found: list[tuple[Tag, int]]) -> None:
        slash, name = match[1], match[2].lower()
        tag = _TAGS.get((slash, name))
        if tag is not None:
            found.append((tag, self._offset + match.start()))
        if tag is Tag.PLAINTEXT and not self._is_xml:
            self._enter(_NEVER, 0, takes_end=False)
        closes_itself = match[0].endswith(b"/>")
        if name in _FOREIGN and not (closes_itself and not slash):
            self._foreign = max(0, self._foreign - 1) if slash else self._foreign + 1
        elif name in _RAW and not slash and not self._is_xml and not (self._foreign and closes_itself):
            self._enter(re.compile(rb"</%s(?=[\s/>])" % name, re.IGNORECASE), 0, takes_end=False)


def _end_of(match: re.Match[bytes] | None) -> int:
    assert match is not None  # the pattern matches nothing, too
    return match.end()


@dataclass(frozen=True, slots=True)
class Place:
    """Where blocks go: an offset in characters, and the only element that is allowed there (None: any)."""

    offset: int
    only: Style | None = None


def is_page(name: str, head: bytes) -> bool:
    """Is a file a page, by its name or by its first bytes?"""
    suffix = _suffix(name)
    return suffix in _SUFFIXES or (suffix not in _OTHER and _PAGE_HEAD.match(ascii_text(head)) is not None)


_OTHER = frozenset({".js", ".css", ".json", ".xml", ".txt", ".md", ".svg", ".rss", ".atom", ".map"})


def is_xml_page(name: str, page: bytes) -> bool:
    """Do servers send it as XML, in which every tag has to be closed?"""
    return _suffix(name) in _XML_SUFFIXES or ascii_text(page[:256]).lstrip(b"\xef\xbb\xbf\xff \t\r\n").startswith(
        b"<?xml"
    )


def _suffix(name: str) -> str:
    base = name.rpartition("/")[2]
    return base[base.rindex(".") :].lower() if "." in base else ""


def place(page: bytes, *, is_xml: bool = False) -> Place | Unfit:
    """Where a page takes blocks: before `</body>`, in the head of a frameset, else at the end."""
    if page.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return Unfit.UTF32
    text = _characters(page)
    scanner = Scanner(is_xml=is_xml)
    tags = scanner.feed(text, final=True)
    if any(tag is Tag.PLAINTEXT for tag, _ in tags):
        return Unfit.PLAINTEXT
    if scanner.is_open:
        return Unfit.UNCLOSED
    return _choose(tags, len(text), is_xml)


def _choose(tags: list[tuple[Tag, int]], end: int, is_xml: bool) -> Place:
    first: dict[Tag, int] = {}
    last: dict[Tag, int] = {}
    for tag, offset in tags:
        first.setdefault(tag, offset)
        last[tag] = offset
    if Tag.FRAMESET in first and first[Tag.FRAMESET] < first.get(Tag.BODY, end):
        return Place(min(first.get(Tag.HEAD_END, end), first[Tag.FRAMESET]))
    if Tag.BODY_END in last:
        return Place(last[Tag.BODY_END])
    if is_xml:
        return Place(end, Style.COMMENT)  # after the root element nothing else is well-formed
    return Place(last.get(Tag.HTML_END, end))


def _characters(page: bytes) -> bytes:
    """One byte per character, none of which is mistaken for markup."""
    text = ascii_text(page)
    if text is page and b"\x1b$" in page:  # ISO-2022-JP and its kin
        text = _DOUBLE_BYTES.sub(lambda match: b"x" * len(match[0]), page)
    return text


def carrier(blocks: str, style: Style, extra: str = "") -> str:
    """The text that is inserted for these blocks; `extra` follows the element."""
    if style is Style.SCRIPT:
        return f"{SCRIPT_OPEN}{blocks}{SCRIPT_CLOSE}{extra}"
    return f"{COMMENT_OPEN}{blocks}{COMMENT_CLOSE}{extra}"


def vault_link(href: str) -> str:
    """A link to the vault that crawlers follow and readers do not see."""
    return f'<a data-recollect-vault="" href="{href}" hidden="hidden" tabindex="-1"></a>'


def carry(
    page: bytes, blocks: str, style: Style = Style.SCRIPT, *, extra: str = "", is_xml: bool = False
) -> bytes | Unfit:
    """The page with these blocks in it instead of those it had."""
    bare = strip(page)
    where = place(bare, is_xml=is_xml)
    if isinstance(where, Unfit):
        return where
    if where.only is Style.COMMENT:
        extra = ""
    text = carrier(blocks, where.only or style, extra)
    order = utf16_order(bare)
    if order is None:
        return bare[: where.offset] + text.encode("ascii") + bare[where.offset :]
    encoded = text.encode("utf-16-le" if order == "little" else "utf-16-be")
    return bare[: 2 * where.offset] + encoded + bare[2 * where.offset :]


def strip(page: bytes) -> bytes:
    """The page without the blocks that were inserted into it; a page without any is returned as it is."""
    pieces = list(_carriers(page))
    if not pieces:
        return page
    kept = []
    at = 0
    for start, end in pieces:
        kept.append(page[at:start])
        at = end
    return b"".join([*kept, page[at:]])


def _carriers(page: bytes) -> Iterator[tuple[int, int]]:
    """Start and end of each inserted run, in bytes."""
    text = ascii_text(page)
    if MEDIA_TYPE.encode() not in text and BEGIN.encode() not in text:
        return
    width = 1 if text is page else 2
    for match in _CARRIERS.finditer(text):
        if match[0][:3] == b"<a " or b"recollect-block/" in match[0]:
            yield match.start() * width, match.end() * width
