"""Proof on the user's own data: everything in the indexes is found in the map, and the counts are right.

Hides the two passes. First every URI of the input that passes the map's own filters is looked up the way a client
would, by the key its index has and by its original URL, in the map as it is: compacted, compressed, of any policy. One
that is not found breaks law 1. Then the input is profiled again, exactly, and the counts of the map are held against
it: an exact key must have the count of its key, a wildcard the total of all it covers, bounds must hold.

Counts can only be judged when the input is all that the map was made from; with `partial` the map may hold more.

Plain SURTs of a map of one key and one frequency a line, and plain counts, are looked up and compared by kernels; only
what these do not find in order is looked at record by record.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.errors import FormatError, NotSorted, UsageError
from recollect.formats.cdx import what_it_is
from recollect.formats.containers import open_input, whole_lines
from recollect.formats.detect import Kind, Source, find_sources
from recollect.formats.forms import Asked
from recollect.formats.frequency import Count, Frequency
from recollect.formats.mapfiles import expect_map
from recollect.formats.ukvs import open_map as open_records
from recollect.kernels.join import compare_counts
from recollect.kernels.lines import line_at
from recollect.kernels.search import NO, YES, MapSearch, answers_at, plain_surts
from recollect.kernels.surts import OTHER_SURT, SAME_SURT, compare_urls
from recollect.maps.lookup import Holdings, MementoMap, open_for_many
from recollect.maps.maptext import MappedText
from recollect.maps.plainmap import PlainMap, open_plain
from recollect.maps.samplescope import is_sample
from recollect.maps.scope import Scope, Selection
from recollect.model import Answer, Problem, Progress, ProgressCallback
from recollect.profiles.compaction.keytable import table_of
from recollect.profiles.indexes.batch import Batch
from recollect.profiles.indexes.inspection import differs
from recollect.profiles.indexes.profile import profile
from recollect.profiles.indexes.scan import ScanOptions, scan
from recollect.profiles.indexes.select import Filter
from recollect.uris import ancestors, is_surt

MAX_EXAMPLES = 100
PIECE = 1 << 24  # bytes of an exact profile that are in memory as columns
# What follows the name of a host in the keys below it, and what is next to it in the order of bytes.
_AFTER_HOST = ((b")", b"*"), (b",", b"-"), (b":", b";"))


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
    expect_map(os.fspath(map_path))
    with closing(open_for_many(map_path)) as holdings:
        meta = holdings.header.meta
        said, chosen = _said_of_inputs(holdings), Scope.of(holdings.header).filters
        sources = _indexes(named, said, result)
        all_schemes = bool(meta.get("all_schemes"))
        how = ScanOptions(threads or 2, all_schemes=all_schemes)
        _look_up(holdings, sources, Filter(chosen), how, result, progress)
        policy = holdings.header.policy
    result.counts_skipped = _why_not_counts(holdings, counts)
    if not result.counts_skipped:
        options: dict[str, Any] = {"threads": threads, "memory_limit": memory_limit, "temp_dir": temp_dir}
        result.at_least = partial or not _same_sources(meta.get("sources"), sources)
        _compare(map_path, [source.path for source in sources], chosen, policy, all_schemes, said, options, result)
    return result


def _indexes(named: list[str], said: Asked, result: VerifyResult) -> list[Source]:
    """The index files of these names; raises for a map among them."""
    sources = find_sources(named, result.problems.append, asked=said, on_ignored=result.ignored.append)
    maps = [source.label for source in sources if source.kind in (Kind.MAP, Kind.PROFILE)]
    if maps:
        hint = "give the indexes the map was made from; `recollect diff OLD NEW` compares maps"
        raise UsageError("a map where an index is expected", where=maps[0], hint=hint)
    return sources


def _said_of_inputs(holdings: Holdings) -> Asked:
    """What was said of the form of the inputs when the map was made: they are read as they were then."""
    meta = holdings.header.meta.get("inputs")
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
    sampled = is_sample(holdings.header)  # it may be silent about what is held, and must not say no

    def work(batch: Batch) -> _Looked:
        keep, _ = chosen.apply(batch)
        lines = np.flatnonzero(keep)
        runs, first = np.unique(batch.run_of[lines], return_index=True)
        plain = _held_plainly(holdings, batch, runs)
        surts = list(_surts(batch, runs[~plain].tolist(), lines[first[~plain]].tolist()))
        compared = _compared_urls(batch, plain, runs)[lines]
        urls = list(_urls(batch, lines[compared == OTHER_SURT].tolist()))
        asked = [*surts, *urls]
        found = holdings.lookup_many([text for _, text in asked])
        misses = [
            (batch.offset + line, text, f"the map says {answer.answer}")
            for (line, text), answer in zip(asked, found, strict=True)
            if answer.answer == Answer.NO or (answer.answer == Answer.UNKNOWN and not sampled)
        ]
        # The map was made of keys: a URL that has another key than its line is not what was profiled.
        kept = [miss for miss in misses if not _has_another_key(batch, miss)]
        same = int((compared == SAME_SURT).sum())
        return _Looked(int(keep.sum()), int(plain.sum()) + len(surts), same + len(urls), kept, len(misses) - len(kept))

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


def _held_plainly(holdings: Holdings, batch: Batch, runs: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which runs have a plain SURT that the map says yes to. The others are looked up one by one, and reported."""
    held = np.zeros(len(runs), np.bool_)
    if not (isinstance(holdings, MementoMap) and holdings.is_simple and isinstance(holdings.text, MappedText)):
        return held
    offsets, lengths = batch.surt_at[runs].astype(np.int64), batch.surt_length[runs].astype(np.int64)
    keys = np.full(len(runs), -1, np.int64)
    plain_surts(batch.text, offsets, lengths, keys)
    plain = np.flatnonzero(keys >= 0)
    if len(plain):
        positions = holdings.text.search_many(batch.text, offsets[plain], keys[plain])
        answers = np.full(len(plain), NO, np.uint8)
        answers_at(holdings.text.data, positions, answers)
        answers[holdings.text.denied(batch.text, offsets[plain], keys[plain], positions)] = NO
        held[plain] = answers == YES
    return held


