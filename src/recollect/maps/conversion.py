"""Maps of one policy as maps of another (`uris.conversion` has the rules for keys), sorted out of core.

Hides: the sort, and what counts become. Lines of one map are disjoint, so where several become one their counts add up,
except lines below a wildcard that becomes the same key: its total includes them. A wildcard that was made of a host's
own key gets the total of all that the map lists below it. Hashed sets go, as they are of the old keys: the wildcards
then cover all below them. Memory: the wildcards of the input.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from recollect.errors import BadURI, FormatError, UsageError
from recollect.formats.containers import OnProblem
from recollect.formats.frequency import UNKNOWN, Frequency, parse_token
from recollect.formats.ukvs import Header, MapFile, Record, Writer, open_map
from recollect.maps.jsonmerge import merged_block
from recollect.maps.linesort import LineSorter
from recollect.maps.lookup import whole_of
from recollect.maps.mapinputs import WILDCARD, ignore
from recollect.maps.mergehead import with_keys
from recollect.maps.samplescope import is_sample
from recollect.maps.sets import without_sets
from recollect.model import Problem
from recollect.uris import ancestors, lookup_keys, parse_policy, policy_name
from recollect.uris.conversion import check_conversion, converted_key

_PART, _UNKNOWN, _OWN, _COVERED = b"p", b"u", b"o", b"c"


@dataclass(slots=True)
class Conversion:
    """What a conversion did."""

    source_policy: str
    policy: str
    records: int = 0
    keys: int = 0
    wildcards: int = 0
    voids_dropped: int = 0
    unknown: int = 0
    """Wildcards that say unknown, over what a key of the old policy may have stood for besides."""


class _Row(NamedTuple):
    kind: bytes
    frequency: Frequency
    values: tuple[bytes, ...]
    json: str


def convert_map(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    policy: str,
    *,
    temp_dir: str | None = None,
    on_problem: OnProblem | None = None,
) -> Conversion:
    """Write the map under another policy; raises UsageError where its keys do not say enough for it."""
    name = os.fspath(path)
    with open_map(name, ignore) as opened:
        header = opened.header
        wild = any(WILDCARD.search(piece) for piece in opened.pieces())
    old, new = parse_policy(header.policy).name, parse_policy(policy).name
    if is_sample(header):
        raise UsageError("a map of a sample has one policy", where=name, hint="recollect sample map RUN -o MAP again")
    if "frequency" not in header.values and header.style != "cdxj":
        raise FormatError("a map without frequencies cannot be converted", where=name)
    check_conversion(old, new, name)
    result = Conversion(old, new)
    target = _header(header, old, new)
    with LineSorter(temp_dir) as sorter:
        with open_map(name, on_problem) as opened:
            _sort(opened, result, held_wildcards(name) if wild else {}, sorter, on_problem)
        with Writer(output, target, late=partial(with_keys, target)) as writer:
            for record in _records(sorter, result):
                writer.write(record)
            result.keys = writer.count
    return result


def _header(header: Header, old: str, new: str) -> Header:
    meta = {name: value for name, value in header.meta.items() if name not in ("page", "pages", "links")}
    if str(meta.get("type", "")).startswith("urikey#"):
        meta["type"] = "MementoMap"
    meta["policy"] = new
    if old != new:
        meta["converted_from"] = old
    values = ("frequency", *(name for name in header.values if name != "frequency"))
    context = (header.context if header.style == "ukvs" else ()) or Header().context
    return replace(header, style="ukvs", values=values, context=context, meta=meta)


def held_wildcards(path: str) -> dict[bytes, Frequency]:
    """The wildcards that hold something."""
    with open_map(path, ignore) as opened:
        rows = groupby((one for one in opened if one.key.endswith(b"*")), key=lambda record: record.key)
        wholes = {key: whole_of(list(same)) for key, same in rows}
    return {key: held for key, held in wholes.items() if not held.is_void}


def _sort(
    opened: MapFile,
    result: Conversion,
    wildcards: Mapping[bytes, Frequency],
    sorter: LineSorter,
    on_problem: OnProblem | None,
) -> None:
    complete = opened.header.is_complete
    for record in opened:
        result.records += 1
        try:
            made = converted_key(record.key, result.source_policy, result.policy)
        except BadURI as error:
            problem = Problem(opened.label, opened.line, str(error), record.key.decode("utf-8", "replace"))
            if on_problem is None:
                raise FormatError("a key that cannot be converted", where=opened.label, why=str(error)) from error
            on_problem(problem)
            continue
        if record.frequency.is_void and not (made.keeps_void or (complete and is_below_none(record.key, wildcards))):
            result.voids_dropped += 1
            continue
        same = result.source_policy == result.policy
        covered = bool(wildcards) and _is_covered(record.key, made.key, wildcards, result)
        json = record.json if same else without_sets(record.json)
        sorter.add(_line(made.key, _COVERED if covered else _OWN, record, json))
        if made.unknown is not None and not record.frequency.is_void:
            sorter.add(_line(made.unknown, _UNKNOWN, record._replace(frequency=UNKNOWN), ""))
        part = made.part_of if made.part_of is not None and not record.frequency.is_void else None
        if part is not None and not (wildcards and _is_covered(record.key, part, wildcards, result)):
            sorter.add(_line(part, _PART, record, ""))


def is_below_none(key: bytes, wildcards: Mapping[bytes, Frequency]) -> bool:
    """Whether no wildcard above a key holds anything: then a void says no more than its absence would."""
    return not wildcards or not any(one in wildcards for one in _above(key))


def _above(key: bytes) -> list[bytes]:
    return ancestors(key) if key.endswith(b"*") else lookup_keys(key)[1:]


def _is_covered(key: bytes, made: bytes, wildcards: Mapping[bytes, Frequency], result: Conversion) -> bool:
    """Whether a wildcard of the input covers a key and becomes the same key."""
    return any(
        one in wildcards and converted_key(one, result.source_policy, result.policy).key == made for one in _above(key)
    )


def _line(key: bytes, kind: bytes, record: Record, json: str) -> bytes:
    values = b"\x1f".join(record.values)
    return b"\0".join(
        (
            key,
            b" ".join(record.more_keys),
            kind,
            str(record.frequency).encode(),
            values,
            json.encode("utf-8", "surrogateescape"),
        )
    )


def _records(sorter: LineSorter, result: Conversion) -> Iterator[Record]:
    split = (line.split(b"\0", 5) for line in sorter)
    for (key, layer), lines in groupby(split, key=lambda fields: (fields[0], fields[1])):
        rows = [_row(fields[2:]) for fields in lines]
        kinds = {row.kind for row in rows}
        if kinds == {_PART}:
            continue
        record = _joined(key, tuple(layer.split(b" ")) if layer else (), rows)
        result.wildcards += key.endswith(b"*")
        result.unknown += record.frequency.held is None
        yield record


def _row(fields: list[bytes]) -> _Row:
    kind, frequency, values, json = fields
    texts = tuple(values.split(b"\x1f")) if values else ()
    return _Row(kind, parse_token(frequency), texts, json.decode("utf-8", "surrogateescape"))


def _joined(key: bytes, more_keys: tuple[bytes, ...], rows: list[_Row]) -> Record:
    own = [row for row in rows if row.kind == _OWN] or [row for row in rows if row.kind != _PART]
    counted = [row for row in rows if row.kind in (_OWN, _PART)] or own
    if all(row.frequency.is_void for row in own):
        counted = own  # a void stays one, whatever lies below it
    frequency = reduce(Frequency.__add__, (row.frequency for row in counted))
    blocks = [row.json for row in own]
    block = blocks[0] if len(blocks) == 1 else merged_block(blocks, Frequency.__add__)[0]
    return Record(key, more_keys, frequency, block, own[0].values)


@contextmanager
def in_one_policy(
    paths: Iterable[str], temp_dir: str | None, on_problem: OnProblem | None
) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Maps that a merge can read: if their policies differ, those that are not of HxPx are converted first. With them,
    by name, the policies of the maps that were converted."""
    names = list(paths)
    policies = {name: _policy_of(name) for name in names if name != "-" and Path(name).is_file()}
    if len(set(policies.values())) < 2:
        yield names, {}
        return
    converted = {name: policy for name, policy in policies.items() if policy != "HxPx"}
    with TemporaryDirectory(prefix="recollect-", dir=temp_dir) as folder:
        places = {}
        for number, name in enumerate(converted):
            place = Path(folder, str(number), Path(name).name)
            place.parent.mkdir()
            convert_map(name, place, "HxPx", temp_dir=temp_dir, on_problem=on_problem)
            places[name] = str(place)
        yield [places.get(name, name) for name in names], converted


def _policy_of(path: str) -> str:
    with MapFile(path, ignore) as opened:
        return policy_name(opened.header.policy)
