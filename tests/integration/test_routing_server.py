"""Routing in a running server: by time, from the counts of samples, and by maps of samples that know little."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from recollect.cli.main import run
from recollect.formats.ukvs import Header, Writer
from recollect.maps.samples import Listed, Observed, records_of
from small_archives import SmallArchives, serving, small_archives

PAGE = "http://page.example/"
LATE = "http://late.example/"
Y2005 = "Wed, 15 Jun 2005 00:00:00 GMT"
QUICK = ("--no-learn", "--no-cache")


@pytest.fixture
def archives() -> Iterator[SmallArchives]:
    with small_archives() as running:
        running.add("new", {PAGE: ["20150101000000"], LATE: ["20150601000000"]})
        running.add("old", {PAGE: ["20040101000000", "20060101000000"]})
        yield running


def by_year(archives: SmallArchives, folder: Path, *options: str) -> str:
    """Complete maps by year, as `recollect profile` makes them."""
    folder.mkdir()
    for archive in archives.archives.values():
        lines = [
            f"{uri} {stamp} {json.dumps({'url': uri, 'status': '200'})}\n"
            for uri, stamps in archive.holdings.items()
            for stamp in stamps
        ]
        index = folder.with_name(f"{archive.id}.cdxj")
        keyed = [
            f"example,{urlsplit(line.split()[0]).netloc.split('.')[0]})/ {line.split(' ', 1)[1]}" for line in lines
        ]
        index.write_text("".join(sorted(keyed)))
        assert run(["profile", str(index), *options, "-o", str(folder / f"{archive.id}.ukvs"), "-q"]) == 0
    return str(folder)


def ask(base: str, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=30)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


def asked(archives: SmallArchives) -> list[str]:
    found = [path.split("/")[1] for _, path in archives.requests]
    archives.requests.clear()
    return found


def decisions(base: str, uri: str, **headers: str) -> dict[str, dict]:
    return {one["id"]: one for one in json.loads(ask(base, f"/route/{uri}", **headers)[2])["archives"]}


@pytest.mark.parametrize("columns", [(), ("--by-columns",)])
def test_a_timegate_asks_archives_far_in_time_last_and_with_near_not_at_all(
    tmp_path: Path, archives: SmallArchives, columns: tuple[str, ...]
) -> None:
    maps = by_year(archives, tmp_path / "maps", "--by", "year", *columns)
    registry = archives.write(tmp_path)
    with serving(registry, "--maps", maps, *QUICK) as base:
        assert list(decisions(base, PAGE, Accept_Datetime=Y2005)) == ["old", "new"], "the nearest first"
        assert {one["decision"] for one in decisions(base, PAGE, Accept_Datetime=Y2005).values()} == {"ask"}
        status, fields, _ = ask(base, f"/timegate/{PAGE}", Accept_Datetime=Y2005)
        assert status == 302 and "/old/web/" in fields["location"]
        assert set(asked(archives)) == {"old", "new"}
    with serving(registry, "--maps", maps, "--near", "2y", *QUICK) as base:
        assert decisions(base, PAGE, Accept_Datetime=Y2005)["new"]["code"] == "far-in-time"
        status, fields, _ = ask(base, f"/timegate/{PAGE}", Accept_Datetime=Y2005)
        assert status == 302 and "/old/web/2006" in fields["location"]
        assert set(asked(archives)) == {"old"}
        assert ask(base, f"/timemap/link/{PAGE}", Accept_Datetime=Y2005)[0] == 200
        assert set(asked(archives)) == {"old", "new"}, "TimeMaps are not affected"
        status, fields, _ = ask(base, f"/timegate/{LATE}", Accept_Datetime=Y2005)
        assert status == 302 and "/new/web/2015" in fields["location"], "asked where no other archive has a memento"


def test_archives_far_in_time_are_asked_when_the_others_have_answered_or_had_their_head_start(
    tmp_path: Path, archives: SmallArchives
) -> None:
    archives.archives["old"].delay = 0.05
    archives.add("unmapped", {PAGE: ["20110101000000"]})
    maps = by_year(archives, tmp_path / "maps", "--by", "year")
    (tmp_path / "maps" / "unmapped.ukvs").unlink()
    with serving(archives.write(tmp_path), "--maps", maps, *QUICK) as base:
        status, fields, _ = ask(base, f"/timegate/{PAGE}", Accept_Datetime=Y2005)
        assert status == 302 and "/old/web/2006" in fields["location"]
        assert archives.events[-2:] == ["asked new", "answered new"]
        archives.events.clear()
        archives.archives["old"].delay = 3.0  # longer than the head start
        status, fields, _ = ask(base, f"/timegate/{PAGE}", Accept_Datetime=Y2005)
        assert status == 302 and "/old/web/2006" in fields["location"]
        assert archives.events.index("answered new") < archives.events.index("answered old")
        archives.events.clear()
        archives.archives["old"].delay = 1.5
        assert ask(base, f"/timemap/link/{PAGE}", Accept_Datetime=Y2005)[0] == 200
        assert archives.events.index("asked new") < archives.events.index("answered old"), "TimeMaps are not affected"


def test_archives_that_a_sample_finds_unlikely_are_asked_last_when_the_answer_is_missing(
    tmp_path: Path, archives: SmallArchives
) -> None:
    probes = {b"%b,h%d)/p" % (top, number): top == b"pt" for top in (b"pt", b"example") for number in range(600)}
    write_sample(tmp_path / "maps" / "old.ukvs", Observed(probes))
    archives.archives["old"].holdings["http://rare.example/"] = ["20050101000000"]
    with serving(archives.write(tmp_path), "--maps", str(tmp_path / "maps"), *QUICK) as base:
        assert decisions(base, PAGE)["old"]["code"] == "unlikely"
        status, fields, _ = ask(base, f"/timemap/link/{PAGE}")
        assert status == 200 and fields["x-recollect-partial"].startswith("old")
        assert asked(archives) == ["new"]
        archives.archives["new"].delay = 0.3
        archives.events.clear()
        status, _, body = ask(base, "/timemap/link/http://rare.example/")
        assert status == 200 and b"/old/web/20050101000000/" in body
        assert archives.events == ["asked new", "answered new", "asked old", "answered old"]


def write_sample(path: Path, observed: Observed) -> None:
    path.parent.mkdir(exist_ok=True)
    with Writer(path, Header(meta={"scope": "sample", "archive": "old", "target_recall": 0.95})) as writer:
        for record in records_of(observed):
            writer.write(record)


def test_the_learned_model_starts_from_the_counts_of_a_sample(tmp_path: Path, archives: SmallArchives) -> None:
    probes = {b"%b,h%d)/p" % (top, number): top == b"pt" for top in (b"pt", b"com") for number in range(600)}
    write_sample(tmp_path / "maps" / "old.ukvs", Observed(probes))
    registry = archives.write(tmp_path)
    flags = ("--maps", str(tmp_path / "maps"), "--no-cache")
    with serving(registry, *flags) as base:
        first = decisions(base, "http://never.asked.pt/x")["old"]
        assert {"sample", "learned"} <= set(first["sources"])
        other = decisions(base, "http://never.asked.com/x")["old"]
        assert other["chance"] < 0.1 < 0.9 < first["chance"]
        assert "learned" not in decisions(base, "http://never.asked.pt/x")["new"].get("sources", ()), "not sampled"
    (tmp_path / "maps" / "old.ukvs").rename(tmp_path / "new.ukvs")
    with serving(registry, *flags, "--admin-token", "secret") as base:
        assert "learned" not in decisions(base, "http://never.asked.pt/x")["new"]["sources"]
        (tmp_path / "new.ukvs").rename(tmp_path / "maps" / "new.ukvs")
        status, _, body = ask(base, "/reload", "POST", Authorization="Bearer secret")
        assert status == 200, body
        assert "learned" in decisions(base, "http://never.asked.pt/x")["new"]["sources"], "a sample added later"
    with serving(registry, *flags, "--no-learn") as base:
        assert "learned" not in decisions(base, "http://never.asked.pt/x")["new"]["sources"]


def test_a_server_never_skips_for_certain_what_no_complete_listing_showed_to_be_absent(
    tmp_path: Path, archives: SmallArchives
) -> None:
    listings = {b"org,gone,*": Listed(), b"org,cut,*": Listed(complete=False)}
    write_sample(tmp_path / "maps" / "old.ukvs", Observed({b"com,a)/": False}, set(), listings))
    with serving(archives.write(tmp_path), "--maps", str(tmp_path / "maps"), *QUICK) as base:
        assert decisions(base, "http://sub.gone.org/x")["old"]["code"] == "holds-none"
        for uri in ("http://a.com/", "http://cut.org/", "http://gone.org:8080/", PAGE):
            assert decisions(base, uri)["old"]["decision"] == "ask"
        assert ask(base, f"/timemap/link/{PAGE}")[0] == 200
        assert "old" in asked(archives)
