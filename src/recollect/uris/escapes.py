"""Percent-encoding as archives' indexes have it: everything that can be decoded is, then the least is encoded.

Text here is "byte text": a str in which each character stands for one byte (Latin-1), so that string methods and
regular expressions work on any bytes. `escape` turns it into ASCII with lower-case hex.
"""

from __future__ import annotations

import re

# What stays as it is: visible ASCII without `#` (it would begin a fragment) and `%` (it would begin an escape).
_UNSAFE = re.compile(r"[^!\"$&-~]")
_ESCAPED = {chr(byte): f"%{byte:02x}" for byte in range(256)}
_HEX = "0123456789abcdefABCDEF"
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")
_DECODED = {f"%{high}{low}": chr(int(high + low, 16)) for high in _HEX for low in _HEX}
# Nested escapes (%2525...) deeper than this are rare enough for the slow way, which is linear in their depth.
_QUICK_PASSES = 4


def to_byte_text(text: str) -> str | None:
    """UTF-8 bytes of a text, one character each; None for text that has no bytes (a lone surrogate)."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("latin-1")
    except UnicodeEncodeError:
        return None


def escape(text: str) -> str:
    """Byte text to ASCII."""
    return _UNSAFE.sub(_escape_match, text)


def _escape_match(match: re.Match[str]) -> str:
    return _ESCAPED[match[0]]


def unescape(text: str) -> str:
    """Byte text with its escapes decoded again and again until none is left (`%2541` is `A`)."""
    for _ in range(_QUICK_PASSES):
        if "%" not in text:
            return text
        text, count = _ESCAPE.subn(_decode_match, text)
        if count == 0:
            return text
    return _unescape_nested(text)


def _decode_match(match: re.Match[str]) -> str:
    return _DECODED[match[0]]


def _unescape_nested(text: str) -> str:
    """The same in one pass with a stack: no two escapes overlap, so the order of decoding does not matter."""
    stack: list[str] = []
    for char in text:
        stack.append(char)
        while len(stack) > 2 and stack[-3] == "%" and (decoded := _DECODED.get("".join(stack[-3:]))):
            stack[-3:] = [decoded]
    return "".join(stack)
