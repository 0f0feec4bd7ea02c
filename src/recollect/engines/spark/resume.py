"""Going on from the finished parts of a run that failed or was killed.

While tasks write, the driver keeps a journal beside their parts: `begin.json` has what the work was cut into, and
`done-RUN-NNNNN.json` the notes of ranges that are finished. A run of the same work finds the journal by its identity
(version, options, inputs with their sizes and times of change), takes the parts that are there in full, and makes only
the others.

Invariant: a note is written after the part it describes is in place, and a part counts only if it has the size of its
note; so what a killed run left half done is done again.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import recollect
from recollect.engines.plan import Range
from recollect.engines.spark.files import HadoopFiles, Listed, is_url

# Seconds between two looks for notes that are new.
PAUSE = 1.0
_BEGIN = "begin.json"
# A file of an input: its name, its size and when it was changed.
Stamp = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an unfinished run of the same work left: the state it began with, and the ranges whose parts are whole."""

    state: dict[str, Any]
    ranges: dict[int, Range]


def identity_of(work: str, options: Mapping[str, object], inputs: Sequence[Stamp]) -> str:
    """A name for work whose lines are the same whenever it is done; empty if the size of a file is unknown.
    Options must be plain values."""
    if any(size < 0 for _, size, _ in inputs):
        return ""
    text = json.dumps([recollect.__version__, work, options, list(inputs)], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def stamps_of(spark: Any, names: Sequence[str]) -> list[Stamp]:
    """The stamps of files on this machine and at URLs."""
    here = [name for name in names if not is_url(name)]
    there = [name for name in names if is_url(name)]
    found = [(name, (stat := Path(name).stat()).st_size, stat.st_mtime_ns) for name in here]
    return found + (HadoopFiles(spark).stamps(there) if there else [])


class Store(Protocol):
    """A folder for the small files of a journal."""

    def names(self) -> list[str]:
        """Of all that is in it."""

    def read(self, name: str) -> bytes:
        """The content of a file."""

    def write(self, name: str, content: bytes) -> None:
        """A file, which is there when it is whole."""


@dataclass(frozen=True, slots=True)
class LocalStore:
    """A folder of this machine."""

    folder: Path

    def names(self) -> list[str]:
        return [one.name for one in self.folder.iterdir()] if self.folder.is_dir() else []

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.folder / f".{name}"
        draft.write_bytes(content)
        draft.rename(self.folder / name)


@dataclass(frozen=True, slots=True)
class UrlStore:
    """A folder at a URL."""

    files: HadoopFiles
    url: str

    def names(self) -> list[str]:
        return list(self.files.in_folder(self.url) or ())

    def read(self, name: str) -> bytes:
        size = (self.files.in_folder(self.url) or {})[name]
        return self.files.head(Listed(f"{self.url}/{name}", name, size), size)

    def write(self, name: str, content: bytes) -> None:
        self.files.write(f"{self.url}/{name}", content)


class Journal:
    """What is known of a run while it goes on, in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.kept = 0  # ranges with lines that this run, or one before it, has noted as finished

    def begin(self, state: Mapping[str, Any]) -> None:
        """Note what the work was cut into; call before anything is written."""
        self._store.write(_BEGIN, json.dumps(state).encode())

    def earlier(self) -> tuple[dict[str, Any], list[tuple[str, int, Range]]] | None:
        """The state of an unfinished run, and its notes: run, number and range. None if there is none to go on from;
        a journal that cannot be read is none."""
        try:
            names = self._store.names()
            if _BEGIN not in names:
                return None
            state = json.loads(self._store.read(_BEGIN))
            notes = [
                (str(batch["run"]), int(number), Range.of_json(values))
                for name in sorted(names)
                if name.startswith("done-")
                for batch in (json.loads(self._store.read(name)),)
                for number, values in batch["ranges"].items()
            ]
        except (ValueError, KeyError, TypeError, AttributeError, OSError):
            return None
        self.kept = sum(note.size > 0 for _, _, note in notes)
        return (state, notes) if notes and isinstance(state, dict) else None

    def add(self, run: str, batch: int, ranges: Mapping[int, Range]) -> None:
        """Note finished ranges of a run."""
        text = json.dumps({"run": run, "ranges": {number: one.as_json() for number, one in ranges.items()}})
        self._store.write(f"done-{run}-{batch:05d}.json", text.encode())
        self.kept += sum(one.size > 0 for one in ranges.values())


# Says how the parts of this run are called, given ranges that have some; empty while that is not known.
RunNamer = Callable[[Mapping[int, Range]], str]


@contextmanager
def journalled(journal: Journal | None, reported: Any, run_of: RunNamer) -> Iterator[None]:
    """Keep a journal of the ranges that tasks report while the body runs."""
    if journal is None:
        yield
        return
    noted: set[int] = set()
    done, batches = threading.Event(), iter(range(1 << 30))

    def note() -> None:
        new = {number: one for number, one in _snapshot(reported.value).items() if number not in noted}
        if new and (run := run_of(new)):
            journal.add(run, next(batches), new)
            noted.update(new)

    def watch() -> None:
        while not done.wait(PAUSE):
            # A store that fails for a moment costs no more than work that may be done again.
            with suppress(Exception):
                note()

    thread = threading.Thread(target=watch, name="recollect-spark-journal", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        with suppress(Exception):
            note()


def _snapshot(notes: dict[int, Range]) -> dict[int, Range]:
    """A copy of notes to which another thread adds."""
    while True:
        try:
            return dict(notes)
        except RuntimeError:  # it grew meanwhile
            continue
