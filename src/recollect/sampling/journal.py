"""The journal of a sampling run: every answer of the archive, appended as it comes, so that a run can go on.

Hides: the file. `RUN/journal.jsonl` holds one JSON object per line; the first names the archive. A line is written
whole before the next question is asked. A last line without its newline was cut off by a crash and is dropped. One
process at a time may write: a second one would ask the same questions.

    {"archive": "arquivo", "version": 1}
    {"kind": "uri", "uri": "http://...", "key": "com,example)/", "outcome": "held" | "absent" | "error", "why": "",
     "years": {"2010": 2, ...}, "media_types": {"text/html": 2}, "languages": {"pt": 2}}   as far as a TimeMap says
    {"kind": "frame", "source": "urls.txt", "uris": 9184, "strata": {"com": 5000, ...}}
    {"kind": "prefix", "key": "com,example,*", "outcome": "page" | "complete" | "cut" | "error", "cursor": "",
     "captures": 12, "keys": {"com,example)/": 3, ...}, "why": ""}
    {"kind": "query", "terms": "lisboa", "outcome": "done" | "error", "uris": [...], "words": [...], "why": "",
     "captures": [["20100102030405", "text/html", "pt"], ...]}   of each of the URIs, as far as the search says

Errors are kept, too, but they are not answers: a later run asks again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from types import TracebackType
from typing import Any

from recollect.errors import FormatError, ResourceError, UsageError

VERSION = 1
NAME = "journal.jsonl"


class Kind(StrEnum):
    """What an entry is about."""

    FRAME = "frame"
    URI = "uri"
    PREFIX = "prefix"
    QUERY = "query"


class Outcome(StrEnum):
    """What the archive answered."""

    HELD = "held"
    ABSENT = "absent"
    PAGE = "page"
    """One page of a listing; more follow."""
    COMPLETE = "complete"
    CUT = "cut"
    """The end of a listing that is not complete."""
    DONE = "done"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal; `data` holds the fields of its kind."""

    kind: Kind
    outcome: Outcome | None
    data: dict[str, Any]


class Journal:
    """An open journal; entries of earlier runs are in `entries`."""

    def __init__(self, folder: str | Path, archive: str) -> None:
        self._path = Path(folder) / NAME
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self.archive = archive
        self.entries: list[Entry] = []
        self._file = self._path.open("ab")
        try:
            self._go_on()
        except BaseException:
            self._file.close()
            raise

    def _go_on(self) -> None:
        """Take up what earlier runs wrote."""
        try:
            flock(self._file, LOCK_EX | LOCK_NB)
        except BlockingIOError as error:
            raise ResourceError(
                "another command writes this run", where=str(self._path), hint="wait for it, or give another -o RUN"
            ) from error
        owner, self.entries, whole = _read(self._path)
        if whole and owner != self.archive:
            raise UsageError(
                "this run is about another archive",
                where=str(self._path),
                why=f"it is about {owner!r}",
                hint="give another folder: -o RUN",
            )
        self._file.truncate(whole)
        if not whole:
            self._append({"archive": self.archive, "version": VERSION})

    def write(self, kind: Kind, outcome: Outcome | None = None, **data: Any) -> Entry:
        """Append one answer."""
        entry = Entry(kind, outcome, data)
        self._append({"kind": kind, **({"outcome": outcome} if outcome else {}), **data})
        self.entries.append(entry)
        return entry

    def _append(self, value: dict[str, Any]) -> None:
        self._file.write(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
        self._file.flush()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def read_journal(folder: str | Path) -> tuple[str, list[Entry]]:
    """The archive and the entries of a run."""
    path = Path(folder) / NAME
    if not path.exists():
        raise UsageError(
            "not a sampling run", where=str(folder), why=f"it has no {NAME}", hint="recollect sample uris --help"
        )
    archive, entries, _ = _read(path)
    return archive, entries


def _read(path: Path) -> tuple[str, list[Entry], int]:
    """The archive, the entries, and the length of what is whole."""
    archive = ""
    entries: list[Entry] = []
    whole = 0
    for number, value, end in _lines(path):
        try:
            if number == 1:
                archive = str(value["archive"])
                if value["version"] != VERSION:
                    raise FormatError(
                        "another version of a journal", where=str(path), why=f"version {value['version']}"
                    )
            else:
                outcome = value.pop("outcome", None)
                entry = Entry(Kind(value.pop("kind")), Outcome(outcome) if outcome else None, value)
                entries.append(entry)
        except (KeyError, ValueError, TypeError) as error:
            raise FormatError("not a journal of a sampling run", where=f"{path}:{number}", why=repr(error)) from error
        whole = end
    return archive, entries, whole


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any], int]]:
    end = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            end += len(line)
            try:
                value = json.loads(line)
            except ValueError as error:
                where = f"{path}:{number}"
                raise FormatError("not a journal of a sampling run", where=where, why=str(error)) from error
            if not isinstance(value, dict):
                raise FormatError("not a journal of a sampling run", where=f"{path}:{number}", why="not an object")
            yield number, value, end
