"""The optimum is the optimum: against all maps that lose nothing, on trees small enough to try them all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recollect.kernels.branches import LEAF
from recollect.maps.plainmap import plain_of
from recollect.profiles.compaction.branches import Branches, branches_of
from recollect.profiles.compaction.budget import Case
from recollect.profiles.compaction.budgetlines import lines_of
from recollect.profiles.compaction.keytable import KeyTree, table_of, tree_of
from recollect.profiles.compaction.optimum import ExpectedLookups, Optimiser, Solution
from recollect.uris import lookup_keys

# Keys whose subtrees interrupt each other in byte order (`a`, `a-b`, `a/1`), ports and IP addresses among them.
POOL = [
    b"com,x)/",
    b"com,x)/a",
    b"com,x)/a/1",
    b"com,x)/a-b",
    b"com,x,y)/",
    b"com,x:80)/a",
    b"4,3,2,1)/a",
]
exact_rows = st.sampled_from(POOL)
wild_rows = st.sampled_from([b"com,x)/*", b"com,x)/a/*", b"com,x,*", b"com,x)/a-b/*"])


@st.composite
def maps(draw: st.DrawFn) -> dict[bytes, bytes]:
    """Small maps, some compacted before, some with voids."""
    rows = {
        key: draw(st.sampled_from([b"1", b"1", b"1", b"0"]))
        for key in draw(st.sets(exact_rows, min_size=1, max_size=3))
    }
    if draw(st.booleans()):
        rows.update({key: draw(st.sampled_from([b"5/3", b"0"])) for key in draw(st.sets(wild_rows, max_size=1))})
    return rows


def tree_for(rows: dict[bytes, bytes]) -> KeyTree:
    text = b"".join(b"%b %b\n" % row for row in sorted(rows.items()))
    return tree_of(table_of(np.frombuffer(text, np.uint8)))


def branches_for(rows: dict[bytes, bytes], asked: dict[bytes, float]) -> Branches:
    """Branches of a map; leaves below which people ask for something are branches too."""
    text = b"".join(b"%b %b\n" % row for row in sorted(rows.items()))
    branches = branches_of(plain_of(memoryview(text), "map"))
    plain = np.flatnonzero(branches.rows.role == LEAF)
    below = [sorted(rows)[row].rstrip(b"/") + b"/new" for row in plain.tolist()]
    return branches.grown(plain[[asked[key] > 0 for key in below]])


def answer(rows: dict[bytes, bytes], key: bytes) -> bool:
    """The lookup as docs/design.md has it."""
    for candidate in lookup_keys(key):
        if candidate in rows:
            return rows[candidate] != b"0"
    return False


def names_of(tree: KeyTree) -> tuple[list[bytes], list[bytes], list[bytes]]:
    """Of every node: its own key (empty for hosts), an unseen child, its wildcard."""
    own, child, wild = [], [], []
    for node in range(len(tree)):
        name, path = tree.name(node), tree.kind[node] == 4
        own.append((name + b"/" if tree.depth[node] == 1 else name) if path else b"")
        child.append(name + b"/new" if path else (name + b",new)/" if node else b"new)/"))
        wild.append(tree.wildcard(node))
    return own, child, wild


@st.composite
def problems(draw: st.DrawFn) -> tuple[dict[bytes, bytes], dict[bytes, float], float]:
    rows = draw(maps())
    own, child, _ = names_of(tree_for(rows))
    masses = st.sampled_from([0.0, 0.1, 0.35, 0.8, 1.5, 4.0])
    asked = {key: draw(masses) for key in [*own, *child] if key}
    return rows, asked, draw(st.sampled_from([0.05, 0.3, 0.55, 1.1]))


def lookups_for(branches: Branches, rows: dict[bytes, bytes], asked: dict[bytes, float]) -> ExpectedLookups:
    """The lookups of absent URIs at each branch."""
    tree = tree_for(rows)
    own_keys, child_keys, wildcards = names_of(tree)
    leave, own = np.zeros(len(branches)), np.zeros(len(branches))
    for branch in range(len(branches)):
        node = wildcards.index(branches.wildcard(branch))
        if not answer(rows, child_keys[node]):
            leave[branch] = asked[child_keys[node]]
        if own_keys[node] and not answer(rows, own_keys[node]):
            own[branch] = asked[own_keys[node]]
    return ExpectedLookups(branches.up, branches.is_open, leave, own)


def written(branches: Branches, solution: Solution) -> dict[bytes, bytes]:
    """The records of the compacted map."""
    text = b"".join(lines_of(Case(branches), solution))
    rows = [tuple(line.split(b" ")) for line in text.splitlines()]
    assert rows == sorted(rows)
    return dict(rows)  # type: ignore[arg-type]


def value(rows: dict[bytes, bytes], output: dict[bytes, bytes], asked: dict[bytes, float], price: float) -> float:
    """Price of the keys plus lookups answered yes for nothing; infinite if anything is lost."""
    loss = 0.0
    for key, mass in asked.items():
        if answer(output, key):
            loss += 0.0 if answer(rows, key) else mass
        elif answer(rows, key):
            return float("inf")
    return loss + price * len(output)


def best_of_all(rows: dict[bytes, bytes], asked: dict[bytes, float], price: float) -> float:
    """The least value over all maps: each wildcard none, yes or void; each own key none or stated as it is."""
    own, _, wild = names_of(tree_for(rows))
    names = [key for key in wild if key != b"*"] + [key for key in own if key]
    options = [3] * (len(wild) - 1) + [2] * (len(names) - len(wild) + 1)
    assume(np.prod(options) <= 300_000)
    tried = dict(zip(names, np.indices(options, np.int8).reshape(len(names), -1), strict=True))
    # 0 is none, 1 is yes (of an own key: what it is), 2 is a void.
    for key in names[len(wild) - 1 :]:
        tried[key] = np.where(tried[key] == 1, 1 if answer(rows, key) else 2, 0)
    total = price * sum((column != 0) for column in tried.values()).astype(float)
    for key, mass in asked.items():
        said = np.zeros(len(total), np.int8)
        for candidate in reversed(lookup_keys(key)):
            if candidate in tried:
                said = np.where(tried[candidate] == 0, said, tried[candidate])
        total += np.where(said == 1, 0.0 if answer(rows, key) else mass, np.inf if answer(rows, key) else 0.0)
    return float(total.min())


@given(problems())
def test_no_map_that_loses_nothing_is_better(problem):
    rows, asked, price = problem
    branches = branches_for(rows, asked)
    optimiser = Optimiser(lookups_for(branches, rows, asked), Case(branches).costs("keys"), branches.may_roll(1))
    solution = optimiser.at_price(price)
    output = written(branches, solution)
    assert solution.cost == len(output)
    assert solution.loss + price * solution.cost == pytest.approx(value(rows, output, asked, price))
    assert solution.loss + price * solution.cost == pytest.approx(best_of_all(rows, asked, price))
