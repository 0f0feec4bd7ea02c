"""The form of hashed sets in JSON blocks, for `validate` and for readers; `maps.sets` asks them."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any, TypeGuard

from recollect.errors import FormatError

VERSION = 1
_MOST_BITS = 60  # of what is next below a wildcard


@dataclass(frozen=True, slots=True)
class SetBlock:
    """A set as it is written: its bytes, the number of its parts, and the bits of what is next below its wildcard."""

    data: bytes
    parts: int
    below: int


def set_fault(found: Any, key: bytes) -> str:
    """What is wrong with the value of `set` in a block of this key; empty if nothing is."""
    if not key.endswith((b"/*", b",*")) and key != b"*":
        return "a set, and the key is not a wildcard"
    items = found if isinstance(found, list) else [found]
    if not items:
        return "no set in a list of sets"
    return next(filter(None, map(_fault, items)), "")


def other_versions(found: Any) -> list[int]:
    """The versions of sets in the value of `set` that only other readers know."""
    items = found if isinstance(found, list) else [found]
    versions = (item.get("v") for item in items if isinstance(item, dict))
    return sorted({version for version in versions if _is_number(version) and version != VERSION})


def _fault(item: Any) -> str:
    if isinstance(item, dict) and _is_number(item.get("v")) and item["v"] != VERSION:
        return ""  # of another version, which only its readers can judge
    try:
        read_set(item)
    except FormatError as error:
        return str(error)
    return ""


def read_set(item: Any) -> SetBlock:
    """A set of a JSON block; raises FormatError for anything that is not exactly of the form of docs/ukvs.md."""
    if not isinstance(item, dict) or not _is_number(item.get("v")):
        raise FormatError("a set is an object with a version v")
    if item["v"] != VERSION:
        raise FormatError("a set of another version")
    below, parts, bits = item.get("k"), item.get("parts"), item.get("bits")
    if not _is_number(below) or not 1 <= below <= _MOST_BITS:
        raise FormatError(f"k is a number from 1 to {_MOST_BITS}")
    if not _is_number(parts) or parts < 1 or not isinstance(bits, str):
        raise FormatError("parts is a number from 1, bits a text")
    try:
        data = base64.b64decode(bits, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FormatError("bits is not base64") from error
    if 2 * parts > len(data):
        raise FormatError("bits has another length than its parts say")
    size = sum(int.from_bytes(data[at : at + 2], "little") & 4095 for at in range(0, 2 * parts, 2))
    if len(data) != 2 * parts + (size + 7) // 8:
        raise FormatError("bits has another length than its parts say")
    return SetBlock(data, parts, below)


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
