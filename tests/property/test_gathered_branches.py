"""Branches gathered from ranges are those of the whole map, and what is decided comes back to every range."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.engines.spark.gathered import asked_between, decided_for, gathered, part_of, spellings
from recollect.engines.spark.maps import DOMAIN, borders_between
from recollect.formats.logs import LogEntry
from recollect.formats.ukvs import Header
from recollect.maps.plainmap import open_plain
from recollect.profiles.compaction.branches import branches_of
from recollect.profiles.compaction.budget import Budget, Case, TooSmall, choose, key_limit
from recollect.profiles.compaction.budgetlines import lines_of
from recollect.profiles.compaction.demand import asked_in, demand_over

HOSTS = ["com", "com:80", "com,x", "com,x,sub", "com,x,www", "com,x-y", "com,x:8080", "com-x,a", "com1,b", "org,a"]
HOSTS += ["uk,co,bbc", "uk,gov", "4,3,2,1", "org,b", "org,b,www"]
PATHS = ["/", "/a", "/a-b", "/a/1", "/a/2", "/a/3", "/a/4/5", "/b", "/b/1", "/b/2", "/c/d/e/f"]
KEYS = st.builds(lambda host, path: f"{host}){path}", st.sampled_from(HOSTS), st.sampled_from(PATHS))
WILD = st.sampled_from(["com,x)/a/*", "com,x,*", "org,b)/b/* 0", "org,a)/* 0", "com,x)/b 0"])
COUNTS = st.sampled_from(["1", "3/2", "7/", "2+/1", "12/12"])
URIS = ["http://x.com/a/1", "http://www.x.com/a/9", "http://x.com/zz/y", "http://b.org/", "http://www.b.org/b/7/8"]
URIS += ["http://x.com/a/1/below", "http://nowhere.example/", "http://y.com/q", "http://bbc.co.uk/b/1/2/3"]


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(KEYS, COUNTS, min_size=2, max_size=50),
    st.sets(WILD, max_size=2),
    st.lists(st.tuples(st.sampled_from(URIS), st.integers(1, 20)), max_size=12),
    st.integers(2, 6),
    st.integers(3, 30),
)
def test_ranges_are_decided_as_the_whole(
    held: dict[str, str], wild: set[str], log: list[tuple[str, int]], ranges: int, keys: int
) -> None:
    lines = {f"{key} {count}" for key, count in held.items()}
    lines |= {line if " " in line else f"{line} 90/50" for line in wild}
    by_key = {line.split(" ")[0]: line for line in sorted(lines)}
    text = [by_key[key].encode() for key in sorted(by_key)]
    borders = borders_between(((line.split()[0], 1) for line in text), ranges, DOMAIN)
    asked = asked_in([LogEntry(uri, count) for uri, count in log]) if log else None
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        whole = branches_of(stack.enter_context(open_plain(_written(folder, "whole", text))), 1)
        edges = [b"", *borders, None]
        some = [[line for line in text if low <= line and (high is None or line < high)]
                for low, high in pairwise(edges)]  # fmt: skip
        files = [_written(folder, f"part{number}", few) for number, few in enumerate(some)]
        apart = [branches_of(stack.enter_context(open_plain(file)), 1) for file in files]
        wanted = [None if asked is None else asked_between(spellings(asked), low or b"", high)
                  for low, high in pairwise(edges)]  # fmt: skip
        parts = [part_of(number, one, few) for number, (one, few) in enumerate(zip(apart, wanted, strict=True))]
        one = gathered(parts)
        for name in (
            "up",
            "name_length",
            "kind",
            "depth",
            "flags",
            "leaves",
            "held_children",
            "size",
            "keys",
            "line_bytes",
            "total",
        ):
            assert np.array_equal(getattr(one.branches, name), getattr(whole, name)), name
        assert one.branches.uri_rs == whole.uri_rs
        budget = Budget(max_keys=keys)
        case, together = _case(whole, asked), _case(one.branches, asked)
        try:
            choice = choose(case, budget, "keys", key_limit(whole, budget))
        except TooSmall:
            return
        found = choose(together, budget, "keys", key_limit(whole, budget))
        assert found.solution.loss == choice.solution.loss
        assert found.fit == choice.fit
        if choice.rolled_up:
            return  # then ranges must be of whole top-level domains
        absent = case.demand.absent if case.demand is not None else None
        here = b"".join(lines_of(case.branches, absent, choice.solution, case.up))
        decided = dict(decided_for(one, together, found.solution))
        there = b"".join(b"".join(decided[number].lines(branches)) for number, branches in enumerate(apart))
        assert there == here


def _case(branches, asked) -> Case:
    if asked is None:
        return Case(branches)
    demand = demand_over(branches, asked)
    return Case(demand.branches, demand)


def _written(folder: str, name: str, lines: list[bytes]) -> str:
    file = Path(folder, f"{name}.ukvs")
    file.write_bytes(Header().encode() + b"".join(line + b"\n" for line in lines))
    return str(file)
