"""Publishing as one step: readers see the last good tree, or the new one, never a part of each.

Hides: links. The trees that `maps.publish` writes stand side by side in `.mementomap/`, and one link, which is replaced
by a rename, says which one is seen:

    .mementomap/12/                              a published tree
    .mementomap/current -> 12
    mementomap          -> .mementomap/current/mementomap
    .well-known/mementomap[.gz|.zst] -> ../.mementomap/current/.well-known/mementomap[.gz|.zst]

Of a collection, its own trees and link, and the list of all collections, which is written after it:

    .mementomap/NAME/12/, .mementomap/NAME/current -> 12
    mementomap/NAME     -> ../.mementomap/NAME/current/mementomap/NAME
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from recollect.errors import UsageError
from recollect.formats.temporaries import name_beside
from recollect.maps.collections import publish_collection, write_list
from recollect.maps.publish import FOLDER, WELL_KNOWN, Published, publish, refuse_other_kind

TREES = ".mementomap"
CURRENT = "current"
_SUFFIXES = ("", ".gz", ".zst")


def write_tree(
    path: Path, folder: Path, generation: int, *, updated_at: str, base_uri: str, collection: str = ""
) -> Published:
    """Write the tree number `generation` of the map at `path`, which is not seen yet."""
    _check(folder, collection)
    tree = _trees(folder, collection) / str(generation)
    if tree.exists():
        shutil.rmtree(tree)  # of an update that was not finished
    tree.mkdir(parents=True)
    if collection:
        return publish_collection(str(path), tree, collection, updated_at=updated_at, base_uri=base_uri)
    return publish(str(path), tree, updated_at=updated_at, base_uri=base_uri)


def _trees(folder: Path, collection: str) -> Path:
    return folder / TREES / collection if collection else folder / TREES


def discard(folder: Path, generation: int, collection: str = "") -> None:
    """Remove a tree that is not seen."""
    shutil.rmtree(_trees(folder, collection) / str(generation), ignore_errors=True)


def show(folder: Path, generation: int, *, collection: str = "", base_uri: str = "") -> None:
    """Let tree number `generation` be seen, and remove the one before."""
    trees = _trees(folder, collection)
    _check(folder, collection)
    _link(trees / CURRENT, str(generation))
    if collection:
        _show_collection(folder, collection, base_uri)
        _sweep(trees, generation)
        return
    _make_way(folder, trees)
    _link(folder / FOLDER, f"{TREES}/{CURRENT}/{FOLDER}")
    (folder / WELL_KNOWN).parent.mkdir(exist_ok=True)
    for suffix in _SUFFIXES:
        _link(folder / f"{WELL_KNOWN}{suffix}", f"../{TREES}/{CURRENT}/{WELL_KNOWN}{suffix}")
    _sweep(trees, generation)


def _show_collection(folder: Path, collection: str, base_uri: str) -> None:
    place = folder / FOLDER / collection
    place.parent.mkdir(exist_ok=True)
    if place.is_dir() and not place.is_symlink():  # of `recollect publish --collection`
        place.replace(_trees(folder, collection) / "before")
    _link(place, f"../{TREES}/{collection}/{CURRENT}/{FOLDER}/{collection}")
    write_list(folder, base_uri)


def _sweep(trees: Path, generation: int) -> None:
    for old in trees.iterdir():
        if old.name not in (CURRENT, str(generation)):
            shutil.rmtree(old, ignore_errors=True)


def is_shown(folder: Path, generation: int, collection: str = "") -> bool:
    """Whether this tree is the one that is seen, through all of its links."""
    with suppress(OSError):
        current = os.readlink(_trees(folder, collection) / CURRENT)  # noqa: PTH115 - as text
        seen = (folder / FOLDER / collection / "index.json", folder / WELL_KNOWN)
        return current == str(generation) and all(path.is_file() for path in seen)
    return False


def _link(place: Path, target: str) -> None:
    """Make or replace a link in one step."""
    with suppress(OSError):
        if os.readlink(place) == target:  # noqa: PTH115
            return
    beside = name_beside(place)
    beside.symlink_to(target)
    beside.replace(place)


def _check(folder: Path, collection: str) -> None:
    """Refuse to replace what is not a published map, or is one of the other kind."""
    refuse_other_kind(folder, collections=bool(collection))
    place = folder / FOLDER
    if place.is_symlink() or not place.exists():
        return
    with suppress(OSError, ValueError):
        said = json.loads((place / "index.json").read_bytes())
        if isinstance(said, dict) and said.get("type") == "MementoMap":
            return
    raise UsageError(
        "a folder that is not a published map", where=str(place), hint="move it away, or publish --to another folder"
    )


def _make_way(folder: Path, trees: Path) -> None:
    """Move away what `recollect publish` wrote there before; a link cannot take the place of a folder."""
    place = folder / FOLDER
    if place.is_dir() and not place.is_symlink():
        place.replace(trees / "before")
