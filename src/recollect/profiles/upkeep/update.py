"""One update of a published map: what changed in the indexes, the map that follows from it, proven and published.

Hides: two ways to the same promise. A *full build* merges the profiles of all index files, excludes, compacts to the
budget and looks every capture up in the result, which is then the *base*. While all that the base was made of is still
there, a *patch* adds to the base what came since (`patch`), and looks only that up. A full build follows when something
of the base was removed or replaced, when an option changed, when the patched map exceeds the budget, and when what came
since exceeds a tenth of the captures of the base, as a patched map is compacted for the archive that it was.

Law 1 holds on both ways: each profile holds its captures; merging, excluding other keys, patching and compacting keep
what is held; and before anything is published all that its base lacks is looked up in it. A file that cannot be read
any more keeps its last profile. Nothing is published when a lookup fails.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import recollect
from recollect.datetimes import format_iso
from recollect.errors import FormatError, RecollectError, ResourceError
from recollect.formats.containers import atomic_output
from recollect.formats.detect import Source
from recollect.formats.logs import read_lookups
from recollect.model import Problem, Progress, ProgressCallback
from recollect.profiles.indexes.profile import profile
from recollect.profiles.maps.plainmap import open_plain
from recollect.profiles.statistics.verify import verify
from recollect.profiles.upkeep import place
from recollect.profiles.upkeep.changes import line_changes
from recollect.profiles.upkeep.exclusion import Exclusions, read_exclusions, without
from recollect.profiles.upkeep.patch import patch
from recollect.profiles.upkeep.state import Kept, State, load, locked, save, sweep
from recollect.profiles.upkeep.stock import Change, Print, compare, find_indexes, print_of, tail_of
from recollect.quantities import counted

REBUILD_SHARE = 0.1  # of the captures of the base, added since
RESERVE = 0.04  # of the budget, left by a full build for what is added
_PIECE = 1 << 24
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
AT_ONCE = 100  # maps that are merged at a time, each an open file


class NotProven(RecollectError):
    """A map that misses something that is in the indexes, and was not published."""


class Way(StrEnum):
    """How an update came to its map."""

    UNCHANGED = "unchanged"
    PATCHED = "patched"
    BUILT = "built"


@dataclass(frozen=True, slots=True)
class KeepOptions:
    """What to keep current: index files, the published folder, the folder of profiles and state, and the budget.

    `max_bytes` bounds the text of the map, and so every published file. `lookups` are logs of what people ask for,
    `sets` lets wildcards carry hashed sets of what lies below.
    """

    index: tuple[str, ...]
    to: Path
    data: Path
    max_bytes: int
    lookups: tuple[str, ...] = ()
    exclude_keys: str = ""
    sets: bool = True
    name: str = ""
    archive_id: str = ""
    base_uri: str = ""
    threads: int | None = None


@dataclass(slots=True)
class Update:
    """What an update found and did; the counts of files, of keys that changed, and of captures that were looked up."""

    way: Way = Way.UNCHANGED
    files: int = 0
    new_files: int = 0
    changed_files: int = 0
    removed_files: int = 0
    captures: int = 0
    keys: int = 0
    bytes: int = 0
    added_keys: int = 0
    changed_keys: int = 0
    removed_keys: int = 0
    verified: int = 0
    updated_at: str = ""
    partial_files: int = 0
    problems: list[Problem] = field(default_factory=list)
    ignored: list[Problem] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For programs and the state."""
        names = [name for name in self.__dataclass_fields__ if name not in ("problems", "ignored", "way")]
        return {"way": self.way.value, **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A profile that was made in this update, from what (the file, or a copy of its end), and what that was."""

    profile: str
    path: str
    seen: Print


@dataclass(frozen=True, slots=True)
class _Found:
    """The index files now: what is kept of each, and which profiles are new."""

    files: dict[str, Kept]
    fresh: tuple[_Fresh, ...]

    @property
    def profiles(self) -> list[str]:
        return [name for kept in self.files.values() for name in kept.profiles]


def update(options: KeepOptions, now: datetime, progress: ProgressCallback = lambda _p: None) -> Update:
    """Bring the published map up to date. Whatever ends this, the map that was published before stays."""
    with locked(options.data):
        state = load(options.data)
        sweep(options.data, state)
        return _Run(options, state, now, progress).run()


class _Run:
    def __init__(self, options: KeepOptions, state: State, now: datetime, progress: ProgressCallback) -> None:
        self._options, self._state, self._progress = options, state, progress
        self._now = format_iso(now)
        self._data = options.data
        self._rules = read_exclusions(options.exclude_keys) if options.exclude_keys else Exclusions()
        self._fingerprint = _fingerprint(options, self._rules)
        self._result = Update()
        self._number = state.generation + 1
        self._unread = 0  # files that cannot be read now, new ones included

    def run(self) -> Update:
        sources = find_indexes(self._options.index, self._result.problems.append, self._result.ignored.append)
        found = self._profiled(sources)
        state = self._state
        same_options = bool(state.map) and state.fingerprint == self._fingerprint and self._has(state.map)
        if same_options and not found.fresh and sorted(found.profiles) == sorted(self._known_profiles()):
            if not place.is_put(self._options.to, state.generation):
                self._publish(self._data / state.map, state.generation)
            return self._finished(replace(state, files=found.files), Way.UNCHANGED)
        if same_options and self._has(state.base) and (added := self._added(found)) is not None:
            done = self._patch(found, added)
            if done is not None:
                return done
        return self._build(found)

    def _has(self, name: str) -> bool:
        return bool(name) and (self._data / name).is_file()

    def _known_profiles(self) -> list[str]:
        return [name for kept in self._state.files.values() for name in kept.profiles]

    def _added(self, found: _Found) -> list[str] | None:
        """The profiles that the base lacks; None if it has one that is no longer wanted."""
        base, wanted = set(self._state.base_profiles), found.profiles
        return [name for name in wanted if name not in base] if base.issubset(wanted) else None

    # -- index files --------------------------------------------------------------------------------

    def _profiled(self, sources: Sequence[Source]) -> _Found:
        """Profile what is new or changed."""
        files: dict[str, Kept] = {}
        fresh: list[_Fresh] = []
        for number, source in enumerate(sources):
            self._progress(Progress("index files", number, len(sources), "files"))
            name = str(Path(source.path).resolve())
            old = self._state.files.get(name)
            try:
                files[name] = self._one(source, name, old, fresh)
            except ResourceError:
                raise  # the data folder is full, which says nothing of the index file
            except (OSError, RecollectError) as error:
                if isinstance(error, OSError) and error.errno in _NO_ROOM:
                    raise
                self._result.problems.append(Problem(source.label, None, str(error)))
                self._unread += 1
                if old is not None:
                    files[name] = old
        if not any(kept.profiles for kept in files.values()):
            raise FormatError("no index file can be read", where=sources[0].label, why=str(self._result.problems[-1]))
        self._result.removed_files = len(self._state.files.keys() - files.keys())
        return _Found(files, tuple(fresh))

    def _one(self, source: Source, name: str, old: Kept | None, fresh: list[_Fresh]) -> Kept:
        """What is kept of one file; what was known of it stays where the file is the same or grew."""
        if old is None:
            self._result.new_files += 1
            return self._read(source.path, name, print_of(source.path), fresh)
        seen, change = compare(source.path, old.seen, source.kind)
        if change is Change.SAME:
            return old
        self._result.changed_files += 1
        if change is Change.GROWN:
            tail = tail_of(source.path, old.seen.size, self._work(f"tail-{len(fresh)}"))
            more = self._read(str(tail), name, print_of(str(tail)), fresh)
            known = (*old.profiles, *more.profiles)
            return Kept(seen, known, old.captures + more.captures, old.partial or more.partial)
        again = self._read(source.path, name, seen, fresh)
        if len(old.profiles) == 1 and self._same_records(old.profiles[0], again.profiles[0]):
            fresh.pop()  # touched or copied: what it holds is the same
            return replace(again, profiles=old.profiles)
        return again

    def _same_records(self, first: str, second: str) -> bool:
        with open_plain(self._data / first) as one, open_plain(self._data / second) as other:
            return one.data[one.start :].tobytes() == other.data[other.start :].tobytes()

    def _read(self, path: str, name: str, seen: Print, fresh: list[_Fresh]) -> Kept:
        target = f"profiles/{self._number:06d}-{len(fresh):06d}.ukvs"
        done = profile([path], self._data / target, allow_empty=True, threads=self._options.threads)
        for problem in (*done.tally.damaged, *done.tally.problems[:5]):
            self._result.problems.append(replace(problem, file=name))
        fresh.append(_Fresh(target, path, seen))
        return Kept(seen, (target,), done.totals.captures, done.partial)

    # -- maps ---------------------------------------------------------------------------------------

    def _build(self, found: _Found) -> Update:
        """The map of all profiles."""
        whole = self._excluded(self._merged(found.profiles))
        small = self._work("small.ukvs")
        self._compact(whole, small, round(self._options.max_bytes * (1 - RESERVE)))
        target = self._headed(small, _captures_of(whole))
        parts = [(name, kept.seen, kept.profiles) for name, kept in found.files.items()]
        self._prove(target, parts, whole)
        return self._done(found, target, Way.BUILT, (f"maps/{target.name}", tuple(found.profiles)))

    def _patch(self, found: _Found, added: Sequence[str]) -> Update | None:
        """The base and what came since; None if that is too much, in captures or in bytes."""
        state = self._state
        base = self._data / state.base
        target = self._data / "maps" / f"{self._number:06d}.ukvs"
        changes: tuple[int, int, int] | None = None
        if added:
            new = self._excluded(self._merged(added))
            if _captures_of(new) > REBUILD_SHARE * _captures_of(base):
                return None
            done = patch(base, new, target, {"updated_at": self._now})
            if target.stat().st_size > self._options.max_bytes:
                return None
            made = {fresh.profile: fresh for fresh in found.fresh}
            parts = [
                (made[name].path, made[name].seen, (name,)) if name in made else ("", None, (name,)) for name in added
            ]
            self._prove(target, parts, new)
            if state.map == state.base:
                changes = done.added, done.changed, 0
        else:  # all that had been added is gone again
            target = self._headed(base, _captures_of(base))
        return self._done(found, target, Way.PATCHED, (state.base, state.base_profiles), changes)

    def _done(
        self,
        found: _Found,
        target: Path,
        way: Way,
        base: tuple[str, tuple[str, ...]],
        changes: tuple[int, int, int] | None = None,
    ) -> Update:
        """Publish a map and remember it; `changes` are those from the map before, if they are known already."""
        result, before = self._result, self._data / self._state.map if self._has(self._state.map) else None
        result.added_keys, result.changed_keys, result.removed_keys = changes or line_changes(before, target)
        self._publish(target, self._number)
        files, captures = found.files, _captures_of(target)
        state = State(self._fingerprint, self._number, f"maps/{target.name}", *base, captures, files)
        return self._finished(state, way)

    def _merged(self, names: Sequence[str]) -> Path:
        """One map of many profiles, a hundred at a time."""
        paths = [self._data / name for name in names]
        if len(paths) == 1:
            return paths[0]
        from recollect.profiles.maps.merge import MergeOptions, merge_maps

        level = 0
        while len(paths) > 1:
            level += 1
            groups = [paths[at : at + AT_ONCE] for at in range(0, len(paths), AT_ONCE)]
            paths = []
            for number, group in enumerate(groups):
                target = self._work(f"merged-{level}-{number}.ukvs")
                merge_maps(group, target, MergeOptions(temp_dir=str(self._data / "work")), progress=self._progress)
                paths.append(target)
        return paths[0]

    def _excluded(self, whole: Path) -> Path:
        if not self._rules:
            return whole
        target = self._work(f"allowed-{whole.stem}.ukvs")
        without(whole, target, self._rules)
        return target

    def _compact(self, source: Path, target: Path, limit: int) -> None:
        # Loaded here, as most updates compact nothing and should start quickly.
        from recollect.profiles.compaction.budget import Budget, compact_by_budget

        lookups = read_lookups(self._options.lookups, self._result.problems.append) if self._options.lookups else None
        compact_by_budget(
            source,
            target,
            Budget(max_bytes=limit, sets=self._options.sets),
            lookups=lookups if lookups is None else self._rules.allowed(lookups),
            threads=self._options.threads or 0,
            on_problem=self._result.problems.append,
            progress=self._progress,
        )

    def _headed(self, source: Path, captures: int) -> Path:
        """The map with the header that is published: no names or sizes of index files, nothing of single profiles."""
        target = self._data / "maps" / f"{self._number:06d}.ukvs"
        with open_plain(source) as plain, atomic_output(target) as out:
            left_out = ("sources", "merged", "gamma", "span", "counts")
            meta = {name: value for name, value in plain.header.meta.items() if name not in left_out}
            meta |= {"updated_at": self._now, "counts": {"captures": captures}}
            meta |= {"name": self._options.name} if self._options.name else {}
            identity = {"uri": self._options.archive_id} if self._options.archive_id else plain.header.id
            out.write(replace(plain.header, meta=meta, id=identity).encode())
            out.write(plain.data[plain.start :])
        return target

    # -- proof and publication ----------------------------------------------------------------------

    def _prove(self, target: Path, parts: Sequence[tuple[str, Print | None, Sequence[str]]], whole: Path) -> None:
        """Look up in the map what these files hold; where keys are excluded, all keys that are left in `whole`.

        A file is read again if it is still what it was; else, and where no file is given, the keys of its profiles
        stand for it.
        """
        if self._rules:
            paths = [str(self._listed(whole))]
        else:
            paths = []
            for path, seen, profiles in parts:
                as_read = seen is not None and _is(path, seen)
                paths += [path] if as_read else [str(self._listed(self._data / name)) for name in profiles]
        paths = [path for path in paths if Path(path).stat().st_size]
        if not paths:
            return
        done = verify(target, paths, counts=False, threads=self._options.threads, progress=self._progress)
        self._result.verified = done.captures
        if not done.ok:
            raise NotProven(
                "the new map misses what the indexes hold",
                where=str(done.misses[0]) if done.misses else "",
                why=f"{counted(done.missed, 'lookup')}",
                hint="the published map stays as it is; run it again, and report this if it stays",
            )

    def _listed(self, source: Path) -> Path:
        """The keys of a profile as a list of SURTs, which is looked up like an index."""
        target = self._work(f"keys-{source.stem}.txt")
        with open_plain(source) as plain, target.open("wb") as out:
            rest = b""
            for at in range(plain.start, len(plain.data), _PIECE):
                lines = (rest + plain.data[at : at + _PIECE].tobytes()).split(b"\n")
                rest = lines.pop()
                out.writelines(line.partition(b" ")[0] + b"\n" for line in lines)
        return target

    def _publish(self, path: Path, generation: int) -> None:
        done = place.put(
            path,
            self._options.to,
            generation,
            updated_at=self._now,
            base_uri=self._options.base_uri,
            progress=self._progress,
        )
        self._result.keys, self._result.bytes = int(done.index["keys"]), path.stat().st_size
        self._result.updated_at = self._now

    def _finished(self, state: State, way: Way) -> Update:
        """Remember what was done. Until here the state names the map before, from which all this can be done again."""
        result = self._result
        result.way, result.files, result.captures = way, len(state.files), state.captures
        result.partial_files = sum(kept.partial for kept in state.files.values()) + self._unread
        if way is Way.UNCHANGED:
            said = self._state.status  # of the last change, which is what people want to know
            for name in ("keys", "bytes", "verified", "added_keys", "changed_keys", "removed_keys"):
                setattr(result, name, int(said.get(name, 0)))
            result.updated_at = str(said.get("updated_at", ""))
        state = replace(state, status=result.as_dict())
        if state != self._state:
            save(self._data, state)
        sweep(self._data, state)
        return result

    def _work(self, name: str) -> Path:
        return self._data / "work" / name


def _is(path: str, seen: Print) -> bool:
    try:
        return print_of(path) == seen
    except OSError:
        return False


def _captures_of(path: Path) -> int:
    with open_plain(path) as plain:
        counts = plain.header.meta.get("counts")
        captures = counts.get("captures") if isinstance(counts, dict) else 0
        return captures if isinstance(captures, int) else 0


def _fingerprint(options: KeepOptions, rules: Exclusions) -> str:
    """What the map depends on besides the indexes; when it changes, the map is built again."""
    said = [
        options.max_bytes,
        options.sets,
        options.name,
        options.archive_id,
        options.base_uri,
        sorted(options.lookups),
    ]
    return hashlib.sha256(json.dumps([recollect.__version__, *said, rules.digest]).encode()).hexdigest()
