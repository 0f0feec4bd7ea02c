"""Maps as inputs: the holdings of existing maps and profiles under another policy, or put together.

Hides the external sort. Keys of one map are disjoint, so their counts add up exactly when a policy brings them
together; the counts of several maps are merged as `frequency.merge` says, for a URI-R may be in each. A wildcard that
reaches deeper than the policy becomes the policy's key; one that does not stays as it is, because it covers many of
the policy's keys (`uris.conversion`).

What a map has lost cannot come back: queries (so no URIR, DQry, DIni), status, time and media type (so no filters).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby

from recollect.errors import BadURI, UsageError
from recollect.formats.containers import OnProblem
from recollect.formats.frequency import Frequency, merge
from recollect.formats.ukvs import Header, open_map
from recollect.maps.conversion import held_wildcards, is_below_none
from recollect.maps.linesort import LineSorter
from recollect.maps.scope import Scope
from recollect.model import Problem
from recollect.profiles.indexes.sinks import Spool, Totals
from recollect.uris.conversion import converted_key

_QUERY_POLICIES = ("URIR", "DQry", "DIni")
_WHOLE = (b":", b"-")


class MapKeys:
    """The keys of maps under a policy, as sorted lines. `lines` can be read after `read`."""

    def __init__(self, policy: str, temp_dir: str | None) -> None:
        if policy in _QUERY_POLICIES:
            raise UsageError(
                "not from a map", where=policy, why="a map has no queries", hint="profile the indexes with this policy"
            )
        self._policy = policy
        self._temp_dir = temp_dir
        self._spool = Spool(temp_dir)
        self.records = 0
        self.scopes: list[Scope] = []

    def read(self, paths: Sequence[str], on_problem: OnProblem) -> Totals:
        """Read maps, in any order of keys; returns what they hold together."""
        with LineSorter(self._temp_dir) as sorter:
            for number, path in enumerate(paths):
                says_nothing = _outermost_voids(path)
                with open_map(path, on_problem) as opened:
                    self._check(path, opened.header)
                    self.scopes.append(Scope.of(opened.header))
                    for record in opened:
                        self.records += 1
                        if any(part not in _WHOLE for part in record.more_keys):
                            continue  # a part of a decomposed frequency; the whole has a row of its own
                        try:
                            made = converted_key(record.key, opened.header.policy, self._policy)
                        except BadURI as error:
                            on_problem(Problem(path, self.records, str(error)))
                            continue
                        if not record.frequency.is_void or made.keeps_void or says_nothing(record.key):
                            sorter.add(b"%b\0%06d %b" % (made.key, number, str(record.frequency).encode()))
            return self._add_up(sorter)

    def _check(self, path: str, header: Header) -> None:
        if not header.is_complete:
            raise UsageError(
                "a map that is not of all holdings cannot be profiled",
                where=path,
                why=f"its scope is {header.meta['scope']}: what it lacks is unknown, and would become absent",
                hint="profile the indexes, then: recollect merge MAP... -o OUT",
            )
        policy = header.policy
        if policy not in ("HxPx", self._policy):
            raise UsageError(
                "cannot change the policy",
                where=path,
                why=f"its keys are {policy}, not HxPx",
                hint="recollect convert MAP --policy HxPx -o OUT, or profile the indexes",
            )

    def _add_up(self, sorter: LineSorter) -> Totals:
        keys = captures = uri_rs = 0
        lines: list[bytes] = []
        for key, group in groupby(sorter, key=lambda line: line.partition(b"\0")[0]):
            frequency = _together(line.partition(b"\0")[2] for line in group)
            keys += 1
            captures += frequency.uri_m.value or 0
            uri_rs += frequency.uri_r.value or 0
            lines.append(b"%b %b\n" % (key, str(frequency).encode()))
            if len(lines) >= 1 << 16:
                self._spool.add(b"".join(lines))
                lines = []
        self._spool.add(b"".join(lines))
        return Totals(keys, captures, uri_rs)

    def lines(self) -> Iterator[bytes]:
        return iter(self._spool)

    def close(self) -> None:
        self._spool.close()


def _outermost_voids(path: str) -> Callable[[bytes], bool]:
    """Whether a void says no more than its absence would, since no wildcard above it holds anything."""
    known: list[Mapping[bytes, Frequency]] = []

    def is_outermost(key: bytes) -> bool:
        if not known:
            known.append(held_wildcards(path))
        return is_below_none(key, known[0])

    return is_outermost


def _together(counted: Iterator[bytes]) -> Frequency:
    """Disjoint within a map, merged across maps; each text is the map's number and a frequency."""
    totals = []
    for _, group in groupby(counted, key=lambda text: text[:6]):
        totals.append(reduce(Frequency.__add__, (Frequency.parse(text[7:]) for text in group)))
    return reduce(merge, totals)
