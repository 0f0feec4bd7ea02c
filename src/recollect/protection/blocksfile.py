"""Reading a file of precomputed blocks: what a running server needs, by the standard library alone.

Hides: SQLite, and that the file may be replaced. `bundle` writes it.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from pathlib import Path
from threading import Lock
from urllib.parse import quote, urlsplit

from recollect.errors import FormatError, UsageError
from recollect.protection.markup import Style

FORMAT = 1
_LOOK_EVERY = 5.0
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")


def path_of(target: str) -> str:
    """The path of a URL or a request; the query belongs to it. Escapes are spelled in one way."""
    parts = urlsplit(target if "://" in target else f"http://x/{target.lstrip('/')}")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return _ESCAPE.sub(lambda match: match[0].upper(), quote(path, safe="/:@!$&'()*+,;=~-._%?"))


def read_only(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=ro"  # escapes what means something in a URI


def check_format(db: sqlite3.Connection, path: Path) -> str:
    """The style of the carriers; raises FormatError for a file that is not a bundle."""
    try:
        meta = dict(db.execute("SELECT name, value FROM meta"))
    except sqlite3.DatabaseError as error:
        raise FormatError("not a file of blocks", where=str(path), why=str(error)) from error
    if meta.get("format") != str(FORMAT):
        raise FormatError("not a file of blocks", where=str(path), why="another format")
    return str(meta["style"])


class Bundle:
    """The blocks of a file, by path, for a running server; a new file is taken when there is one."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._identity: tuple[int, int] | None = None
        self._lock = Lock()
        self._looked_at = 0.0
        self.refresh(0.0)

    def refresh(self, now: float) -> None:
        """Open the file if it is another one than before; looks every few seconds of `now`, a steady clock."""
        if self._identity is not None and now - self._looked_at < _LOOK_EVERY:
            return
        self._looked_at = now
        try:
            status = self._path.stat()
        except OSError as error:
            if self._identity is not None:
                return  # it was deleted; the open one is still good
            raise UsageError("no file of blocks", where=str(self._path), why=error.strerror or "") from error
        identity = (status.st_ino, status.st_mtime_ns)
        if identity == self._identity:
            return
        db = sqlite3.connect(read_only(self._path), uri=True, check_same_thread=False)
        style = check_format(db, self._path)
        with self._lock:
            self._db, self.style, self._identity = db, Style(style), identity
            (self.tag,) = db.execute("SELECT value FROM meta WHERE name = 'tag'").fetchone()
            (self._spares,) = db.execute("SELECT count(*) FROM spare").fetchone()

    def text_for(self, path: str) -> str:
        """The blocks of a page, listed or not."""
        with self._lock:
            row = self._db.execute("SELECT text FROM page WHERE path = ?", (path,)).fetchone()
            if row is None:
                number = int.from_bytes(hashlib.sha256(path.encode("utf-8", "replace")).digest()[:8], "big")
                row = self._db.execute("SELECT text FROM spare WHERE number = ?", (number % self._spares,)).fetchone()
        return str(row[0])
