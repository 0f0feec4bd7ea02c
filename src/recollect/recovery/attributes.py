"""Values of HTML attributes that hold URLs among other things: `meta refresh` and `srcset`.

As browsers read them (HTML standard, 4.2.5.3 and 4.8.4.2.1), by scanning: linear in the length of the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# Every link of a page is joined with its base: a base as long as the page would make the sum of its links quadratic.
LONGEST_BASE = 2_000
_TIME = re.compile(r"[\s\ufeff]*+[\d.]*+\s*+[;,]?+\s*+")
_URL_WORD = re.compile(r"url\s*+=\s*+", re.IGNORECASE)
_NUMBER = re.compile(r"[\d.]*+\s*+")
_CANDIDATE = re.compile(r"[\s,]*+(\S++)")


def refresh_span(content: str) -> tuple[int, int] | None:
    """Where the URL of a meta refresh begins and ends (`5; url='next.html'`); None for one that only reloads."""
    time = _TIME.match(content)
    start = time.end() if time else 0
    if word := _URL_WORD.match(content, start):
        start = word.end()
    elif start == 0:
        return None  # neither a time nor `url=`: browsers do nothing
    end = len(content.rstrip())
    if content[start : start + 1] in ('"', "'"):
        close = content.find(content[start], start + 1)
        start, end = start + 1, close if close >= 0 else end
    while start < end and content[start].isspace():
        start += 1
    if start >= end or _NUMBER.fullmatch(content, start, end):
        return None
    return start, end


class Candidate(NamedTuple):
    """One picture of a srcset: its URL, and its descriptor with the space before it."""

    url: str
    descriptor: str


def srcset_candidates(value: str) -> Iterator[Candidate]:
    """A comma inside a URL is part of it, one at its end is not; a descriptor runs to a comma outside parentheses."""
    at = 0
    while match := _CANDIDATE.match(value, at):
        url, at = match[1], match.end()
        if url.endswith(","):
            yield Candidate(url.rstrip(","), "")
            continue
        end, depth = at, 0
        while end < len(value) and (depth > 0 or value[end] != ","):
            depth += {"(": 1, ")": -1}.get(value[end], 0)
            end += 1
        yield Candidate(url, value[at:end].rstrip())
        at = end
