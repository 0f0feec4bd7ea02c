"""Merging maps of samples: with each other, and into a map made from an index.

Hides: what of a sample may stand in a map that says "no" to what it lacks.

- An index and samples: the index wins. Of a sample only the keys that were seen held stay, as `1+/1+`, where the index
  has no count of its own for the key; its wildcards, unknown lines and estimates are dropped. A key that was seen held
  stays even where the index says `0`, because nothing held may be missed.
- Samples of one archive: the probes, listings and sightings together are one sample, so `asked` and `held` add up. A
  URI that both asked for counts once, held if either found it: counted twice, each would count as evidence for the
  other when the sample is judged without it. Of two listings of one prefix, the one that shows more stays.
- A sample with a map of voids alone, by other columns or by another policy cannot be merged.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import FormatError, UsageError
from recollect.formats.frequency import Frequency
from recollect.formats.ukvs import Header, MapFile, Record, Writer
from recollect.maps.mergehead import Part, merged_header, with_keys
from recollect.maps.samples import COLUMNS, UNREADABLE, Listed, Observed, records_of
from recollect.maps.samplescope import is_sample

if TYPE_CHECKING:
    from recollect.maps.merge import MergeResult

_SEEN = Frequency.parse("1+/1+")


def samples_among(paths: Sequence[str]) -> list[str]:
    """Those of some maps that are of samples; what is not a file is none."""
    found = []
    for path in paths:
        if path != "-" and Path(path).is_file():
            with MapFile(path) as file:
                if is_sample(file.header):
                    found.append(path)
    return found


def merge_samples(paths: Sequence[str], output: str | os.PathLike[str], archive: str, updated_at: str) -> int:
    """Write one map of several samples of one archive; the number of its keys."""
    observed = Observed()
    headers = [_read(path, observed) for path in paths]
    names = {str(header.meta["archive"]) for header in headers if "archive" in header.meta}
    if len(names) > 1 and not archive:
        raise UsageError(
            "samples of different archives",
            where=" and ".join(paths[:2]),
            why=", ".join(sorted(names)),
            hint="keep them apart; or say whose map it shall be: --id URI",
        )
    records = records_of(observed)
    header = _header(paths, headers, observed, archive, updated_at)
    with Writer(output, header) as writer:
        for record in records:
            writer.write(record)
    return len(records)


def merge_into_index(
    indexes: Sequence[str],
    samples: Sequence[str],
    output: str | os.PathLike[str],
    merge: Callable[[Sequence[str], str], MergeResult],
    temp_dir: str | None = None,
) -> MergeResult:
    """Merge the maps of indexes by `merge`, and add what samples saw held."""
    seen = sorted({key for path in samples for key in _seen(path)})
    with tempfile.TemporaryDirectory(prefix="recollect-", dir=temp_dir) as folder:
        place = str(Path(folder) / "indexes.ukvs")
        result = merge(indexes, place)
        with MapFile(place) as file:
            _fits(file.header, indexes[0], samples[0])
            header = _with_samples(file.header, samples)
            with Writer(output, header, late=partial(with_keys, header)) as writer:
                for record in _overlaid(file.records(), seen):
                    writer.write(record)
                result.keys = writer.count
    result.maps += len(samples)
    result.records += len(seen)
    return result


def _overlaid(records: Iterable[Record], seen: Sequence[bytes]) -> Iterator[Record]:
    waiting = iter(seen)
    key = next(waiting, None)
    for record in records:
        while key is not None and key < record.key:
            yield Record(key, (), _SEEN, "")
            key = next(waiting, None)
        if key == record.key:
            key = next(waiting, None)
            if not record.frequency.held:
                record = record._replace(frequency=_SEEN)
        yield record
    while key is not None:
        yield Record(key, (), _SEEN, "")
        key = next(waiting, None)


def _fits(header: Header, index: str, sample: str) -> None:
    why = ""
    if header.lists_voids:
        why = "a map of voids says nothing of what it lacks, and the merged map would say no to it"
    elif len(header.keys) > 1 or header.values != ("frequency",):
        why = f"the columns of the map are {', '.join((*header.keys, *header.values))}"
    elif header.policy != "HxPx":
        why = f"the policy of the map is {header.policy}, that of a sample HxPx"
    elif header.style != "ukvs":
        why = "a profile of the older kind has no place for what a sample saw"
    if why:
        raise UsageError(
            "a map of a sample does not fit this map",
            where=f"{index} and {sample}",
            why=why,
            hint="keep both files: routing reads several maps of one archive",
        )


def _seen(path: str) -> Iterator[bytes]:
    with MapFile(path) as file:
        for record in file.records():
            if record.frequency.held and not record.key.endswith(b"*"):
                yield record.key


def _with_samples(header: Header, samples: Sequence[str]) -> Header:
    listed = header.meta.get("sources")
    sources = list(listed) if isinstance(listed, list) else []
    sources += [{"name": Path(path).name, "bytes": Path(path).stat().st_size} for path in samples]
    return replace(header, meta={**header.meta, "sources": sources})


# Samples as one ------------------------------------------------------------------------------------------------------


def _read(path: str, observed: Observed) -> Header:
    """Add what a map of a sample was made from."""
    with MapFile(path) as file:
        for record in file.records():
            try:
                block = json.loads(record.json) if record.json else {}
                _observe(record, block, observed)
            except UNREADABLE as error:
                where = f"{path}: {record.key.decode('utf-8', 'replace')}"
                raise FormatError("a sample's counts cannot be read", where=where, why=str(error)) from error
        return file.header


def _observe(record: Record, block: Mapping[str, Any], observed: Observed) -> None:
    key, frequency = record.key, record.frequency
    if not key.endswith(b"*"):
        if "asked" in block:
            observed.probes[key] = observed.probes.get(key, False) or int(block["held"]) > 0
        stated = {name: block[name] for name in COLUMNS if isinstance(block.get(name), dict)}
        observed.describe(
            key,
            {
                name: {str(value): Frequency.parse(str(count)).uri_m.value or 0 for value, count in counts.items()}
                for name, counts in stated.items()
            },
        )
        if "found" in block:
            observed.found[key] += int(block["found"])
        if frequency.held and not int(block.get("held", 0)):
            observed.seen.add(key)
        return
    if "listed" in block:
        captures = int(block["listed"])
        exact = frequency.uri_m.value == captures and not frequency.uri_m.bound and frequency.held is not None
        listed = Listed(captures, frequency.uri_r.value or 0, complete=exact)
        known = observed.listings.get(key)
        if known is None or (listed.captures, listed.complete) > (known.captures, known.complete):
            observed.listings[key] = listed
    if "estimate" in block:
        observed.estimates[key] = max(int(block["estimate"]), observed.estimates.get(key, 0))


def _header(
    paths: Sequence[str], headers: Sequence[Header], observed: Observed, archive: str, updated_at: str
) -> Header:
    parts = [
        Part(Path(path).name, Path(path).stat().st_size, header) for path, header in zip(paths, headers, strict=True)
    ]
    header = merged_header(parts, archive=archive, updated_at=updated_at)
    meta = {name: value for name, value in header.meta.items() if name != "merged"}
    targets = [one.meta["target_recall"] for one in headers if "target_recall" in one.meta]
    meta |= {"scope": "sample", "probes": len(observed.probes), "held": sum(observed.probes.values())}
    if targets:
        meta["target_recall"] = max(targets)
    return replace(header, meta=meta)
