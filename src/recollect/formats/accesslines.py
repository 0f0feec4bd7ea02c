"""A line of a web server's access log (Common Log Format and its relatives), read by scanning.

    [VHOST ]HOST IDENT USER [TIME] "REQUEST" STATUS ...

The name of a user may hold spaces, brackets and quotes. Time is linear in the length of the line: each `]` is tried
once, and the requests that follow two of them never overlap.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_FIRST_FIELDS = re.compile(r"\S++ \S++ .", re.DOTALL)
_REQUEST = re.compile(r'"((?:[^"\\]++|\\.)*+)" (\d{3}|-)(?= |\Z)', re.DOTALL)


class AccessLine(NamedTuple):
    """The three fields of a line that say what was requested."""

    time: str
    request: str
    status: str


def access_line(line: str) -> AccessLine | None:
    """The fields of an access line; None for another line."""
    first = _FIRST_FIELDS.match(line)
    if first is None:
        return None
    at = line.find(" [", first.end())
    while at >= 0:
        close = line.find("]", at + 3)  # a time has at least one character
        if close < 0:
            return None
        match = _REQUEST.match(line, close + 2) if line.startswith(' "', close + 1) else None
        if match is not None:
            return AccessLine(line[at + 2 : close], match[1], match[2])
        at = line.find(" [", close - 1)
    return None
