"""What is remembered between updates: the index files as they were read, and which map is published.

Hides: one JSON file, replaced as a whole. It names the files of the data folder that are in use, so an update that was
ended at any moment leaves files that nothing names, which the next one removes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any

from recollect.errors import FormatError, ResourceError
from recollect.formats.containers import atomic_output
from recollect.profiles.upkeep.stock import Print

FILE = "state.json"
LAYOUT = 1


@dataclass(frozen=True, slots=True)
class Kept:
    """One index file: what it was when it was read, and the profiles of its content, one more for each time it grew."""

    seen: Print
    profiles: tuple[str, ...]
    captures: int
    partial: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """Everything between two updates. `fingerprint` stands for the options that a map depends on.

    `map` is the published one, `base` the one of the last full build, made of `base_profiles`.
    """

    fingerprint: str = ""
    generation: int = 0
    map: str = ""
    base: str = ""
    base_profiles: tuple[str, ...] = ()
    captures: int = 0
    files: dict[str, Kept] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)


def load(folder: Path) -> State:
    """The state of a data folder; an empty one if it is new."""
    path = folder / FILE
    if not path.is_file():
        return State()
    try:
        said = json.loads(path.read_bytes())
        if said.pop("layout") != LAYOUT:
            raise ValueError("written by another version")
        files = {
            name: Kept(Print(**kept["seen"]), tuple(kept["profiles"]), kept["captures"], kept["partial"])
            for name, kept in said.pop("files").items()
        }
        names = State.__dataclass_fields__.keys() - {"files", "base_profiles"}
        known = {name: value for name, value in said.items() if name in names}
        return State(files=files, base_profiles=tuple(said.get("base_profiles", ())), **known)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "remove the file: everything is then profiled again; the published map stays until that is done"
        raise FormatError("cannot read the state", where=str(path), why=str(error), hint=hint) from error


def save(folder: Path, state: State) -> None:
    """Replace the state of a data folder."""
    with atomic_output(folder / FILE) as out:
        out.write(json.dumps({"layout": LAYOUT, **asdict(state)}, indent=1).encode() + b"\n")


def sweep(folder: Path, state: State) -> None:
    """Remove files of updates that were not finished, and maps that have been replaced."""
    used = {state.map, state.base, *(name for kept in state.files.values() for name in kept.profiles)}
    for place in ("profiles", "maps", "work"):
        for path in (folder / place).glob("*"):
            if path.is_file() and f"{place}/{path.name}" not in used:
                path.unlink()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the data folder; raises if another process does."""
    for place in ("profiles", "maps", "work"):
        (folder / place).mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as file:
        with suppress(BlockingIOError):
            flock(file, LOCK_EX | LOCK_NB)
            yield
            return
        raise ResourceError(
            "another update uses this data folder", where=str(folder), hint="wait for it, or give another --data"
        )
