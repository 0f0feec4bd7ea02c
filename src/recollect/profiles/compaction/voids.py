"""Voids: keys that are requested from an archive and known to be absent, with frequency `0`.

Evidence is a log: requests answered 404 or 410, or whose status is not in the log. A request answered 2xx or 3xx
found something; other answers (403, 5xx) say nothing. A key is absent when it was requested at least `min_requests`
times and never found, and no map holds it or may hold it. A key stands for all queries of its URI, so one
that was not found may hide another that is held: what a held wildcard of a compacted map covers is left alone, unless
the caller trusts the log. Give the complete map, and all is known; the voids may then be merged into the compacted one.

Roll-up: the narrowest wildcard over several absent branches (`min_branches`, own key included) that together were
requested often enough becomes one void, if its whole subtree is empty: no map holds anything in it or covers it by a
held wildcard, and no request found anything in it.

Never covers a held URI: exact voids cover their own key only, wildcards cover no held key, and keys of other
spellings of the same URI (`uris.spellings`) are looked up too. Memory: one entry per different key in the logs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recollect.errors import BadURI, UsageError
from recollect.formats.containers import OnProblem
from recollect.formats.forms import Asked
from recollect.formats.frequency import VOID, Frequency
from recollect.formats.logs import LogEntry, read_lookups
from recollect.formats.outputs import refuse_inputs
from recollect.formats.ukvs import Header, Record, Writer
from recollect.kernels import walk as kernels
from recollect.maps.lookup import MementoMap, keys_of
from recollect.maps.samplescope import refuse_sample
from recollect.maps.scope import Scope, joined
from recollect.model import Problem, Progress, ProgressCallback
from recollect.profiles.compaction.keytable import KeyTree, table_of, tree_of
from recollect.uris import ancestors

Ints = NDArray[np.int64]

_STEP = 1 << 14
_GONE = (404, 410)


@dataclass(frozen=True, slots=True)
class VoidsResult:
    """The result of a log. `held` and `unsure` are keys that were requested often enough but are not voids."""

    requests: int
    requested_keys: int
    voids: int
    wildcards: int
    covered_requests: int
    held: int
    unsure: int
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Seen:
    """What the log says of one key."""

    uri: str
    gone: int = 0
    without_status: int = 0
    found: bool = False
    others: tuple[bytes, ...] = field(default=())


def make_voids(
    logs: Sequence[str | os.PathLike[str]],
    maps: Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    min_requests: int = 3,
    min_branches: int = 2,
    trust_log: bool = False,
    updated_at: str = "",
    asked: Asked | None = None,
    on_problem: OnProblem | None = None,
    progress: ProgressCallback | None = None,
) -> VoidsResult:
    """Write a map of voids (`"scope": "voids"`) for what logs ask for and maps do not hold."""
    if min_requests < 1 or min_branches < 1:
        raise UsageError("at least one request and one branch are needed for a void")
    refuse_inputs(target, (*logs, *maps))
    report = progress or (lambda _progress: None)
    with ExitStack() as stack:
        known = [stack.enter_context(MementoMap.open(path)) for path in maps]
        for one in known:
            refuse_sample(one.header, one.path, "used to find voids")
        if any(one.header.policy != "HxPx" for one in known):
            raise UsageError("voids need a map of whole keys", why="its policy is another than HxPx")
        log = read_lookups([os.fspath(path) for path in logs], on_problem, asked)
        seen = _read(log, ", ".join(map(str, logs)), on_problem, report)
        census = _Census(known, seen, min_requests, trust_log)
        census.judge(report)
        voids = list(_voids(census, min_requests, min_branches))
    header = _header(known, min_requests, updated_at)
    with Writer(target, header) as writer:
        for key, _ in sorted(voids):
            writer.write(Record(key, frequency=VOID))
    return VoidsResult(
        requests=sum(one.gone + one.without_status for one in seen.values()),
        requested_keys=len(seen),
        voids=len(voids),
        wildcards=sum(key.endswith(b"*") for key, _ in voids),
        covered_requests=sum(count for _, count in voids),
        held=census.held,
        unsure=census.unsure,
        notes=tuple(log.notes()),
    )


def _read(
    log: Iterable[LogEntry], name: str, on_problem: OnProblem | None, report: ProgressCallback
) -> dict[bytes, _Seen]:
    seen: dict[bytes, _Seen] = {}
    for number, entry in enumerate(log):
        if not number % _STEP:
            report(Progress("reading requests", number, None, "lines"))
        try:
            key, *others = keys_of(entry.uri)
        except BadURI as error:
            if on_problem is None:
                raise
            on_problem(Problem("log", None, "not a URI with a host", error.where or entry.uri[:80]))
            continue
        one = seen.setdefault(key, _Seen(entry.uri, others=tuple(others)))
        if entry.status is None:
            one.without_status += entry.count
        elif entry.status in _GONE:
            one.gone += entry.count
        elif 200 <= entry.status < 400:
            one.found = True
    if not seen:
        raise UsageError("no requests", where=name, why="the logs name no URI", hint=f"recollect inspect {name}")
    return seen


class _Census:
    """Which requested keys are absent, and which subtrees empty."""

    def __init__(
        self, maps: Sequence[MementoMap], seen: dict[bytes, _Seen], min_requests: int, trust_log: bool
    ) -> None:
        self._maps = maps
        self._seen = seen
        self._min = min_requests
        self._trust_log = trust_log
        self.absent: dict[bytes, int] = {}
        self.present: set[bytes] = set()
        self.held = self.unsure = 0

    def judge(self, report: ProgressCallback) -> None:
        """Sort the keys into absent ones (with their requests) and present ones; the rest is unknown."""
        for number, (key, one) in enumerate(self._seen.items()):
            if not number % _STEP:
                report(Progress("looking up", number, len(self._seen), "keys"))
            verdict = self._verdict(key, one)
            requests = one.gone + one.without_status
            if verdict == "absent":
                self.absent[key] = requests
            elif verdict == "held":
                self.present.add(key)
                self.held += requests >= self._min
            else:
                self.unsure += requests >= self._min

    def _verdict(self, key: bytes, one: _Seen) -> Literal["absent", "held", "unsure"]:
        if one.found:
            return "held"
        covered = False
        for opened in self._maps:
            for spelling in (key, *one.others):
                found = opened.text.find(spelling)
                if found is None or not _may_hold(found[1]):
                    continue
                if not found[0].endswith(b"*"):
                    return "held"
                covered = True
        return "unsure" if covered and not (self._trust_log and one.gone) else "absent"

    def is_empty(self, name: bytes, kind: int, wildcard: bytes) -> bool:
        """Whether no map holds anything at a node or below, or covers it by a held wildcard."""
        probe = name if kind == kernels.PATH and not name.endswith(b")") else name.rstrip(b")") + b")/"
        starts = [name + b"/"] if kind == kernels.PATH else [name + byte for byte in (b")", b",", b":")]
        chain = (wildcard, *ancestors(wildcard))
        for opened in self._maps:
            # The node's own key may be a void that says nothing of what a wildcard holds beside it.
            wider = (list(opened.text.lines_under(one)) for one in chain)
            found = opened.text.find(probe)
            if _may_hold(next(filter(None, wider), [])) or (found is not None and _may_hold(found[1])):
                return False
            if any(_may_hold([line]) for start in starts for line in opened.text.lines_under(start)):
                return False
        return True


def _may_hold(lines: Sequence[bytes]) -> bool:
    return any(Frequency.parse(line.split(None, 2)[1]).held is not False for line in lines)


def _voids(census: _Census, min_requests: int, min_branches: int) -> Iterator[tuple[bytes, int]]:
    """The keys to state as 0, with the requests that each covers."""
    if not census.absent:
        return
    tree = _tree_of(census)
    requests, branches, spoiled = _evidence(census, tree)
    settled = np.zeros(len(tree), np.bool_)
    for node in range(1, len(tree)):
        up = tree.parent[node]
        settled[node] = settled[up]
        kind, depth = int(tree.kind[node]), int(tree.depth[node])
        rollable = kind != kernels.HOST or depth > 1
        if (
            not settled[node]
            and rollable
            and not spoiled[node]
            and branches[node] >= min_branches
            and requests[node] >= min_requests
            and census.is_empty(tree.name(node), kind, tree.wildcard(node))
        ):
            settled[node] = True
            yield tree.wildcard(node), int(requests[node])
    for row in range(len(tree.table)):
        key = tree.table.key(row)
        count = census.absent.get(key, 0)
        if count >= min_requests and not settled[tree.node_of[row]]:
            yield key, count


def _tree_of(census: _Census) -> KeyTree:
    keys = sorted({*census.absent, *census.present})
    text = b"".join(key + b" 1\n" for key in keys)
    return tree_of(table_of(np.frombuffer(text, np.uint8), name="requests"))


def _evidence(census: _Census, tree: KeyTree) -> tuple[Ints, Ints, Ints]:
    """Per node: failed requests at or below it, branches that have them, and whether something was found there."""
    requests = np.zeros(len(tree), np.int64)
    branches = np.zeros(len(tree), np.int64)
    spoiled = np.zeros(len(tree), np.int64)
    for row in range(len(tree.table)):
        key = tree.table.key(row)
        node = tree.node_of[row]
        if key in census.present:
            spoiled[node] = 1
        else:
            requests[node] += census.absent[key]
            branches[node] += 1
    for node in range(len(tree) - 1, 0, -1):
        up = tree.parent[node]
        requests[up] += requests[node]
        spoiled[up] |= spoiled[node]
        branches[up] += requests[node] > 0
    return requests, branches, spoiled


def _header(maps: Sequence[MementoMap], min_requests: int, updated_at: str) -> Header:
    known = joined([one.scope for one in maps]) if maps else Scope()
    meta: dict[str, object] = {"type": "MementoMap", **known.as_meta(), "scope": "voids", "policy": "HxPx"}
    meta["voids"] = {"min_requests": min_requests}
    if updated_at:
        meta["updated_at"] = updated_at
    first = maps[0].header if maps else Header()
    if name := first.meta.get("name"):
        meta["name"] = name
    return Header(id=first.id, meta=meta)
