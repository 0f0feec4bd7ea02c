"""JSON blocks of one key in several maps, merged into one.

Rules. An object inside a block decomposes the frequency (by `datetime`, `status`, ...): its numbers and frequency
strings are merged like frequencies, name by name; where a record of the key says nothing about a decomposition, its
values become lower bounds, as the rest may lie anywhere. `spread` adds up, a record without it counting as one
profile. Hashed sets (`sets`) are left out. Lists join. Of anything else that differs the first map's value stays, and
the conflict is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from recollect.errors import FormatError
from recollect.formats.frequency import UNKNOWN, Frequency
from recollect.formats.ukvs import lenient

Combine = Callable[[Frequency, Frequency], Frequency]


def merged_block(
    texts: Sequence[str], combine: Combine, *, spread: bool = False, partial: bool = False
) -> tuple[str, int]:
    """The block for several records' blocks (empty where a record has none), and the number of conflicts."""
    if not any(texts) and not spread:
        return "", 0
    blocks = [_block(text) for text in texts]
    for block in blocks:
        block.pop("set", None)  # a hashed set belongs to the lines of one map only; see `sets`
    named = spread or any("spread" in block for block in blocks)
    spreads = [block.pop("spread", 1) for block in blocks]
    merged: dict[str, Any] = {}
    conflicts = 0
    for name in dict.fromkeys(name for block in blocks for name in block if name != "frequency"):
        found = [block[name] for block in blocks if name in block]
        value, clashes = _joined(found, combine)
        conflicts += clashes
        if isinstance(value, dict) and (partial or len(found) < len(blocks)):
            value = _lower_bounds(value, combine)
        merged[name] = value
    if named:
        merged["spread"] = sum(count for count in spreads if isinstance(count, int))
    return (lenient.dumps(merged) if merged else ""), conflicts


def _block(text: str) -> dict[str, Any]:
    value = lenient.loads(text) if text else {}
    if not isinstance(value, dict):
        raise FormatError("bad JSON", why="not an object")
    return value


def _joined(values: Sequence[Any], combine: Combine) -> tuple[Any, int]:
    first = values[0]
    if all(isinstance(value, dict) for value in values):
        return _decomposition(values, combine)
    if all(isinstance(value, list) for value in values):
        found: list[Any] = []
        for value in values:
            found += [item for item in value if item not in found]
        return found, 0
    return first, sum(value != first for value in values)


def _decomposition(values: Sequence[dict[str, Any]], combine: Combine) -> tuple[dict[str, Any], int]:
    merged: dict[str, Any] = {}
    conflicts = 0
    for value in values:
        for name, item in value.items():
            if name not in merged:
                merged[name] = item
                continue
            mine, yours = _frequency(merged[name]), _frequency(item)
            if mine is not None and yours is not None:
                merged[name] = _spelled(combine(mine, yours))
            else:
                merged[name], clashes = _joined([merged[name], item], combine)
                conflicts += clashes
    return merged, conflicts


def _lower_bounds(value: dict[str, Any], combine: Combine) -> dict[str, Any]:
    weaker: dict[str, Any] = {}
    for name, item in value.items():
        frequency = _frequency(item)
        if isinstance(item, dict):
            weaker[name] = _lower_bounds(item, combine)
        else:
            weaker[name] = item if frequency is None else _spelled(combine(frequency, UNKNOWN))
    return weaker


def _frequency(value: Any) -> Frequency | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return Frequency.parse(str(value))
    except FormatError:
        return None


def _spelled(frequency: Frequency) -> int | str:
    """A plain number stays a number."""
    count = frequency.uri_m
    exact = count.value is not None and not count.bound and frequency.uri_r.value is None
    return count.value if exact and count.value is not None else str(frequency)
