"""Compaction by budget over nasty maps: nothing is lost, budgets are kept, totals are true, threads change nothing."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from map_trees import above, deciding, holdings, keys, read_map, total, write_map
from recollect.errors import RecollectError
from recollect.formats.frequency import Frequency
from recollect.formats.logs import LogEntry
from recollect.maps.plainmap import open_plain
from recollect.profiles.compaction import branches as module
from recollect.profiles.compaction.branches import branches_of
from recollect.profiles.compaction.budget import Budget, Case, compact_by_budget
from recollect.profiles.compaction.demand import Asked, demand_over
from recollect.profiles.compaction.forecast import Forecaster, Smoothing
from recollect.profiles.compaction.optimum import Optimiser
from recollect.profiles.compaction.prior import shares_of, spread

Records = dict[bytes, Frequency]


def yes(records: Records, key: bytes) -> bool:
    """Whether a map leaves it possible that a key is held."""
    record = deciding(records, key)
    return record is not None and not records[record].is_void


def near(key: bytes) -> list[bytes]:
    """Keys about one that no map lists: below it, beside it, on other hosts."""
    host, _, path = key.partition(b")")
    above_it = path.rpartition(b"/")[0]
    found = [key.rstrip(b"/") + b"/new", host + b")" + above_it + b"/new", host + b")/"]
    return found if host[:1].isdigit() or b":" in host else [*found, host + b",new)/"]


@st.composite
def logs(draw: st.DrawFn, records: Records) -> dict[bytes, int]:
    """Lookups of what is held, of what is near it, and of anything."""
    exact = [key for key in sorted(records) if not key.endswith(b"*")]
    asked = draw(st.lists(st.sampled_from(exact), max_size=6)) if exact else []
    asked += [one for key in asked for one in near(key)] + draw(st.lists(keys, max_size=6))
    return {key: draw(st.sampled_from([1, 1, 2, 3, 40])) for key in asked}


def entries(log: dict[bytes, int]) -> list[LogEntry]:
    return [LogEntry(key.decode(), count=count) for key, count in log.items()]


@given(holdings(), st.integers(1, 40), st.booleans(), st.data())
def test_what_a_map_affirms_stays_affirmed_within_the_budget(
    records: Records, most: int, with_log: bool, data: st.DataObject
) -> None:
    log = data.draw(logs(records)) if with_log else {}
    with TemporaryDirectory() as folder:
        source = write_map(Path(folder) / "map.ukvs", records)
        target = Path(folder) / "small.ukvs"
        done = compact_by_budget(source, target, Budget(max_keys=most), lookups=entries(log) if with_log else None)
        result = read_map(target)
        lines = [line.split()[0] for line in target.read_bytes().splitlines() if line[:1] != b"!"]
    assert lines == sorted(lines)
    assert len(lines) == done.keys_out <= most
    probes = {key for key in [*records, *log] if not key.endswith(b"*")}
    probes |= {one for key in probes for one in near(key)}
    assert [key for key in sorted(probes) if yes(records, key) and not yes(result, key)] == []
    for key, frequency in result.items():
        if key.endswith(b"*") and not frequency.is_void:
            assert frequency == total(key, {one: records[one] for one in records if key in above(one)})
    # What the program says of the log is what the written map answers.
    wrong = sum(count for key, count in log.items() if yes(result, key) and not yes(records, key))
    assert (done.wrong_in_log or 0.0) * done.lookups == pytest.approx(wrong)


@given(holdings(max_size=120), st.integers(1, 60), st.integers(1, 300))
def test_the_result_does_not_depend_on_threads_or_parts(records: Records, most: int, small: int) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        source = write_map(Path(folder) / "map.ukvs", records)
        one, many = Path(folder) / "one.ukvs", Path(folder) / "many.ukvs"
        compact_by_budget(source, one, Budget(max_keys=most), threads=1)
        patch.setattr(module, "SMALL", small)
        compact_by_budget(source, many, Budget(max_keys=most), threads=7)
        assert many.read_bytes() == one.read_bytes()


@given(holdings(), st.integers(60, 1500), st.sampled_from(["", ".gz", ".zst"]))
def test_a_size_on_disk_is_never_exceeded(records: Records, most: int, suffix: str) -> None:
    with TemporaryDirectory() as folder:
        source = write_map(Path(folder) / "map.ukvs", records)
        target = Path(folder) / f"small.ukvs{suffix}"
        try:
            compact_by_budget(source, target, Budget(max_bytes=most))
        except RecollectError:
            assert not target.exists()
            assume(False)
        assert target.stat().st_size <= most


@given(holdings(wildcards=False))
def test_the_prior_conserves_mass(records: Records) -> None:
    branches = read(records)
    leave, own = spread(branches, shares_of(branches))
    assert leave.sum() + own.sum() == pytest.approx(1.0)
    assert leave.min() >= 0
    assert own.min() >= 0


@given(holdings(wildcards=False), st.data())
def test_a_forecast_conserves_mass_and_is_the_prior_where_no_one_asked(records: Records, data: st.DataObject) -> None:
    log = data.draw(logs(records))
    branches = read(records)
    demand = demand_over(branches, Asked(counts=log))
    expected = Forecaster(demand, demand.tally()).expected(Smoothing())
    # The rest is expected to ask for what is held.
    assert expected.leave.sum() + expected.own.sum() <= 1 + 1e-9
    no_lookups = demand_over(branches, Asked(counts={b"org,elsewhere)/": 0}))
    blind = Forecaster(no_lookups, no_lookups.tally()).expected(Smoothing())
    leave, own = spread(branches, shares_of(branches))
    assert blind.leave[: len(branches)] == pytest.approx(leave)
    assert blind.own[: len(branches)] == pytest.approx(own)


@given(holdings(), st.integers(1, 60))
def test_a_larger_price_never_buys_more(records: Records, most: int) -> None:
    case = Case(read(records))
    optimiser = Optimiser(case.expected(Smoothing()), case.costs("keys"), case.may_roll(0))
    found = [optimiser.at_price(price) for price in np.geomspace(1e-6, 2, 12)]
    assert [one.cost for one in found] == sorted((one.cost for one in found), reverse=True)
    best = optimiser.within(most)
    corner = optimiser.within(most, spend=False)
    assert best is not None
    assert corner is not None
    assert corner.cost <= best.cost <= most
    assert best.loss <= corner.loss + 1e-12
    assert optimiser.weigh(best.decide) == (best.cost, pytest.approx(best.loss))


def read(records: Records) -> module.Branches:
    with TemporaryDirectory() as folder, open_plain(write_map(Path(folder) / "map.ukvs", records)) as plain:
        return branches_of(plain)


def test_a_name_of_numbers_is_found_among_addresses() -> None:
    held = [b"4,3,2,1)/", b"4,3,2,10)/a", b"4,3,2,999)/", b"4,3,2,99a,x)/b"]
    branches = read({key: Frequency.parse("1/1") for key in held})
    demand = demand_over(
        branches, Asked(counts={b"4,3,2,999)/": 3, b"4,3,2,99a,x)/b": 2, b"4,3,2,1)/": 1, b"4,3)/": 1})
    )
    assert len(demand.leaf_at) == 3
    assert [demand.absent(absence) for absence in range(len(demand.absence_at))] == [b"4,3)/*"]
