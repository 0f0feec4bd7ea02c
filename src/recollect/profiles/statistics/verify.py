"""Proof on the user's own data: everything in the indexes is found in the map, and the counts are right.

Hides the two passes. First every URI of the input that passes the map's own filters is looked up the way anybody
would, by the key its index has and by its original URL, in the map as it is: compacted, compressed, of any policy. One
that is not found breaks law 1. Then the input is profiled again, exactly, and the counts of the map are held against
it: an exact key must have the count of its key, a wildcard the total of all it covers, bounds must hold.

Counts can only be judged when the input is all that the map was made from; with `partial` the map may hold more.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from recollect.errors import UsageError
from recollect.formats.cdx import what_it_is
from recollect.formats.containers import open_input, whole_lines
from recollect.formats.detect import Kind, Source, expect_map, find_sources
from recollect.formats.forms import Asked
from recollect.formats.frequency import Count, Frequency
from recollect.formats.ukvs import open_map as open_records
from recollect.model import Problem, Progress, ProgressCallback
from recollect.profiles.indexes.batch import Batch
from recollect.profiles.indexes.inspection import differs
from recollect.profiles.indexes.profile import profile
from recollect.profiles.indexes.scan import ScanOptions, scan
from recollect.profiles.indexes.select import Filter, Selection
from recollect.profiles.maps.lookup import Holdings, open_map
from recollect.uris import ancestors, is_surt

MAX_EXAMPLES = 100


@dataclass(slots=True)
class VerifyResult:
    """What was checked, and what was wrong."""

    captures: int = 0
    uris: int = 0
    urls: int = 0
    missed: int = 0
    misses: list[Problem] = field(default_factory=list)
    keys_compared: int = 0
    wrong: int = 0
    wrong_counts: list[str] = field(default_factory=list)
    counts_skipped: str = ""
    at_least: bool = False
    skipped: int = 0
    other_keys: int = 0
    problems: list[Problem] = field(default_factory=list)
    ignored: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Nothing missed, no count wrong."""
        return not self.missed and not self.wrong

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "ok": self.ok,
            "captures": self.captures,
            "uris": self.uris,
            "urls": self.urls,
            "missed": self.missed,
            "misses": [str(miss) for miss in self.misses],
            "keys_compared": self.keys_compared,
            "wrong_counts": self.wrong,
            "wrong": self.wrong_counts,
            "counts_skipped": self.counts_skipped or None,
            "at_least": self.at_least,
            "skipped_lines": self.skipped,
            "urls_with_other_keys": self.other_keys,
            "problems": [str(problem) for problem in self.problems],
            "ignored": [str(problem) for problem in self.ignored],
        }


def verify(
    map_path: str | os.PathLike[str],
    paths: Iterable[str | os.PathLike[str]],
    *,
    partial: bool = False,
    counts: bool = True,
    threads: int | None = None,
    memory_limit: int | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
    progress: ProgressCallback | None = None,
) -> VerifyResult:
    """Look up everything in `paths` in the map, then compare the counts."""
    result = VerifyResult()
    named = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    if any(name == "-" or Path(name).is_fifo() for name in (os.fspath(map_path), *named)):
        raise UsageError("cannot verify a pipe", why="map and input are read twice", hint="save it to a file first")
    said = _said_of_inputs(map_path)
    sources = find_sources(named, result.problems.append, asked=said, on_ignored=result.ignored.append)
    maps = [source.label for source in sources if source.kind in (Kind.MAP, Kind.PROFILE)]
    if maps:
        hint = "give the indexes the map was made from; `recollect diff OLD NEW` compares maps"
        raise UsageError("a map where an index is expected", where=maps[0], hint=hint)
    expect_map(os.fspath(map_path))
    holdings = open_map(map_path)
    try:
        chosen = Selection.from_meta(holdings.header.meta.get("filters"))
        all_schemes = bool(holdings.header.meta.get("all_schemes"))
        how = ScanOptions(threads or 2, all_schemes=all_schemes)
        _look_up(holdings, sources, Filter(chosen), how, result, progress)
        policy, meta = holdings.header.policy, holdings.header.meta
    finally:
        holdings.close()
    result.counts_skipped = _why_not_counts(holdings, counts)
    if not result.counts_skipped:
        options: dict[str, Any] = {"threads": threads, "memory_limit": memory_limit, "temp_dir": temp_dir}
        result.at_least = partial or not _same_sources(meta.get("sources"), sources)
        _compare(map_path, [source.path for source in sources], chosen, policy, all_schemes, said, options, result)
    return result


