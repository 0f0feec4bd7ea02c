"""Merging maps: many sorted maps become one, in constant memory, and no held URI is ever missed.

Hides: the order of passes. Let a map's *own* maps be its parts (incremental updates, collections of one archive):

0. If policies differ, maps of others than HxPx become keys and wildcards of HxPx (`conversion`).
1. Large maps are assumed to be sorted and without wildcards, and merged as text (`join`) in one pass. If one is not,
   nothing was written, and the general way begins.
2. Survey: whether a map is sorted (if not, it is sorted out of core) and has wildcards at all.
3. Only if some map has wildcards: sort these by node (`subtrees`) and add up, for each, what every map lists below it.
4. Go through all maps key by key, in the order of bytes, and write.

What a merged key says (law: every count is true of all parts together):

- A key some part holds: the sum over all parts. A part that has the key adds its count. A part that lacks it adds
  nothing if nothing wider in it holds anything here; else what it has here is unknown and the sum is a lower bound
  (`5+`). For a wildcard a part without it adds what it lists below (outermost keys, as totals include what they
  cover).
- URI-Ms add; URI-Rs may be shared by parts (`frequency.merge`) unless the caller says `disjoint`.
- A void (`0`) is replaced by any part that holds the key. A void counts for its own part only: it is dropped where
  another part's most specific wider key holds something. A part whose `!meta` says `scope: voids` counts for the
  whole archive, and its voids stay. A void wildcard stays `0` above held keys, as the most specific key decides.

Why nothing held is missed: let a part hold a URI by its most specific key e. Then e is in the merged map, held. Any
more specific key k over the URI came from other parts; if k is a void there, e covers k and is the first to do so in
its part, so k was dropped.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial, reduce
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from recollect.errors import FormatError, NotSorted, UsageError
from recollect.formats.containers import OnProblem
from recollect.formats.frequency import UNKNOWN, Count, Frequency, merge, parse_token
from recollect.formats.ukvs import Header, Record, Writer
from recollect.formats.ukvs.records import shown
from recollect.maps.conversion import in_one_policy
from recollect.maps.jsonmerge import Combine, merged_block
from recollect.maps.linesort import LineSorter
from recollect.maps.mapinputs import (
    REPORT_EVERY,
    WILDCARD,
    Found,
    MapInput,
    Meter,
    ignore,
    one_by_one,
    pages_together,
)
from recollect.maps.mergehead import Part, merged_header, uri_rs_of_all, with_keys
from recollect.maps.samplemerge import merge_into_index, merge_samples, samples_among
from recollect.maps.sets import items_of, with_sets, without_sets
from recollect.maps.wildcards import Layer, Subtree, SubtreeStack, is_wildcard, subtrees, wildcard_line
from recollect.maps.windows import Stretch, stretches
from recollect.model import Problem, ProgressCallback

_DROPPED = b"!"
WINDOW = 32 << 20  # bytes of all maps that are merged at a time


@dataclass(slots=True)
class MergeResult:
    """What a merge did. `voids_dropped` are zeros that another map's wider key overruled."""

    maps: int
    records: int = 0
    keys: int = 0
    duplicates: int = 0
    voids_dropped: int = 0
    conflicts: int = 0
    wildcards: int = 0
    sorted_first: list[str] = field(default_factory=list)
    converted: dict[str, str] = field(default_factory=dict)
    """Maps of other policies, which became keys and wildcards of HxPx, and their policies."""

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)

    def finished(self, header: Header, uri_rs: int | None, keys: int) -> Header:
        """The header when `keys` are written; `uri_rs` are those of all maps, true if no key was in two of them."""
        apart = keys == self.records and not self.wildcards
        return with_keys(header, keys, uri_rs if apart else None)


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """How to merge. `disjoint`: no URI-R is in two maps. `style`: `ukvs`, `cdxj`, or empty for what the inputs are."""

    disjoint: bool = False
    spread: bool = False
    archive: str = ""
    updated_at: str = ""
    style: str = ""
    temp_dir: str | None = None


