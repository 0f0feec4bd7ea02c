"""Links inside of PDF and Flash files (McCown 2007, section IX.3.1: sites whose menu is a Flash film were lost for lack
of them).

PDF: the link annotations of each page, read by pypdf (extra `pdf`); without it a PDF has no links.

Flash (SWF File Format Specification, version 19): `FWS`, or `CWS` with everything after the eighth byte packed with
zlib; a rectangle, rate and number of frames, then tags: uint16 with the code in its upper ten bits and the length in
the lower six (63: an uint32 follows). A sprite (39) holds tags of its own after four bytes. The action GetURL (0x83,
uint16 length, URL, zero, target) is certain; addresses and names of files in the strings of actions, texts and ABC code
are guesses. `ZWS` (LZMA) is not read.

Sizes, pages and time are bounded.
"""

from __future__ import annotations

import io
import logging
import re
import time
import zlib
from collections.abc import Iterator

from recollect.recovery.collector import Collector, Document

_MOST_BYTES = 32 << 20
_MOST_UNPACKED = 64 << 20
_MOST_PAGES = 1000
_MOST_SECONDS = 5.0
_GET_URL = re.compile(rb"\x83(..)([\x21-\x7e]{1,2000})\0", re.DOTALL)
_ADDRESS = re.compile(rb"https?://[\x21\x23-\x26\x28-\x3b\x3d\x3f-\x7e]{3,2000}", re.IGNORECASE)
_NAME = re.compile(
    rb"(?<![\w./%-])[\w./%-]{1,200}\.(?:html?|php|aspx?|cgi|swf|xml|jpe?g|png|gif|flv|mp3|mp4|txt|pdf)(?![\w])", re.I
)
_PAGE = re.compile(r"\.(?:html?|php|aspx?|cgi)(?:$|\?)|/$", re.I)
# Tags with actions, texts or code; all others are shapes, sounds and pictures.
_READ = frozenset((12, 26, 34, 37, 57, 59, 70, 71, 72, 82))
_SPRITE = 39


def read_binary(content: bytes, uri: str) -> Document | None:
    """The links of a PDF or Flash file; None for everything else."""
    if len(content) > _MOST_BYTES:
        return None
    if content[:1024].lstrip().startswith(b"%PDF-"):
        return _pdf(content, uri)
    return _flash(content, uri) if content[:3] in (b"FWS", b"CWS") else None


def _pdf(content: bytes, uri: str) -> Document | None:
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError:  # without the extra `pdf`
        return None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    collector = Collector(uri, "utf-8")
    until = time.monotonic() + _MOST_SECONDS
    try:
        for number, page in enumerate(PdfReader(io.BytesIO(content)).pages):
            if number >= _MOST_PAGES or time.monotonic() > until:
                break
            for annotation in page.get("/Annots") or ():
                action = annotation.get_object().get("/A")
                target = action.get_object().get("/URI") if action is not None else None
                if target is not None:
                    _add(collector, str(target), guess=False)
    except (
        PyPdfError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        RecursionError,
        OSError,
        zlib.error,
    ):
        pass  # a damaged PDF raises almost anything; links read so far hold
    return Document("pdf", collector.links())


def _flash(content: bytes, uri: str) -> Document:
    collector = Collector(uri, "utf-8")
    body = content[8:]
    if content.startswith(b"CWS"):
        try:
            body = zlib.decompressobj().decompress(body, _MOST_UNPACKED)
        except zlib.error:
            body = b""
    if body:
        start = -(-(5 + 4 * (body[0] >> 3)) // 8) + 4
        for tag in _tags(body, start, 0):
            _read_tag(tag, collector)
    return Document("flash", collector.links())


def _tags(body: bytes, at: int, depth: int) -> Iterator[bytes]:
    """The bodies of tags that can hold addresses."""
    while at + 2 <= len(body):
        head = int.from_bytes(body[at : at + 2], "little")
        at += 2
        code, length = head >> 6, head & 63
        if length == 63:
            length = int.from_bytes(body[at : at + 4], "little")
            at += 4
        if code == 0:
            return
        if code == _SPRITE and depth < 4:
            yield from _tags(body[at : at + length], 4, depth + 1)
        elif code in _READ:
            yield body[at : at + length]
        at += length


def _read_tag(tag: bytes, collector: Collector) -> None:
    for match in _GET_URL.finditer(tag):
        _add(collector, match[2].decode("latin-1"), guess=False)
    for match in _ADDRESS.finditer(tag):
        _add(collector, match[0].decode("latin-1"), guess=True)
    for match in _NAME.finditer(tag):
        _add(collector, match[0].decode("latin-1"), guess=True)


def _add(collector: Collector, target: str, *, guess: bool) -> None:
    if not target.lower().startswith(("javascript:", "mailto:", "fscommand:", "data:", "file:")):
        is_page = _PAGE.search(target.partition("#")[0]) is not None
        collector.add(target, "page" if is_page else "asset", guess=guess)
