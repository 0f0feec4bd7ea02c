"""Files that are not inputs, described in a few words: other files in a folder of indexes.

Hides the signatures. Nothing here decides the kind of a file: `detect` asks only about files that are of no known
kind, and about the few that could be mistaken for a list (checksums, places of shards).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recollect.formats.summaries import kind_of_summary


def _in_other_code(code: str) -> str:
    return f"text in {code}; convert it with iconv -f {code} -t UTF-8"


_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"RCFILT01", "a filter of recollect, which cannot be profiled"),
    (b"\xfd7zXZ\0", "xz data; unpack it with xz -d"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x04\x22\x4d\x18", "lz4 data; unpack it with lz4 -d"),
    (b"\x1f\x9d", "compress data; unpack it with uncompress"),
    (b"\x1f\x8b", "gzip data that cannot be read"),
    (b"ARROW1", "an Arrow file; write it as Parquet"),
    (b"Obj\x01", "an Avro file; write it as Parquet or CDX"),
    (b"ORC", "an ORC file; write it as Parquet"),
    (b"PK\x05\x06", "an empty zip file"),
    (b"PK\x03\x04", "a zip file that is not a WACZ: neither an index nor WARCs are in it"),
    (b"\xff\xfe\0\0", _in_other_code("UTF-32")),
    (b"\0\0\xfe\xff", _in_other_code("UTF-32")),
    (b"\xff\xfe", _in_other_code("UTF-16")),
    (b"\xfe\xff", _in_other_code("UTF-16")),
)
_CHECKSUM = re.compile(r"\\?[0-9a-f]{32,128}\s+\*?\S.*|[A-Z0-9-]+ \(.+\) = [0-9a-f]{32,128}", re.I)
_PLACE = re.compile(r"(?:.*/)?([^/]+)")


def is_checksums(lines: Sequence[str]) -> bool:
    """Whether lines are what md5sum, sha256sum and their like write."""
    return bool(lines) and all(_CHECKSUM.fullmatch(line.strip()) for line in lines)


def is_locations(lines: Sequence[str]) -> bool:
    """Whether lines are those of a ZipNum `.loc` file: a shard, and its places."""
    return bool(lines) and all(_is_location(line) for line in lines)


def _is_location(line: str) -> bool:
    shard, *places = line.split("\t")
    if not places or not shard or "://" in shard:
        return False
    stem = shard.rpartition("/")[2].removesuffix(".gz")
    names = [match[1] for place in places if (match := _PLACE.fullmatch(place.strip()))]
    return len(names) == len(places) and all(name.startswith(stem) for name in names)


def is_binary(head: bytes) -> bool:
    """Whether this is not text; a line of it may look like a URI by chance. Text of any encoding but UTF-16 is text."""
    some = head[:4096]
    controls = sum(byte < 32 and byte not in b"\t\r\n\f\x1b" for byte in some)
    return 50 * controls > len(some) or any(head.startswith(magic) for magic, _ in _MAGIC)


def describe(head: bytes, lines: Sequence[str]) -> str:
    """What a file of an unsupported kind is, by its first bytes and lines."""
    for magic, words in _MAGIC:
        if head.startswith(magic):
            return words
    if head[257:262] == b"ustar":
        return "a tar archive; unpack it first"
    some = head[:4096]
    if some.count(0) * 3 > len(some):
        # Without a byte order mark iconv has to be given the order: most of such text is ASCII and zeros.
        for code, zeros in (("UTF-16LE", some[1::2]), ("UTF-16BE", some[::2])):
            if some.count(0) == zeros.count(0):
                return _in_other_code(code)
        for code, letters in (("UTF-32LE", some[::4]), ("UTF-32BE", some[3::4])):
            if len(some) - some.count(0) == len(letters) - letters.count(0):
                return _in_other_code(code)
    if is_binary(head):
        return "binary data"
    return _describe_text(head.decode("utf-8", "replace").lstrip()[:20_000], lines)


def _describe_text(text: str, lines: Sequence[str]) -> str:
    if is_checksums(lines):
        return "a list of checksums"
    if is_locations(lines):
        return "the places of ZipNum shards (.loc); name their .idx file"
    if (tool := kind_of_summary(text)) is not None:
        return f"a summary by {tool}, without captures; recollect profile makes a map by host of it"
    if text.startswith(("{", "[")):
        return "a JSON document"
    if re.match(r"<(?:!doctype\s+html|html|head|body)\b", text, re.I):
        return "an HTML page"
    if text.startswith("<?xml") or re.match(r"<[a-z][\w:.-]*[\s>]", text, re.I):
        return "an XML document"
    return "text that is not an index, list, log or map"
