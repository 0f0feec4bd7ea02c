"""Evaluation: compares the answers of maps to a log of lookups with what the archive holds.

A lookup is positive when the map answers `yes` or `unknown`, so that the archive is asked. The truth is whether the
URI's key is in the holdings; with truth `uri` whether the exact URI-R, query included, is there. Then, of lookups:

    accuracy           (TP + TN) / all
    routing precision  TP / (TP + FP)       "Web Archive Profiling Through CDX Summarization" (2015), equation 6
    recall             TP / (TP + FN)       1 by the first law; anything else is reported and fails
    specificity        TN / (TN + FP)
    requests saved     (TN + FN) / all
    relative cost      keys of the map / URI-Rs of the holdings (equation 4)

Intervals are Wilson's, 95%. Unweighted, every different URI counts once. Weighted by requests, a URI counts as often
as it was asked for; as its requests are not independent trials, the interval is that of (Σw)² / Σw² of them (Kish's
effective size).

Pure functions over arrays come first (`judge`), the command's work with files after them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import zstandard
from numpy.typing import NDArray

from recollect.errors import BadURI, UsageError
from recollect.formats.containers import OnProblem, open_input
from recollect.formats.detect import Kind, inspect
from recollect.formats.forms import Asked
from recollect.formats.logs import LogEntry, read_lookups
from recollect.formats.ukvs import open_map as open_records
from recollect.kernels import search as kernels
from recollect.maps.calibration import PRIOR, Calibration, Case, Model, calibration_of, case_of
from recollect.maps.lookup import Holdings, MementoMap, keys_of, open_for_many
from recollect.maps.maptext import MappedText
from recollect.model import Answer, Problem, Progress, ProgressCallback
from recollect.profiles.indexes.profile import InputCounts
from recollect.uris import is_surt, surt, uri_key

Z95 = 1.959963984540054
_STEP = 1 << 14
_COMPRESSION = 6  # the level of `.zst` maps written here


@dataclass(frozen=True, slots=True)
class Share:
    """A proportion and the ends of its 95% interval; all None where there was nothing to take a share of."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Confusion:
    """How lookups were answered. `trials` is the number of independent ones that they are worth."""

    tp: int
    fp: int
    fn: int
    tn: int
    trials: float

    @property
    def total(self) -> int:
        """All lookups."""
        return self.tp + self.fp + self.fn + self.tn

    def _share(self, part: int, whole: int) -> Share:
        if whole == 0:
            return Share(None, None, None)
        return Share(part / whole, *wilson(part / whole, self.trials * whole / self.total))

    @property
    def accuracy(self) -> Share:
        """Right answers."""
        return self._share(self.tp + self.tn, self.total)

    @property
    def precision(self) -> Share:
        """Of what would be asked for, what is there: routing precision."""
        return self._share(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> Share:
        """Of what is there, what would be asked for."""
        return self._share(self.tp, self.tp + self.fn)

    @property
    def specificity(self) -> Share:
        """Of what is absent, what would not be asked for."""
        return self._share(self.tn, self.tn + self.fp)

    @property
    def saved(self) -> Share:
        """Requests that would not be made."""
        return self._share(self.tn + self.fn, self.total)

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        shares = ("accuracy", "precision", "recall", "specificity", "saved")
        counts = {"lookups": self.total, "tp": self.tp, "fp": self.fp, "fn": self.fn, "tn": self.tn}
        return counts | {name: asdict(getattr(self, name)) for name in shares}


def wilson(share: float, trials: float) -> tuple[float, float]:
    """Wilson's 95% interval of a share of N trials."""
    if trials <= 0:
        return 0.0, 1.0
    square = Z95 * Z95
    middle = (share + square / (2 * trials)) / (1 + square / trials)
    half = Z95 * sqrt(share * (1 - share) / trials + square / (4 * trials * trials)) / (1 + square / trials)
    # Rounding must not put the share itself outside.
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def judge(asked: NDArray[np.bool_], held: NDArray[np.bool_], counts: NDArray[np.int64] | None = None) -> Confusion:
    """The confusion of lookups: would the archive be asked, does it hold the URI, how often was it looked up."""
    weight = np.ones(len(asked), np.int64) if counts is None else np.asarray(counts, np.int64)
    tp = int(weight[asked & held].sum())
    fp = int(weight[asked & ~held].sum())
    fn = int(weight[~asked & held].sum())
    tn = int(weight[~asked & ~held].sum())
    squares = float((weight.astype(float) ** 2).sum())
    return Confusion(tp, fp, fn, tn, float(weight.sum()) ** 2 / squares if squares else 0.0)


@dataclass(frozen=True, slots=True)
class DistinctLookups:
    """Different URIs that were looked up, and how often. Their keys, of all spellings, lie one after the other in
    `buffer`: key i of `sizes[i]` bytes at `offsets[i]`, of URI `owners[i]`."""

    uris: tuple[str, ...]
    counts: NDArray[np.int64]
    buffer: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    owners: NDArray[np.int64]

    @classmethod
    def of(cls, uris: Sequence[str], counts: Sequence[int]) -> DistinctLookups:
        """Lookups of URIs or SURTs, whose keys are made once for all maps; raises BadURI."""
        spelled = [keys_of(uri) for uri in uris]
        keys = [key for several in spelled for key in several]
        sizes = np.fromiter(map(len, keys), np.int64, len(keys))
        owners = np.repeat(np.arange(len(uris)), [len(several) for several in spelled])
        buffer = np.frombuffer(b"".join(keys), np.uint8)
        return cls(tuple(uris), np.asarray(counts, np.int64), buffer, np.cumsum(sizes) - sizes, sizes, owners)


def asked_by(holdings: Holdings, lookups: DistinctLookups) -> NDArray[np.bool_]:
    """For each lookup whether a map would have the archive asked."""
    if isinstance(holdings, MementoMap) and holdings.is_simple and isinstance(holdings.text, MappedText):
        return _asked_in_bulk(holdings.text, lookups)
    return np.fromiter((found.answer != Answer.NO for found in holdings.lookup_many(lookups.uris)), np.bool_)


def _asked_in_bulk(text: MappedText, lookups: DistinctLookups) -> NDArray[np.bool_]:
    positions = text.search_many(lookups.buffer, lookups.offsets, lookups.sizes)
    answers = np.full(len(positions), kernels.NO, np.uint8)
    kernels.answers_at(text.data, positions, answers)
    answers[text.denied(lookups.buffer, lookups.offsets, lookups.sizes, positions)] = kernels.NO
    asked = np.zeros(len(lookups.uris), np.bool_)
    asked[lookups.owners[answers != kernels.NO]] = True  # of several spellings, what holds something wins
    if not text.header.is_complete:
        named = np.zeros(len(lookups.uris), np.bool_)
        named[lookups.owners[positions >= 0]] = True
        asked |= ~named
    return asked


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One map against the truth. `missed` are the first false negatives."""

    path: str
    kind: str
    keys: int
    bytes: int
    bytes_compressed: int
    relative_cost: float | None
    unique: Confusion
    requests: Confusion
    missed: tuple[str, ...]
    calibration: Calibration | None = None
    """Chances of the answers against the truth; None of filters."""

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "map": self.path,
            "kind": self.kind,
            "keys": self.keys,
            "bytes": self.bytes,
            "bytes_compressed": self.bytes_compressed,
            "relative_cost": self.relative_cost,
            "unweighted": self.unique.as_dict(),
            "weighted": self.requests.as_dict(),
            "false_negatives": list(self.missed),
            **_as_dict(self.calibration),
        }


def _as_dict(found: Calibration | None) -> dict[str, Any]:
    if found is None:
        return {"calibration": None, "precision_recall": []}
    return {
        "calibration": {
            "lookups": found.lookups,
            "by_wildcards": found.by_wildcards,
            "brier": found.brier,
            "brier_base": found.brier_base,
            "reliability": [one._asdict() for one in found.bins],
            "model": found.model,
        },
        "precision_recall": [point._asdict() for point in found.curve],
    }


@dataclass(frozen=True, slots=True)
class Report:
    """All maps against one truth."""

    truth: str
    uri_rs: int
    holdings_keys: int
    lookups: int
    requests: int
    held: int
    maps: tuple[Evaluation, ...]
    notes: tuple[str, ...] = ()
    learned: Learned = field(default_factory=lambda: Learned())
    """What wildcards decided about, to learn chances from."""

    @property
    def missed(self) -> int:
        """False negatives of all maps."""
        return sum(one.unique.fn for one in self.maps)

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "truth": self.truth,
            "uri_rs": self.uri_rs,
            "holdings_keys": self.holdings_keys,
            "lookups": self.lookups,
            "requests": self.requests,
            "held": self.held,
            "maps": [one.as_dict() for one in self.maps],
            "notes": list(self.notes),
        }


def evaluate(
    maps: Sequence[str | os.PathLike[str]],
    holdings: Sequence[str | os.PathLike[str]],
    logs: Sequence[str | os.PathLike[str]],
    *,
    truth: Literal["key", "uri"] = "key",
    holder: Holder | None = None,
    model: Model | None = None,
    asked: Asked | None = None,
    on_problem: OnProblem | None = None,
    progress: ProgressCallback | None = None,
) -> Report:
    """Evaluate maps and filters: `holdings` are indexes (or one uncompacted map), `logs` lists or logs of lookups.

    `holder` says which lookups indexes hold, if they are not to be profiled here; `asked` what form the logs have, if
    it cannot be detected. `model` gives the chances of wildcards; without it the shipped prior does.
    """
    report = progress or (lambda _progress: None)
    log = read_lookups([os.fspath(path) for path in logs], on_problem, asked)
    lookups = gather(log, ", ".join(map(str, logs)), on_problem, report)
    names = [os.fspath(path) for path in holdings]
    if truth == "key" and len(names) == 1 and Path(names[0]).is_file() and inspect(names[0]).kind is Kind.MAP:
        known = _held_by_map(names[0], lookups, report)
    else:
        known = (holder or held_here)(names, "HxPx" if truth == "key" else "URIR", lookups, report)
        for problem in (*known.tally.damaged, *known.tally.problems):
            if on_problem is not None:
                on_problem(problem)
        if known.keys == 0:
            raise UsageError("no holdings", where=", ".join(names), why="the indexes name no URI")
    held = known.held
    found = Learned()
    results = tuple(
        _evaluate(os.fspath(path), lookups, held, known.uri_rs, report, model or PRIOR, found) for path in maps
    )
    return Report(
        truth,
        known.uri_rs,
        known.keys,
        len(lookups.uris),
        int(lookups.counts.sum()),
        int(np.count_nonzero(held)),
        results,
        tuple(log.notes()),
        found,
    )


def gather(
    log: Iterable[LogEntry], name: str, on_problem: OnProblem | None, report: ProgressCallback
) -> DistinctLookups:
    """The different URIs of logs. Spellings with the same SURT are one URI."""
    found: dict[str, tuple[str, int]] = {}
    for number, entry in enumerate(log):
        if not number % _STEP:
            report(Progress("reading lookups", number, None, "lines"))
        try:
            canonical = entry.uri if is_surt(entry.uri) else surt(entry.uri)
            uri_key(canonical.encode("utf-8", "surrogateescape"))
        except BadURI as error:
            if on_problem is None:
                raise
            on_problem(Problem("lookups", None, "not a URI with a host", error.where or entry.uri[:80]))
            continue
        first, count = found.get(canonical, (entry.uri, 0))
        found[canonical] = first, count + entry.count
    if not found:
        raise UsageError("no lookups", where=name, why="the logs name no URI", hint=f"recollect inspect {name}")
    return DistinctLookups.of([uri for uri, _ in found.values()], [count for _, count in found.values()])


@dataclass(frozen=True, slots=True)
class Known:
    """What holdings are: which lookups they hold, how many keys and URI-Rs there are, what could not be read."""

    held: NDArray[np.bool_]
    keys: int
    uri_rs: int
    tally: InputCounts = field(default_factory=InputCounts)


# Says what indexes hold, given their names, a policy for their keys, and lookups.
Holder = Callable[[Sequence[str], str, DistinctLookups, ProgressCallback], Known]


def held_here(names: Sequence[str], policy: str, lookups: DistinctLookups, report: ProgressCallback) -> Known:
    from recollect.profiles.indexes.profile import profile

    with TemporaryDirectory(prefix="recollect-") as folder:
        target = str(Path(folder) / "holdings.ukvs")
        made = profile(names, target, policy=policy, allow_empty=True, progress=report)
        report(Progress("looking up the truth", 0, len(lookups.uris), "lookups"))
        with MementoMap.open(target) as known:
            return Known(asked_by(known, lookups), made.totals.keys, made.totals.uri_rs, made.tally)


def _held_by_map(path: str, lookups: DistinctLookups, report: ProgressCallback) -> Known:
    """What an uncompacted map holds."""
    keys, uri_rs = _survey(path)
    report(Progress("looking up the truth", 0, len(lookups.uris), "lookups"))
    with MementoMap.open(path) as known:
        if not known.scope.has_limits:
            return Known(asked_by(known, lookups), keys, uri_rs)
        found = known.lookup_many(lookups.uris)  # beyond its scope it is not the truth
        held = np.fromiter((one.answer != Answer.NO and one.limit is None for one in found), np.bool_)
        return Known(held, keys, uri_rs)


def _survey(path: str) -> tuple[int, int]:
    """Keys and URI-Rs of a map that is to be the truth; where it does not state URI-Rs, each key is one."""
    keys = uri_rs = 0
    with open_records(path) as opened:
        for record in opened:
            if record.key.endswith((b"/*", b",*")) or record.key == b"*":
                raise UsageError(
                    "a compacted map cannot be the truth",
                    where=path,
                    why=f"it has {record.key.decode('utf-8', 'replace')}",
                    hint="give the indexes, or the map before compaction",
                )
            if not record.frequency.is_void:
                keys += 1
                uri_rs += record.frequency.uri_r.value or 1
    return keys, uri_rs


def _evaluate(
    path: str,
    lookups: DistinctLookups,
    held: NDArray[np.bool_],
    uri_rs: int,
    report: ProgressCallback,
    model: Model,
    learned: Learned,
) -> Evaluation:
    opened = open_for_many(path)
    report(Progress(f"looking up in {Path(path).name}", 0, len(lookups.uris), "lookups"))
    asked = asked_by(opened, lookups)
    missed = np.flatnonzero(held & ~asked)[:20]
    measured = None
    if isinstance(opened, MementoMap):
        chances, cases = chances_of(opened, lookups.uris, model)
        measured = calibration_of(chances, held.tolist(), len(cases), model.fitted_on)
        learned.add([case for _, case in cases], [bool(held[row]) for row, _ in cases])
    keys, size, packed = _sizes(path, opened)
    return Evaluation(
        path=path,
        kind="map" if isinstance(opened, MementoMap) else "filter",
        keys=keys,
        bytes=size,
        bytes_compressed=packed,
        relative_cost=keys / uri_rs if uri_rs else None,
        unique=judge(asked, held),
        requests=judge(asked, held, lookups.counts),
        missed=tuple(lookups.uris[row] for row in missed.tolist()),
        calibration=measured,
    )


@dataclass(slots=True)
class Learned:
    """What wildcards decided about, and whether it was held: from all maps together."""

    cases: list[Case] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)

    def add(self, cases: Sequence[Case], held: Sequence[bool]) -> None:
        """Add those of a map."""
        self.cases += cases
        self.held += held


def chances_of(opened: MementoMap, uris: Sequence[str], model: Model) -> tuple[list[float], list[tuple[int, Case]]]:
    """The chance of each lookup: 1 of an exact key, 0 of a no, by the model of a wildcard; and the wildcards' cases."""
    chances: list[float] = []
    cases: list[tuple[int, Case]] = []
    for row, found in enumerate(opened.lookup_many(uris)):
        if found.answer == Answer.NO:
            chances.append(0.0)
        elif found.answer == Answer.YES and found.key is not None and not found.key.endswith(b"*"):
            chances.append(1.0)
        elif found.answer == Answer.UNKNOWN or found.key is None or found.frequency is None:
            chances.append(0.5)
        else:
            case = case_of(found.key, found.frequency, keys_of(found.uri)[0], bits=found.set_bits)
            cases.append((row, case))
            chances.append(model.chance(case))
    return chances, cases


def _sizes(path: str, opened: Holdings) -> tuple[int, int, int]:
    """Keys, bytes of text, and bytes when compressed as a `.zst` map (or as the file is, if it is compressed)."""
    files = sorted(one for one in Path(path).iterdir() if one.is_file()) if Path(path).is_dir() else [Path(path)]
    keys = size = packed = 0
    for file in files:
        if file.name == "manifest.json":
            continue
        compressor = zstandard.ZstdCompressor(level=_COMPRESSION).compressobj()
        pressed = 0
        last = b"\n"
        with open_input(file) as stream:
            while piece := stream.read(1 << 20):
                size += len(piece)
                keys += piece.count(b"\n")
                last = piece[-1:]
                pressed += len(compressor.compress(piece))
            keys += last != b"\n"
            plain = stream.kind == "plain"
        pressed += len(compressor.flush())
        packed += pressed if plain else file.stat().st_size
        if isinstance(opened, MementoMap):
            keys -= _header_lines(file)
    return (keys if isinstance(opened, MementoMap) else int(opened.header.meta["keys"])), size, packed


def _header_lines(path: Path) -> int:
    with open_input(path) as stream:
        count = 0
        for line in stream:
            if line[:1] not in (b"!", b"@", b"#", b"\n", b"\r"):
                break
            count += 1
        return count
