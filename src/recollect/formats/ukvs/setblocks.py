"""The form of hashed sets in JSON blocks, for `validate`; what they say is read by `profiles.maps.sets`."""

from __future__ import annotations

import base64
import binascii
from typing import Any

VERSION = 1
_MOST_BITS = 60  # of what is next below a wildcard


def set_fault(found: Any, key: bytes) -> str:
    """What is wrong with the value of `set` in a block of this key; empty if nothing is."""
    if not key.endswith((b"/*", b",*")) and key != b"*":
        return "a set, and the key is not a wildcard"
    items = found if isinstance(found, list) else [found]
    if not items:
        return "no set in a list of sets"
    return next(filter(None, map(_fault, items)), "")


def _fault(item: Any) -> str:
    if not isinstance(item, dict) or not isinstance(item.get("v"), int):
        return "a set is an object with a version v"
    if item["v"] != VERSION:
        return ""  # of another version, which only its readers can judge
    below, parts, bits = item.get("k"), item.get("parts"), item.get("bits")
    if not (isinstance(below, int) and 1 <= below <= _MOST_BITS):
        return f"k is a number from 1 to {_MOST_BITS}"
    if not (isinstance(parts, int) and parts >= 1 and isinstance(bits, str)):
        return "parts is a number from 1, bits a text"
    try:
        data = base64.b64decode(bits, validate=True)
    except (binascii.Error, ValueError):
        return "bits is not base64"
    sizes = [int.from_bytes(data[2 * part : 2 * part + 2], "little") & 4095 for part in range(parts)]
    if len(data) != 2 * parts + (sum(sizes) + 7) // 8:
        return "bits has another length than its parts say"
    return ""
