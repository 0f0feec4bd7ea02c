"""The `datetime` column of a map: a stretch of time as a prefix of 14 digits, or from one prefix to another.

Hides: what a prefix stands for. `2014` is all of 2014; `2014:201606` from its first second to the last of June 2016;
`:2014`, `2014:` and `:` are open at one end or both. Both ends are inside.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from recollect.errors import FormatError

_SHAPE = re.compile(rb"(\d{0,14})(?:(:)(\d{0,14}))?")


class Period(NamedTuple):
    """First and last second, as 14 digits that compare as text."""

    first: str
    last: str

    @classmethod
    def parse(cls, token: bytes | str) -> Period:
        """The period of a token; raises FormatError."""
        raw = token.encode() if isinstance(token, str) else token
        match = _SHAPE.fullmatch(raw)
        if match is None or not raw:
            raise FormatError(
                "bad datetime", why=f"{raw[:40].decode('utf-8', 'replace')!r} is not like 2014, 2014:2016 or :"
            )
        start, colon, end = ((part or b"").decode() for part in match.groups())
        period = cls(start.ljust(14, "0"), (end if colon else start).ljust(14, "9"))
        if period.first > period.last:
            raise FormatError("bad datetime", why=f"{raw.decode()!r} ends before it starts")
        return period

    def contains(self, timestamp: str) -> bool:
        """Whether a 14-digit timestamp lies inside."""
        return self.first <= timestamp <= self.last
