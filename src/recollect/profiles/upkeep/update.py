"""One update of a published map: what changed in the indexes, the new map, its verification and publication.

Hides: three ways to the new map. A *full build* merges the profiles of all index files, removes excluded keys, compacts
to the budget and looks every capture up in the result, which is then the *base*. While the index files that the
published map was made of are still there, a *patch* adds the new profiles to it (`patch`), and looks up what is new.
If only files that came after the base changed or vanished, or the patched map exceeds the budget, the base is patched
with all profiles that came since. Otherwise a full build follows; also when an option changed, and when the captures
that came since exceed a tenth of those of the base, as a map is compacted for the archive that it was made of.

Law 1 holds in all cases: each profile holds its captures; merging, removing other keys, patching and compacting keep
what is held; and before a map is published, all captures that the map before lacks are looked up in it. A file that
can no longer be read keeps its last profile. Nothing is published when a lookup fails.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import recollect
from recollect.datetimes import format_iso, parse_any
from recollect.errors import FormatError, RecollectError, ResourceError
from recollect.formats.containers import atomic_output
from recollect.formats.detect import Source
from recollect.maps.growth import growth_since
from recollect.maps.plainmap import open_plain
from recollect.maps.publish import Published
from recollect.model import Problem, Progress, ProgressCallback
from recollect.profiles.indexes.profile import profile
from recollect.profiles.statistics.verify import verify
from recollect.profiles.upkeep import place
from recollect.profiles.upkeep.changes import line_changes
from recollect.profiles.upkeep.exclusion import Exclusions, read_exclusions, remove_excluded
from recollect.profiles.upkeep.indexfiles import (
    Change,
    Fingerprint,
    compare,
    copy_end,
    find_indexes,
    fingerprint_of,
    is_unchanged,
)
from recollect.profiles.upkeep.patch import patch
from recollect.profiles.upkeep.state import IndexFile, State, load, locked, remove_unused, save
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

    With `collection`, the map is one of several of the host. `max_bytes` bounds the text of the map, and so every
    published file. `lookups` are logs of what people ask for,
    `sets` lets wildcards carry hashed sets of what lies below.
    """

    index: tuple[str, ...]
    to: Path
    data: Path
    max_bytes: int
    lookups: tuple[str, ...] = ()
    exclude_keys: tuple[str, ...] | str = ()
    sets: bool = True
    name: str = ""
    archive_id: str = ""
    base_uri: str = ""
    collection: str = ""
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
class _Part:
    """A profile, and the file that it was made of in this update: an index file or a copy of its end.

    `path` is empty for a profile of an earlier update.
    """

    profile: str
    path: str = ""
    fingerprint: Fingerprint | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    """The index files now, and the profiles that were made in this update."""

    files: dict[str, IndexFile]
    made: dict[str, _Part]

    @property
    def profiles(self) -> list[str]:
        return [name for file in self.files.values() for name in file.profiles]

    def parts(self, profiles: Sequence[str]) -> list[_Part]:
        return [self.made.get(name, _Part(name)) for name in profiles]


def update(options: KeepOptions, now: datetime, progress: ProgressCallback = lambda _p: None) -> Update:
    """Bring the published map up to date. However this ends, the map that was published before stays until then."""
    with locked(options.data):
        state = load(options.data)
        remove_unused(options.data, state)
        return _Run(options, state, now, progress).run()


