"""One line of a map: key columns, value columns, a JSON block at the end if there is one.

Hides: the spelling of tokens. Layout: tokens separated by spaces or tabs, one per column; a token that is empty,
holds white space or starts with `"` or `{` is written as a JSON string in double quotes; `-` stands for a missing
value. What follows the last column must be a JSON object and is kept byte for byte. Keys and other values are kept
*as written*, quotes and all, because files are sorted and searched as written; `unquote` gives the text.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from recollect.errors import FormatError
from recollect.formats.frequency import UNKNOWN, Frequency
from recollect.formats.ukvs import lenient
from recollect.formats.ukvs.header import Header

_TOKEN = re.compile(rb'[ \t\r\f\v]*("(?:[^"\\]|\\.)*"(?=\s|\Z)|[^\s"{]\S*)')
_PLAIN = re.compile(r'[^\s"{!@#\x00-\x1f\x7f][^\s\x00-\x1f\x7f]*')


class Record(NamedTuple):
    """One record. `more_keys` are key columns after the first, `values` value columns other than the frequency."""

    key: bytes
    more_keys: tuple[bytes, ...] = ()
    frequency: Frequency = UNKNOWN
    json: str = ""
    values: tuple[bytes, ...] = ()

    @property
    def keys(self) -> tuple[bytes, ...]:
        """All key columns: what the map is sorted by."""
        return (self.key, *self.more_keys)


def shown(text: bytes, limit: int = 80) -> str:
    """Bytes of a file for a message: cut, and with nothing in it that a terminal would obey."""
    decoded = text[:limit].decode("utf-8", "backslashreplace")
    clean = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in decoded)
    return clean + ("..." if len(text) > limit else "")


def unquote(token: bytes) -> str:
    """The text of a token as written."""
    if token.startswith(b'"'):
        try:
            return str(json.loads(token))
        except ValueError:
            return token[1:-1].decode("utf-8", "replace")
    return token.decode("utf-8", "replace")


def quote(text: str) -> bytes:
    """The token that says `text`."""
    return text.encode() if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False).encode()


def split(line: bytes, columns: int) -> tuple[list[bytes], bytes]:
    """The tokens of a line and its JSON block; raises FormatError when it has not `columns` tokens."""
    tokens: list[bytes] = []
    position = 0
    while len(tokens) < columns:
        match = _TOKEN.match(line, position)
        if match is None:
            break
        tokens.append(match[1])
        position = match.end()
    rest = line[position:].strip()
    if len(tokens) == columns and (not rest or rest.startswith(b"{")):
        return tokens, rest
    if rest.startswith(b'"'):
        raise FormatError("bad quotes", why="a double quote that is not closed, or is followed by text")
    found = len(tokens) + (len(rest.split()) if len(tokens) == columns else 0)
    raise FormatError("wrong field count", why=f"{found} where the header names {columns}")


def parse_line(line: bytes, header: Header) -> Record:
    """The record of a line; raises FormatError."""
    count = len(header.keys)
    tokens, block = split(line, count + len(header.values))
    values = tokens[count:]
    if "frequency" in header.values:
        frequency = Frequency.parse(values.pop(header.values.index("frequency")))
    else:
        frequency = inner_frequency(block) if block else UNKNOWN
    return Record(tokens[0], tuple(tokens[1:count]), frequency, block.decode("utf-8", "surrogateescape"), tuple(values))


def inner_frequency(block: bytes) -> Frequency:
    """The frequency in the JSON block, as profiles had it before UKVS: a number, or a string as in a column."""
    value = lenient.loads(block)
    inner = value.get("frequency") if isinstance(value, dict) else None
    if inner is None or isinstance(inner, bool):
        return UNKNOWN
    if not isinstance(inner, int | str):
        raise FormatError("bad frequency", why=f"{inner!r} in the JSON block")
    return Frequency.parse(str(inner))


def format_line(record: Record, header: Header) -> bytes:
    """The line of a record, without its newline."""
    values = list(record.values)
    if "frequency" in header.values:
        values.insert(header.values.index("frequency"), str(record.frequency).encode())
    parts = [record.key, *record.more_keys, *values]
    if len(parts) != len(header.keys) + len(header.values):
        raise FormatError(
            "wrong field count",
            where=record.key.decode("utf-8", "replace"),
            why=f"{len(parts)} where the header names {len(header.keys) + len(header.values)}",
        )
    if record.json:
        parts.append(record.json.encode("utf-8", "surrogateescape"))
    return b" ".join(parts)
