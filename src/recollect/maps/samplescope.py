"""What a map's `!meta` says of the keys that it lacks: `"scope": "sample"` is a map of a sample (see `samples`)."""

from __future__ import annotations

from recollect.errors import UsageError
from recollect.formats.ukvs import Header

SAMPLE = "sample"


def is_sample(header: Header) -> bool:
    """Whether a map is one of a sample."""
    return header.meta.get("scope") == SAMPLE


def refuse_sample(header: Header, where: str, what: str) -> None:
    """Raise UsageError for a map of a sample, where a command takes what a map lacks for absent."""
    if is_sample(header):
        raise UsageError(
            f"a map of a sample cannot be {what}",
            where=where,
            why="what it lacks is unknown, and its counts are those of the sample",
            hint="`recollect sample map RUN` estimates its recall; `recollect merge INDEX SAMPLE` adds what was seen",
        )
