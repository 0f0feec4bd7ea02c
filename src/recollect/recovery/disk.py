"""A full disk as one clear error."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from recollect.errors import ResourceError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextlib.contextmanager
def on_this_disk(out_dir: Path) -> Iterator[None]:
    """A block that writes below `out_dir`: a full disk is one clear error, and what was committed stays."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise _disk_full(out_dir, error.strerror or str(error)) from error
    except sqlite3.Error as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise
        raise _disk_full(out_dir, str(error)) from error


def _disk_full(out_dir: Path, why: str) -> ResourceError:
    hint = f"free some space, then go on with: recollect recover --resume {out_dir} (or run the same command again)"
    return ResourceError("the disk is full", where=str(out_dir), why=why, hint=hint)