def _compared_urls(batch: Batch, held: NDArray[np.bool_], runs: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Which lines have a URL that must be looked up, too: OTHER_SURT. Where its SURT is that of a run that is held, it
    is held."""
    compared = np.full(len(batch.run_of), OTHER_SURT, np.uint8)
    if batch.starts is not None:
        compare_urls(batch.text, batch.starts, batch.run_of, batch.surt_at, batch.surt_length, compared)
        known = np.zeros(len(batch.surt_at), np.bool_)
        known[runs[held]] = True
        compared[~known[batch.run_of] & (compared == SAME_SURT)] = OTHER_SURT
    return compared


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
    with tempfile.TemporaryDirectory(dir=options["temp_dir"]) as folder:
        exact = str(Path(folder, "exact.ukvs"))
        profile(
            paths, exact, policy=policy, statuses=chosen.statuses, media_types=chosen.media_types, since=chosen.since,
            until=chosen.until, exclude=chosen.exclude, where=chosen.where, all_schemes=all_schemes,
            allow_empty=True, input_format=said.format, columns=",".join(said.columns), **options,
        )  # fmt: skip
        if not (Path(map_path).is_file() and _compare_texts(map_path, exact, result)):
            _compare_records(map_path, exact, result)


def _compare_texts(map_path: str | os.PathLike[str], exact: str, result: VerifyResult) -> bool:
    """Compare the map with an exact one as texts; False if the map's lines are not plain and sorted."""
    with open_plain(map_path) as plain, open_plain(exact) as true:
        return plain.header.values == ("frequency",) and _compare_lines(plain, true, result)


def _compare_lines(plain: PlainMap, true: PlainMap, result: VerifyResult) -> bool:
    try:
        table = table_of(plain.array[plain.start :], name=plain.label)
    except (NotSorted, FormatError):
        return False
    compared, wrong = 0, []
    said_at, exact_at = plain.start, true.start
    differ = np.empty((1 << 12, 2), np.int64)
    while said_at < len(plain.data) or exact_at < len(true.data):
        said_at, exact_at, keys, found, irregular = compare_counts(
            plain.data, said_at, true.data, exact_at, result.at_least, differ
        )
        if irregular:
            return False
        compared += keys
        wrong += differ[:found].tolist()
    result.keys_compared += compared + sum(said < 0 for said, _ in wrong)
    for said, exact_place in wrong:
        key, frequency, _, _ = _record_at(plain, said) if said >= 0 else (b"", None, 0, 0)
        true_key, _, m, r = _record_at(true, exact_place) if exact_place >= 0 else (b"", None, 0, 0)
        _judge(key or true_key, frequency or Frequency.exact(0), m, r, result)
    wild = np.flatnonzero(table.wild).tolist()
    for row, (m, r) in zip(wild, _totals(true, [table.key(row) for row in wild]), strict=True):
        result.keys_compared += 1
        _judge(table.key(row), _record_at(plain, plain.start + int(table.offsets[row]))[1], m, r, result)
    return True


def _record_at(text: PlainMap, at: int) -> tuple[bytes, Frequency, int, int]:
    line = line_at(text.data, at)
    key, _, frequency = text.data[at : at + line.length].tobytes().partition(b" ")
    return key, Frequency.parse(frequency.split(b" ")[0]), line.m, line.r


def _totals(true: PlainMap, wildcards: list[bytes]) -> Iterator[tuple[int, int]]:
    """What exact keys lie below each wildcard: captures and URI-Rs, summed over the places of their lines."""
    search = MapSearch(true.data, true.start)
    spans: list[tuple[int, int, int]] = []
    for number, wildcard in enumerate(wildcards):
        for start, end in _spans(search, len(true.data), wildcard):
            spans.append((number, start, end))
    owner, begin, finish = np.array(spans, np.int64).reshape(-1, 3).T
    sums = np.zeros((len(wildcards), 2), np.int64)
    at = true.start
    while at < len(true.data) and len(owner):
        stop = _line_after(true.data, at + PIECE)
        table = table_of(true.array[at:stop])
        low, high = (np.searchsorted(table.offsets, places - at) for places in (begin, finish))
        for column, counts in enumerate((table.uri_m, table.uri_r)):
            running = np.concatenate(([0], np.cumsum(counts)))
            np.add.at(sums[:, column], owner, running[high] - running[low])
        at = stop
    addresses = [number for number, one in enumerate(wildcards) if one[:1].isdigit() and b")" not in one]
    if addresses:
        _count_below(true, {wildcards[number]: sums[number] for number in addresses})
    yield from ((int(m), int(r)) for m, r in sums)


def _spans(search: MapSearch, size: int, wildcard: bytes) -> Iterator[tuple[int, int]]:
    """Where the keys below a wildcard lie: all that begin with its name and a separator, and its name itself."""
    if wildcard == b"*":
        yield search.place(b"!"), size
        return
    name = wildcard[:-2]
    if b")" not in name:
        if not name[:1].isdigit():  # IP addresses lie between names that begin with a digit: both are distinguished
            yield from ((search.place(name + byte), search.place(name + after)) for byte, after in _AFTER_HOST)
        return
    yield search.place(name + b"/"), search.place(name + b"0")
    if not name.endswith(b")"):
        at = search.place(name)
        yield at, search.place(name + b"!")


def _count_below(true: PlainMap, sums: dict[bytes, NDArray[np.int64]]) -> None:
    with open_records(true.path) as opened:
        for record in opened:
            if record.key[:1].isdigit():
                for above in ancestors(record.key):
                    if above in sums:
                        sums[above] += (record.frequency.uri_m.value or 0, record.frequency.uri_r.value or 0)


def _line_after(data: memoryview, at: int) -> int:
    while at < len(data) and data[at - 1] != ord("\n"):
        at += 1
    return min(at, len(data))


def _compare_records(map_path: str | os.PathLike[str], exact: str, result: VerifyResult) -> None:
    """Compare record by record, whatever the map is like."""
    wanted: dict[bytes, Frequency] = {}
    wild: dict[bytes, list[int]] = {}
    with open_records(map_path) as opened:
        for record in opened:
            if record.key.endswith(b"*"):
                wild[record.key] = [0, 0]
                wanted[record.key] = record.frequency
    for key, said, m, r in _joined(map_path, exact, wild):
        result.keys_compared += 1
        _judge(key, said, m, r, result)
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
