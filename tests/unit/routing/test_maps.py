"""What the maps of a directory say about a URI, for each archive."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.archives.registry import Archive
from recollect.cli.main import run
from recollect.datetimes import parse_timestamp
from recollect.errors import RecollectError
from recollect.formats.ukvs import Header, Writer
from recollect.maps.filters import make_filter
from recollect.maps.samples import Listed, Observed, records_of
from recollect.routing.choice import USUAL_PROBABILITY, Candidate, Reason, Source, route
from recollect.routing.maps import FoundMap, Maps, find_maps, stamp_of
from recollect.uris import key_of_uri, policy_key

HEAD = '!context ["https://git.io/mementomap"]\n!fields {"keys": ["surt"], "values": ["frequency"]}\n'
VOIDS = '!meta {"scope": "voids"}\n'


def archives(*names: str) -> list[Archive]:
    return [Archive(name, timemap="http://127.0.0.1/") for name in names]


def test_maps_voids_filters_and_policies(tmp_path: Path) -> None:
    (tmp_path / "a.ukvs").write_text(HEAD + "com,example)/ 7/1\ncom,example)/a/* 40/10\ncom,example)/a/b/* 0\n")
    (tmp_path / "b.voids.ukvs").write_text(HEAD + VOIDS + "com,example)/a/* 0\n")
    by_domain = policy_key(b"com,example)/", "H1P0").decode()
    (tmp_path / "p.ukvs").write_text(HEAD + '!meta {"policy": "H1P0"}\n' + f"{by_domain} 9/3\n")
    (tmp_path / "list.ukvs").write_text(HEAD + "com,example)/ 7/1\n")
    assert run(["filter", str(tmp_path / "list.ukvs"), "-o", str(tmp_path / "f.filter"), "-q"]) == 0
    (tmp_path / "list.ukvs").unlink()
    maps = Maps.open(tmp_path, archives("a", "b", "f", "p"))
    assert maps.problems == ()
    assert maps.describe() == {"a": "map", "b": "voids", "f": "filter", "p": "map"}

    def said(uri: str) -> dict[str, tuple[str, str]]:
        return {archive: (found.answer, found.key) for archive, found in maps.evidence(uri).items()}

    home = said("http://www.example.com/")
    assert home["a"] == ("yes", "com,example)/")
    assert home["b"] == ("unknown", "")
    assert home["f"] == ("yes", "com,example)/")
    assert home["p"][0] == "yes"
    deep = said("http://example.com/a/b/c")
    assert deep["a"] == ("no", "com,example)/a/b/*")
    assert deep["b"] == ("no", "com,example)/a/*")
    assert deep["f"] == ("no", "")
    assert said("http://example.org/")["p"][0] == "no"
    assert maps.evidence("dns:example.com") == {}


def test_a_hashed_set_decides_by_name(tmp_path: Path) -> None:
    held = [f"com,site{n % 3})/d{n % 7}/p{n}" for n in range(3000)]
    (tmp_path / "full.ukvs").write_text(HEAD + "".join(f"{key} 2/1\n" for key in sorted(held)))
    small = tmp_path / "maps" / "a.ukvs"
    small.parent.mkdir()
    assert run(["compact", str(tmp_path / "full.ukvs"), "-o", str(small), "--max-bytes", "6kB", "--sets", "-q"]) == 0
    assert run(["validate", str(small)]) == 0
    maps = Maps.open(small.parent, archives("a"))
    assert maps.problems == ()
    assert {maps.evidence(f"http://site{n % 3}.com/d{n % 7}/p{n}")["a"].answer for n in range(3000)} == {"yes"}
    absent = [maps.evidence(f"http://site1.com/d1/absent{n}")["a"] for n in range(200)]
    assert {found.source for found in absent} == {Source.SET}
    assert sum(found.answer == "no" for found in absent) > 150


def test_expectations_order_exact_keys_before_wildcards(tmp_path: Path) -> None:
    (tmp_path / "a.ukvs").write_text(HEAD + "com,example)/ 7/1\ncom,example)/* 40/10\norg,* 5+\n")
    maps = Maps.open(tmp_path, archives("a"))
    assert maps.evidence("http://example.com/")["a"].expected == 7
    below = maps.evidence("http://example.com/x")["a"]
    assert below.chance is not None and below.expected == pytest.approx(4 * below.chance)
    assert maps.evidence("http://example.org/x")["a"].expected < below.expected < 7


def test_one_no_is_enough(tmp_path: Path) -> None:
    (tmp_path / "a.ukvs").write_text(HEAD + "com,* 100\n")
    (tmp_path / "a.voids.ukvs").write_text(HEAD + VOIDS + "com,example,* 0\n")
    maps = Maps.open(tmp_path, archives("a"))
    assert maps.evidence("http://example.com/")["a"].answer == "no"
    assert maps.evidence("http://other.com/")["a"].answer == "yes"


@pytest.mark.parametrize(
    "text",
    ["", "hello\n", HEAD + "com,b)/ 1\ncom,a)/ 1\n", HEAD + "com,a)/?x=1 1\n", HEAD + "com,a)/ many\n"],
)
def test_maps_that_could_hide_something_are_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.ukvs").write_text(text)
    maps = Maps.open(tmp_path, archives("a"))
    assert len(maps.problems) == 1 and "a.ukvs" in maps.problems[0]
    assert maps.evidence("http://a.com/") == {}


def test_maps_of_other_makers_are_believed(tmp_path: Path) -> None:
    (tmp_path / "a.ukvs").write_text("com,example) 3\ncom,example)/Raw/ 1\n\n")
    maps = Maps.open(tmp_path, archives("a"))
    assert maps.problems == ()
    assert maps.evidence("http://example.com/")["a"].answer == "yes"


def test_names_that_belong_to_no_one_are_reported(tmp_path: Path) -> None:
    (tmp_path / "stranger.ukvs").write_text(HEAD + "com,a)/ 1\n")
    (tmp_path / "README").write_text("maps")
    maps = Maps.open(tmp_path, archives("a"))
    assert [problem for problem in maps.problems if "stranger" in problem]
    with pytest.raises(RecollectError, match="no directory"):
        Maps.open(tmp_path / "nowhere", archives("a"))


def test_names_that_differ_only_by_case_belong_to_their_own(tmp_path: Path) -> None:
    (tmp_path / "IA.ukvs").write_text(HEAD + "com,example)/ 7/1\n")
    for names in (("IA", "ia"), ("ia", "IA")):
        assert list(Maps.open(tmp_path, archives(*names)).describe()) == ["IA"]
    assert list(Maps.open(tmp_path, archives("ia")).describe()) == ["ia"]


def test_a_stamp_changes_with_the_files(tmp_path: Path) -> None:
    known = archives("a", "b")
    (tmp_path / "a.ukvs").write_text(HEAD + "com,a)/ 1\n")
    before = stamp_of(tmp_path, known)
    assert stamp_of(tmp_path, known) == before
    (tmp_path / "b.ukvs").write_text(HEAD + "com,a)/ 1\n")
    assert stamp_of(tmp_path, known) != before


hosts = st.sampled_from(["a.com", "www.b.com", "c.org", "a.com:8080"])
paths = st.lists(st.sampled_from(["x", "Y", "z%20", "é", "a//b", ""]), max_size=3).map("/".join)


@given(st.lists(st.tuples(hosts, paths), min_size=1, max_size=8))
def test_what_went_into_a_map_is_asked_for(
    tmp_path_factory: pytest.TempPathFactory, held: list[tuple[str, str]]
) -> None:

    folder = tmp_path_factory.mktemp("maps")
    uris = [f"http://{host}/{path}" for host, path in held]
    lines = sorted({key_of_uri(uri) for uri in uris})
    (folder / "a.ukvs").write_bytes(HEAD.encode() + b"".join(line + b" 1/1\n" for line in lines))
    maps = Maps.open(folder, archives("a"))
    assert maps.problems == ()
    assert all(maps.evidence(uri)["a"].answer == "yes" for uri in uris)


def test_which_map_belongs_to_which_archive_is_decided_by_whole_names(tmp_path: Path) -> None:
    for name in ("ia.ukvs", "ia.ukvs.bak", "ia.filter", "ia.voids.ukvs.gz", "IAX.ukvs", "ia", ".ia.ukvs", "other.ukvs"):
        (tmp_path / name).write_text(HEAD)
    named = Archive("own", timemap="http://127.0.0.1/", map=str(tmp_path / "elsewhere.filter"))
    found, problems = find_maps(tmp_path, [*archives("ia", "iax"), named])
    assert found == (
        FoundMap("iax", tmp_path / "IAX.ukvs", False),
        FoundMap("ia", tmp_path / "ia.filter", True),
        FoundMap("ia", tmp_path / "ia.ukvs", False),
        FoundMap("ia", tmp_path / "ia.voids.ukvs.gz", False),
        FoundMap("own", tmp_path / "elsewhere.filter", True),
    )
    assert [problem.partition(": ")[2] for problem in problems] == ["no archive is called 'other'"]


def test_all_maps_of_an_archive_are_asked_whether_it_may_hold_a_uri(tmp_path: Path) -> None:
    (tmp_path / "a.ukvs").write_text(HEAD + "com,example)/* 40/10\n")
    (tmp_path / "a.voids.ukvs").write_text(HEAD + VOIDS + "com,example)/a/* 0\n")
    maps = Maps.open(tmp_path, archives("a", "b"))
    assert [one.source for one in maps.of("a")] == ["map", "voids"]
    assert maps.of("b") == ()
    assert maps.may_hold("a", "http://example.com/b")
    assert not maps.may_hold("a", "http://example.com/a/x")
    assert not maps.may_hold("a", "http://example.org/")
    assert maps.may_hold("b", "http://example.org/")
    maps.close()


def test_an_empty_map_is_named_because_it_says_no_to_everything(tmp_path: Path) -> None:
    (tmp_path / "a.ukvs").write_text('!fields {keys: ["surt"], values: ["frequency"]}\n!meta {"name": "A"}\n')
    opened = Maps.open(tmp_path, [Archive(id="a", name="A", timegate="http://a.example/")])
    assert "the map is empty" in opened.warnings[0] and opened.may_hold("a", "http://x.com/") is False
    assert not opened.problems, "it is used"


def test_an_empty_filter_is_named_and_an_empty_map_of_voids_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.voids.ukvs").write_text(HEAD + VOIDS)
    (tmp_path / "none.ukvs").write_text(HEAD)
    make_filter(tmp_path / "none.ukvs", tmp_path / "a.filter")
    (tmp_path / "none.ukvs").unlink()
    opened = Maps.open(tmp_path, [Archive(id="a", name="A", timegate="http://a.example/")])
    assert [one.partition(": ")[2] for one in opened.warnings] == [
        "the filter is empty: it says no to everything, so a is never asked"
    ]


def sample_map(path: Path, probes: dict[bytes, bool], listings: dict[bytes, Listed] | None = None) -> None:
    with Writer(path, Header(meta={"scope": "sample", "target_recall": 0.9})) as writer:
        for record in records_of(Observed(probes, listings=listings or {})):
            writer.write(record)


def test_a_sample_says_yes_of_what_it_saw_and_skips_only_what_is_too_unlikely(tmp_path: Path) -> None:
    held = {b"pt,site%d)/" % number: True for number in range(40)}
    absent = {b"com,site%d)/" % number: False for number in range(40)}
    sample_map(tmp_path / "a.ukvs", held | absent, {b"org,gone,*": Listed()})
    maps = Maps.open(tmp_path, archives("a"))
    seen = maps.evidence("http://site3.pt/")["a"]
    assert (seen.answer, seen.source, seen.frequency) == ("yes", Source.SAMPLE, "1+/1+")
    likely = maps.evidence("http://other.pt/")["a"]
    assert (likely.answer, likely.expected > 0.9) == ("unknown", True)
    unlikely = maps.evidence("http://other.com/")["a"]
    assert (unlikely.answer, unlikely.reason) == ("no", Reason.UNLIKELY)
    assert maps.evidence("http://gone.org/x")["a"].reason is Reason.HOLDS_NONE
    candidate = [Candidate("a")]
    assert not route(candidate, maps.evidence("http://other.com/"))[0].ask
    assert route(candidate, maps.evidence("http://other.com/"), chosen=frozenset("a"), named=True)[0].ask


@pytest.mark.parametrize(
    "lines",
    [
        '* / {"asked": 5, "held": 9}',
        '* / {"asked": 0, "held": 0}\ncom,a)/ 1+/1+ {"asked": 1, "held": 1}',
        '* / {"asked": 3, "held": 3}\ncom,* / {"asked": 3, "held": 3}\ncom,a)/ / {"asked": 1, "held": 0}',
        '* / {"asked": 2, "held": 1, "depth": [[1, 5]]}',
        '* / {"asked": 2, "held": 1, "depth": [[1]]}',
        '* / {"asked": 2, "held": 1, "depth": 7}',
        '* / {"asked": 2, "held": 1}\ncom,* / {"asked": 2, "held": 1, "root": [9, 5]}',
        '* / {"asked": 1e999, "held": 1}',
        '* / {"asked": true, "held": null}',
    ],
)
def test_a_sample_with_impossible_counts_is_a_problem_of_its_archive_alone(tmp_path: Path, lines: str) -> None:
    (tmp_path / "a.ukvs").write_text(HEAD + '!meta {"scope": "sample"}\n' + lines + "\n")
    (tmp_path / "b.ukvs").write_text(HEAD + "com,a)/ 1/1\n")
    maps = Maps.open(tmp_path, archives("a", "b"))
    assert len(maps.problems) == 1 and "a sample's counts" in maps.problems[0]
    assert {name: one.answer for name, one in maps.evidence("http://a.com/").items()} == {"b": "yes"}


def test_too_few_probes_skip_nothing(tmp_path: Path) -> None:
    sample_map(tmp_path / "a.ukvs", {b"pt,one)/": True, b"com,two)/": False})
    assert Maps.open(tmp_path, archives("a")).evidence("http://other.com/")["a"].answer == "unknown"


def test_an_index_decides_before_a_sample_of_the_same_archive(tmp_path: Path) -> None:
    sample_map(tmp_path / "a.ukvs", {b"com,site%d)/" % number: False for number in range(60)} | {b"pt,x)/": True})
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "full.ukvs").write_text(HEAD + "com,site1)/ 3/1\n")
    named = [Archive("a", timemap="http://127.0.0.1/", map=str(tmp_path / "index" / "full.ukvs"))]
    maps = Maps.open(tmp_path, named)
    assert maps.evidence("http://site1.com/")["a"].source is Source.MAP
    assert maps.evidence("http://y.pt/")["a"].answer == "no"
    seen = maps.evidence("http://x.pt/")["a"]
    assert (seen.answer, seen.source) == ("yes", Source.SAMPLE), "as in a merge, nothing that was seen is missed"


def test_a_sample_without_probes_gives_no_estimate_of_its_own(tmp_path: Path) -> None:
    sample_map(tmp_path / "a.ukvs", {}, {b"org,full,*": Listed(9, 3)})
    maps = Maps.open(tmp_path, archives("a"))
    other, below = maps.evidence("http://other.com/")["a"], maps.evidence("http://full.org/x")["a"]
    assert (other.answer, other.chance) == ("unknown", None)
    assert below.answer == "unknown" and below.chance is not None and 0 < below.chance < 0.5


def test_maps_by_year_say_how_far_the_nearest_captures_are(tmp_path: Path) -> None:
    head = HEAD.replace('["surt"]', '["surt", "datetime"]')
    text = "com,example)/ 2005 1/1\ncom,example)/ 2015 1/1\ncom,example)/ : 2/1\ncom,example)/new 2015 1/1\n"
    (tmp_path / "columns.ukvs").write_text(head + text)
    block = '{"datetime": {"2015": "1/1"}}'
    (tmp_path / "blocks.ukvs").write_text(HEAD + f"com,example)/new 1/1 {block}\n")
    (tmp_path / "plain.ukvs").write_text(HEAD + "com,example)/new 1/1\n")
    maps = Maps.open(tmp_path, archives("columns", "blocks", "plain"))
    at = parse_timestamp("20050601000000")
    assert maps.evidence("http://example.com/", at)["columns"].gap == 0
    found = maps.evidence("http://example.com/new", at)
    assert found["columns"].gap == found["blocks"].gap == (parse_timestamp("2015") - at).total_seconds()
    assert found["plain"].gap == 0
    assert maps.evidence("http://example.com/new")["columns"].gap == 0
    later = parse_timestamp("20200101000000")
    away = maps.evidence("http://example.com/new", later)["columns"].gap
    assert abs((later - parse_timestamp("2016")).total_seconds() - away) <= 1
    candidates = [Candidate("columns"), Candidate("plain")]
    decisions = route(candidates, found, near=2 * 365 * 86400)
    assert [(d.archive, d.ask, d.reason) for d in decisions] == [
        ("plain", True, Reason.NONE),
        ("columns", False, Reason.FAR_IN_TIME),
    ]
    assert [d.archive for d in route(candidates, found)] == ["plain", "columns"]


def test_every_kind_of_map_gives_a_chance(tmp_path: Path) -> None:
    (tmp_path / "exact.ukvs").write_text(HEAD + "com,example)/ 1/1\n")
    (tmp_path / "wild.ukvs").write_text(HEAD + "com,example,* 9/3\n")
    (tmp_path / "none.ukvs").write_text(HEAD + "org,example)/ 1/1\n")
    (tmp_path / "voids.ukvs").write_text(HEAD + VOIDS + "org,* 0\n")
    assert run(["filter", str(tmp_path / "exact.ukvs"), "-o", str(tmp_path / "filter.filter"), "-q"]) == 0
    sample_map(tmp_path / "sample.ukvs", {b"com,site%d)/" % number: number % 2 == 0 for number in range(60)})
    names = ("exact", "wild", "none", "voids", "filter", "sample")
    maps = Maps.open(tmp_path, archives(*names))
    decided = {d.archive: d for d in route([Candidate(name) for name in names], maps.evidence("http://example.com/"))}
    chances = {name: decision.chance for name, decision in decided.items()}
    assert (chances["exact"], chances["none"], chances["voids"]) == (1.0, 0.0, USUAL_PROBABILITY)
    assert chances["wild"] is not None and 0 < chances["wild"] < 0.5
    assert chances["filter"] is not None and 0.9 < chances["filter"] < 1
    assert chances["sample"] == pytest.approx(0.5, abs=0.05)
    assert decided["sample"].sources == (Source.SAMPLE,)
    assert decided["filter"].sources == (Source.PRIOR, Source.FILTER)


def test_an_index_with_a_wildcard_and_a_sample_are_one_estimate(tmp_path: Path) -> None:
    (tmp_path / "a.ukvs").write_text(HEAD + "com,* 9/3\n")
    sample_map(tmp_path / "a.mementomap", {b"com,site%d)/" % number: number < 3 for number in range(100)})
    found = Maps.open(tmp_path, archives("a")).evidence("http://example.com/")["a"]
    assert (found.answer, found.source, found.sources) == ("yes", Source.MAP, (Source.MAP, Source.SAMPLE))
    assert found.chance is not None and 0.01 < found.chance < 0.5
