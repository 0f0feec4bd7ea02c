"""The forecast of wrong answers has an interval, which covers the truth as often as it says."""

from __future__ import annotations

import json
import random
from bisect import bisect
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

from recollect.cli.main import run
from recollect.formats.logs import LogEntry
from recollect.maps.lookup import MementoMap
from recollect.profiles.compaction.budget import Budget, compact_by_budget
from recollect.profiles.compaction.demand import Asked, dealt, demand_over
from recollect.profiles.compaction.validation import Validation

LOGS = 30
MISSED_AT_MOST = 5  # of 30 intervals of 95%: six or more miss once in 300 times


class World:
    """An archive, and users with habits: some URIs are asked for again and again, most once."""

    def __init__(self, folder: Path) -> None:
        self.chance = chance = random.Random(7)
        sites = [f"com,site{number})" for number in range(60)]
        held = {f"{chance.choice(sites)}/d{chance.randrange(6)}/p{chance.randrange(400)}" for _ in range(3_000)}
        self.source = folder / "map.ukvs"
        self.source.write_text("".join(f"{key} 1\n" for key in sorted(held)))
        absent = [f"com,site{chance.randrange(90)})/d{chance.randrange(9)}/q{number}" for number in range(9_000)]
        self.pages = chance.sample(sorted(held), 2_000) + absent
        chance.shuffle(self.pages)
        self.weights = list(accumulate(1 / (1 + number) ** 0.7 for number in range(len(self.pages))))
        self.held = held

    def lookups(self, count: int) -> list[str]:
        return [self.pages[bisect(self.weights, self.chance.random() * self.weights[-1])] for _ in range(count)]


@pytest.mark.parametrize(("size", "sets"), [(2_500, True), (1_500, False)])
def test_intervals_cover_the_truth_as_often_as_they_say(tmp_path: Path, size: int, sets: bool) -> None:
    world = World(tmp_path)
    unseen = world.lookups(30_000)
    small = tmp_path / "small.ukvs.zst"
    missed, errors, widths = 0, [], []
    for _ in range(LOGS):
        log = [LogEntry(uri, 1) for uri in world.lookups(700)]
        done = compact_by_budget(world.source, small, Budget(max_bytes=size, sets=sets), lookups=log, threads=1)
        with MementoMap.open(small) as opened:
            answers = {uri: opened.lookup(uri).answer for uri in set(unseen)}
        assert all(answers[uri] == "yes" for uri in set(unseen) & world.held)
        true = sum(answers[uri] == "yes" and uri not in world.held for uri in unseen) / len(unseen)
        assert done.expected_wrong_interval is not None
        low, high = done.expected_wrong_interval
        assert 0 <= low <= done.expected_wrong <= high <= 1
        missed += not low <= true <= high
        errors.append(done.expected_wrong - true)
        widths.append(high - low)
    assert missed <= MISSED_AT_MOST
    assert abs(np.mean(errors)) < 0.01  # no bias
    assert np.mean(widths) < 6 * np.std(errors)  # and not so wide that it says nothing


def test_a_longer_log_has_a_narrower_interval() -> None:
    short, long = (Validation(0.1 * size, 0.1 * size, size, 0.1 * size, 1.0).interval(0.1) for size in (500, 50_000))
    assert long[1] - long[0] < 0.006 < 0.04 < short[1] - short[0]
    assert Validation(0.0, 0.0, 1000, 0.0, 1.0).interval(0.0)[1] == pytest.approx(0.0038, abs=2e-4)
    clustered = Validation(100, 100, 1000, 4 * 25**2, 1.0).interval(0.1)  # 4 URIs, each asked for 25 times
    assert clustered[1] - clustered[0] > 0.15
    assert Validation(0, 0, 0, 0, 1.0).interval(0.3) == (0.0, 1.0)


def test_requests_are_dealt_out_by_chance_and_none_is_lost() -> None:
    sums = np.arange(20_000, dtype=np.uint64) * np.uint64(2654435761)
    counts = np.where(np.arange(20_000) % 2, 2, 1).astype(np.int64)
    counts[0] = 10**9
    parts = dealt(sums, counts, 2)
    assert (parts.sum(axis=0) == counts).all()
    assert abs(int(parts[0, 0]) - int(parts[1, 0])) <= 64
    # Two requests of a key go to one part as often as to two: an even split would make the next lookups look known.
    both = parts[:, 1::2]
    assert 0.47 < float((both == 2).any(axis=0).mean()) < 0.53
    assert (dealt(sums, counts, 10).sum(axis=0) == counts).all()


