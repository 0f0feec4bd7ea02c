"""Evaluation: counts, shares and intervals against numbers worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recollect.errors import UsageError
from recollect.maps.filters import make_filter
from recollect.profiles.compaction.weights import Weights, compact_by_weights
from recollect.profiles.statistics.evaluate import evaluate, judge, wilson


def test_shares_are_those_of_the_counts() -> None:
    asked = np.array([1, 1, 1, 0, 0, 0], bool)
    held = np.array([1, 1, 0, 0, 0, 1], bool)
    found = judge(asked, held)
    assert (found.tp, found.fp, found.fn, found.tn) == (2, 1, 1, 2)
    assert found.accuracy.value == 4 / 6
    assert found.precision.value == 2 / 3
    assert found.recall.value == 2 / 3
    assert found.specificity.value == 2 / 3
    assert found.saved.value == 3 / 6


def test_weights_count_requests_and_widen_the_interval() -> None:
    asked, held = np.array([1, 0, 0, 0], bool), np.array([1, 0, 0, 0], bool)
    found = judge(asked, held, np.array([97, 1, 1, 1]))
    assert (found.tp, found.tn, found.total) == (97, 3, 100)
    # 100 requests, but nearly all of one URI: worth 100^2 / (97^2 + 3) = 1.06 independent trials.
    assert found.trials == pytest.approx(1.0625, abs=0.001)
    assert found.accuracy.value == 1
    assert found.accuracy.low is not None
    assert found.accuracy.low < 0.25


@pytest.mark.parametrize(
    ("share", "trials", "low", "high"),
    [(0.5, 10, 0.2366, 0.7634), (0.0, 20, 0.0, 0.1611), (1.0, 20, 0.8389, 1.0), (0.9, 1000, 0.8799, 0.9171)],
)
def test_wilson_intervals(share: float, trials: float, low: float, high: float) -> None:
    # Values of the published formula (Wilson 1927), to four places.
    assert wilson(share, trials) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_an_interval_has_the_share_in_it() -> None:
    assert all(wilson(share, trials)[share == 1.0] == share for share in (0.0, 1.0) for trials in range(1, 2000))


def test_nothing_to_take_a_share_of_is_none() -> None:
    found = judge(np.array([0], bool), np.array([0], bool))
    assert (found.precision.value, found.recall.value, found.specificity.value) == (None, None, 1.0)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """60 pages in one host, one page in another; lookups of two pages that are held and four that are not."""
    (tmp_path / "index.surt").write_text("".join(f"com,x)/p{number:02}\n" for number in range(60)) + "org,y)/a?q=1\n")
    log = "5 http://x.com/p01\n1 http://x.com/p02?z=1\n2 http://x.com/new\n1 http://x.com/new2\n4 http://z.org/\n"
    (tmp_path / "log").write_text(log + "1 http://y.org/a?q=2\n1 http://www.x.com/p01/\n")
    return tmp_path


def test_maps_and_filters_against_an_index(archive: Path) -> None:
    from recollect.profiles.indexes.profile import profile

    profile([archive / "index.surt"], archive / "full.ukvs")
    compact_by_weights(archive / "full.ukvs", archive / "small.ukvs", Weights())
    make_filter(archive / "full.ukvs", archive / "f.filter", bits=16)
    paths = [archive / name for name in ("full.ukvs", "small.ukvs", "f.filter")]
    report = evaluate(paths, [archive / "index.surt"], [archive / "log"])
    assert (report.lookups, report.requests, report.held, report.uri_rs) == (6, 15, 3, 61)
    full, small, hashed = report.maps
    assert (full.keys, small.keys, hashed.keys) == (61, 2, 61)
    assert small.relative_cost == pytest.approx(2 / 61)
    assert full.unique.accuracy.value == 1
    assert (small.unique.tp, small.unique.fp, small.unique.fn, small.unique.tn) == (3, 2, 0, 1)
    assert (small.requests.tp, small.requests.fp, small.requests.tn) == (8, 3, 4)
    assert hashed.unique.fn == 0
    assert hashed.kind == "filter"
    assert full.bytes == (archive / "full.ukvs").stat().st_size
    assert full.bytes_compressed < full.bytes
    assert report.missed == 0


def test_the_truth_may_be_the_very_uri(archive: Path) -> None:
    from recollect.profiles.indexes.profile import profile

    profile([archive / "index.surt"], archive / "full.ukvs")
    report = evaluate([archive / "full.ukvs"], [archive / "index.surt"], [archive / "log"], truth="uri")
    # /p02?z=1 and /a?q=2 have the key of something held, but are not held themselves.
    assert (report.held, report.maps[0].unique.fp) == (1, 2)


def test_what_a_map_misses_is_named(archive: Path) -> None:
    (archive / "poor.ukvs").write_text("com,x)/* 60\ncom,x)/p02 0\norg,y)/a 1\n")
    report = evaluate([archive / "poor.ukvs"], [archive / "index.surt"], [archive / "log"])
    assert report.missed == 1
    assert report.maps[0].missed == ("http://x.com/p02?z=1",)


def test_a_map_may_be_the_truth_unless_it_is_compacted(archive: Path) -> None:
    (archive / "full.ukvs").write_text("com,x)/p01 3/2\ncom,x)/p02 1/1\n")
    report = evaluate([archive / "full.ukvs"], [archive / "full.ukvs"], [archive / "log"])
    assert (report.uri_rs, report.held) == (3, 2)
    (archive / "small.ukvs").write_text("com,x)/* 3/2\n")
    with pytest.raises(UsageError, match="compacted"):
        evaluate([archive / "full.ukvs"], [archive / "small.ukvs"], [archive / "log"])
