"""The language of a captured page: as its header says, or detected from its text.

Hides: the header's grammar, content and transfer codings, markup, and the detectors. A language is the primary subtag
in lower case (`pt` of `pt-BR, en`). Detectors are optional packages and name languages by ISO 639-1:

- `py3langid` (extra `language`): 4 MB, quick;
- `lingua` (extra `lingua`): 96 MB, slower, better with short texts.

Only the first bytes of a payload are read, which is enough to detect a language.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Literal, get_args

from recollect.errors import UsageError
from recollect.installation import install_command

DetectorName = Literal["py3langid", "lingua"]
DETECTORS: tuple[DetectorName, ...] = get_args(DetectorName)
Detector = Callable[[str], str]
"""From a text to its language; empty if it is unknown."""

_LONGEST_TEXT = 4000
_LEAST_TEXT = 20  # characters: with fewer, detectors guess
_TAG = re.compile(r"[a-z]{2,3}", re.IGNORECASE)
_HIDDEN = re.compile(
    r"<(script|style|noscript|template)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)", re.DOTALL | re.IGNORECASE
)
_MARKUP = re.compile(r"<[^>]*>?|&#?\w+;")
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_CHUNK = re.compile(rb"\s*([0-9a-f]{1,8})[^\r\n]*\r?\n", re.IGNORECASE)


def header_language(value: str) -> str:
    """The first language of a Content-Language field; empty if it names none."""
    for part in value.split(","):
        primary = part.strip().partition(";")[0].strip().replace("_", "-").partition("-")[0]
        if _TAG.fullmatch(primary):
            return primary.lower()
    return ""


def detector_of(name: str) -> Detector:
    """A detector by its name; raises UsageError where its package is missing."""
    try:
        if name == "py3langid":
            return _py3langid()
        if name == "lingua":
            return _lingua()
    except ImportError as error:
        extra = "language" if name == "py3langid" else name
        raise UsageError(f"{name} is not installed", hint=install_command(extra)) from error
    raise UsageError("unknown detector of languages", where=name, why=f"known are {', '.join(DETECTORS)}")


def _py3langid() -> Detector:
    import py3langid

    return lambda text: str(py3langid.classify(text)[0])


def _lingua() -> Detector:
    from lingua import LanguageDetectorBuilder

    detector = LanguageDetectorBuilder.from_all_languages().with_low_accuracy_mode().build()

    def detect(text: str) -> str:
        found = detector.detect_language_of(text)
        return "" if found is None else found.iso_code_639_1.name.lower()

    return detect


def detected_language(block: bytes, media_type: str, detect: Detector) -> str:
    """The language of the text of an HTTP response, of which `block` is the beginning; empty if it is not text."""
    if not media_type.lower().lstrip().startswith(("text/html", "application/xhtml", "text/plain")):
        return ""
    text = page_text(block)
    return detect(text) if len(text) >= _LEAST_TEXT else ""


def page_text(block: bytes) -> str:
    """The text that a reader sees at the beginning of an HTTP response, without markup."""
    head, body = _parted(block)
    lowered = head.lower()
    if re.search(rb"^transfer-encoding:.*chunked", lowered, re.MULTILINE):
        body = _dechunked(body)
    if re.search(rb"^content-encoding:\s*(?:x-)?(?:gzip|deflate)", lowered, re.MULTILINE) or body[:2] == b"\x1f\x8b":
        body = _inflated(body)
    named = _CHARSET.search(head) or _CHARSET.search(body[:2048])
    text = _decoded(body, named[1].decode("ascii", "replace") if named else "utf-8")
    text = _MARKUP.sub(" ", _HIDDEN.sub(" ", text))
    return " ".join(text.split())[:_LONGEST_TEXT]


def _parted(block: bytes) -> tuple[bytes, bytes]:
    end = re.search(rb"\r?\n\r?\n", block)
    return (block[: end.start()], block[end.end() :]) if end else (block, b"")


def _dechunked(body: bytes) -> bytes:
    """A body without the lengths of its chunks; what is not chunked (archives undo it and keep the header) stays."""
    parts, at = [], 0
    while size := _CHUNK.match(body, at):
        length = int(size[1], 16)
        if not length:
            break
        parts.append(body[size.end() : size.end() + length])
        at = size.end() + length
    return b"".join(parts) or body


def _inflated(body: bytes) -> bytes:
    for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        try:
            return zlib.decompressobj(window).decompress(body, 1 << 18)
        except zlib.error:
            continue
    return body


def _decoded(body: bytes, charset: str) -> str:
    try:
        return body.decode(charset, "ignore")
    except (LookupError, UnicodeError):
        return body.decode("latin-1")
