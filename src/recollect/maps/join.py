"""Lines of several maps merged as text (`kernels.join`)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from recollect.kernels import join as kernels


class NotPlain(Exception):
    """A wildcard, which covers other lines, or lines out of order."""


class Joined(NamedTuple):
    """The merged lines, how many there are and of how many, and the first and the last key."""

    text: memoryview
    keys: int
    records: int
    duplicates: int
    first: bytes
    last: bytes


class Joiner:
    """Merges texts of sorted lines; its buffer is used again."""

    def __init__(self, *, disjoint: bool) -> None:
        self._disjoint = disjoint
        self._out = bytearray()

    def join(self, texts: Sequence[bytes]) -> Joined | None:
        """One text of all, None if there is a line that needs more thought; raises NotPlain where text will not do."""
        whole = [text if text.endswith(b"\n") or not text else text + b"\n" for text in texts]
        data, bounds = b"".join(whole), array("q", accumulate(map(len, whole), initial=0))
        if len(self._out) < len(data):
            self._out = bytearray(len(data))
        length, records, keys, duplicates, first_length, last, last_length = kernels.join(
            data, bounds[:-1], bounds[1:], self._disjoint, self._out
        )
        if length == kernels.NOT_PLAIN:
            raise NotPlain
        if length == kernels.ODD_LINE:
            return None
        text = memoryview(self._out)[:length]
        last_key = bytes(text[last : last + last_length])
        return Joined(text, keys, records, duplicates, bytes(text[:first_length]), last_key)
