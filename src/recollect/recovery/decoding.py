"""Content encodings and character sets of archived payloads: from bytes as stored to bytes and text as browsers see.

Hides: gzip, deflate (with and without zlib's header), br and zstd, headers that lie about them, and bombs. Invariant:
never more than `limit` bytes come out, and truncated data gives what can be had of it, as in browsers.
"""

from __future__ import annotations

import re
import zlib
from urllib.parse import urlsplit

import brotli
import zstandard

from recollect.errors import FormatError

MAX_DECODED = 256 * 1024 * 1024
_MAX_RATIO = 100  # text packs ten to one, rarely thirty to one; a bomb a thousand to one
_ALWAYS = 8 * 1024 * 1024
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


class Bomb(FormatError):
    """Content that decodes to more bytes than the limit."""


def effective_encoding(header: str, head: bytes) -> str:
    """The content encoding that really applies, given the header and the first bytes; "" for none.

    Archives often decode a payload and keep the header, so a coding with a known first byte is believed only with it.
    """
    codings = [name.strip().lower().removeprefix("x-") for name in header.split(",") if name.strip()]
    name = codings[-1] if codings else ""
    if name == "gzip":
        return "gzip" if head.startswith(_GZIP) else ""
    if name == "zstd":
        return "zstd" if head.startswith(_ZSTD) else ""
    if name in ("deflate", "br"):
        return name if _decodes(head, name) else ""
    return ""


# Files that are gzip themselves: for them the header says what the file is, not what to take off.
_PACKED_NAME = re.compile(r"\.(?:t?gz|gzip|tar\.z|svgz|vmlz|emz)$", re.I)
_PACKED_TYPE = re.compile(r"application/(?:x-)?(?:gzip|gtar|tgz|compressed|compressed-tar|gunzip|tar)\b", re.I)
_TEXT_TYPE = re.compile(r"text/|[^;]*(?:html|xml|json|javascript|ecmascript)|\s*$", re.I)
_MOST_CODINGS = 3


def content_coding(header: str, head: bytes, media_type: str, uri: str) -> str:
    """The codings to take off a payload, comma-separated in the order of their application; "" for none.

    A `.tar.gz` that was sent with `Content-Encoding: gzip` is the file itself and stays one. Pages and texts that are
    packed twice, or packed without a header, are unpacked.
    """
    coding = effective_encoding(header, head)
    if _PACKED_NAME.search(urlsplit(uri).path) or _PACKED_TYPE.match(media_type):
        if coding == "gzip" and not decoded(head, "gzip", limit=1 << 16, cut=True).startswith(_GZIP):
            return ""
        return coding
    codings = [coding] if coding else []
    if not coding and head.startswith(_GZIP) and _TEXT_TYPE.match(media_type):
        codings = ["gzip"]
    while codings and len(codings) < _MOST_CODINGS and _TEXT_TYPE.match(media_type):
        head = _head_of(head, codings[0])
        if not head.startswith(_GZIP):
            break
        codings.insert(0, "gzip")
    return ", ".join(codings)


def _head_of(head: bytes, coding: str) -> bytes:
    try:
        return decoded(head, coding, limit=1 << 16, cut=True)
    except FormatError:
        return b""


def _decodes(head: bytes, coding: str) -> bool:
    try:
        return bool(decoded(head, coding, limit=1 << 20, cut=True)) or not head
    except FormatError:
        return False


def decoded(data: bytes, coding: str, *, limit: int | None = None, cut: bool = False) -> bytes:
    """`data` without its content encoding; raises Bomb over `limit` bytes (or stops there with `cut`).

    Without a limit, a hundred times the packed size is believed, and a few megabytes in any case.
    """
    if not coding:
        return data
    if "," in coding:
        inner, _, outer = coding.rpartition(",")
        return decoded(decoded(data, outer.strip(), limit=limit, cut=cut), inner.strip(), limit=limit, cut=cut)
    if limit is None:
        limit = min(MAX_DECODED, max(_ALWAYS, _MAX_RATIO * len(data)))
    try:
        result = _DECODERS[coding](data, limit + 1)
    except (zlib.error, brotli.error, zstandard.ZstdError) as error:
        raise FormatError(f"content is not {coding}", why=str(error)) from error
    if len(result) > limit and not cut:
        raise Bomb(f"content in {coding} decodes to more than {limit:,} bytes")
    return result[:limit]


