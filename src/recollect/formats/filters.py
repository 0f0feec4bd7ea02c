"""How a filter file is known; what is in it is read by `maps.filters`."""

from __future__ import annotations

from recollect.formats.containers import open_input

MAGIC = b"RCFILT01"


def is_filter(path: str) -> bool:
    """Whether a file is a filter, compressed or not."""
    with open_input(path, lambda _problem: None) as stream:
        return stream.read(len(MAGIC)) == MAGIC