def test_levels_below_an_absent_node_are_counted(tmp_path: Path) -> None:
    from recollect.maps.plainmap import open_plain
    from recollect.profiles.compaction.branches import branches_of

    (tmp_path / "map.ukvs").write_text("com,a)/x/1 1\ncom,a)/x/2 1\n")
    asked = {b"com,a)/x/3": 1, b"com,a)/y/1/2": 1, b"com,b)/": 1, b"com,b)/p/q": 1, b"com,a)/x/1": 1}
    with open_plain(tmp_path / "map.ukvs") as plain:
        demand = demand_over(branches_of(plain), Asked(counts=asked))
    assert dict(zip(sorted(asked), demand.steps.tolist(), strict=True)) == {
        b"com,a)/x/1": 0, b"com,a)/x/3": 0, b"com,a)/y/1/2": 2, b"com,b)/": 1, b"com,b)/p/q": 3,
    }  # fmt: skip


def test_the_command_prints_the_interval_and_says_what_a_prior_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(tmp_path)
    (tmp_path / "log.txt").write_text("\n".join(world.lookups(300)) + "\n")
    compact = ["compact", str(world.source), "-o", str(tmp_path / "s.ukvs"), "--max-bytes", "9kB", "--sets"]
    assert run([*compact, "--lookups", str(tmp_path / "log.txt")]) == 0
    told = capsys.readouterr().err
    assert "± " in told
    assert "with 95% confidence" in told
    assert run([*compact, "--lookups", str(tmp_path / "log.txt"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    low, high = report["expected_wrong_interval"]
    assert low <= report["expected_wrong"] <= high
    assert run(compact) == 0
    assert "built-in prior, not measured" in capsys.readouterr().err
    assert run([*compact, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["expected_wrong_interval"] is None


def test_lookups_below_what_a_set_leaves_to_lines_of_its_own_may_be_answered_yes(tmp_path: Path) -> None:
    """A branch that is in no set still lies below the wildcard of one, whose hashes decide by chance."""
    from recollect.kernels import setbudget as kernels
    from recollect.maps.plainmap import open_plain
    from recollect.profiles.compaction.branches import branches_of
    from recollect.profiles.compaction.chances import chances_of
    from recollect.profiles.compaction.optimum import SetBits, Solution

    keys = ["gov,cap,s1)/", "gov,cap,s2)/", "gov,h1)/a", "gov,h2)/a"]
    (tmp_path / "map.ukvs").write_text("".join(f"{key} 1\n" for key in keys))
    asked = {b"gov,cap,t)/": 1, b"gov,cap,s1)/": 1, b"gov,cap,t)/x/y": 1, b"org,x)/": 1}
    with open_plain(tmp_path / "map.ukvs") as plain:
        demand = demand_over(branches_of(plain), Asked(counts=asked))
    names = [demand.branches.name(number) for number in range(len(demand.branches))]
    count = len(names) + len(demand.absence_at)
    none = np.zeros(count, np.uint8)
    state, put, bits_out = none.copy(), none.copy(), none.copy()
    gov = names.index(b"gov")
    state[gov], put[gov], bits_out[gov] = kernels.ASKS_SET, kernels.PUT_ANCHOR, 3  # all else is in lines of its own
    up = np.concatenate((demand.branches.up, demand.absence_at))
    bits = SetBits(none.copy(), bits_out, np.zeros(count, np.int32))
    solution = Solution(1.0, 1.0, 0.0, up, put, state, bits)
    below = [1.0]  # levels below a gate that is found by chance
    for _ in range(6):
        below.append((1 + below[-1] * sum(0.5**bits for bits in (1, 2, 3, 4, 5, 6, 8))) / 8)
    chances = chances_of(demand, solution)
    found = dict(zip(sorted(asked), chances.rows.tolist(), strict=True))
    assert found[b"gov,cap,t)/"] == pytest.approx(below[2] / 8)
    assert found[b"gov,cap,t)/x/y"] == pytest.approx(below[4] / 8)
    assert found[b"gov,cap,s1)/"] == 0.0, "it is held"
    assert found[b"org,x)/"] == 0.0, "no set is above it"
    put[names.index(b"gov,cap")] = kernels.PUT_VOID
    assert chances_of(demand, solution).rows.sum() == 0.0, "a void is more specific"
