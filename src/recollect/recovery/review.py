"""Doubtful pages of a recovery, and what a person decides about them.

Hides: how a choice names pages, and that the outputs are made again. A page that is accepted is an ordinary page from
then on; one that is rejected is missing, and its bytes are not taken by a later run either.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from recollect.errors import UsageError
from recollect.recovery.progress import Watch
from recollect.recovery.recover import remake
from recollect.recovery.report import Report
from recollect.recovery.store import Recovered, Store, on_this_disk

EVERYTHING = "all"


def suspects(out_dir: str | Path) -> tuple[Recovered, ...]:
    """The pages whose captures are all doubtful, in order; their number is their position, from 1."""
    with Store.open(Path(out_dir)) as store:
        return tuple(resource for resource in store.recovered() if resource.suspect is not None)


def decide_suspects(
    out_dir: str | Path,
    *,
    accept: Sequence[str] = (),
    reject: Sequence[str] = (),
    watch: Watch = Watch(),  # noqa: B008 - frozen
) -> Report:
    """Accept and reject pages, named by number, URI, glob or `all` (what nothing else names), and make the outputs
    again."""
    folder = Path(out_dir)
    found = suspects(folder)
    taken, dropped = _chosen(found, accept), _chosen(found, reject)
    if both := taken & dropped:
        named = found[min(both)].uri
        raise UsageError("accepted and rejected at once", where=named, hint="name it in one of the two")
    rest = set(range(len(found))) - taken - dropped
    taken |= rest if EVERYTHING in accept else set()
    dropped |= rest - taken if EVERYTHING in reject else set()
    with on_this_disk(folder), Store.create(folder) as store:
        for number in sorted(taken):
            store.accept(found[number])
        for number in sorted(dropped):
            store.reject(found[number])
    return remake(folder, watch=watch)


def _chosen(found: Sequence[Recovered], names: Sequence[str]) -> set[int]:
    chosen: set[int] = set()
    for name in names:
        if name == EVERYTHING:
            continue
        if name.isdigit() and 1 <= int(name) <= len(found):
            hits = {int(name) - 1}
        else:
            hits = {n for n, resource in enumerate(found) if name == resource.uri or fnmatchcase(resource.uri, name)}
        if not hits:
            raise UsageError("no such page to review", where=name, hint="give a number of the list, a URL, or all")
        chosen |= hits
    return chosen
