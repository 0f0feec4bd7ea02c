"""Archives that an operator switched off, known to all processes of a server.

Hides: shared memory. It is made before workers are forked; whichever of them takes an operator's request writes it, and
each of the others sees the change before its next lookup.

Layout: 8 bytes, the number of the last change; 4 bytes, the length of what follows; JSON `{"off": [ID, ...], "woken":
{ID: number of the change}}`.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from recollect.errors import ResourceError

_SIZE = 1 << 16
_HEAD = 12


@dataclass(frozen=True, slots=True)
class Switched:
    """What an operator decided: archives that are off, and for those switched on again the number of that change."""

    off: frozenset[str] = frozenset()
    woken: tuple[tuple[str, int], ...] = ()


class Switches:
    """Make it before forking."""

    def __init__(self) -> None:
        # It has no name, and ends with the last process that has it.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._file.truncate(_SIZE)
        self._memory = mmap.mmap(self._file.fileno(), _SIZE)

    @property
    def number(self) -> int:
        """Of the last change; 0 if there was none."""
        return int.from_bytes(self._memory[:8], "little")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """By one process at a time; the lock of one that is killed is released by the system."""
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def read(self) -> tuple[int, Switched]:
        """The number of the last change, and what holds since."""
        with self._locked():
            return self.number, self._read()

    def switch(self, archive: str, *, on: bool) -> None:
        """Switch an archive on or off, for all processes."""
        with self._locked():
            before, number = self._read(), self.number + 1
            woken = {name: when for name, when in before.woken if name != archive} | ({archive: number} if on else {})
            off = (before.off - {archive}) if on else (before.off | {archive})
            data = json.dumps({"off": sorted(off), "woken": woken}).encode()
            if _HEAD + len(data) > _SIZE:
                raise ResourceError("too many archives are switched", hint="take them out of the list of archives")
            self._memory[8 : _HEAD + len(data)] = len(data).to_bytes(4, "little") + data
            self._memory[:8] = number.to_bytes(8, "little")

    def _read(self) -> Switched:
        length = int.from_bytes(self._memory[8:_HEAD], "little")
        if not length:
            return Switched()
        held = json.loads(self._memory[_HEAD : _HEAD + length])
        return Switched(frozenset(held["off"]), tuple(held["woken"].items()))
