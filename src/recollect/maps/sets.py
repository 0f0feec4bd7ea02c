"""Hashed sets in wildcard lines: `com,example)/* 5120/3301 {"set": {...}}`. docs/ukvs.md has the format.

Hides: where sets are in a line's JSON block, and their coding (`kernels.sets`). A set says of what lies below its
wildcard what may be held; several sets in one line are of several maps, and each is asked. A set that cannot be read
(another version, damage) is ignored: the wildcard covers all below it, so nothing held is missed.

Law: a set is valid only for the map it was made with. Whoever drops or rolls up lines below a wildcard, or puts lines
of two maps together, keeps its set only if all that the set leaves out is still found elsewhere; else drops it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any

from recollect.errors import FormatError
from recollect.formats.ukvs import lenient
from recollect.formats.ukvs.setblocks import VERSION, read_set
from recollect.kernels.sets import HashedSet

_MARK = '"set"'
_FIRST = re.compile(rf'\{{"set": (\[?)\{{"v": {VERSION}, "k": (\d+), ')


def has_set(line: bytes) -> bool:
    """Whether a line may have a set; to be asked before its JSON is read."""
    return b'"set"' in line


def sets_of(block: str) -> list[HashedSet]:
    """The sets of a JSON block; none if one of them cannot be read, as then nothing is certain."""
    try:
        found = [read_set(item) for item in items_of(block)]
        return [HashedSet(one.data, one.parts, one.below) for one in found]
    except (FormatError, ValueError):
        return []


def items_of(block: str) -> list[Any]:
    """The sets of a JSON block as they are in it; none of a block that cannot be read."""
    found = _with_a_set(block)
    if found is None:
        return []
    return found["set"] if isinstance(found["set"], list) else [found["set"]]


def _with_a_set(block: str) -> dict[str, Any] | None:
    """A JSON block that has sets, read; None for any other."""
    if _MARK not in block:
        return None
    try:
        found = lenient.loads(block.encode("utf-8", "surrogateescape"))
    except FormatError:
        return None
    return found if isinstance(found, dict) and "set" in found else None


def block_of(parts: int, data: bytes, below: int) -> str:
    """The JSON block of a wildcard with one set."""
    bits = base64.b64encode(data).decode()
    return f'{{"set": {{"v": {VERSION}, "k": {below}, "parts": {parts}, "bits": "{bits}"}}}}'


def bits_below(block: str) -> int:
    """The bits of what is next below the wildcard of a JSON block, in its first set; 0 if it has none."""
    if (first := _FIRST.match(block)) is not None:
        return int(first[2])
    items = items_of(block)
    return int(items[0]["k"]) if items else 0


def with_another_set(block: str, parts: int, data: bytes, below: int) -> str:
    """The JSON block of a wildcard with one set more."""
    more = block_of(parts, data, below)
    first = _FIRST.match(block)
    if first and block.count("{") == block.count('"bits": "') + 1:  # nothing but sets, as they are written here
        if not first[1] and block.endswith('"}}'):
            return f'{{"set": [{block[8:-1]}, {more[8:-1]}]}}'
        if first[1] and block.endswith('"}]}') and block.count("]") == 1:
            return f"{block[:-2]}, {more[8:-1]}]}}"
    return with_sets(block, [*items_of(block), *items_of(more)])


def without_sets(block: str) -> str:
    """The same JSON block as that of a plain wildcard."""
    found = _with_a_set(block)
    if found is None:
        return block
    del found["set"]
    return lenient.dumps(found) if found else ""


def with_sets(block: str, items: Sequence[Any]) -> str:
    """A JSON block with these sets."""
    if not items:
        return block
    found = lenient.loads(block.encode("utf-8", "surrogateescape")) if block else {}
    found["set"] = items[0] if len(items) == 1 else list(items)
    return lenient.dumps(found)


def anchor_of(wildcard: bytes) -> int:
    """The length of the name of a wildcard's node."""
    return max(0, len(wildcard) - 2)
