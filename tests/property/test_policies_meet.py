"""Maps of different policies meet: what a source says yes to, the converted or merged map says yes or unknown to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.maps.conversion import convert_map
from recollect.maps.lookup import MementoMap
from recollect.maps.merge import merge_maps
from recollect.model import Answer
from recollect.profiles.compaction.weights import Weights, compact_by_weights
from recollect.profiles.statistics.maptotals import count_map
from recollect.uris import is_surt, parse_policy, policy_key, surt

POLICIES = ["H1P0", "H2P0", "H2P1", "H3P0", "H3P1", "H3Px", "HxP0", "HxP1", "HxP2", "HxPx"]
POLICIES += ["DDom", "DSub", "DPth", "DQry", "DIni", "URIR", "TLD"]
hosts = st.sampled_from(
    [
        "example.com",
        "www.a.example.com",
        "b.example.com",
        "bbc.co.uk",
        "news.bbc.co.uk",
        "co.uk",
        "x.y.z.bbc.co.uk",
        "example.com:8080",
        "co.uk:81",
        "1.2.3.4",
        "1.2.3.4:80",
        "[::1]",
        "[::1]:8",
        "localhost",
        "blogspot.com",
        "me.blogspot.com",
        "www.ck",
        "a.b.ck",
        "xn--bcher-kva.example",
        "com",
        "4,3,2,999",
    ]
)
segment = st.sampled_from(["", "a", "b", "a-b", "index.html", "%21", "A"])
path = st.lists(segment, max_size=4).map("/".join)
query = st.sampled_from(["", "", "?q=1", "?a=1&b=/x/y", "?z"])


def _uri(host: str, path: str, query: str) -> str:
    if "," in host:
        return f"{host})/{path}{query}"
    return f"http://{host}/{path}{query}"


# Few hosts at a time, so that what is asked for often lies beside what is held.
some_hosts = st.shared(st.lists(hosts, min_size=1, max_size=3), key="hosts")
uris = some_hosts.flatmap(lambda names: st.builds(_uri, st.sampled_from(names), path, query))


def _is_web(uri: str) -> bool:
    try:
        policy_key((uri if is_surt(uri) else surt(uri)).encode(), "HxPx")
    except Exception:  # what the canonicaliser refuses is not a URI of an archive
        return False
    return True


web = uris.filter(_is_web)


def write(path: Path, held: list[str], absent: list[str], policy: str) -> Path:
    """The map of some URIs; voids where none of the held ones has the key."""
    keys = Counter(policy_key((uri if is_surt(uri) else surt(uri)).encode(), policy) for uri in held)
    lines = {key: b"%d" % count for key, count in keys.items()}
    for uri in absent:
        lines.setdefault(policy_key((uri if is_surt(uri) else surt(uri)).encode(), policy), b"0")
    head = b'!context ["https://oduwsdl.github.io/contexts/mementomap"]\n'
    head += b'!fields {keys: ["surt"], values: ["frequency"]}\n!meta {policy: "%b"}\n' % policy.encode()
    path.write_bytes(head + b"".join(b"%b %b\n" % line for line in sorted(lines.items())))
    return path


def answers(path: Path, asked: list[str]) -> list[Answer]:
    with MementoMap.open(path) as opened:
        single = [opened.lookup(uri).answer for uri in asked]
        assert [found.answer for found in opened.lookup_many(asked)] == single
        return single


def holds_no_less(source: Path, target: Path, asked: list[str]) -> None:
    for uri, before, after in zip(asked, answers(source, asked), answers(target, asked), strict=True):
        assert before is Answer.NO or after is not Answer.NO, (uri, before, after, target.read_text())


held_uris, absent_uris = st.lists(web, min_size=1, max_size=10), st.lists(web, max_size=4)
weights = st.sampled_from([None, 0.0, 0.1])


@settings(max_examples=100, deadline=None)
@given(
    held=held_uris,
    absent=absent_uris,
    asked=st.lists(web, max_size=15),
    policy=st.sampled_from(POLICIES),
    target=st.sampled_from(POLICIES),
    weight=weights,
    wider=st.sampled_from(["", "com,* 5\n", "uk,co,* 7/2\n", "com,example)/a/* 3\n"]),
)
def test_conversion_loses_no_yes(
    held: list[str],
    absent: list[str],
    asked: list[str],
    policy: str,
    target: str,
    weight: float | None,
    wider: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("convert")
    source = write(folder / "source.ukvs", held, absent, policy)
    if weight is not None:
        compact_by_weights(source, source, Weights(weight, weight))
    if wider:
        lines = source.read_text().splitlines(keepends=True)
        if not any(line.startswith(wider.split()[0] + " ") for line in lines):
            source.write_text("".join([*lines[:3], *sorted([*lines[3:], wider])]))
    needs_queries = parse_policy(target).name in ("URIR", "DQry", "DIni")
    if needs_queries and parse_policy(policy).name not in ("URIR", parse_policy(target).name):
        return
    convert_map(source, folder / "target.ukvs", target)
    holds_no_less(source, folder / "target.ukvs", [*held, *absent, *asked])


@settings(max_examples=60, deadline=None)
@given(
    sources=st.lists(st.tuples(held_uris, absent_uris, st.sampled_from(POLICIES), weights), min_size=2, max_size=4),
    asked=st.lists(web, max_size=15),
)
def test_a_merge_of_policies_loses_no_yes(
    sources: list[tuple[list[str], list[str], str, float | None]],
    asked: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("merge")
    paths = []
    for number, (held, absent, policy, weight) in enumerate(sources):
        path = write(folder / f"{number}.ukvs", held, absent, policy)
        if weight is not None:
            compact_by_weights(path, path, Weights(weight, weight))
        paths.append(path)
    merge_maps(paths, folder / "merged.ukvs")
    everything = [*asked, *(uri for held, absent, _, _ in sources for uri in (*held, *absent))]
    for path in paths:
        holds_no_less(path, folder / "merged.ukvs", everything)


@settings(max_examples=40, deadline=None)
@given(held=held_uris, policy=st.sampled_from(POLICIES), target=st.sampled_from(POLICIES), weight=weights)
def test_conversion_keeps_the_number_of_captures(
    held: list[str], policy: str, target: str, weight: float | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if parse_policy(target).name in ("URIR", "DQry", "DIni") and policy != "URIR":
        return
    folder = tmp_path_factory.mktemp("counts")
    source = write(folder / "source.ukvs", held, [], policy)
    if weight is not None:
        compact_by_weights(source, source, Weights(weight, weight))
    convert_map(source, folder / "target.ukvs", target)
    total = count_map(str(folder / "target.ukvs"), lambda problem: pytest.fail(str(problem))).total
    assert (total.uri_m.value, total.uri_m.bound in ("", "+")) == (len(held), True)


def test_prefixes_of_the_tree_convert_exactly(tmp_path: Path) -> None:
    cases = {
        "H3P0": (["uk,co,bbc)/ 5/3", "com,x)/ 2/1"], ["com,x)/* 2/1", "uk,co,bbc,* 5/3"]),
        "TLD": (["uk)/ 5/3"], ["uk,* 5/3"]),
        "DDom": (["com,x)/ 2/1"], ["com,x,* 2/1"]),
        "DPth": (["com,x)/0/1 2/1", "com,x)/1/1 3/1"], ["com,x,* 5/2"]),
        "URIR": (["com,x)/a 1/1", "com,x)/a?q=1 2/1"], ["com,x)/a 3/2"]),
        "H2P1": (["com,x)/ 2/1", "com,x)/a 3/1"], ["com,x)/a/* 3/1", "com,x,* 5/2"]),
    }
    for policy, (lines, expected) in cases.items():
        source = tmp_path / f"{policy}.ukvs"
        head = '!fields {keys: ["surt"], values: ["frequency"]}\n'
        source.write_text(head + f'!meta {{policy: "{policy}"}}\n' + "".join(f"{line}\n" for line in sorted(lines)))
        convert_map(source, tmp_path / "tree.ukvs", "HxPx")
        found = [line for line in (tmp_path / "tree.ukvs").read_text().splitlines() if not line.startswith("!")]
        assert [line for line in found if not line.endswith(" /")] == expected, policy


def test_pages_with_empty_segments_are_unknown_where_the_policy_cut_them(tmp_path: Path) -> None:
    source = write(tmp_path / "s.ukvs", ["http://x.com/", "http://x.com/a"], [], "HxP2")
    convert_map(source, tmp_path / "t.ukvs", "HxPx")
    asked = ["http://x.com///b", "http://x.com/a//b", "http://x.com/a", "http://x.com/a/b", "http://x.com/"]
    assert answers(source, asked) == ["yes", "yes", "yes", "no", "yes"]
    assert answers(tmp_path / "t.ukvs", asked) == ["unknown", "unknown", "yes", "no", "yes"]