def _said_of_inputs(map_path: str | os.PathLike[str]) -> Asked:
    """What was said of the form of the inputs when the map was made: they are read as they were then."""
    expect_map(os.fspath(map_path))
    holdings = open_map(map_path)
    meta = holdings.header.meta.get("inputs")
    holdings.close()
    found = meta if isinstance(meta, dict) else {}
    return Asked.of(str(found.get("format", "")), str(found.get("columns", "")))


def _why_not_counts(holdings: Holdings, wanted: bool) -> str:
    if not wanted:
        return "not asked for"
    if "frequency" not in holdings.header.values and holdings.header.style != "cdxj":
        return "the map has no frequencies"
    if len(holdings.header.keys) > 1:
        return "the map has more than one key column"
    return ""


def _same_sources(listed: Any, sources: list[Source]) -> bool:
    """Whether the map says that it was made from exactly these files."""
    if not isinstance(listed, list):
        return True
    named = sorted(str(item.get("name")) for item in listed if isinstance(item, dict))
    return named == sorted(Path(source.label).name for source in sources)


@dataclass(slots=True)
class _Looked:
    captures: int
    uris: int
    urls: int
    misses: list[tuple[int, str, str]]
    other_keys: int


def _look_up(
    holdings: Holdings,
    sources: list[Source],
    chosen: Filter,
    how: ScanOptions,
    result: VerifyResult,
    progress: ProgressCallback | None,
) -> None:
    def work(batch: Batch) -> _Looked:
        keep, _ = chosen.apply(batch)
        lines = np.flatnonzero(keep)
        runs, first = np.unique(batch.run_of[lines], return_index=True)
        surts = list(_surts(batch, runs.tolist(), lines[first].tolist()))
        asked = [*surts, *_urls(batch, lines.tolist())]
        found = holdings.lookup_many([text for _, text in asked])
        misses = [
            (batch.offset + line, text, f"the map says {answer.answer}")
            for (line, text), answer in zip(asked, found, strict=True)
            if answer.answer != "yes"
        ]
        # The map was made of keys: a URL that has another key than its line is not what was profiled.
        kept = [miss for miss in misses if not _has_another_key(batch, miss)]
        return _Looked(int(keep.sum()), len(surts), len(asked) - len(surts), kept, len(misses) - len(kept))

    total = sum(source.size or 0 for source in sources)
    for piece in scan(sources, work, how):
        result.skipped += sum(problem.line is not None for problem in piece.problems)
        result.problems += piece.problems[: MAX_EXAMPLES - len(result.problems)]
        for looked in piece.results:
            result.captures += looked.captures
            result.uris += looked.uris
            result.urls += looked.urls
            result.missed += len(looked.misses)
            result.other_keys += looked.other_keys
            for line, text, why in looked.misses[: MAX_EXAMPLES - len(result.misses)]:
                result.misses.append(Problem(piece.source.label, piece.first_line + line + 1, why, text))
        if progress is not None:
            progress(Progress("looking up", piece.consumed, total if len(sources) == 1 else None, "bytes"))


def _has_another_key(batch: Batch, miss: tuple[int, str, str]) -> bool:
    line, text, _ = miss
    run = int(batch.run_of[line - batch.offset])
    return not is_surt(text) and differs(batch.surt(run), text)


def _surts(batch: Batch, runs: list[int], firsts: list[int]) -> Iterator[tuple[int, str]]:
    """The SURT of each run; what is none (`dns:x.com`, with `all_schemes`) cannot be looked up, only counted."""
    for run, line in zip(runs, firsts, strict=True):
        surt = batch.surt(run).decode("utf-8", "surrogateescape")
        if is_surt(surt):
            yield line, surt


