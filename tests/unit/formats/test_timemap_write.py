"""TimeMaps as they are written: MemGator's shapes, RFC 7089's duties, one worked example of each."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from recollect.formats.timemap import (
    Memento,
    Mementos,
    Paging,
    Place,
    TimeMap,
    link_header,
    merge,
    write_memento,
    write_timemap,
)

PLACE = Place("http://agg.example", "http://a.example/")


def at(year: int, second: int = 0) -> datetime:
    return datetime(year, 1, 1, 0, 0, second, tzinfo=UTC)


def three() -> Mementos:
    one = TimeMap.of([Memento("http://x.example/2014", at(2014)), Memento("http://x.example/2016", at(2016))])
    two = TimeMap.of([Memento("http://y.example/2015", at(2015))])
    return merge([("x", one), ("y", two)])


def text(kind: str, mementos: Mementos, **options: object) -> str:
    return b"".join(write_timemap(kind, PLACE, mementos, **options)).decode()  # type: ignore[arg-type]


def test_link_format() -> None:
    assert text("link", three()) == (
        '<http://a.example/>; rel="original",\n'
        '<http://agg.example/timemap/link/http://a.example/>; rel="self"; type="application/link-format"; '
        'from="Wed, 01 Jan 2014 00:00:00 GMT"; until="Fri, 01 Jan 2016 00:00:00 GMT",\n'
        '<http://x.example/2014>; rel="first memento"; datetime="Wed, 01 Jan 2014 00:00:00 GMT"; archive="x",\n'
        '<http://y.example/2015>; rel="memento"; datetime="Thu, 01 Jan 2015 00:00:00 GMT"; archive="y",\n'
        '<http://x.example/2016>; rel="last memento"; datetime="Fri, 01 Jan 2016 00:00:00 GMT"; archive="x",\n'
        '<http://agg.example/timemap/link/http://a.example/>; rel="timemap"; type="application/link-format",\n'
        '<http://agg.example/timemap/json/http://a.example/>; rel="timemap"; type="application/json",\n'
        '<http://agg.example/timemap/cdxj/http://a.example/>; rel="timemap"; type="application/cdxj+ors",\n'
        '<http://agg.example/timegate/http://a.example/>; rel="timegate"\n'
    )


def test_a_single_memento_is_first_and_last() -> None:
    single = merge([("x", TimeMap.of([Memento("http://x.example/1", at(2014))]))])
    assert 'rel="first last memento"' in text("link", single)
    assert '"rel": "first last memento"' in text("cdxj", single)


def test_json() -> None:
    document = json.loads(text("json", three(), extra={"archives": []}))
    first = {"datetime": "2014-01-01T00:00:00Z", "uri": "http://x.example/2014", "archive": "x"}
    last = {"datetime": "2016-01-01T00:00:00Z", "uri": "http://x.example/2016", "archive": "x"}
    assert list(document) == ["original_uri", "self", "mementos", "timemap_uri", "timegate_uri", "archives"]
    assert document["original_uri"] == "http://a.example/"
    assert document["self"] == document["timemap_uri"]["json_format"]
    assert document["mementos"]["list"][0] == document["mementos"]["first"] == first
    assert document["mementos"]["list"][2] == document["mementos"]["last"] == last
    assert document["timegate_uri"] == "http://agg.example/timegate/http://a.example/"


def test_cdxj() -> None:
    lines = text("cdxj", three(), extra={"failed": ["z"]}).splitlines()
    assert [line.split(" ")[0] for line in lines] == [
        *["!context", "!id", "!keys", "!meta", "!meta", "!meta", "!meta"],
        *["20140101000000", "20150101000000", "20160101000000"],
    ]
    assert lines[6] == '!meta {"failed": ["z"]}'
    assert json.loads(lines[7].split(" ", 1)[1]) == {
        "uri": "http://x.example/2014",
        "rel": "first memento",
        "datetime": "Wed, 01 Jan 2014 00:00:00 GMT",
        "archive": "x",
    }


def test_a_page_names_the_others_with_their_ranges() -> None:
    page = text("link", three(), paging=Paging(2, 2))
    assert page == (
        '<http://a.example/>; rel="original",\n'
        '<http://agg.example/timemap/link/2/http://a.example/>; rel="self"; type="application/link-format"; '
        'from="Fri, 01 Jan 2016 00:00:00 GMT"; until="Fri, 01 Jan 2016 00:00:00 GMT",\n'
        '<http://x.example/2016>; rel="last memento"; datetime="Fri, 01 Jan 2016 00:00:00 GMT"; archive="x",\n'
        '<http://agg.example/timemap/link/1/http://a.example/>; rel="timemap"; type="application/link-format"; '
        'from="Wed, 01 Jan 2014 00:00:00 GMT"; until="Thu, 01 Jan 2015 00:00:00 GMT",\n'
        '<http://agg.example/timegate/http://a.example/>; rel="timegate"\n'
    )


def test_first_and_last_are_marked_across_chunks() -> None:
    many = merge([("x", TimeMap.of(Memento(f"http://x.example/{n}", at(2014 + n)) for n in range(4500)))])
    chunks = list(write_timemap("link", PLACE, many))
    assert len(chunks) > 3
    body = b"".join(chunks)
    assert body.count(b'rel="first memento"') == body.count(b'rel="last memento"') == 1
    assert body.count(b'rel="memento"') == 4498


def test_the_link_header_of_a_choice_names_each_memento_once() -> None:
    choice = three().negotiate(at(2015))
    assert link_header(PLACE, choice) == (
        '<http://a.example/>; rel="original", '
        '<http://x.example/2014>; rel="first prev memento"; datetime="Wed, 01 Jan 2014 00:00:00 GMT"; archive="x", '
        '<http://y.example/2015>; rel="memento"; datetime="Thu, 01 Jan 2015 00:00:00 GMT"; archive="y", '
        '<http://x.example/2016>; rel="next last memento"; datetime="Fri, 01 Jan 2016 00:00:00 GMT"; archive="x", '
        '<http://agg.example/timemap/link/http://a.example/>; rel="timemap"; type="application/link-format", '
        '<http://agg.example/timemap/json/http://a.example/>; rel="timemap"; type="application/json", '
        '<http://agg.example/timemap/cdxj/http://a.example/>; rel="timemap"; type="application/cdxj+ors", '
        '<http://agg.example/timegate/http://a.example/>; rel="timegate"'
    )


def test_a_header_without_a_choice_still_names_original_and_timemap() -> None:
    header = link_header(PLACE, None)
    assert header.startswith('<http://a.example/>; rel="original"') and "memento" not in header


def test_descriptions_name_the_closest() -> None:
    choice = three().negotiate(at(1999))
    assert choice is not None
    named = json.loads(write_memento("json", PLACE, choice))["mementos"]
    assert list(named) == ["first", "closest", "next", "last"]
    lines = write_memento("cdxj", PLACE, choice).decode().splitlines()
    assert [json.loads(line.split(" ", 1)[1])["rel"] for line in lines if line[0] != "!"] == [
        "first closest memento",
        "next memento",
        "last memento",
    ]


def test_hostile_originals_cannot_break_out() -> None:
    place = Place("http://agg.example", 'http://a.example/">\r\nX: 1, <http://evil.example>; rel="original')
    header = link_header(place, None)
    assert "\n" not in header and "\r" not in header
    assert header.count('rel="original"') == 1
    assert json.loads(b"".join(write_timemap("json", place, Mementos())))["original_uri"] == place.original


def test_mementos_per_archive_and_year() -> None:
    assert three().per_year() == {"x": {2014: 1, 2016: 1}, "y": {2015: 1}}


def test_the_most_recent_is_chosen_without_a_datetime() -> None:
    choice = three().negotiate(None)
    assert choice is not None and choice.closest == choice.last and choice.next is None
