"""Writing maps: sorted, unique, whole or not at all.

Hides: the container (by the name's suffix), the header's spelling, and where an older CDXJ profile keeps its
frequency. Invariant: what a `Writer` finished passes `validate`, given keys in normal form.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, BinaryIO

from recollect.errors import FormatError, NotSorted
from recollect.formats.containers import atomic_output
from recollect.formats.frequency import Frequency
from recollect.formats.ukvs import lenient
from recollect.formats.ukvs.header import Header
from recollect.formats.ukvs.records import Record, format_line, shown

_BATCH = 8192


class Writer:
    """Writes records in rising order of their keys; use as a context manager, which finishes or discards the file."""

    def __init__(
        self, path: str | os.PathLike[str], header: Header, *, late: Callable[[int], Header] | None = None
    ) -> None:
        """`late` makes the header when all records are written, from their number; they wait in a temporary file."""
        self._path = os.fspath(path)
        self._header = header
        self._late = late
        self._simple = header.keys[1:] == () and header.values == ("frequency",) and header.style == "ukvs"
        self._key = b""
        self._more_keys: tuple[bytes, ...] = ()
        self._lines: list[bytes] = []
        self._tokens: dict[int, tuple[Frequency, bytes]] = {}
        self._stack = ExitStack()
        self._target: BinaryIO
        self._out: BinaryIO
        self._count = 0

    def __enter__(self) -> Writer:
        self._target = self._out = self._stack.enter_context(atomic_output(self._path))
        if self._late is None:
            self._out.write(self._header.encode())
        else:
            folder = None if self._path == "-" else os.path.dirname(os.path.realpath(self._path))  # noqa: PTH120
            self._out = self._stack.enter_context(tempfile.TemporaryFile(dir=folder, prefix=".recollect-"))
        return self

    def _finish(self) -> None:
        self._flush()
        if self._late is not None:
            self._target.write(self._late(self._count).encode())
            self._out.seek(0)
            shutil.copyfileobj(self._out, self._target, 1 << 20)

    def write(self, record: Record) -> None:
        """Write one record; its key must be above the one before."""
        key, more_keys, frequency, block, values = record
        if key <= self._key and (key < self._key or more_keys <= self._more_keys):
            raise self._disorder(record)
        self._key, self._more_keys = key, more_keys
        if self._simple and not (block or values or more_keys):
            line = key + self._token(frequency)
        else:
            line = self._line(record)
        lines = self._lines
        lines.append(line)
        if len(lines) >= _BATCH:
            self._flush()

    def write_lines(self, text: bytes | memoryview, count: int, first: bytes, last: bytes) -> None:
        """Write lines as this writer would write them: of one key column, sorted and unique among themselves."""
        if first <= self._key:
            raise self._disorder(Record(first))
        self._flush()
        self._out.write(text)
        self._key = last
        self._count += count

    def _line(self, record: Record) -> bytes:
        if self._header.style == "cdxj":
            block = cdxj_block(record).encode("utf-8", "surrogateescape")
            return b" ".join((record.key, *record.more_keys, block))
        return format_line(record, self._header)

    def _token(self, frequency: Frequency) -> bytes:
        """The frequency with a space before it. Frequencies that were read are few objects, so each is spelled once."""
        known = self._tokens.get(id(frequency))
        if known is not None and known[0] is frequency:
            return known[1]
        token = f" {frequency}".encode()
        if len(self._tokens) >= _BATCH:
            self._tokens.clear()
        self._tokens[id(frequency)] = (frequency, token)
        return token

    def _flush(self) -> None:
        if self._lines:
            self._count += len(self._lines)
            self._lines.append(b"")
            text = b"\n".join(self._lines)
            if text.count(b"\n") != len(self._lines) - 1:
                broken = next(line for line in self._lines if b"\n" in line)
                raise FormatError("a record of more than one line", where=self._path, why=shown(broken))
            self._out.write(text)
            self._lines.clear()

    @property
    def count(self) -> int:
        """Records written so far."""
        return self._count + len(self._lines)

    def _disorder(self, record: Record) -> NotSorted:
        key = record.key.decode("utf-8", "replace")
        if record.keys == (self._key, *self._more_keys):
            return NotSorted("a key written twice", where=self._path, why=key)
        before = self._key.decode("utf-8", "replace")
        return NotSorted("keys written out of order", where=self._path, why=f"{key} after {before}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            try:
                self._finish()
            except BaseException as failed:
                self._stack.__exit__(type(failed), failed, failed.__traceback__)
                raise
        self._stack.__exit__(kind, error, trace)


def cdxj_block(record: Record) -> str:
    """The JSON block of a profile of the older kind: the frequency (the URI-Ms as a number if exact) comes first."""
    block: dict[str, Any] = lenient.loads(record.json) if record.json else {}
    count = record.frequency.uri_m
    exact = count.value is not None and not count.bound and record.frequency.uri_r.value is None
    block.pop("frequency", None)
    return lenient.dumps({"frequency": count.value if exact else str(record.frequency), **block})