def merge_maps(
    paths: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    options: MergeOptions | None = None,
    *,
    on_problem: OnProblem | None = None,
    progress: ProgressCallback | None = None,
) -> MergeResult:
    """Merge maps into one, which may take the place of an input. Lines that cannot be read go to `on_problem`."""
    options = options or MergeOptions()
    if not paths:
        raise UsageError("nothing to merge", hint="recollect merge MAP... -o OUT")
    names = [os.fspath(path) for path in paths]
    if samples := samples_among(names):
        return _with_samples(names, samples, output, options, on_problem, progress)
    with ExitStack() as stack:
        names, converted = stack.enter_context(in_one_policy(names, options.temp_dir, on_problem))
        maps = enumerate(pages_together(names))
        inputs = [stack.enter_context(MapInput(files, index, options.temp_dir)) for index, files in maps]
        meter = Meter(inputs, progress)
        for item in inputs:
            if "frequency" not in item.header.values and item.header.style != "cdxj":
                raise FormatError("a map without frequencies cannot be merged", where=item.label)
        parts = [Part(Path(item.label).name, item.size, item.header) for item in inputs]
        header = header_of(parts, options)
        uri_rs = uri_rs_of_all(parts)
        plain = _Merger(inputs, header, options, meter, on_problem, uri_rs)
        plain.result.converted = converted
        if plain.is_text() and plain.write_text(output):
            return plain.result
        for item in inputs:
            item.survey(meter)
        merger = _Merger(inputs, header, options, meter, on_problem, uri_rs)
        merger.result.converted = converted
        merger.result.sorted_first += [item.label for item in inputs if item.sorter]
        totals = merger.add_up(stack) if any(item.has_wildcards for item in inputs) else iter(())
        with Writer(output, header, late=merger.late) as writer:
            merger.write(writer, SubtreeStack(totals))
            merger.result.keys = writer.count
        return merger.result


def header_of(parts: Sequence[Part], options: MergeOptions) -> Header:
    """The header of the merged map; raises UsageError if the maps do not belong together."""
    return merged_header(
        parts, archive=options.archive, updated_at=options.updated_at, disjoint=options.disjoint, style=options.style
    )


def _with_samples(
    names: Sequence[str],
    samples: Sequence[str],
    output: str | os.PathLike[str],
    options: MergeOptions,
    on_problem: OnProblem | None,
    progress: ProgressCallback | None,
) -> MergeResult:
    indexes = [name for name in names if name not in samples]
    if indexes:
        usual = partial(merge_maps, options=options, on_problem=on_problem, progress=progress)
        return merge_into_index(indexes, samples, output, usual, options.temp_dir)
    return MergeResult(len(samples), keys=merge_samples(samples, output, options.archive, options.updated_at))