def _gunzip(data: bytes, limit: int) -> bytes:
    out = bytearray()
    while data.startswith(_GZIP) and len(out) < limit:
        part = zlib.decompressobj(31)
        out += part.decompress(data, limit - len(out))
        if not part.eof:
            break
        data = part.unused_data.lstrip(b"\0")
    return bytes(out)


def _inflate(data: bytes, limit: int) -> bytes:
    # RFC 9110 means zlib's format; servers often sent bare deflate.
    try:
        return zlib.decompressobj(15).decompress(data, limit)
    except zlib.error:
        return zlib.decompressobj(-15).decompress(data, limit)


def _unbrotli(data: bytes, limit: int) -> bytes:
    decoder = brotli.Decompressor()
    out = bytearray(decoder.process(data, output_buffer_limit=min(limit, 1 << 20)))
    while not decoder.is_finished() and not decoder.can_accept_more_data() and len(out) < limit:
        out += decoder.process(b"", output_buffer_limit=min(limit - len(out), 1 << 20))
    return bytes(out)


def _unzstd(data: bytes, limit: int) -> bytes:
    reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data, read_across_frames=True)
    out = bytearray()
    while len(out) < limit and (chunk := reader.read(min(limit - len(out), 1 << 20))):
        out += chunk
    return bytes(out)


_DECODERS = {"gzip": _gunzip, "deflate": _inflate, "br": _unbrotli, "zstd": _unzstd}

_META_CHARSET = re.compile(rb"""<meta[^>]{0,300}?charset\s*+=\s*+["']?+\s*+([a-zA-Z0-9_.:-]{2,40})""", re.I)
_XML_ENCODING = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([a-zA-Z0-9_.:-]{2,40})""")
_CSS_CHARSET = re.compile(rb'^@charset "([a-zA-Z0-9_.:-]{2,40})";')
_HEADER_CHARSET = re.compile(r"""charset\s*+=\s*+["']?+\s*+([a-zA-Z0-9_.:-]{2,40})""", re.I)
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def header_charset(content_type: str) -> str | None:
    """The charset parameter of a Content-Type."""
    match = _HEADER_CHARSET.search(content_type)
    return match[1].lower() if match else None


def declared_charset(data: bytes, header: str | None) -> str | None:
    """The character set by byte order mark, header, or declaration inside (HTML meta, XML, CSS), in that order."""
    for mark, name in _BOMS:
        if data.startswith(mark):
            return name
    if header and _python_codec(header):
        return _python_codec(header)
    head = data[:4096]
    for pattern in (_CSS_CHARSET, _XML_ENCODING, _META_CHARSET):
        if (match := pattern.search(head)) and (codec := _python_codec(match[1].decode("ascii"))):
            # A declaration that could be read byte by byte is not in UTF-16, whatever it says (HTML standard).
            return "utf-8" if codec.startswith("utf-16") else codec
    return None


def guessed_charset(data: bytes, header: str | None) -> str:
    """`declared_charset`, else UTF-8 if the bytes are valid UTF-8, else the detected one (windows-1252 if none)."""
    if (found := declared_charset(data, header)) is not None:
        return found
    try:
        data.decode("utf-8")
        return "utf-8"
    except UnicodeDecodeError:
        pass
    from charset_normalizer import from_bytes

    best = from_bytes(data[:65536]).best()
    return best.encoding if best is not None else "cp1252"


def _python_codec(name: str) -> str | None:
    """Python's name for a label, with the web's meaning of latin-1 and ascii (windows-1252); None when unknown."""
    import codecs

    try:
        codec = codecs.lookup(name.strip().lower()).name
    except (LookupError, ValueError):
        return None
    if codec in ("iso8859-1", "ascii"):
        return "cp1252"
    return codec if codec not in ("utf-7", "base64", "hex", "rot13", "zlib", "bz2", "quopri", "uu") else None
