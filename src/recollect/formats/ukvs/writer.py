"""Writing maps: sorted, unique, whole or not at all.

Hides: the container (by the name's suffix), the header's spelling, and where an older CDXJ profile keeps its
frequency. Invariant: what a `Writer` finished passes `validate`, given keys in normal form.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from recollect.errors import FormatError, NotSorted
from recollect.formats.containers import atomic_output
from recollect.formats.ukvs import lenient
from recollect.formats.ukvs.header import Header
from recollect.formats.ukvs.records import Record, format_line

_BATCH = 8192


class Writer:
    """Writes records in rising order of their keys; use as a context manager, which finishes or discards the file."""

    def __init__(self, path: str | os.PathLike[str], header: Header) -> None:
        self._path = os.fspath(path)
        self._header = header
        self._simple = header.keys[1:] == () and header.values == ("frequency",)
        self._before: tuple[bytes, tuple[bytes, ...]] = (b"", ())
        self._lines: list[bytes] = []
        self._stack = ExitStack()
        self.count = 0

    def __enter__(self) -> Writer:
        self._out = self._stack.enter_context(atomic_output(self._path))
        self._out.write(self._header.encode())
        return self

    def write(self, record: Record) -> None:
        """Write one record; its key must be above the one before."""
        key, more_keys, frequency, block, values = record
        if (key, more_keys) <= self._before:
            raise self._disorder(record)
        self._before = (key, more_keys)
        if self._header.style == "cdxj":
            line = b" ".join((key, *more_keys, cdxj_block(record).encode("utf-8", "surrogateescape")))
        elif self._simple and not (block or values or more_keys):
            line = b"%b %b" % (key, str(frequency).encode())
        else:
            line = format_line(record, self._header)
        if b"\n" in line:
            raise FormatError("a record of more than one line", where=key.decode("utf-8", "replace"))
        self._lines.append(line)
        self.count += 1
        if len(self._lines) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        if self._lines:
            self._lines.append(b"")
            self._out.write(b"\n".join(self._lines))
            self._lines.clear()

    def _disorder(self, record: Record) -> FormatError:
        key = record.key.decode("utf-8", "replace")
        if record[:2] == self._before:
            return FormatError("a key written twice", where=self._path, why=key)
        before = self._before[0].decode("utf-8", "replace")
        return NotSorted("keys written out of order", where=self._path, why=f"{key} after {before}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            try:
                self._flush()
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