class _Merger:
    """Adds up and writes; see the module's text for the rules."""

    def __init__(
        self,
        inputs: Sequence[MapInput],
        header: Header,
        options: MergeOptions,
        meter: Meter,
        on_problem: OnProblem | None,
        uri_rs: int | None,
    ) -> None:
        self._on_problem = on_problem
        self._inputs = inputs
        self._header = header
        self._options = options
        self._meter = meter
        self._combine: Combine = Frequency.__add__ if options.disjoint else merge
        self._voids = sum(1 << item.index for item in inputs if item.header.lists_voids)
        # A block that comes from a profile of the older kind has the frequency in it, which has its own column now.
        self._foreign = {item.index for item in inputs if item.header.style != header.style}
        self._wild = any(item.has_wildcards for item in inputs)
        self._one_uri = header.policy.upper() == "URIR"
        # Frequencies that were read are few objects; what they are as lower bounds is computed once for each.
        self._weaker: dict[int, tuple[Frequency, Frequency]] = {}
        self.result = MergeResult(len(inputs))
        self.late = partial(self.result.finished, header, uri_rs)

    # -- wildcards ----------------------------------------------------------------------------------

    def add_up(self, stack: ExitStack) -> Iterator[Subtree]:
        """The wildcards of all maps in order of their nodes, each with the frequency it gets."""
        wildcards = stack.enter_context(LineSorter(self._options.temp_dir))
        for item in self._inputs:
            for key, index, records in item.found(ignore) if item.has_wildcards else ():
                if is_wildcard(key):
                    for record in records:
                        wildcards.add(wildcard_line(key, index, record.frequency, _layer(record)))
        totals = stack.enter_context(LineSorter(self._options.temp_dir))

        def close(subtree: Subtree) -> None:
            for layer in subtree.entries:
                frequency = self._total(subtree, layer)
                token = _DROPPED if frequency is None else str(frequency).encode()
                totals.add(b"%016x\t%b\t%b" % (subtree.ordinal, token, layer))
            subtree.hand_up()

        around = SubtreeStack(subtrees(wildcards), close)
        for count, (key, index, records) in enumerate(heapq.merge(*(item.found(ignore) for item in self._inputs))):
            if not is_wildcard(key) and (subtree := around.around(key)) is not None:
                for record in records:
                    subtree.add_below(_layer(record), index, record.frequency)
            if not count % REPORT_EVERY:
                self._meter.show("adding up")
        around.close()
        return _with_totals(subtrees(wildcards), totals)

    def _total(self, subtree: Subtree, layer: Layer) -> Frequency | None:
        """The frequency of a wildcard, None if it is a void to be dropped."""
        entries = subtree.entries[layer]
        if all(frequency.is_void for frequency in entries.values()):
            return self._void(entries, subtree.outer)
        parts = []
        for item in self._inputs:
            entry = entries.get(item.index)
            if entry is not None and not entry.is_void:
                parts.append(entry)
                continue
            if item.index in subtree.below.get(layer, {}):
                parts.append(subtree.below[layer][item.index].sum())
            elsewhere = any(item.index in below for other, below in subtree.below.items() if other != layer)
            if entry is None and (subtree.outer >> item.index & 1 or elsewhere):
                parts.append(UNKNOWN)
        return reduce(self._combine, parts)

    def _void(self, entries: dict[int, Frequency], wider: int) -> Frequency | None:
        """The void of all maps that have the key, None if a wider key of another map holds something here."""
        own = sum(1 << index for index in entries)
        if wider & ~own and not own & self._voids:
            return None
        return reduce(self._combine, entries.values())

    # -- writing ------------------------------------------------------------------------------------

    def is_text(self) -> bool:
        """Whether most lines can be merged as text, which takes an eighth of the time."""
        header = self._header
        ordinary = header.style == "ukvs" and header.keys[1:] == () and header.values == ("frequency",)
        special = self._foreign or self._options.spread or self._one_uri
        return ordinary and not special and all(item.is_one_file_of_surts for item in self._inputs)

    def write_text(self, output: str | os.PathLike[str]) -> bool:
        """Merge the lines as text, read once; False, and nothing written, if there are wildcards or disorder."""
        from recollect.maps.join import Joiner, NotPlain

        report, reported = self._on_problem, list[Problem]()
        self._on_problem = reported.append if report else None
        joiner = Joiner(disjoint=self._options.disjoint)
        try:
            with Writer(output, self._header, late=self.late) as writer, ExitStack() as stack:
                opened = [stack.enter_context(item.opened(self._on_problem)) for item in self._inputs]
                for several in stretches(opened, WINDOW // len(opened)):
                    self._meter.show("merging")
                    joined = joiner.join([stretch.text for stretch in several])
                    if joined is None:
                        self._write_irregular(writer, several)
                        continue
                    writer.write_lines(joined.text, joined.keys, joined.first, joined.last)
                    self.result.records += joined.records
                    self.result.duplicates += joined.duplicates
                self.result.keys = writer.count
        except (NotPlain, NotSorted):
            return False
        for problem in reported:
            assert report is not None
            report(problem)
        return True

    def _write_irregular(self, writer: Writer, several: list[Stretch]) -> None:
        """Write a stretch in which some line needs more thought."""
        from recollect.maps.join import NotPlain

        if any(WILDCARD.search(stretch.text) for stretch in several):
            raise NotPlain
        found = [one_by_one(stretch.records(), index) for index, stretch in enumerate(several)]
        self._write_records(writer, SubtreeStack(iter(())), found)

    def write(self, writer: Writer, around: SubtreeStack) -> None:
        """Write every key."""
        self._write_records(writer, around, [item.found(self._on_problem) for item in self._inputs])

    def _write_records(self, writer: Writer, around: SubtreeStack, maps: list[Iterator[Found]]) -> None:
        merged = heapq.merge(*maps)
        # Most keys are in one map only, and are written as they are or as lower bounds.
        simple = not (self._options.spread or self._foreign)
        result = self.result
        for count, (key, found) in enumerate(_by_key(merged)):
            if not count % REPORT_EVERY:
                self._meter.show("merging")
            index, records = found[0]
            if simple and len(found) == 1 and len(records) == 1 and not (self._wild and is_wildcard(key)):
                result.records += 1
                record = self._alone(records[0], 1 << index, around)
                if record is not None:
                    writer.write(record)
                    continue
            else:
                result.records += sum(len(records) for _, records in found)
            for record in self._records(key, found, around):
                writer.write(record)

    def _alone(self, record: Record, own: int, around: SubtreeStack) -> Record | None:
        """The record of an exact key that one map has, if it is written without further thought."""
        subtree = around.around(record.key) if self._wild else None
        if subtree is None or not subtree.cover & ~own:
            return record
        if record.json or record.frequency.is_void:
            return None
        known = self._weaker.get(id(record.frequency))
        if known is None or known[0] is not record.frequency:
            if len(self._weaker) > REPORT_EVERY:
                self._weaker.clear()
            known = self._weaker[id(record.frequency)] = (record.frequency, self._combine(record.frequency, UNKNOWN))
        return record._replace(frequency=known[1])

    def _records(self, key: bytes, found: list[tuple[int, list[Record]]], around: SubtreeStack) -> Iterator[Record]:
        layers: dict[tuple[bytes, ...], list[tuple[int, Record]]] = {}
        for index, records in found:
            for record in records:
                layers.setdefault(record.more_keys, []).append((index, record))
        wild = self._wild and is_wildcard(key)
        subtree = (around.of(key) if wild else around.around(key)) if self._wild else None
        for more_keys, records_here in sorted(layers.items()):
            entries = self._entries(records_here)
            if wild and subtree is not None:
                frequency = subtree.results[b" ".join(more_keys)]
            else:
                frequency = self._exact(entries, subtree.cover if subtree else 0)
            if frequency is None:
                self.result.voids_dropped += 1
                continue
            self.result.wildcards += wild
            record = self._record(key, more_keys, frequency, records_here, entries)
            yield record._replace(json=_with_sets(record.json, records_here, subtree)) if wild else record

    def _entries(self, records: list[tuple[int, Record]]) -> dict[int, Frequency]:
        entries: dict[int, Frequency] = {}
        for index, record in records:
            if index in entries:
                self.result.duplicates += 1
                entries[index] = self._combine(entries[index], record.frequency)
            else:
                entries[index] = record.frequency
        return entries

    def _exact(self, entries: dict[int, Frequency], cover: int) -> Frequency | None:
        """The frequency of an exact key, None if it is a void to be dropped."""
        held = [frequency for frequency in entries.values() if not frequency.is_void]
        if not held:
            return self._void(entries, cover)
        own = sum(1 << index for index in entries)
        total = reduce(self._combine, held)
        if self._one_uri and all(frequency.uri_r == Count(1) for frequency in held):
            total = Frequency(total.uri_m, Count(1))  # such a key is one URI-R, whoever has it
        return self._combine(total, UNKNOWN) if cover & ~own else total

    def _record(
        self,
        key: bytes,
        more_keys: tuple[bytes, ...],
        frequency: Frequency,
        records: list[tuple[int, Record]],
        entries: dict[int, Frequency],
    ) -> Record:
        first = records[0][1]
        self.result.conflicts += sum(record.values != first.values for _, record in records)
        return Record(key, more_keys, frequency, self._block(frequency, records, entries), first.values)

    def _block(self, frequency: Frequency, records: list[tuple[int, Record]], entries: dict[int, Frequency]) -> str:
        texts = [record.json for _, record in records]
        if not any(texts) and not self._options.spread:
            return ""
        spread, foreign = self._options.spread, any(index in self._foreign for index, _ in records)
        partial = frequency != reduce(self._combine, entries.values())
        if len(texts) == 1 and not (spread or foreign or (texts[0] and partial)):
            return texts[0]
        try:
            block, conflicts = merged_block(texts, self._combine, spread=spread, partial=partial)
        except FormatError as error:
            self._unreadable_block(records, error)
            return ""
        self.result.conflicts += conflicts
        return block

    def _unreadable_block(self, records: list[tuple[int, Record]], error: FormatError) -> None:
        key = shown(records[0][1].key)
        names = ", ".join(self._inputs[index].label for index, record in records if record.json)
        if self._on_problem is None:
            raise FormatError(str(error), where=f"{names}: {key}")
        self._on_problem(Problem(names, None, f"{error}; the key is kept without its JSON", key))


def _with_sets(block: str, records: list[tuple[int, Record]], subtree: Subtree | None) -> str:
    """A wildcard's block with the hashed sets of all maps that have it: each is valid for its map. There are none if
    another map holds something below that no set here knows of: by a wider wildcard, or by this one without a set."""
    block = without_sets(block)
    held = [(index, record) for index, record in records if not record.frequency.is_void]
    own = sum(1 << index for index in {index for index, _ in held})
    if subtree is None or subtree.outer & ~own or not all(items_of(record.json) for _, record in held):
        return block
    return with_sets(block, [item for _, record in held for item in items_of(record.json)])


def _layer(record: Record) -> Layer:
    return b" ".join(record.more_keys)


def _by_key(found: Iterable[Found]) -> Iterator[tuple[bytes, list[tuple[int, list[Record]]]]]:
    """The maps that have a key, key by key."""
    current: bytes | None = None
    maps: list[tuple[int, list[Record]]] = []
    for key, index, records in found:
        if key == current:
            maps.append((index, records))
            continue
        if maps:
            yield current, maps  # type: ignore[misc]  # maps have a key
        current = key
        maps = [(index, records)]
    if maps:
        yield current, maps  # type: ignore[misc]


def _with_totals(sorted_subtrees: Iterator[Subtree], totals: Iterable[bytes]) -> Iterator[Subtree]:
    rows = groupby((line.split(b"\t", 2) for line in totals), key=itemgetter(0))
    for subtree, (_, found) in zip(sorted_subtrees, rows, strict=True):
        subtree.results = {layer: None if token == _DROPPED else parse_token(token) for _, token, layer in found}
        yield subtree