class _Run:
    def __init__(self, options: KeepOptions, state: State, now: datetime, progress: ProgressCallback) -> None:
        self._options, self._state, self._progress = options, state, progress
        self._now = format_iso(now)
        self._data = options.data
        given = options.exclude_keys
        excluded = (given,) if isinstance(given, str) else given
        self._rules = read_exclusions(*excluded) if given else Exclusions()
        self._digest = _digest_of(options, self._rules)
        self._result = Update()
        self._number = state.generation + 1
        self._unread = 0  # files that cannot be read now, new ones included

    def run(self) -> Update:
        state = self._state
        known = {name: (file.kind, file.fingerprint) for name, file in state.files.items()}
        result = self._result
        found = self._profiled(find_indexes(self._options.index, known, result.problems.append, result.ignored.append))
        if state.options == self._digest and self._has(state.map):
            if not found.made and sorted(found.profiles) == sorted(state.profiles):
                if not place.is_shown(self._options.to, state.generation, self._options.collection):
                    self._show(
                        self._data / state.map,
                        state.generation,
                        self._write_tree(self._data / state.map, state.generation),
                    )
                return self._finished(replace(state, files=found.files), Way.UNCHANGED)
            for base, held in ((state.map, state.profiles), (state.base, list(state.base_profiles))):
                if self._has(base) and set(held).issubset(found.profiles):
                    done = self._patch(found, base, held)
                    if done is not None:
                        return done
        return self._build(found)

    def _has(self, name: str) -> bool:
        return bool(name) and (self._data / name).is_file()

    # -- index files --------------------------------------------------------------------------------

    def _profiled(self, sources: Sequence[Source]) -> _Found:
        """Profile what is new or changed."""
        files: dict[str, IndexFile] = {}
        made: dict[str, _Part] = {}
        for number, source in enumerate(sources):
            self._progress(Progress("index files", number, len(sources), "files"))
            name = str(Path(source.path).resolve())
            old = self._state.files.get(name)
            try:
                files[name] = self._one(source, name, old, made)
            except ResourceError:
                raise  # the data folder is full, whatever the index file is like
            except (OSError, RecollectError) as error:
                if isinstance(error, OSError) and error.errno in _NO_ROOM:
                    raise
                self._result.problems.append(Problem(source.label, None, str(error)))
                self._unread += 1
                if old is not None:
                    files[name] = old
        if not any(file.profiles for file in files.values()):
            raise FormatError("no index file can be read", where=sources[0].label, why=str(self._result.problems[-1]))
        self._result.removed_files = len(self._state.files.keys() - files.keys())
        return _Found(files, made)

    def _one(self, source: Source, name: str, old: IndexFile | None, made: dict[str, _Part]) -> IndexFile:
        """An index file and its profiles; those of `old` stay where the file did not change, or grew."""
        if old is None:
            self._result.new_files += 1
            return self._read(source, name, fingerprint_of(source.path), made)
        now, change = compare(source.path, old.fingerprint, old.kind)
        if change is Change.NONE:
            return old
        self._result.changed_files += 1
        if change is Change.GROWN:
            end = copy_end(source.path, old.fingerprint.size, now.size, self._work(f"end-{len(made)}"))
            more = self._read(replace(source, path=str(end)), name, fingerprint_of(str(end)), made)
            profiles = (*old.profiles, *more.profiles)
            return IndexFile(now, old.kind, profiles, old.captures + more.captures, old.partial or more.partial)
        again = self._read(source, name, now, made)
        if len(old.profiles) == 1 and self._same_records(old.profiles[0], again.profiles[0]):
            made.pop(again.profiles[0])  # touched or copied: it holds the same
            return replace(again, profiles=old.profiles)
        return again

    def _same_records(self, first: str, second: str) -> bool:
        with open_plain(self._data / first) as one, open_plain(self._data / second) as other:
            return one.data[one.start :] == other.data[other.start :]

    def _read(self, source: Source, name: str, fingerprint: Fingerprint, made: dict[str, _Part]) -> IndexFile:
        """Profile a file, or a copy of its end; problems are reported with the `name` of the index file."""
        target = f"profiles/{self._number:06d}-{len(made):06d}.ukvs"
        done = profile(
            [source.path], self._data / target, allow_empty=True, compare_keys=False, threads=self._options.threads
        )
        for problem in (*done.tally.damaged, *done.tally.problems[:5]):
            self._result.problems.append(replace(problem, file=name))
        if not is_unchanged(source.path, fingerprint):
            # It changed while it was read, so that its profile may be of neither version: no samples are those of any
            # file, and the next update reads it again.
            fingerprint = replace(fingerprint, samples="")
        made[target] = _Part(target, source.path, fingerprint)
        return IndexFile(fingerprint, source.kind, (target,), done.totals.captures, done.partial)

    # -- maps ---------------------------------------------------------------------------------------

    def _build(self, found: _Found) -> Update:
        """The map of all profiles."""
        whole = self._excluded(self._merged(found.profiles))
        small = self._work("small.ukvs")
        self._compact(whole, small, round(self._options.max_bytes * (1 - RESERVE)))
        known = self._data / self._state.map if self._has(self._state.map) else None
        growth = {} if known is None else self._growth(known, whole, found)
        target = self._headed(small, _captures_of(whole), {"updated_at": self._updated(found)} | growth)
        tree = self._verified(target, found.parts(found.profiles), whole)
        return self._done(found, target, tree, Way.BUILT, (f"maps/{target.name}", tuple(found.profiles)))

    def _patch(self, found: _Found, base: str, held: Sequence[str]) -> Update | None:
        """The map `base`, which holds some profiles, and all others; None if that is too much, in captures or bytes."""
        state, source = self._state, self._data / base
        target = self._data / "maps" / f"{self._number:06d}.ukvs"
        changes: tuple[int, int, int] | None = None
        already = set(held)
        added = [name for name in found.profiles if name not in already]
        if added:
            new = self._excluded(self._merged(added))
            whole = _captures_of(self._data / state.base)
            if _captures_of(source) + _captures_of(new) > (1 + REBUILD_SHARE) * whole:
                return None
            grown = self._growth(source, new, found, adds=True)
            done = patch(source, new, target, {"updated_at": self._updated(found)} | grown)
            if target.stat().st_size > self._options.max_bytes:
                return None
            tree = self._verified(target, found.parts(added), new)
            if base == state.map:
                changes = done.added, done.changed, 0
        else:  # all that had been added is gone again
            target = self._headed(source, _captures_of(source), {"updated_at": self._updated(found)})
            tree = self._write_tree(target, self._number)
        return self._done(found, target, tree, Way.PATCHED, (state.base, state.base_profiles), changes)

    def _done(
        self,
        found: _Found,
        target: Path,
        tree: Published,
        way: Way,
        base: tuple[str, tuple[str, ...]],
        changes: tuple[int, int, int] | None = None,
    ) -> Update:
        """Publish a map and save the state; `changes` are those from the map before, if they are known already."""
        result, before = self._result, self._data / self._state.map if self._has(self._state.map) else None
        result.added_keys, result.changed_keys, result.removed_keys = changes or line_changes(before, target)
        self._show(target, self._number, tree)
        files, captures = found.files, _captures_of(target)
        state = State(self._digest, self._number, f"maps/{target.name}", *base, captures, files)
        return self._finished(state, way)

    def _merged(self, names: Sequence[str]) -> Path:
        """One map of many profiles, a hundred at a time."""
        paths = [self._data / name for name in names]
        if len(paths) == 1:
            return paths[0]
        from recollect.maps.merge import MergeOptions, merge_maps

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
        remove_excluded(whole, target, self._rules)
        return target

    def _compact(self, source: Path, target: Path, limit: int) -> None:
        # Loaded here, as most updates compact nothing and should start quickly.
        from recollect.formats.logs import read_lookups
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

    def _updated(self, found: _Found) -> str:
        """The moment up to which the map is complete: the time of the newest index file, and not later than now."""
        times = [Path(name).stat().st_mtime for name in found.files if Path(name).exists()]
        return min(format_iso(datetime.fromtimestamp(max(times), UTC)), self._now) if times else self._now

    def _growth(self, old: Path, new: Path, found: _Found, *, adds: bool = False) -> dict[str, Any]:
        """How the archive grew since an earlier map, by a newer one, or with `adds` by a profile of what came since."""
        until = parse_any(self._updated(found))
        growth = growth_since(str(old), str(new), until, adds=adds)
        return {} if growth is None else {"growth": growth.as_meta()}

    def _headed(self, source: Path, captures: int, dated: Mapping[str, Any]) -> Path:
        """The map with the header that is published: no names or sizes of index files, nothing of single profiles."""
        target = self._data / "maps" / f"{self._number:06d}.ukvs"
        with open_plain(source) as plain, atomic_output(target) as out:
            left_out = ("sources", "merged", "gamma", "span", "counts")
            meta = {name: value for name, value in plain.header.meta.items() if name not in left_out}
            meta |= {"counts": {"captures": captures}, **dated}
            meta |= {"name": self._options.name} if self._options.name else {}
            identity = {"uri": self._options.archive_id} if self._options.archive_id else plain.header.id
            out.write(replace(plain.header, meta=meta, id=identity).encode())
            out.write(plain.data[plain.start :])
        return target

    # -- verification and publication ---------------------------------------------------------------

    def _verified(self, target: Path, parts: Sequence[_Part], whole: Path) -> Published:
        """Verify a map, and meanwhile write the tree that is published if nothing is missed."""
        with ThreadPoolExecutor(1, "recollect-publish") as pool:
            tree = pool.submit(self._write_tree, target, self._number)
            try:
                self._verify(target, parts, whole)
                return tree.result()
            except BaseException:
                wait([tree])
                place.discard(self._options.to, self._number, self._options.collection)
                raise

    def _verify(self, target: Path, parts: Sequence[_Part], whole: Path) -> None:
        """Look up in the map what these parts hold; where keys are excluded, all keys that are left in `whole`.

        The index file itself is read again. The keys of its profile are looked up instead if it is not as it was
        profiled, which may also happen while it is verified.
        """
        while True:
            unchanged = [part for part in parts if part.fingerprint and is_unchanged(part.path, part.fingerprint)]
            paths = [part.path for part in unchanged]
            paths += [str(self._listed(self._data / part.profile)) for part in parts if part not in unchanged]
            if self._rules:
                unchanged, paths = [], [str(self._listed(whole))]
            failure = self._missed(target, [path for path in paths if Path(path).stat().st_size])
            if failure is None:
                return
            if all(part.fingerprint and is_unchanged(part.path, part.fingerprint) for part in unchanged):
                raise failure

    def _missed(self, target: Path, paths: Sequence[str]) -> RecollectError | OSError | None:
        """Why a map may not be published: it misses something that is in these files, or they cannot be read."""
        if not paths:
            return None
        try:
            done = verify(target, paths, counts=False, threads=self._options.threads, progress=self._progress)
        except (RecollectError, OSError) as error:
            return error
        self._result.verified = done.captures
        if done.ok:
            return None
        return NotProven(
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

    def _write_tree(self, path: Path, generation: int) -> Published:
        options = self._options
        return place.write_tree(
            path,
            options.to,
            generation,
            updated_at=self._now,
            base_uri=options.base_uri,
            collection=options.collection,
        )

    def _show(self, path: Path, generation: int, tree: Published) -> None:
        place.show(self._options.to, generation, collection=self._options.collection, base_uri=self._options.base_uri)
        self._result.keys, self._result.bytes = int(tree.index["keys"]), path.stat().st_size
        self._result.updated_at = self._now

    def _finished(self, state: State, way: Way) -> Update:
        """Save the state. Until here it names the map before, from which all this can be done again."""
        result = self._result
        result.way, result.files, result.captures = way, len(state.files), state.captures
        result.partial_files = sum(file.partial for file in state.files.values()) + self._unread
        if way is Way.UNCHANGED:
            said = self._state.status  # of the last change
            for name in ("keys", "bytes", "verified", "added_keys", "changed_keys", "removed_keys"):
                setattr(result, name, int(said.get(name, 0)))
            result.updated_at = str(said.get("updated_at", ""))
        state = replace(state, status=result.as_dict())
        if state != self._state:
            save(self._data, state)
        remove_unused(self._data, state)
        return result

    def _work(self, name: str) -> Path:
        return self._data / "work" / name


def _captures_of(path: Path) -> int:
    with open_plain(path) as plain:
        counts = plain.header.meta.get("counts")
        captures = counts.get("captures") if isinstance(counts, dict) else 0
        return captures if isinstance(captures, int) else 0


def _digest_of(options: KeepOptions, rules: Exclusions) -> str:
    """What the map depends on besides the indexes; when it changes, the map is built again."""
    said = [
        options.max_bytes,
        options.sets,
        options.name,
        options.archive_id,
        options.base_uri,
        sorted(options.lookups),
        *([options.collection] if options.collection else []),
    ]
    return hashlib.sha256(json.dumps([recollect.__version__, *said, rules.digest]).encode()).hexdigest()
