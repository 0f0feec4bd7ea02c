"""The tables of an archive are those of plain dictionaries over the same captures."""

from __future__ import annotations

import statistics
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.profiles.statistics.stats import stats
from recollect.uris import POLICIES, policy_key, segments, uri_key

HOSTS = ["com,x", "com,x,sub", "com,x-y", "com,x:8080", "com,x,sub,deep", "com", "uk,co,bbc"]
HOSTS += ["uk,co,bbc,news", "4,3,2,1", "org,a"]
PATHS = ["/", "/a", "/a-b", "/a/1", "/a/1/2/3/4/5/6/7", "/a//b", "/a//c", "//x", "/b?q=1", "/b?q=1&r=2"]
PATHS += ["/b", "/A", "/a?z", "/_x"]
SURTS = st.builds(lambda host, path: f"{host}){path}", st.sampled_from(HOSTS), st.sampled_from(PATHS))
CAPTURES = st.lists(
    st.tuples(SURTS, st.integers(1996, 2003), st.integers(1, 12), st.sampled_from(["200", "404", "-", "301"])),
    min_size=1,
    max_size=80,
)


@settings(max_examples=100, deadline=None)
@given(CAPTURES)
def test_every_table(captures: list[tuple[str, int, int, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "index.cdx")
        file.write_text(
            " CDX N b a m s k r M S V g\n"
            + "".join(
                f"{surt} {year}{month:02d}01000000 http://x/ text/html {status} D - - 1 2 f\n"
                for surt, year, month, status in captures
            )
        )
        found = stats([file])
    per_surt = Counter(surt for surt, *_ in captures)
    keys = {uri_key(surt.encode()) for surt in per_surt}
    overview = found.overview
    assert (overview.captures, overview.uri_rs, overview.keys) == (len(captures), len(per_surt), len(keys))
    assert found.overview.hosts == len({key.partition(b")")[0] for key in keys})
    _check_distribution(found.distribution, per_surt)
    _check_years(found.years, captures)
    _check_depths(found.depths, keys)
    _check_levels({row.level: row for row in (*found.host_levels, *found.path_levels)}, keys)
    assert found.policy_costs["URIR"] == 1  # by definition, however an index spells URIs
    for policy in POLICIES[:-1]:
        wanted = len({policy_key(surt.encode(), policy) for surt in per_surt})
        assert found.policy_costs[policy] == pytest.approx(wanted / len(per_surt)), policy
    assert sum(count for row in found.media_by_status.values() for count in row.values()) == len(captures)
    tlds = Counter[str]()
    for surt, *_ in captures:
        first = surt.partition(")")[0].partition(",")[0].partition(":")[0]
        tlds["IP addresses" if first == "4" else first] += 1
    assert dict(found.top_tlds) == dict(tlds)
    assert [count for _, count in found.top_uri_rs] == sorted(per_surt.values(), reverse=True)[:10]
    assert all(per_surt[surt] == count for surt, count in found.top_uri_rs)


def _check_distribution(found, per_surt: Counter[str]) -> None:
    values = sorted(per_surt.values())
    assert (found.minimum, found.maximum) == (values[0], values[-1])
    assert found.median == statistics.median(values)
    assert found.standard_deviation == pytest.approx(statistics.pstdev(values))
    n, total = len(values), sum(values)
    differences = sum(abs(a - b) for a in values for b in values)
    assert found.gini == pytest.approx(differences / (2 * n * total), abs=1e-12)


def _check_years(rows, captures) -> None:
    seen: set[str] = set()
    all_captures = 0
    by_year = defaultdict(list)
    for surt, year, _, status in captures:
        by_year[year].append((surt, status))
    assert [row.year for row in rows] == sorted(by_year)
    for row in rows:
        surts = {surt for surt, _ in by_year[row.year]}
        old = surts & seen
        seen |= surts
        all_captures += len(by_year[row.year])
        assert (row.uri_rs, row.uri_rs_total, row.uri_ms, row.uri_ms_total) == (
            len(surts), len(seen), len(by_year[row.year]), all_captures,
        )  # fmt: skip
        assert row.duplicate_uri_rs == pytest.approx(len(old) / len(surts))
        stated = [status for _, status in by_year[row.year] if status != "-"]
        if not stated:
            assert row.status_shares == {}, "what an index does not state is unknown, not zero"
            continue
        share = sum(status == "404" for status in stated) / len(by_year[row.year])
        assert row.status_shares["4xx"] == pytest.approx(share)


def _check_depths(rows, keys: set[bytes]) -> None:
    domains = Counter(len(segments(host + b")/")[0]) for host in {key.partition(b")")[0] for key in keys})
    hosts = Counter(len(segments(key)[0]) for key in keys)
    paths = Counter(len(segments(key)[1]) for key in keys)
    for row in rows:
        assert (row.domains, row.host_keys, row.path_keys) == (domains[row.depth], hosts[row.depth], paths[row.depth])


def _check_levels(rows, keys: set[bytes]) -> None:
    nodes: dict[str, Counter] = defaultdict(Counter)
    children: dict[str, set] = defaultdict(set)
    for key in keys:
        hosts, path = segments(key)
        for depth in range(1, len(hosts) + 1):
            nodes[f"H{depth}"][hosts[:depth]] += 1
            children[f"H{depth}"].add((hosts[: depth - 1], hosts[:depth]))
        for depth in range(len(path) + 1):
            nodes[f"P{depth}"][hosts, path[:depth]] += 1
            if depth:
                children[f"P{depth}"].add(((hosts, path[: depth - 1]), (hosts, path[:depth])))
    assert set(rows) == set(nodes)
    for level, counts in nodes.items():
        row = rows[level]
        sizes = sorted(counts.values())
        assert (row.count, row.keys, row.maximum) == (len(sizes), sum(sizes), sizes[-1])
        assert row.median == statistics.median(sizes)
        assert row.standard_deviation == pytest.approx(statistics.pstdev(sizes))
        assert row.reduction == pytest.approx((sum(sizes) - len(sizes)) / len(keys))
        if level != "P0":
            pairs = children[level]
            parents = {parent for parent, _ in pairs}
            assert (row.parents, row.children) == (len(parents), len(pairs))