def _urls(batch: Batch, lines: list[int]) -> Iterator[tuple[int, str]]:
    """Each original URL that the index has, if it is one of the web."""
    seen: set[str | None] = {None}
    for line in lines:
        url = batch.capture_at(line).url
        if url not in seen:
            seen.add(url)
            if what_it_is("", url, None, None) is None:
                yield line, str(url)


def _compare(
    map_path: str | os.PathLike[str],
    paths: list[str],
    chosen: Selection,
    policy: str,
    all_schemes: bool,
    said: Asked,
    options: dict[str, Any],
    result: VerifyResult,
) -> None:
    """Hold the map's counts against an exact profile of the input."""
    wanted: dict[bytes, Frequency] = {}
    wild: dict[bytes, list[int]] = {}
    with open_records(map_path) as opened:
        for record in opened:
            if record.key.endswith(b"*"):
                wild[record.key] = [0, 0]
                wanted[record.key] = record.frequency
    with tempfile.TemporaryDirectory(dir=options["temp_dir"]) as folder:
        exact = str(Path(folder, "exact.ukvs"))
        profile(
            paths, exact, policy=policy, statuses=chosen.statuses, media_types=chosen.media_types, since=chosen.since,
            until=chosen.until, exclude=chosen.exclude, where=chosen.where, all_schemes=all_schemes,
            allow_empty=True, input_format=said.format, columns=",".join(said.columns), **options,
        )  # fmt: skip
        for key, frequency, m, r in _joined(map_path, exact, wild):
            result.keys_compared += 1
            _judge(key, frequency, m, r, result)
    for key, (m, r) in wild.items():
        result.keys_compared += 1
        _judge(key, wanted[key], m, r, result)


def _joined(
    map_path: str | os.PathLike[str], exact: str, wild: dict[bytes, list[int]]
) -> Iterator[tuple[bytes, Frequency | None, int, int]]:
    """Each exact key of map and profile: what the map says (None: nothing), what the input has. Adds up wildcards."""
    with open_records(map_path) as opened:
        said = (record for record in opened.records(ordered=True) if not record.key.endswith(b"*"))
        record = next(said, None)
        for key, m, r in _counts_of(exact):
            for above in ancestors(key) if wild else ():
                if above in wild:
                    wild[above][0] += m
                    wild[above][1] += r
            while record is not None and record.key < key:
                yield record.key, record.frequency, 0, 0
                record = next(said, None)
            if record is not None and record.key == key:
                yield key, record.frequency, m, r
                record = next(said, None)
            elif b")" not in key:  # it could not be looked up, and is missed here
                yield key, Frequency.exact(0), m, r
        while record is not None:
            yield record.key, record.frequency, 0, 0
            record = next(said, None)


def _counts_of(exact: str) -> Iterator[tuple[bytes, int, int]]:
    with open_input(exact) as stream:
        for piece in whole_lines(stream):
            for line in piece.splitlines():
                if not line.startswith(b"!"):
                    key, _, frequency = line.partition(b" ")
                    m, _, r = frequency.partition(b"/")
                    yield key, int(m), int(r)


def _judge(key: bytes, said: Frequency | None, m: int, r: int, result: VerifyResult) -> None:
    if said is None or (_holds(said.uri_m, m, result.at_least) and _holds(said.uri_r, r, result.at_least)):
        return
    if said.is_void and (b")" in key or key.endswith(b"*")):
        # It says nothing of what more specific keys list; had it covered anything else, that would have been missed.
        return
    result.wrong += 1
    if len(result.wrong_counts) < MAX_EXAMPLES:
        result.wrong_counts.append(f"{key.decode('utf-8', 'replace')}: the map says {said}, the input has {m}/{r}")


def _holds(said: Count, found: int, at_least: bool) -> bool:
    """Whether a count is true of what was found; when only a part of the holdings was read, whether it can be."""
    low, high = said.interval
    if high is not None and found > high:
        return False
    return at_least or found >= low
