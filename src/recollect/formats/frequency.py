"""Frequency: the value of a map's key, `M/R` (URI-Ms / URI-Rs), and its arithmetic.

Hides: the spelling of counts and what may be claimed about a sum.

Layout: `[M][/[R]]`, each count decimal digits with an optional suffix. A count claims an interval of true values:

    `7`  exactly 7     `7+`  at least 7     `7-`  at most 7     `7~`  about 7 (claims nothing)     absent  unknown

`7` is short for `7/`; `/` says that both are unknown. M = 0 is a void: nothing here, whatever wider keys say
(`0/20`: 20 URI-Rs are known but not replayable). Canonical spelling, which `str` writes: no leading zeros, no `/`
after an M without R, `0` for `0-`. The placeholder `-` of UKVS reads as `/`. Counts above 2^63 - 1 are refused.

Arithmetic. Both operations are commutative and associative, and never claim more than is true:

- **Disjoint sum** `f + g` (nothing is counted twice): values add. exact + exact is exact; `+` with exact or `+` is
  `+`; `-` with exact or `-` is `-`; `+` with `-`, and anything with `~`, is `~`. An unknown count adds nothing and
  makes the sum a lower bound (it acts as `0+`); unknown with unknown stays unknown.
- **Merge** `merge(f, g)` (the same URI-R may be in both): URI-Ms add as above, as captures of two profiles are
  different captures. URI-Rs are at least the largest and at most the sum of both: counts that bound from below
  (exact, `+`) give the largest as `+`; two upper bounds give their sum as `-`; an upper bound beside anything else
  says nothing; `~` beside exact, `+` or `~` gives the largest as `~`; unknown beside exact or `+` gives that as `+`,
  beside `-` stays unknown.
- An exact 0 is neutral in both, so a count stays exact when the other side holds none.
- A void merged with anything that is not a void disappears completely: `0/20` and `5/3` are `5/3`, as the 20 are not
  held.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from recollect.errors import FormatError

Bound = Literal["", "+", "-", "~"]

MAX_COUNT = 2**63 - 1
_SHAPE = re.compile(rb"(?:(\d{1,40})([-+~]?))?(?:/(?:(\d{1,40})([-+~]?))?)?\Z")
_EITHER: dict[tuple[str, str], Bound] = {
    ("", ""): "",
    ("", "+"): "+",
    ("+", ""): "+",
    ("+", "+"): "+",
    ("", "-"): "-",
    ("-", ""): "-",
    ("-", "-"): "-",
}


@dataclass(frozen=True, slots=True)
class Count:
    """A number of things and how sure it is; `value` None means unknown."""

    value: int | None
    bound: Bound = ""

    def __str__(self) -> str:
        return "" if self.value is None else f"{self.value}{self.bound}"

    @property
    def is_zero(self) -> bool:
        """Exactly none."""
        return self.value == 0 and self.bound in ("", "-")

    @property
    def interval(self) -> tuple[int, int | None]:
        """The smallest and the largest true value that this count allows; None means no limit."""
        if self.value is None or self.bound == "~":
            return 0, None
        if self.bound == "+":
            return self.value, None
        return (0 if self.bound == "-" else self.value), self.value

    def __add__(self, other: Count) -> Count:
        if other.is_zero:
            return self
        if self.is_zero:
            return other
        if self.value is None and other.value is None:
            return UNKNOWN_COUNT
        mine, mine_bound = (0, "+") if self.value is None else (self.value, self.bound)
        yours, yours_bound = (0, "+") if other.value is None else (other.value, other.bound)
        return _capped(mine + yours, _EITHER.get((mine_bound, yours_bound), "~"))

    def union(self, other: Count) -> Count:
        """Of two sets that may share members: at least the largest, at most the sum."""
        if other.is_zero:
            return self
        if self.is_zero:
            return other
        pair = (self, other)
        if all(count.bound == "-" for count in pair):
            return self + other
        # What is left over says how large the union is at least; an upper bound or an unknown count says
        # nothing there.
        below = [count for count in pair if count.value is not None and count.bound != "-"]
        if not below:
            return UNKNOWN_COUNT
        largest = max(count.value for count in below if count.value is not None)
        return Count(largest, "~" if any(count.bound == "~" for count in below) else "+")


def _capped(value: int, bound: Bound) -> Count:
    """A sum that still fits in 64 bits, as other programs read it."""
    if value <= MAX_COUNT:
        return Count(value, bound)
    return UNKNOWN_COUNT if bound == "-" else Count(MAX_COUNT, bound or "+")


UNKNOWN_COUNT = Count(None)
ZERO_COUNT = Count(0)


@dataclass(frozen=True, slots=True)
class Frequency:
    """How often something was archived: URI-Ms (captures) and URI-Rs (different URIs)."""

    uri_m: Count
    uri_r: Count = UNKNOWN_COUNT

    @staticmethod
    def parse(text: str | bytes) -> Frequency:
        """The frequency written in `text`; raises FormatError."""
        return parse_token(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))

    @classmethod
    def exact(cls, uri_m: int, uri_r: int | None = None) -> Frequency:
        """Exact counts; without `uri_r` the URI-Rs are unknown."""
        return cls(Count(uri_m), Count(uri_r))

    def __str__(self) -> str:
        m, r = self.uri_m, self.uri_r
        if r.value is None:
            return "/" if m.value is None else f"{m.value}{m.bound}"
        return f"/{r.value}{r.bound}" if m.value is None else f"{m.value}{m.bound}/{r.value}{r.bound}"

    @property
    def is_void(self) -> bool:
        """Known to hold no memento: `0`, `0/20`."""
        return self.uri_m.is_zero

    @property
    def held(self) -> bool | None:
        """Whether something is held: False for a void, None for `/` (unknown), True for everything else."""
        if self.is_void:
            return False
        return None if self.uri_m.value is None and self.uri_r.value is None else True

    def __add__(self, other: Frequency) -> Frequency:
        """The disjoint sum: no URI-R and no capture is in both."""
        if self.is_void != other.is_void:
            return other if self.is_void else self
        return Frequency(self.uri_m + other.uri_m, self.uri_r + other.uri_r)


def merge(first: Frequency, second: Frequency) -> Frequency:
    """Of two profiles that may share URI-Rs: captures add, URI-Rs are at least the largest and at most the sum."""
    if first.is_void != second.is_void:
        return second if first.is_void else first
    return Frequency(first.uri_m + second.uri_m, first.uri_r.union(second.uri_r))


VOID = Frequency(ZERO_COUNT)
UNKNOWN = Frequency(UNKNOWN_COUNT)


# Few different frequencies make up most of a map (`1/1`, `2/1`, ...), so remembering them makes reading fast.
@lru_cache(maxsize=1 << 16)
def parse_token(text: bytes) -> Frequency:
    """The frequency written in a token of a map; raises FormatError."""
    if text == b"-":
        return UNKNOWN
    match = _SHAPE.match(text)
    if not text or match is None:
        raise FormatError(
            "bad frequency",
            why=f"{_shown(text)} is not [URI-Ms][/[URI-Rs]] with counts such as 5, 5+, 5-, 5~",
        )
    m, m_bound, r, r_bound = match.groups()
    return Frequency(_count(m, m_bound, text), _count(r, r_bound, text))


def _count(digits: bytes | None, suffix: bytes | None, text: bytes) -> Count:
    if digits is None:
        return UNKNOWN_COUNT
    value = int(digits)
    if value > MAX_COUNT:
        raise FormatError("bad frequency", why=f"{_shown(text)} is above {MAX_COUNT}")
    bound: Bound = {b"": "", b"+": "+", b"-": "-", b"~": "~"}[suffix or b""]  # type: ignore[assignment]
    # At most none is none.
    return ZERO_COUNT if value == 0 and bound == "-" else Count(value, bound)


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace")) + ("..." if len(text) > 40 else "")
