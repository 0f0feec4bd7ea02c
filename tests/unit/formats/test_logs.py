"""Lookups out of every kind of log; lines that cannot be read are named."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect.errors import FormatError
from recollect.formats.forms import Form, Style
from recollect.formats.logs import LogEntry, NoLookup, parse_entry, read_lookups, uri_of_request
from recollect.model import Problem

MORNING = datetime(2019, 1, 16, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("http://example.com/a?b=1", LogEntry("http://example.com/a?b=1")),
        ("example.com/a", LogEntry("example.com/a")),
        ("com,example)/a", LogEntry("com,example)/a")),
        ("      7 http://example.com/", LogEntry("http://example.com/", count=7)),
        ("http://example.com/ 7", LogEntry("http://example.com/", count=7)),
        ("7\thttp://example.com/", LogEntry("http://example.com/", count=7)),
        ("http://example.com/\t7", LogEntry("http://example.com/", count=7)),
        ("2019-01-16T12:00:00Z\thttp://example.com/\t404", LogEntry("http://example.com/", MORNING, 404)),
        ('{"uri": "http://a.b/", "at": "2019-01-16T12:00:00Z", "status": 200}', LogEntry("http://a.b/", MORNING, 200)),
        ('{"url": "http://example.com/", "count": 3}', LogEntry("http://example.com/", count=3)),
        ("INFO: 2019/01/16 12:00:00.123456 Aggregating Mementos for http://a.b/", LogEntry("http://a.b/", MORNING)),
        (
            '1.2.3.4 - - [16/Jan/2019:05:00:00 -0700] "GET /web/2016/http://example.com/ HTTP/1.1" 200 12',
            LogEntry("http://example.com/", MORNING, 200),
        ),
        (
            '1.2.3.4 - u [16/Jan/2019:12:00:00 +0000] "GET /timemap/link/http://a.b/c HTTP/1.1" 404 - "-" "a \\"x\\""',
            LogEntry("http://a.b/c", MORNING, 404),
        ),
        (
            'archive.org:443 1.2.3.4 - - [16/Jan/2019:12:00:00 +0000] "GET http://a.b/proxied HTTP/1.0" - -',
            LogEntry("http://a.b/proxied", MORNING),
        ),
    ],
)  # fmt: skip
def test_each_kind_of_line_gives_its_lookup(line: str, entry: LogEntry) -> None:
    assert parse_entry(line.strip(" ") if line[0] != " " else line.strip()) == entry


@pytest.mark.parametrize(
    ("target", "uri"),
    [
        ("/web/20160101000000/http://example.com/", "http://example.com/"),
        ("/web/20160101000000id_/http://example.com/a?b=c", "http://example.com/a?b=c"),
        ("/web/2016im_/https://example.com/x.png", "https://example.com/x.png"),
        ("/web/*/http://example.com/", "http://example.com/"),
        ("/web/2016*/example.com", "example.com"),
        ("/wayback/coll/20160101/example.com/a", "example.com/a"),
        ("/timemap/link/http://example.com/", "http://example.com/"),
        ("/web/timemap/json/http://example.com/", "http://example.com/"),
        ("/coll/timemap/*/cdxj/example.com", "example.com"),
        ("/timegate/http://example.com/", "http://example.com/"),
        ("/memento/20160101/http://example.com/", "http://example.com/"),
        ("/api/json/2016/http://example.com/", "http://example.com/"),
        ("/memento/proxy/2016/http:/example.com/", "http://example.com/"),
        ("/timemap/link/http%3A%2F%2Fexample.com%2Fa", "http://example.com/a"),
        ("/web/http:/example.com/", "http://example.com/"),
        ("/cdx?url=http%3A%2F%2Fexample.com%2F&limit=5", "http://example.com/"),
        ("http://example.com/", "http://example.com/"),
    ],
)
def test_requests_to_archives_and_aggregators_name_their_uri(target: str, uri: str) -> None:
    assert uri_of_request(target) == uri


@pytest.mark.parametrize("target", ["/", "/static/logo.png", "/favicon.ico", "/about", "/web/", "/search?q=1"])
def test_pages_of_the_archive_itself_are_not_lookups(target: str) -> None:
    with pytest.raises(NoLookup):
        uri_of_request(target)


@pytest.mark.parametrize(
    "line",
    [
        "BENCHMARK: 2019/01/16 12:00:00.000000 123 {}",
        "INFO: 2019/01/16 12:00:00.000000 web.archive.org => Success: 12 mementos",
        '1.2.3.4 - - [16/Jan/2019:12:00:00 +0000] "-" 408 -',
        '{"event": "start", "url": null}',
        "0 http://example.com/",
    ],
)
def test_lines_that_ask_for_nothing_are_passed_over(line: str) -> None:
    with pytest.raises(NoLookup):
        parse_entry(line)


@pytest.mark.parametrize(
    "line",
    [
        "word",
        "two words",
        "{broken",
        "1\t2\t3",
        "INFO: 2019/13/45 12:00:00 Aggregating Mementos for http://a.b/",
    ],
)
def test_lines_that_cannot_be_read_raise(line: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_entry(line)
    assert not isinstance(caught.value, NoLookup)


def test_a_cell_that_its_column_does_not_allow_raises() -> None:
    form = Form(Style.TABLE, "\t", ("time", "url", "count"))
    for line in ("2019-13-45\thttp://a.b/\t200", "2019\thttp://a.b/\tmany", "2019\tword\t1", "2019\thttp://a.b/"):
        with pytest.raises(FormatError):
            parse_entry(line, form)


def test_problems_are_reported_with_file_and_line_and_the_rest_is_read(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"http://a.b/\n\n# comment\nword\nhttp://c.d/\xff\n")
    problems: list[Problem] = []
    entries = list(read_lookups([file], problems.append))
    assert [entry.uri for entry in entries] == ["http://a.b/", "http://c.d/\udcff"]
    assert [(problem.file, problem.line) for problem in problems] == [(str(file), 4)]


def test_without_a_listener_the_first_bad_line_raises(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("http://a.b/\nword\n")
    with pytest.raises(FormatError, match=":2"):
        list(read_lookups(file))


def test_named_columns_decide(tmp_path: Path) -> None:
    file = tmp_path / "log.tsv"
    file.write_text("count\turi\tat\n200\thttp://a.b/\t20190116120000\n")
    assert list(read_lookups(file)) == [LogEntry("http://a.b/", MORNING, None, 200)]
