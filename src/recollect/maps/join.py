"""Lines of several maps merged as text (`kernels.join`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

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
        self._out = np.zeros(0, np.uint8)

    def join(self, texts: Sequence[bytes]) -> Joined | None:
        """One text of all, None if there is a line that needs more thought; raises NotPlain where text will not do."""
        whole = [text if text.endswith(b"\n") or not text else text + b"\n" for text in texts]
        data = np.frombuffer(b"".join(whole), np.uint8)
        ends = np.cumsum([len(text) for text in whole])
        starts = ends - [len(text) for text in whole]
        if len(self._out) < len(data):
            self._out = np.zeros(len(data), np.uint8)
        length, records, keys, duplicates, first_length, last, last_length = kernels.join(
            data, starts, ends, self._disjoint, self._out
        )
        if length == kernels.NOT_PLAIN:
            raise NotPlain
        if length == kernels.ODD_LINE:
            return None
        text = self._out[:length]
        last_key = text[last : last + last_length].tobytes()
        return Joined(text.data, keys, records, duplicates, text[:first_length].tobytes(), last_key)
