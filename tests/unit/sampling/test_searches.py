"""Maps from searches route by registered domain, and sampled captures keep their years, media types and languages."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.archives.http1 import Headers
from recollect.archives.probe import sighted
from recollect.archives.registry import Archive, SearchDialect
from recollect.archives.transport import Request, Response
from recollect.cli.main import run
from recollect.formats.timemap.described import described
from recollect.maps.searches import Searches, domain_of
from recollect.sampling.journal import Journal, Kind, Outcome
from recollect.sampling.search import parse_results
from recollect.sampling.worth import worth_of

PAGES = [
    f"http://{host}.site{number % 12}.example.{tld}/p{number}"
    for number, (host, tld) in enumerate([("www", "pt"), ("blog", "co.uk"), ("shop", "pt")] * 80)
]


def _searched(folder: Path, queries: int, name: str = "run") -> Path:
    chance = random.Random(7)
    with Journal(folder / name, "full") as journal:
        for number in range(queries):
            journal.write(Kind.QUERY, Outcome.DONE, terms=f"w{number}", uris=chance.sample(PAGES, 10), words=[])
    (folder / "maps").mkdir(exist_ok=True)
    assert run(["sample", "map", str(folder / name), "-o", str(folder / "maps/full.ukvs"), "--json"]) == 0
    return folder / "maps"


def _asked(folder: Path, uris: list[str], capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, object]]:
    listed = folder / "archives.json"
    listed.write_text(json.dumps([{"id": "full", "timemap": "http://127.0.0.1:9/"}]))
    answers = []
    for uri in uris:
        assert run(["route", uri, "--archives", str(listed), "--maps", str(folder / "maps"), "--json", *options]) == 0
        answers.append(json.loads(capsys.readouterr().out)["archives"][0])
    return answers


def test_a_map_of_searches_skips_domains_without_a_find_and_never_says_no(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _searched(tmp_path, 40)
    report = json.loads(capsys.readouterr().out)
    assert [(one["target_recall"], one["asked"]) for one in report["promises"]] == [
        (0.9, None),
        (0.95, None),
        (0.99, None),
    ]
    assert all(one["recall"] >= one["target_recall"] for one in report["promises"])
    assert "registered domain" in report["promises"][0]["asked_about"]
    held = _asked(tmp_path, random.Random(1).sample(PAGES, 25), capsys)
    assert all(one["decision"] == "ask" for one in held)
    others = _asked(tmp_path, [f"http://other{number}.org/x" for number in range(5)], capsys)
    assert all((one["decision"], one["answer"], one["code"]) == ("skip", "unknown", "unlikely") for one in others)
    assert run(["lookup", str(tmp_path / "maps/full.ukvs"), "http://other.org/", "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["answer"] == "unknown"


def test_too_few_finds_ask_about_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _searched(tmp_path, 1)
    report = json.loads(capsys.readouterr().out)
    assert report["promises"][-1]["asked"] == 1.0
    (other,) = _asked(tmp_path, ["http://elsewhere.museum/"], capsys)
    assert other["decision"] == "ask"


def test_merged_samples_keep_what_searches_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _searched(tmp_path, 30, "one")
    (tmp_path / "maps/full.ukvs").rename(tmp_path / "one.ukvs")
    _searched(tmp_path, 20, "two")
    (tmp_path / "maps/full.ukvs").rename(tmp_path / "two.ukvs")
    both = [str(tmp_path / "one.ukvs"), str(tmp_path / "two.ukvs")]
    assert run(["merge", *both, "-o", str(tmp_path / "maps/full.ukvs")]) == 0
    capsys.readouterr()
    held, other = _asked(tmp_path, [PAGES[3], "http://other.org/x"], capsys)
    assert (held["decision"], other["decision"]) == ("ask", "skip")


@given(
    st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 9)), st.integers(1, 4), min_size=1),
    st.floats(0.5, 0.999),
)
def test_searches_cover_what_they_found_and_miss_a_share(finds: dict[tuple[int, int], int], target: float) -> None:
    searches = Searches({f"pt,d{d})/{p}".encode(): count for (d, p), count in finds.items()})
    for level in (0, 1):
        assert 0 < searches.missed(level) <= 1
        assert all(searches.covers(key, level) for key in searches.found)
    level = searches.level(target)
    assert level is None or searches.missed(level) <= 1 - target + 1e-9
    inside, outside = (searches.chance(key, 0.05) for key in (next(iter(searches.found)) + b"/x", b"org,other)/"))
    assert 0 < outside <= 0.05 <= inside < 1


def test_registered_domains_of_keys() -> None:
    cases = {
        b"uk,co,bbc,www)/a": b"uk,co,bbc,*",
        b"com,x:8080)/": b"com,x,*",
        b"4,3,2,1)/": b"4,3,2,1)/*",
        b"localhost)/": b"localhost)/*",
    }
    assert {key: domain_of(key) for key in cases} == cases


LINKS = (
    '<http://x.pt/>; rel="original",\n'
    '<http://a/web/20100102030405/http://x.pt/>; rel="first memento"; datetime="Sat, 02 Jan 2010 03:04:05 GMT"; '
    'type="text/html; charset=utf-8"; hreflang="pt",\n'
    '<http://a/web/20120102030405/http://x.pt/>; rel="memento"; datetime="Mon, 02 Jan 2012 03:04:05 GMT"; '
    'type="text/html",\n'
    '<http://a/web/20140102030405/http://x.pt/>; rel="last memento"; datetime="Thu, 02 Jan 2014 03:04:05 GMT"; '
    'type="image/png"'
)
CDXJ = (
    '!meta {"id": "x"}\n'
    '20100102030405 {"uri": "http://a/web/20100102030405/http://x.pt/", "mime": "text/html", "languages": "por,eng"}\n'
    '20120102030405 {"uri": "http://a/web/20120102030405/http://x.pt/", "mime": "-"}\n'
)


@pytest.mark.parametrize(
    ("body", "kind", "stated"),
    [
        (LINKS, "link", {"media_type": {"text/html": 2, "image/png": 1}, "language": {"pt": 1}}),
        (CDXJ, "cdxj", {"media_type": {"text/html": 1}, "language": {"por": 1, "eng": 1}}),
        (
            '[["urlkey","timestamp","original","mimetype"],["pt,x)/","2010","http://x.pt/","text/html"]]',
            "json",
            {"media_type": {"text/html": 1}},
        ),
        ('{"mementos": {"list": [{"datetime": "2010", "uri": "http://x", "media_type": 7}]}}', "json", {}),
        ("<<<{{{[[[", "json", {}),
    ],
)
def test_descriptions_of_mementos(body: str, kind: str, stated: dict[str, dict[str, int]]) -> None:
    assert described(body.encode(), kind) == stated


def test_a_sampled_timemap_keeps_years_media_types_and_languages(tmp_path: Path) -> None:
    class Sender:
        async def send(self, request: Request) -> Response:
            headers = Headers(b"Content-Type: application/link-format\r\n")
            return Response(200, headers, LINKS.encode(), request.url, 0.0)

    found = asyncio.run(sighted(Sender(), Archive(id="a", name="A", timemap="http://a/"), "http://x.pt/"))  # type: ignore[arg-type]
    with Journal(tmp_path, "a") as journal:
        listed = {"years": found.years, "media_types": found.media_types, "languages": found.languages}
        journal.write(Kind.URI, Outcome.HELD, uri="http://x.pt/", key="pt,x)/", **listed)
        record = next(one for one in worth_of("a", journal.entries).records if one.key == b"pt,x)/")
    assert str(record.frequency) == "3+/1+"
    block = json.loads(record.json)
    assert block["datetime"] == {"2010": "1+", "2012": "1+", "2014": "1+"}
    assert block["media_type"] == {"image/png": "1+", "text/html": "2+"} and block["language"] == {"pt": "1+"}


def test_results_of_searches_keep_their_captures(tmp_path: Path) -> None:
    item = {"originalURL": "http://x.pt/", "title": "t", "tstamp": "20100102030405", "mimeType": "text/html"}
    other = item | {"tstamp": "20120102030405", "language": "pt"}
    solr = {
        "url": "http://y.dk/",
        "crawl_date": "2011-05-06T07:08:09Z",
        "content_type_norm": "html",
        "content_language": ["da"],
    }
    found = parse_results(json.dumps({"response_items": [item, other]}).encode(), SearchDialect.ARQUIVO)
    (danish,) = parse_results(json.dumps({"response": {"docs": [solr]}}).encode(), SearchDialect.SOLRWAYBACK)
    assert (danish.timestamp, danish.language) == ("20110506070809", "da")
    with Journal(tmp_path, "a") as journal:
        for results in (found, found[:1]):  # the second query finds the first capture again
            captures = [[one.timestamp, one.media_type, one.language] for one in results]
            uris = [one.uri for one in results]
            journal.write(Kind.QUERY, Outcome.DONE, terms="t", uris=uris, words=[], captures=captures)
        (record,) = (one for one in worth_of("a", journal.entries).records if one.key == b"pt,x)/")
    assert str(record.frequency) == "2+/1+"
    assert json.loads(record.json) == {
        "found": 2,
        "datetime": {"2010": "1+", "2012": "1+"},
        "media_type": {"text/html": "2+"},
        "language": {"pt": "1+"},
    }
