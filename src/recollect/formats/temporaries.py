"""Temporary files beside their targets: unique names, and none of them stays after a kill.

Hides: the names (`.NAME.<16 hex digits>.recollect.tmp`, by which they are recognised), the lock that their writer holds
for as long as it lives, and the sweep. Invariants: a file that is not ours is never opened for writing, replaced or
deleted; a temporary file with a living writer is never swept; the umask of the process is never changed, which other
threads would see.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_NAME = re.compile(r"\..*\.[0-9a-f]{16}\.recollect\.tmp", re.DOTALL)
# A link has no writer that could lock it; it is renamed at once, or never.
_LINK_SECONDS = 3600.0
_MOST_NAME = 120  # bytes of a target's name; file systems allow 255
_swept: set[str] = set()  # folders, once each process


def name_beside(target: Path) -> Path:
    """A free name in the folder of a target, for a link that is renamed at once."""
    sweep(target.parent)
    short = os.fsencode(target.name)[:_MOST_NAME].decode("utf-8", "ignore")
    return target.with_name(f".{short}.{secrets.token_hex(8)}.recollect.tmp")


def create_beside(target: Path, *, private: bool = False, mode: int | None = None) -> tuple[int, Path]:
    """Create a temporary file in the folder of a target; returns its descriptor, which keeps it from being swept, and
    its path. It has the mode of the target if there is one, else `mode` or that of any new file; `private` ones can be
    read by their owner only."""
    if mode is None and not private and target.is_file():
        mode = stat.S_IMODE(target.stat().st_mode)
    at_first = 0o600 if private or mode is not None else 0o666  # the system applies the umask
    while True:
        path = name_beside(target)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, at_first)
        except FileExistsError:
            continue
        with suppress(OSError):  # a file system without locks: nothing is swept there either
            fcntl.flock(handle, fcntl.LOCK_SH)
        with suppress(FileNotFoundError):  # swept between the two calls
            if os.path.samestat(path.lstat(), os.fstat(handle)):
                break
        os.close(handle)
    if mode is not None and not private:
        os.fchmod(handle, mode)
    return handle, path


@contextmanager
def replacing(target: Path, *, mode: int | None = None) -> Iterator[IO[bytes]]:
    """A file to write, in the place of the target when the block ends well; else the target stays as it was."""
    handle, path = create_beside(target, mode=mode)
    try:
        with os.fdopen(handle, "w+b") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
            path.replace(target)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def is_temporary(name: str) -> bool:
    """Whether a file has a name of this module."""
    return _NAME.fullmatch(name) is not None


def sweep(folder: Path) -> None:
    """Delete what killed processes left in a folder, once in the life of this process."""
    place = os.path.realpath(folder)
    if place in _swept:
        return
    _swept.add(place)
    with suppress(OSError), os.scandir(place) as entries:
        for name in [entry.name for entry in entries if is_temporary(entry.name)]:
            with suppress(OSError):
                _sweep_one(Path(place, name))


def _sweep_one(path: Path) -> None:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        if not stat.S_ISDIR(status.st_mode) and time.time() - status.st_ctime > _LINK_SECONDS:
            path.unlink()
        return
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(handle)
