"""Saved pages, mirrors, downloads, backups and HAR files: addresses, times, marks, and what stays out."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect.errors import RecollectError
from recollect.sources.firefox import FirefoxSource
from recollect.sources.model import Depth, Kind, Mark, Source, SourceCapture, TimeOrigin
from recollect.sources.overview import overview
from recollect.sources.recognise import open_source, recognise

THEN = datetime(2011, 5, 6, 7, 8, 9, tzinfo=UTC)


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(path, (THEN.timestamp(), THEN.timestamp()))
    return path


def listed(source: Source) -> dict[str, SourceCapture]:
    return {one.url: one for one in source.captures(lambda _url: True, lambda _problem: None)}


def body(source: Source, url: str) -> bytes:
    return b"".join(source.read(listed(source)[url].place).chunks)


def test_a_page_saved_complete_has_the_address_of_its_comment_and_its_files_beside_it(tmp_path: Path) -> None:
    comment = "<!-- saved from url=(0030)http://lost.example/a/page.php -->"
    write(tmp_path / "Frogs.html", f'<!DOCTYPE html>\n{comment}\n<html><img src="./Frogs_files/frog.gif"></html>')
    write(tmp_path / "Frogs_files/frog.gif", b"GIF89a")
    write(tmp_path / "Frogs_files/inner.html", "<p>frame</p>")
    for path in (tmp_path, tmp_path / "Frogs.html"):
        assert recognise(path) is Kind.SAVED
        found = listed(open_source(path))
        page, picture = found["http://lost.example/a/page.php"], found["http://lost.example/a/Frogs_files/frog.gif"]
        assert page.altered and not picture.altered
        assert (page.captured_at, page.origin) == (THEN, TimeOrigin.FILE)
        assert len(found) == 3


@pytest.mark.parametrize(
    ("markup", "url", "moment"),
    [
        ('<html><link rel="canonical" href="http://lost.example/b">', "http://lost.example/b", THEN),
        ('<html><meta property="og:url" content="http://lost.example/c">', "http://lost.example/c", THEN),
        (
            "<!DOCTYPE html><html><!--\n Page saved with SingleFile \n url: http://lost.example/d \n"
            " saved date: Mon Jan 01 2024 12:00:00 GMT+0100 (Central European Standard Time)\n-->",
            "http://lost.example/d",
            datetime(2024, 1, 1, 11, tzinfo=UTC),
        ),
    ],
)
def test_a_page_states_its_address_in_other_ways(tmp_path: Path, markup: str, url: str, moment: datetime) -> None:
    (capture,) = listed(open_source(write(tmp_path / "page.html", markup))).values()
    assert (capture.url, capture.captured_at) == (url, moment)


def test_a_page_saved_by_firefox_needs_a_base(tmp_path: Path) -> None:
    path = write(tmp_path / "Frogs.html", '<html><img src="Frogs_files/frog.gif">')
    write(tmp_path / "Frogs_files/frog.gif", b"GIF89a")
    with pytest.raises(RecollectError) as refusal:
        open_source(path)
    assert "--base" in refusal.value.hint
    base = "http://lost.example/frogs/"
    for place in (path, tmp_path):
        assert set(listed(open_source(place, base))) == {base, f"{base}Frogs_files/frog.gif"}


def test_wayback_machine_downloader_keeps_pages_as_archived_and_with_all_timestamps_is_deep(tmp_path: Path) -> None:
    write(tmp_path / "one/websites/lost.example/index.html", "<p>home</p>")
    write(tmp_path / "one/websites/lost.example/a/b.css", "a{}")
    source = open_source(tmp_path / "one")
    assert (source.kind, source.depth) == (Kind.DOWNLOADER, Depth.FLAT)
    assert set(listed(source)) == {"http://lost.example/", "http://lost.example/a/b.css"}
    write(tmp_path / "all/websites/lost.example/20150101000000/index.html", "<p>home</p>")
    write(tmp_path / "all/websites/lost.example/20160101000000/index.html", "<p>home later</p>")
    deep = open_source(tmp_path / "all")
    captures = list(deep.captures(lambda _url: True, lambda _problem: None))
    assert deep.depth is Depth.DEEP
    assert [one.captured_at.year for one in captures] == [2015, 2016]
    assert {one.origin for one in captures} == {TimeOrigin.HEADER}


def test_waybackpack_pages_are_unwrapped_unless_they_are_raw(tmp_path: Path) -> None:
    banner = '<html><script src="https://web-static.archive.org/_static/js/x.js"></script>'
    link = '<a href="https://web.archive.org/web/20150101000000/http://lost.example/b">b</a>'
    write(tmp_path / "20150101000000/lost.example/index.html", banner + link)
    write(tmp_path / "20160101000000/lost.example/index.html", "<html><a href='/b'>b</a>")
    source = open_source(tmp_path)
    assert (source.kind, source.depth) == (Kind.WAYBACKPACK, Depth.DEEP)
    found = {one.captured_at.year: one for one in source.captures(lambda _url: True, lambda _problem: None)}
    assert {year: one.altered for year, one in found.items()} == {2015: True, 2016: False}
    assert source.read(found[2015].place).wrapped and not source.read(found[2016].place).wrapped


def test_a_backup_gives_what_visitors_saw_and_no_programs(tmp_path: Path) -> None:
    write(tmp_path / "index.html", "<p>home</p>")
    write(tmp_path / "dir/what is this.html", "<p>spaces</p>")
    write(tmp_path / "form.php", "<?php $password = 'x'; ?>")
    write(tmp_path / ".htpasswd", "me:x")
    write(tmp_path / ".git/config", "x")
    (tmp_path / "link.html").symlink_to("/etc/hostname")
    with pytest.raises(RecollectError) as refusal:
        open_source(tmp_path)
    assert "--base" in refusal.value.hint
    source = open_source(tmp_path, "http://lost.example/~me/")
    home, spaces = "http://lost.example/~me/", "http://lost.example/~me/dir/what%20is%20this.html"
    assert set(listed(source)) == {home, spaces}
    assert source.tally.others == {"hidden file": 2, "program of the server": 1}
    assert not listed(source)[home].altered


def test_converted_links_of_a_mirror_lead_to_addresses_again(tmp_path: Path) -> None:
    page = '<p><a href="list.php%3Fid=1.html#top">one</a> <a href="http://lost.example/gone">gone</a>'
    write(tmp_path / "lost.example/index.html", page)
    write(tmp_path / "lost.example/list.php?id=1.html", "<p>list")
    source = open_source(tmp_path)
    assert source.kind is Kind.WGET
    assert b'href="http://lost.example/list.php?id=1#top"' in body(source, "http://lost.example/")
    assert body(source, "http://lost.example/list.php?id=1") == b"<p>list"


def test_a_har_gives_responses_to_get_and_no_cookies(tmp_path: Path) -> None:
    def entry(url: str, status: int = 200, method: str = "GET", **content: str) -> dict[str, object]:
        cookie = {"name": "Set-Cookie", "value": "secret"}
        response = {"status": status, "headers": [cookie], "content": {"mimeType": "text/html", **content}}
        return {
            "startedDateTime": "2020-02-03T04:05:06.7+01:00",
            "request": {"method": method, "url": url, "headers": [{"name": "Authorization", "value": "secret"}]},
            "response": response,
        }

    entries = [
        entry("http://lost.example/", text='<p>"]}{[\\ caf\u00e9'),
        entry("http://lost.example/b64", text="aGVsbG8=", encoding="base64"),
        entry("http://lost.example/form", method="POST", text="x"),
        entry("http://lost.example/part", 206, text="x"),
        entry("http://lost.example/empty"),
        entry("data:text/plain,x", text="x"),
    ]
    path = write(tmp_path / "session.har", json.dumps({"log": {"version": "1.2", "entries": entries}}))
    source = open_source(path)
    found = listed(source)
    assert set(found) == {"http://lost.example/", "http://lost.example/b64", "http://lost.example/part"}
    assert body(source, "http://lost.example/").decode() == '<p>"]}{[\\ caf\u00e9'
    assert body(source, "http://lost.example/b64") == b"hello"
    assert found["http://lost.example/part"].marks == (Mark.PARTIAL,)
    assert found["http://lost.example/"].captured_at == datetime(2020, 2, 3, 3, 5, 6, tzinfo=UTC)
    assert all("secret" not in str(source.read(one.place).headers) for one in found.values())


def test_a_folder_of_several_kinds_is_one_source(tmp_path: Path) -> None:
    write(tmp_path / "session.har", '{"log": {"entries": []}}')
    write(tmp_path / "page.html", "<html><!-- saved from url=(0020)http://lost.example/ -->")
    assert recognise(tmp_path) is Kind.FOLDER
    assert set(listed(open_source(tmp_path))) == {"http://lost.example/"}


def firefox_entry(url: str, content: bytes, *fields: str, alternative: bytes = b"") -> bytes:
    key = f"a,O^partitionKey=%28http%2Cx%29,:{url}".encode()
    head = "\r\n".join(["HTTP/1.1 200 OK", *fields]).encode()
    elements = b"request-method\0GET\0response-head\0" + head + b"\0"
    if alternative:
        elements += b"alt-data\x001;%d,bytecode\0" % len(content)
    whole = content + alternative
    numbers = (3, 1, int(THEN.timestamp()), int(THEN.timestamp()), 0, 0, len(key), 0)
    header = b"".join(number.to_bytes(4, "big") for number in numbers)
    hashes = bytes(2 * -(-len(whole) // (256 * 1024)))
    return whole + bytes(4) + hashes + header + key + b"\0" + elements + len(whole).to_bytes(4, "big")


def test_entries_of_a_cache_are_marked_and_only_wanted_ones_are_read(tmp_path: Path) -> None:
    entries = tmp_path / "cache2/entries"
    cases = {
        "http://lost.example/whole": firefox_entry("http://lost.example/whole", b"x" * 300_000),
        "http://lost.example/part": firefox_entry("http://lost.example/part", b"abc", "Content-Length: 10"),
        "http://lost.example/old": firefox_entry("http://lost.example/old", b"abc", "Cache-Control: max-age=5"),
        "http://lost.example/script": firefox_entry("http://lost.example/script", b"1+1", alternative=b"\1\2\3"),
        "http://bank.example/": firefox_entry("http://bank.example/", b"account"),
    }
    for number, data in enumerate(cases.values()):
        write(entries / f"{number:040X}", data)
    write(entries / f"{99:040X}", b"damaged")
    source = open_source(tmp_path)
    assert isinstance(source, FirefoxSource) and source.private
    problems: list[object] = []
    found = {one.url: one for one in source.captures(lambda url: "lost.example" in url, problems.append)}
    assert set(found) == set(cases) - {"http://bank.example/"}
    assert (source.tally.entries, source.tally.taken, source.tally.damaged, len(problems)) == (6, 4, 1, 1)
    assert found["http://lost.example/part"].marks == (Mark.PARTIAL,) and found["http://lost.example/part"].altered
    assert found["http://lost.example/old"].marks == (Mark.EXPIRED,) and not found["http://lost.example/old"].altered
    assert b"".join(source.read(found["http://lost.example/script"].place).chunks) == b"1+1"
    assert found["http://lost.example/whole"].captured_at == THEN


def test_an_overview_of_a_cache_counts_hosts_and_names_no_address(tmp_path: Path) -> None:
    write(tmp_path / "cache2/entries" / f"{1:040X}", firefox_entry("http://bank.example/account?id=7", b"x"))
    seen = overview(str(tmp_path))
    assert seen is not None
    assert seen.hosts == {"bank.example": 1}
    assert "account" not in json.dumps(seen.as_dict())


@pytest.mark.parametrize("place", ["../../etc/passwd", "/etc/passwd", "0/../../x", "", "9/x", "0"])
def test_a_place_that_no_listing_gave_is_refused(tmp_path: Path, place: str) -> None:
    write(tmp_path / "cache/cache2/entries" / f"{1:040X}", firefox_entry("http://a.example/", b"x"))
    write(tmp_path / "mirror/lost.example/index.html", "<p>")
    write(tmp_path / "session.har", '{"log": {"entries": []}}')
    for name in ("cache", "mirror", "session.har"):
        with pytest.raises(RecollectError):
            open_source(tmp_path / name).read(place)
