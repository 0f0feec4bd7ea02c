"""Profiling: from an archive's indexes to a map of what it holds.

Hides: how inputs are found and read (`scan`), which captures count (`select`), and how lines are made (`sinks`). The
door is `profile`. The same inputs and options give the same bytes, whatever the number of threads or the size of
pieces.

Counts are exact: M is the number of captures kept, R the number of different SURTs (query included, as the index spells
them).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import recollect
from recollect.errors import FormatError, NotSorted, ResourceError, UsageError
from recollect.formats.containers import CUT_LINE, atomic_output, check_output
from recollect.formats.detect import Kind, Source, files_of, find_sources, inspect, on_disk
from recollect.formats.outputs import refuse_inputs
from recollect.formats.ukvs import Header, MapFile
from recollect.maps.scope import Scope, joined
from recollect.model import Problem, Progress, ProgressCallback
from recollect.profiles.indexes.options import DIMENSIONS, ProfileOptions
from recollect.profiles.indexes.scan import LINE_KINDS, ScanOptions, scan
from recollect.profiles.indexes.select import Filter
from recollect.profiles.indexes.sinks import Sink, SortedSink, Totals
from recollect.quantities import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from recollect.profiles.indexes.runs import RunStore

MAX_EXAMPLES = 100
# Lines that can be read between two that cannot, at most, when both are debris of one damage.
_DEBRIS = 20
# Lines of such a run that are each an example of their own; a longer run is one.
_FEW = 3
# More memory for sorting brings nothing.
_MOST_FOR_SORTING = 512 << 20
_MAPS = (Kind.MAP, Kind.PROFILE)
# Kinds that may come sorted; an empty file is in order.
_IN_ORDER = (*LINE_KINDS, Kind.PARQUET, Kind.EMPTY)
# How much text a compressed index holds, at most, for the estimate of disk space needed to sort it.
_EXPANSION = 12


@dataclass(slots=True)
class InputCounts:
    """What happened to the lines of the input. `flawed` are counted although a field cannot be read;
    `ignored` are files that are not inputs (a README next to indexes);
    `notes` are what a person should know of what was read."""

    lines: int = 0
    filtered: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    flawed: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    damaged: list[Problem] = field(default_factory=list)
    ignored: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    first_time: int = 0
    last_time: int = 0
    # The run of lines that cannot be read: its file, its first and last line, and how many there are.
    _run: tuple[str, int, int, int] = ("", 0, 0, 0)

    def note(self, problem: Problem) -> None:
        """Count a problem; one without a line concerns a whole file."""
        if problem.line is None:
            last = self.damaged[-1] if self.damaged else None
            if problem.reason == CUT_LINE and last is not None and last.file == problem.file:  # one damage, one line
                self.damaged[-1] = replace(last, reason=f"{last.reason}; {problem.reason}", excerpt=problem.excerpt)
            else:
                self.damaged.append(problem)
            return
        (self.flawed if problem.kept else self.skipped)[problem.reason.partition(": ")[0]] += 1
        if self._continues(problem):
            return
        if len(self.problems) < MAX_EXAMPLES:
            self.problems.append(problem)

    def _continues(self, problem: Problem) -> bool:
        """Whether a line is one of a long run that cannot be read: the debris of one damage, which is one example."""
        assert problem.line is not None
        file, first, last, count = self._run
        if problem.file != file or not 0 < problem.line - last <= _DEBRIS:
            self._run = (problem.file, problem.line, problem.line, 1)
            return False
        self._run = (file, first, problem.line, count + 1)
        if count < _FEW:
            return False
        mine = [number for number, one in enumerate(self.problems) if one.file == file and (one.line or 0) >= first]
        if mine and self.problems[mine[0]].line == first:
            example = self.problems[mine[0]]
            reason = example.reason.partition("; and ")[0]
            more = f"{reason}; and {count:,} more up to line {problem.line:,}"
            self.problems[mine[0] :] = [Problem(file, first, more, example.excerpt)]
        return True

    def saw(self, first: int, last: int) -> None:
        """Widen the span of times."""
        if first:
            self.first_time = min(first, self.first_time or first)
            self.last_time = max(last, self.last_time)


@dataclass(frozen=True, slots=True)
class ProfileResult:
    """What a profile holds and how it came about. Without an output file the map itself is in `text`."""

    totals: Totals
    tally: InputCounts
    sources: tuple[Source, ...]
    header: Header
    output: str | None
    text: bytes | None
    was_sorted: bool
    spilled: int

    @property
    def partial(self) -> bool:
        """Whether a part of the input could not be read: a damaged file, skipped lines, or fields of lines."""
        return bool(self.tally.damaged or self.tally.skipped or self.tally.flawed)

    def to_arrow(self) -> pa.Table:
        """The map as an Arrow table: key, uri_m, uri_r, and the columns or JSON of a decomposition."""
        from recollect.profiles.indexes.arrow import table_of

        return table_of(self.output, self.text)

    def as_dict(self) -> dict[str, Any]:
        """Everything but the map, for programs."""
        tally, gamma = self.tally, self.totals.gamma
        return {
            "output": self.output,
            "keys": self.totals.keys,
            "captures": self.totals.captures,
            "uri_rs": self.totals.known_uri_rs,
            "gamma": None if gamma is None else round(gamma, 4),
            "lines": tally.lines,
            "filtered": dict(tally.filtered),
            "left_out": dict(tally.left_out),
            "skipped": dict(tally.skipped),
            "flawed": dict(tally.flawed),
            "problems": [str(problem) for problem in tally.problems],
            "damaged": [str(problem) for problem in tally.damaged],
            "ignored": [str(problem) for problem in tally.ignored],
            "notes": list(tally.notes),
            "first_capture": str(tally.first_time) if tally.first_time else None,
            "last_capture": str(tally.last_time) if tally.last_time else None,
            "sources": [
                {"name": source.label, "kind": source.kind.value, "bytes": source.size}
                | ({} if source.form is None else {"form": str(source.form)})
                for source in self.sources
            ],
            "sorted_input": self.was_sorted,
            "spilled_bytes": self.spilled,
            "partial": self.partial,
        }


def profile(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    options: ProfileOptions | None = None,
    *,
    progress: ProgressCallback | None = None,
    **changes: Any,
) -> ProfileResult:
    """Profile what an archive holds: read its indexes (files, folders, globs, `-`), write a map or keep it in memory.

    Options are given as a `ProfileOptions`, or one by one by the names of its fields: `profile(x, by=["year"])`.
    """
    chosen = replace(options or ProfileOptions(), **changes)
    target = None if output is None else os.fspath(output)
    if target is not None:
        check_output(target)
    found: list[Problem] = []
    tally = InputCounts()
    names = _listed(paths)
    on_problem = None if chosen.strict else found.append
    sources = find_sources(names, on_problem, asked=chosen.asked, on_ignored=tally.ignored.append)
    sources = usable(sources, target, [*found, *tally.ignored])
    if target is not None:
        named = [name for name in names if not Path(name).is_dir()]
        refuse_inputs(target, named if _is_earlier_map(target, sources) else names)
    with on_disk(sources, chosen.temp_dir, found.append) as settled:
        for problem in found:
            tally.note(problem)
        if chosen.compare_keys:
            from recollect.profiles.indexes.inspection import key_notes

            tally.notes += key_notes(settled)
        return _Job(settled, chosen, tally, progress or (lambda _progress: None)).run(target)


def usable(sources: list[Source], target: str | None, found: Sequence[Problem]) -> list[Source]:
    """The sources to profile: the map of an earlier run, in a folder of indexes that is profiled again, is none. Raises
    if there are only problems."""
    if found and not sources:
        # A map of nothing would say that the archive holds nothing, perhaps in the place of one that knows better.
        hint = f"recollect inspect {found[0].file}, or say what it is: --input-format, --columns time,url"
        raise FormatError("nothing to profile", where=found[0].file, why=found[0].reason, hint=hint)
    if target not in (None, "-") and not all(source.kind in _MAPS for source in sources):
        place = os.path.realpath(str(target))
        sources = [source for source in sources if source.kind not in _MAPS or os.path.realpath(source.path) != place]
    refuse_inputs(target, (source.path for source in sources))
    return sources


def _is_earlier_map(target: str, sources: Sequence[Source]) -> bool:
    """Whether the target is a map that is not one of the sources: it was in a folder of indexes, and is replaced."""
    if target == "-" or not Path(target).is_file():
        return False
    return inspect(target).kind in _MAPS and all(source.kind not in _MAPS for source in sources)


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str | os.PathLike) else list(value)


class _Job:
    """One run of `profile`."""

    def __init__(
        self, sources: list[Source], options: ProfileOptions, tally: InputCounts, progress: ProgressCallback
    ) -> None:
        self._sources = sources
        self._options = options
        self._found = tally
        self._progress = progress

    def run(self, output: str | None) -> ProfileResult:
        if any(source.kind in _MAPS for source in self._sources):
            return self._of_maps(output)
        if self._may_be_sorted():
            try:
                sink = SortedSink(Filter(self._options.chosen), self._options.temp_dir)
                return self._run(sink, output)
            except NotSorted:
                pass  # Reading again with an external sort is the answer.
        return self._sorting(output)

    def _sorting(self, output: str | None) -> ProfileResult:
        # Compiled code that sorted input never needs.
        from recollect.profiles.indexes.decompose import DecomposingSink
        from recollect.profiles.indexes.policykeys import rekeying
        from recollect.profiles.indexes.runs import RunStore
        from recollect.profiles.indexes.sorting import SortingSink

        options = self._options
        self._check_disk_space()
        store = RunStore(min(options.memory // 2, _MOST_FOR_SORTING), options.temp_dir)
        chosen, rekey = Filter(options.chosen), rekeying(options.policy)
        if options.by:
            columns = options.by_columns
            sorting: Sink = DecomposingSink(
                chosen, store, options.by, columns=columns, temp_dir=options.temp_dir, rekey=rekey
            )
        else:
            sorting = SortingSink(chosen, store, options.temp_dir, rekey=rekey)
        return self._run(sorting, output, store)

    def _of_maps(self, output: str | None) -> ProfileResult:
        from recollect.profiles.indexes.rekey import MapKeys

        options = self._options
        others = [source.label for source in self._sources if source.kind not in _MAPS]
        if others:
            raise UsageError(
                "maps and indexes together",
                where=others[0],
                why="the URI-Rs of both cannot be counted together",
                hint="profile the indexes, then: recollect merge MAP... -o OUT",
            )
        if options.chosen or options.by:
            raise UsageError("a map cannot be filtered or decomposed", hint="profile the indexes with these options")
        if options.output_format == "cdxj" and len(self._sources) > 1:
            raise UsageError(
                "the spread of several maps", hint="profile each as CDXJ, then: recollect merge PROFILE... -o OUT"
            )
        tally = deepcopy(self._found)
        with closing(MapKeys(options.policy, options.temp_dir)) as keys:
            totals = keys.read([source.path for source in self._sources], tally.note)
            tally.lines = keys.records
            refuse_empty(options, totals.keys, tally)
            header = header_of(self._options, self._sources, totals, tally)
            meta = {
                **joined(keys.scopes).as_meta(),
                **header.meta,
            }  # a date that the options give is the one that counts
            text = _write(output, header := replace(header, meta=meta), keys.lines())
        return ProfileResult(totals, tally, tuple(self._sources), header, output, text, False, 0)

    def _may_be_sorted(self) -> bool:
        """Whether reading once may do: the order of keys is that of SURTs, and the inputs can be read again if not."""
        options = self._options
        return (
            options.policy == "HxPx"
            and not options.by
            and all(source.stream is None and source.kind in _IN_ORDER for source in self._sources)
        )

    def _run(self, sink: Sink, output: str | None, store: RunStore | None = None) -> ProfileResult:
        with closing(sink):
            tally = self._read(sink)
            sink.finish()
            totals = sink.totals()
            refuse_empty(self._options, totals.captures, tally)
            header = header_of(self._options, self._sources, totals, tally)
            text = _write(output, header, sink.lines())
        spilled = 0 if store is None else store.spilled
        return ProfileResult(totals, tally, tuple(self._sources), header, output, text, store is None, spilled)

    def _read(self, sink: Sink) -> InputCounts:
        options = self._options
        tally = deepcopy(self._found)  # of a run that starts again nothing is kept
        how = ScanOptions(
            options.workers,
            options.piece,
            all_schemes=options.all_schemes,
            strict=options.strict,
            detect_language=options.detect_language,
        )
        meter = _Meter(self._sources, self._progress)
        for piece in scan(self._sources, sink.work, how):
            tally.lines += piece.lines
            tally.left_out.update(piece.left_out)
            tally.notes += piece.notes
            for problem in piece.problems:
                tally.note(problem)
            for result in piece.results:
                tally.filtered.update(result.dropped)
                tally.saw(result.first_time, result.last_time)
                sink.take(result)
            meter.show(piece.source, piece.consumed, tally.lines)
        return tally

    def _check_disk_space(self) -> None:
        """Sorting may need disk space; report this before reading for hours."""
        options = self._options
        text = sum((source.size or 0) * (1 if source.container == "plain" else _EXPANSION) for source in self._sources)
        # Keys and counts are about half of an index line, and are written once, rarely twice.
        needed = text // 2
        if needed <= options.memory // 2:
            return
        folder = options.temp_dir or tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise ResourceError(
                "not enough disk space to sort",
                where=folder,
                why=f"up to {needed / 1e6:,.1f} MB may be needed, {free / 1e6:,.1f} MB are free",
                hint="name a folder with more space: --temp-dir DIR, or give the indexes sorted (LC_ALL=C sort)",
            )


def refuse_empty(options: ProfileOptions, amount: int, tally: InputCounts) -> None:
    """Raise if there is nothing in a profile: its map would say no to every question."""
    if amount or options.allow_empty:
        return
    why = f"{counted(tally.lines, 'line')} read"
    for word, counter in (("filtered", tally.filtered), ("left out", tally.left_out), ("unreadable", tally.skipped)):
        if counter:
            named = ", ".join(f"{name} ×{count:,}" for name, count in counter.most_common(5))
            why += f", {counter.total():,} {word} ({named})"
    if tally.damaged:
        why += f"; {tally.damaged[0]}"
    hint = "change the filters; `recollect inspect FILE` shows what an index has" if tally.filtered else ""
    hint = hint or "`recollect inspect FILE` shows the detected format of a file"
    hint += "; profile --allow-empty writes a map that says no to everything"
    raise FormatError("no captures", why=why, hint=hint)


def time_of_inputs(paths: Iterable[str]) -> datetime | None:
    """The moment up to which inputs are complete: the time of the newest file; of maps, the earliest that they state.

    A map that states none is as old as its file. None for what has no time, such as a pipe: then a map is complete up
    to its last capture.
    """
    files: list[datetime] = []
    stated: list[datetime] = []
    for name in files_of(paths):
        if name == "-" or not Path(name).exists() or Path(name).is_fifo():
            continue
        changed = datetime.fromtimestamp(int(Path(name).stat().st_mtime), UTC)
        if Path(name).is_dir() or inspect(name).kind in _MAPS:
            with MapFile(name) as opened:
                stated.append(Scope.of(opened.header).complete_until or changed)
        else:
            files.append(changed)
    return min(stated) if stated else max(files, default=None)


def header_of(options: ProfileOptions, sources: Sequence[Source], totals: Totals, tally: InputCounts) -> Header:
    """The header of a profile."""
    described: dict[str, Any] = dict(options.as_meta())
    archive = described.pop("id", "")
    meta: dict[str, Any] = {
        **described,
        "type": "MementoMap" if options.output_format == "ukvs" else f"urikey#{options.policy}",
        "policy": options.policy,
        "generator": f"recollect {recollect.__version__}",
        "counts": {
            "captures": totals.captures,
            **({} if totals.known_uri_rs is None else {"uri_rs": totals.known_uri_rs}),
            "keys": totals.keys,
        },
        "sources": [{"name": Path(source.label).name, "bytes": source.size} for source in sources],
    }
    if totals.gamma is not None:
        meta["gamma"] = round(totals.gamma, 4)
    if tally.first_time:
        meta["span"] = {"from": f"{tally.first_time:014d}", "to": f"{tally.last_time:014d}"}
    if options.chosen:
        meta["filters"] = options.chosen.as_meta()
    if options.all_schemes:
        meta["all_schemes"] = True
    said = {"format": options.input_format, "columns": options.columns}
    if any(said.values()):
        meta["inputs"] = {name: value for name, value in said.items() if value}
    names = [DIMENSIONS[dimension] for dimension in options.by] if options.by_columns else []
    return Header(
        keys=("surt", *names),
        context=Header().context if options.output_format == "ukvs" else (),
        id={"uri": archive} if archive else {},
        meta=meta,
        style=options.output_format,
    )


class _Meter:
    """Progress over all sources, in bytes as they are on disk."""

    def __init__(self, sources: Sequence[Source], progress: ProgressCallback) -> None:
        self._progress = progress
        sizes = [source.size for source in sources]
        self._total = None if None in sizes else sum(size or 0 for size in sizes)
        self._before = 0
        self._source: Source | None = None
        self._reached = 0

    def show(self, source: Source, consumed: int, lines: int) -> None:
        if source is not self._source:
            self._before += self._reached
            self._source = source
        self._reached = consumed
        self._progress(Progress("reading", self._before + consumed, self._total, "bytes", lines))


def _write(output: str | None, header: Header, lines: Iterator[bytes]) -> bytes | None:
    """Write the map, or return it when there is nowhere to write it."""
    if header.style == "cdxj":
        lines = (as_cdxj(text) for text in lines)
    if output is None:
        return header.encode() + b"".join(lines)
    with atomic_output(output) as out:
        out.write(header.encode())
        for text in lines:
            out.write(text)
    return None


def as_cdxj(text: bytes) -> bytes:
    """Lines `key M/R` as lines of a CDXJ profile; one profile alone has a spread of 1 everywhere."""
    made = []
    for line in text.splitlines():
        key, frequency, *block = line.split(b" ", 2)
        m = frequency.partition(b"/")[0]
        inner = b", " + block[0][1:-1] if block else b""
        made.append(b'%b {"frequency": %b, "spread": 1%b}\n' % (key, m, inner))
    return b"".join(made)
