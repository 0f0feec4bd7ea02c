"""A map as one view of bytes: header apart, records plain, sorted and unique.

Hides: where the bytes come from. A plain file is mapped, not loaded. A compressed one, or stdin, is unpacked to a
temporary file first and that is mapped, so memory does not depend on size. A map that turns out not to be plain
(quoted tokens, tabs, counts inside JSON), not sorted or not unique is put in order by `tidied`: the same records,
sorted out of core, equal keys joined.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import FormatError
from recollect.formats.containers import OnProblem, open_input, whole_lines
from recollect.formats.ukvs import Header
from recollect.formats.ukvs.header import Builder
from recollect.model import Problem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class PlainMap:
    """The text of a map; records begin at `start`. `path` is a file that has it, for another way of reading it."""

    label: str
    path: str
    header: Header
    data: memoryview
    start: int

    @property
    def array(self) -> NDArray[np.uint8]:
        """The text as a NumPy array, without a copy."""
        import numpy as np

        return np.frombuffer(self.data, np.uint8)


@contextmanager
def open_plain(path: str | os.PathLike[str], on_problem: OnProblem | None = None) -> Iterator[PlainMap]:
    """The map at `path`, or on stdin for `-`, as bytes; what its records are like is not looked at."""
    name = os.fspath(path)
    with ExitStack() as stack:
        stream = stack.enter_context(open_input(path, on_problem))
        if stream.kind == "plain" and name != "-" and Path(name).is_file():
            file: Any = stack.enter_context(Path(name).open("rb"))
        else:
            file = stack.enter_context(tempfile.NamedTemporaryFile(prefix="recollect-"))
            for piece in whole_lines(stream, on_problem):
                file.write(piece)
            file.flush()
        yield replace(plain_of(_mapped(file), stream.label, on_problem), path=file.name)


@contextmanager
def tidied(plain: PlainMap, on_problem: OnProblem | None = None) -> Iterator[PlainMap]:
    """The same records, plain, sorted and with equal keys joined; bad lines are reported to `on_problem`, or raise."""
    if len(plain.header.keys) > 1 or set(plain.header.values) - {"frequency"}:
        raise FormatError(
            "a map with more columns than a key and a frequency",
            where=plain.label,
            why=f"columns: {', '.join(plain.header.keys + plain.header.values)}",
            hint="compact it by weights (without --max-cost and the like), or profile with --by but not --by-columns",
        )
    from recollect.maps.merge import MergeOptions, merge_maps  # here, as few maps need it

    with tempfile.NamedTemporaryFile(prefix="recollect-", suffix=".ukvs") as file:
        options = MergeOptions(style="ukvs", disjoint=True)

        def report(problem: Problem) -> None:
            if on_problem is None:
                raise FormatError(problem.reason, where=f"{plain.label}:{problem.line}", why=problem.excerpt)
            on_problem(replace(problem, file=plain.label))

        merge_maps([plain.path], file.name, options, on_problem=report)
        with open_plain(file.name) as tidy:
            header = replace(plain.header, keys=("surt",), values=("frequency",), style="ukvs")
            yield replace(tidy, label=plain.label, header=header)


def _mapped(file: Any) -> memoryview:
    if os.fstat(file.fileno()).st_size == 0:
        return memoryview(b"")
    # The area is unmapped when the last view of it is gone; closing it under a view would be an error.
    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def plain_of(data: memoryview, label: str, on_problem: OnProblem | None = None) -> PlainMap:
    """Read the header of a map's text."""
    builder = Builder()
    at = len(BOM) if data[: len(BOM)].tobytes() == BOM else 0
    number = 0
    while at < len(data) and data[at] in b"!@#\r\n":
        number += 1
        end = _line_end(data, at)
        line = data[at:end].tobytes().strip()
        if line[:1] in (b"!", b"@"):
            try:
                builder.add(line)
            except FormatError as error:
                if on_problem is None:
                    raise FormatError(error.what, where=f"{label}:{number}", why=error.why) from error
                on_problem(Problem(label, number, str(error), line[:80].decode("utf-8", "replace")))
        at = min(end + 1, len(data))
    header = builder.header()
    if not builder.has_fields:
        # Without named columns the first record shows whether its frequency is in its JSON, as in older profiles.
        first = data[at : _line_end(data, at)].tobytes().split(None, 1)
        inside = len(first) > 1 and first[1].startswith(b"{")
        header = replace(header, values=() if inside else ("frequency",), style="cdxj" if inside else "ukvs")
    return PlainMap(label, "", header, data, at)


def _line_end(data: memoryview, at: int) -> int:
    step = 256
    while at < len(data):
        found = data[at : at + step].tobytes().find(b"\n")
        if found >= 0:
            return at + found
        at += step
        step *= 4
    return len(data)
