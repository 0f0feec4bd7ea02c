"""Merging maps of samples: the index wins, samples add up, and unknown never becomes no."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.cli.main import run
from recollect.errors import UsageError
from recollect.formats.frequency import Frequency
from recollect.formats.ukvs import Header, MapFile, Record, Writer
from recollect.maps.lookup import MementoMap
from recollect.maps.merge import merge_maps
from recollect.maps.samples import Listed, Observed, read_sample, records_of
from recollect.uris import ancestors

KEYS = [
    b"%b)/%b" % (host, path) for host in (b"com,a", b"com,b", b"org,a", b"pt,x,www") for path in (b"", b"p", b"q/r")
]
WILD = [b"com,a,*", b"com,b,*", b"org,a,*", b"org,*", b"pt,x,*"]
PARTS = settings(max_examples=60, deadline=None)

observations = st.builds(
    Observed,
    st.dictionaries(st.sampled_from(KEYS), st.booleans(), max_size=8),
    st.sets(st.sampled_from(KEYS), max_size=4),
    st.dictionaries(
        st.sampled_from(WILD),
        st.tuples(st.integers(0, 3), st.booleans()).map(lambda pair: Listed(pair[0], pair[0], pair[1])),
        max_size=3,
    ),
    st.dictionaries(st.sampled_from(WILD), st.integers(1, 50), max_size=2),
)
indexes = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["3/1", "1/1", "0"]), max_size=6)


def written(path: Path, observed: Observed, **meta: str) -> str:
    with Writer(path, Header(meta={"scope": "sample", "archive": "a", "target_recall": 0.95, **meta})) as writer:
        for record in records_of(observed):
            writer.write(record)
    return str(path)


def index(path: Path, lines: dict[bytes, str], header: Header | None = None) -> str:
    with Writer(path, header or Header()) as writer:
        for key, frequency in sorted(lines.items()):
            writer.write(Record(key, (), Frequency.parse(frequency), ""))
    return str(path)


def answers(path: Path) -> dict[bytes, str]:
    with MementoMap.open(path) as opened:
        return {key: opened.lookup(key.decode()).answer for key in [*KEYS, b"net,unseen)/", b"org,other)/z"]}


def held_by(observed: Observed) -> set[bytes]:
    return {key for key, held in observed.probes.items() if held} | observed.seen


@PARTS
@given(observations, observations)
def test_two_samples_are_one_and_say_no_only_below_an_empty_listing(one: Observed, two: Observed) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        paths = [written(place / "1.ukvs", one), written(place / "2.ukvs", two)]
        merge_maps(paths, place / "merged.ukvs")
        empty = {
            key for observed in (one, two) for key, listed in observed.listings.items()
            if listed.complete and not listed.captures
        }  # fmt: skip
        held = held_by(one) | held_by(two)
        for key, answer in answers(place / "merged.ukvs").items():
            assert answer != "no" or empty & set(ancestors(key))
            assert key not in held or answer == "yes"
        with MapFile(place / "merged.ukvs") as file:
            meta = file.header.meta
            sample = read_sample(file.records())
        probes = {key: one.probes.get(key, False) or two.probes.get(key, False) for key in {**one.probes, **two.probes}}
        assert {probe.key: probe.held for probe in sample.probes} == probes
        assert sample.sample.total == (len(probes), sum(probes.values()))
        assert (meta["scope"], meta["probes"], meta["held"]) == ("sample", len(probes), sum(probes.values()))


@PARTS
@given(indexes, observations)
def test_an_index_wins_and_a_sample_adds_only_what_was_seen(lines: dict[bytes, str], observed: Observed) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        merge_maps([index(place / "i.ukvs", lines), written(place / "s.ukvs", observed)], place / "m.ukvs")
        with MapFile(place / "m.ukvs") as file:
            assert "scope" not in file.header.meta
            got = {record.key: (str(record.frequency), record.json) for record in file.records()}
        seen = held_by(observed)
        expected = {key: (frequency, "") for key, frequency in lines.items()}
        expected |= {key: ("1+/1+", "") for key in seen if lines.get(key, "0") == "0"}
        assert got == expected
        for key, answer in answers(place / "m.ukvs").items():
            assert answer == ("yes" if key in seen or lines.get(key, "0") != "0" else "no")


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (Header(meta={"scope": "voids"}), "map of voids"),
        (Header(meta={"policy": "H1P0"}), "policy"),
        (Header(keys=("surt", "datetime")), "columns"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_reason(tmp_path: Path, header: Header, why: str) -> None:
    first = tmp_path / "i.ukvs"
    with Writer(first, header) as writer:
        more = (b"2014",) if len(header.keys) > 1 else ()
        writer.write(Record(b"com,a)/", more, Frequency.parse("0" if header.lists_voids else "1/1"), ""))
    sample = written(tmp_path / "s.ukvs", Observed({b"com,a)/": True}))
    with pytest.raises(UsageError, match=why):
        merge_maps([first, sample], tmp_path / "m.ukvs")
    assert not (tmp_path / "m.ukvs").exists()


def test_samples_of_different_archives_are_refused(tmp_path: Path) -> None:
    one = written(tmp_path / "1.ukvs", Observed({b"com,a)/": True}))
    two = written(tmp_path / "2.ukvs", Observed({b"com,b)/": True}), archive="b")
    with pytest.raises(UsageError, match="different archives"):
        merge_maps([one, two], tmp_path / "m.ukvs")


def test_commands_that_take_what_a_map_lacks_for_absent_refuse_a_sample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = written(tmp_path / "s.ukvs", Observed({b"com,a)/": True, b"com,b)/": False}))
    (tmp_path / "urls.txt").write_text("http://a.com/\nhttp://b.com/\nhttp://c.com/\n")
    out = str(tmp_path / "out")
    for command in (
        ["compact", sample, "-o", out],
        ["compact", sample, "--max-keys", "2", "-o", out],
        ["compact", sample, "--max-bytes", "500", "-o", out],
        ["filter", sample, "-o", out],
        ["stats", sample],
        ["voids", str(tmp_path / "urls.txt"), "--map", sample, "-o", out],
        ["overlap", "--holdings", sample, "--lookups", str(tmp_path / "urls.txt")],
        ["tradeoff", sample, "-o", f"{out}.svg"],
        ["report", sample, "-o", out],
        ["profile", sample, "-o", out],
    ):
        assert run(command) == 2, command
        output = capsys.readouterr().err
        assert "map of a sample cannot be" in output or "its scope is sample" in output
        assert not Path(out).exists()


def test_publishing_keeps_the_scope_and_an_evaluation_asks_what_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = written(tmp_path / "s.ukvs", Observed({b"com,a)/": True, b"com,b)/": False}))
    assert run(["publish", sample, "--to", str(tmp_path / "public")]) == 0
    with MapFile(tmp_path / "public" / ".well-known" / "mementomap") as file:
        assert file.header.meta["scope"] == "sample"
    (tmp_path / "urls.txt").write_text("http://a.com/\nhttp://b.com/\nhttp://c.com/\n")
    (tmp_path / "held.ukvs").write_bytes(Header().encode() + b"com,a)/ 1/1\ncom,c)/ 1/1\n")
    capsys.readouterr()
    how = ["--holdings", str(tmp_path / "held.ukvs"), "--lookups", str(tmp_path / "urls.txt"), "--json"]
    assert run(["evaluate", sample, *how]) == 0  # 1 if anything held were missed


def test_verifying_a_sample_finds_what_it_denies_and_not_what_it_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "index.cdxj").write_text(
        "".join(f'com,{name})/ 20150101000000 {{"url": "http://{name}.com/"}}\n' for name in "abcd")
    )
    sample = written(tmp_path / "s.ukvs", Observed({b"com,a)/": True, b"com,b)/": False}))
    assert run(["verify", sample, str(tmp_path / "index.cdxj"), "--no-counts"]) == 0
    denying = written(tmp_path / "d.ukvs", Observed({b"com,a)/": True}, listings={b"com,c,*": Listed()}))
    assert run(["verify", denying, str(tmp_path / "index.cdxj"), "--no-counts"]) == 1
    assert "com,c)/" in capsys.readouterr().out


def test_profiling_a_map_of_voids_does_not_make_the_unknown_absent(tmp_path: Path) -> None:
    voids = index(tmp_path / "v.ukvs", {b"com,a,*": "0"}, Header(meta={"scope": "voids"}))
    assert run(["profile", voids, "-o", str(tmp_path / "no.ukvs")]) == 2
    assert not (tmp_path / "no.ukvs").exists()
