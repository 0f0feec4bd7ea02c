"""Outputs that would destroy an input are refused before anything is written.

Hides: when two names are one file (links, hard links, folders, globs, stdout sent to a file). A command that works in
place (`compact`, `merge`) does not ask.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from recollect.errors import RecollectError, UsageError

_HINT = "write to another file; only compact and merge may replace their map"


def refuse_inputs(output: str | os.PathLike[str] | None, inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Raise UsageError if `output` is one of the files that `inputs` (files, folders, globs) name."""
    target = _identity_of_output(output)
    if target is None:
        return
    for given in inputs:
        for name in _files(os.fspath(given)):
            if _identity(name) == target:
                where = "standard output" if output == "-" else os.fspath(output or "")
                also = "" if os.path.abspath(where) == os.path.abspath(name) else f"it is the same file as {name}"  # noqa: PTH100
                raise UsageError("the output is one of the inputs", where=where, why=also, hint=_HINT)


def _identity_of_output(output: str | os.PathLike[str] | None) -> tuple[int, int] | None:
    if output is None:
        return None
    if os.fspath(output) != "-":
        return _identity(os.fspath(output))
    try:
        status = os.fstat(sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):  # no stdout, or one that is not a file
        return None
    return (status.st_dev, status.st_ino) if Path(f"/dev/fd/{sys.stdout.fileno()}").is_file() else None


def _identity(name: str) -> tuple[int, int] | None:
    """Device and inode, through links; None for what is not there, or is neither a file nor a folder."""
    path = Path(name)
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if path.is_file() or path.is_dir() else None


def _files(name: str) -> Iterator[str]:
    """The files that a name means, with the parts of a folder of parts and the shards of a ZipNum index; none for
    stdin and URLs."""
    if name == "-" or (not Path(name).exists() and "://" in name):
        return
    # Here: it takes longer to import than all the rest of this module.
    from recollect.formats.detect import beside_index, files_of

    try:
        found = list(files_of([name]))
    except UsageError:  # what is not there is reported by whoever reads it
        return
    for file in found:
        yield file
        if Path(file).is_dir():
            yield from (str(part) for part in Path(file).iterdir())
        elif Path(file).is_file():
            with suppress(OSError, RecollectError):  # reported by whoever reads it
                yield from beside_index(file)
