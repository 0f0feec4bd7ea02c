"""What is kept between updates: the index files as they were read, and which map is published.

Hides: one JSON file, replaced as a whole. It names the files of the data folder that are in use, so an update that was
killed at any moment leaves only files that the state does not name, and the next update removes them.
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
from recollect.formats.detect import Kind
from recollect.profiles.upkeep.indexfiles import Fingerprint

FILE = "state.json"
LAYOUT = 2
FOLDERS = ("profiles", "maps", "work")


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One index file: what it was when it was read, and the profiles of its content, one more for each time it grew.

    `partial` is true if a part of it could not be read.
    """

    fingerprint: Fingerprint
    kind: Kind
    profiles: tuple[str, ...]
    captures: int
    partial: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """What is kept between two updates. `options` is a digest of the options that a map depends on.

    `map` is the published map, of the profiles of all `files`; `base` is the map of the last full build, of
    `base_profiles`. `generation` numbers the maps that were made.
    """

    options: str = ""
    generation: int = 0
    map: str = ""
    base: str = ""
    base_profiles: tuple[str, ...] = ()
    captures: int = 0
    files: dict[str, IndexFile] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)

    @property
    def profiles(self) -> list[str]:
        """The profiles that the published map is made of."""
        return [name for file in self.files.values() for name in file.profiles]


def load(folder: Path) -> State:
    """The state of a data folder; an empty one if the folder is new, or was written by an earlier version."""
    path = folder / FILE
    if not path.is_file():
        return State()
    try:
        return _parse(json.loads(path.read_bytes()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "remove the file: all index files are then profiled again; the published map stays until that is done"
        raise FormatError("cannot read the state", where=str(path), why=str(error), hint=hint) from error


def _parse(content: dict[str, Any]) -> State:
    layout = content.pop("layout")
    if layout > LAYOUT:
        raise ValueError("written by a later version")
    if layout < LAYOUT:
        return State(generation=content["generation"])  # everything is profiled again
    files = {
        name: IndexFile(
            Fingerprint(**file["fingerprint"]),
            Kind(file["kind"]),
            tuple(file["profiles"]),
            file["captures"],
            file["partial"],
        )
        for name, file in content.pop("files").items()
    }
    return State(files=files, base_profiles=tuple(content.pop("base_profiles")), **content)


def save(folder: Path, state: State) -> None:
    """Replace the state of a data folder."""
    with atomic_output(folder / FILE) as out:
        out.write(json.dumps({"layout": LAYOUT, **asdict(state)}, indent=1).encode() + b"\n")


def remove_unused(folder: Path, state: State) -> None:
    """Remove files of updates that did not finish, and maps that have been replaced."""
    used = {state.map, state.base, *state.profiles}
    for name in FOLDERS:
        for path in (folder / name).glob("*"):
            if path.is_file() and f"{name}/{path.name}" not in used:
                path.unlink()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the data folder; raises ResourceError if another process has locked it."""
    for name in FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as file:
        with suppress(BlockingIOError):
            flock(file, LOCK_EX | LOCK_NB)
            yield
            return
        raise ResourceError(
            "another update uses this data folder", where=str(folder), hint="wait for it, or give another --data"
        )
