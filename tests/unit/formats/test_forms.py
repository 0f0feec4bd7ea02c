"""The form of a list or log is decided for the whole file: numbers beside URLs are not counts by themselves."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import UsageError
from recollect.formats.cells import is_time, moment_of
from recollect.formats.forms import Asked, Form, Style, decide, looks_like_uri
from recollect.formats.logs import LogEntry, read_lookups
from recollect.model import Problem

URL = "http://x.com/"
NEW_YEAR = datetime(2013, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("lines", "form"),
    [
        (["http://x.com/a", "http://x.com/b c", "com,x)/d"], "one URI per line"),
        (["com,x)/a", "4,3,2,1)/b"], "one URI per line"),
        (["http://x.com/a,b,5", "http://x.com/c"], "one URI per line"),
        (["1356998400\thttp://x.com/", "1356998437\thttp://x.com/a"], "columns time, url separated by tabs"),
        (["1356998400123 http://x.com/"], "columns time, url separated by spaces"),
        (["1356998400.25,http://x.com/"], "columns time, url separated by commas"),
        (["20130101000000 http://x.com/"], "columns time, url separated by spaces"),
        (["http://x.com/ 20130101"], "columns url, time separated by spaces"),
        (["2013-01-01T00:00:00Z;http://x.com/"], "columns time, url separated by semicolons"),
        (["   7 http://x.com/", "  12 http://x.com/a"], "columns count, url separated by spaces"),
        (["http://x.com/|7", "http://x.com/a|23320900"], "columns url, count separated by bars"),
        (["2013\thttp://x.com/\t404", "2014\thttp://x.com/\t200"], "columns count, url, status separated by tabs"),
        (["time,url", "5,http://x.com/"], "columns time, url separated by commas, named"),
        (["url,hits", '"http://x.com/a,b",5'], "columns url, count separated by commas, named"),
        (["urlkey,timestamp,original", '"com,x)/",13,http://x.y/'], "columns -, time, url separated by commas, named"),
        (["when\turl\tuser", "2013\thttp://x.com/\t77"], "columns time, url, - separated by tabs, named"),
        # A number among columns that are not understood may be anything.
        (["2013-01-01\thttp://x.com/\tme\t512"], "columns time, url, -, - separated by tabs"),
        (["1.2 5 10.0.0.1 HIT/200 9 GET http://x.com/ - text/html"] * 3, None),
        (["1356998400.1 5 10.0.0.1 9 GET http://x.com/ -"] * 3, "columns time, -, -, -, -, url, - separated by spaces"),
        # Years are times; ranks and identifiers are not counts; few numbers are what they were.
        ([f"{2000 + i % 9} http://x.com/{i}" for i in range(30)], "columns time, url separated by spaces"),
        ([f"{i + 1},x{i}.com" for i in range(30)], "columns -, url separated by commas"),
        ([f"{i + 1},x{i}.com" for i in range(9)], "columns count, url separated by commas"),
        ([f"{i + 1:7} x{i}.com" for i in range(30)], "columns count, url separated by spaces"),
        ([f"x{i}.com,{i + 1}" for i in range(30)], "columns url, count separated by commas"),
        ([f"{9 * 10**9 + 7 * i}\thttp://x.com/{i}" for i in range(30)], "columns -, url separated by tabs"),
        # A first line of names that say nothing here; a name may say that a number is not a count.
        (["AnonID\tWhen?\tClickURL", "7\t2006-03-01\thttp://x.com/"], "columns -, time, url separated by tabs, named"),
        (["Page,Page views", "http://x.com/,7", "http://x.com/a,9"], "columns url, count separated by commas, named"),
        (["Rank,Domain", "7,x.com", "9,y.com"], "columns -, url separated by commas, named"),
        # Thousands of a spreadsheet.
        (["Page,Views", 'http://x.com/,"1,207"', "http://x.com/a,9"], "columns url, count separated by commas, named"),
        (['{"uri": "http://x.com/"}', '{"event": "start"}'], "log lines"),
        (['{"captures": 5, "hosts": 1}'], None),
        (["words of a README", "and more"], None),
        (["part-0.cdx.gz", "part-1.cdx.gz"], None),
    ],
)  # fmt: skip
def test_forms(lines: list[str], form: str | None) -> None:
    found = decide(lines)
    assert (None if found is None else str(found)) == form


@pytest.mark.parametrize(
    ("word", "is_one"),
    [
        ("http://x.com/", True),
        ("HTTPS://x", True),
        ("x.com", True),
        ("x.com:8080/a", True),
        ("localhost/a", True),
        ("[::1]:80/", True),
        ("10.0.0.1", True),
        ("com,x)/", True),
        ("b\u00fccher.example/", True),
        ("http://x.com/\udcff", True),
        ("index.cdx.gz", False),
        ("1.5", False),
        ("1.2.3", False),
        ("word", False),
        ("2013-01-01T00:00:00Z", False),
        ("a\x00.b", False),
        ("", False),
    ],
)
def test_what_looks_like_a_uri(word: str, is_one: bool) -> None:
    assert looks_like_uri(word) is is_one


@pytest.mark.parametrize(
    "cell",
    ["1356998400", "1356998400000", "1356998400.9", "20130101", "20130101000000", "2013-01-01", "2013",
     "01/Jan/2013:00:00:00 +0000", "Tue, 01 Jan 2013 00:00:00 GMT"],
)  # fmt: skip
def test_times_of_cells(cell: str) -> None:
    assert moment_of(cell) == NEW_YEAR


def test_what_is_not_a_time() -> None:
    assert moment_of("23320900999") is moment_of("soon") is moment_of("7") is None


def read(tmp_path: Path, text: str, asked: Asked | None = None) -> tuple[list[LogEntry], list[Problem], list[str]]:
    file = tmp_path / "file"
    file.write_text(text)
    problems: list[Problem] = []
    lookups = read_lookups(file, problems.append, asked)
    return list(lookups), problems, lookups.notes()


def test_a_click_log_is_lookups_with_times_not_millions_of_lookups(tmp_path: Path) -> None:
    entries, problems, notes = read(tmp_path, "".join(f"{1356998400 + i}\t{URL}{i}\n" for i in range(100)))
    assert len(entries) == sum(entry.count for entry in entries) == 100
    assert entries[0].at == NEW_YEAR and not problems
    assert notes == [f"{tmp_path / 'file'}: columns time, url separated by tabs"]


def test_one_number_in_a_list_of_urls_is_named_and_counts_nothing(tmp_path: Path) -> None:
    urls = [f"{URL}{i}" for i in range(2000)]
    urls[1500] = "http://www.ncbi.nlm.nih.gov/pubmed/ 23320900"
    entries, problems, notes = read(tmp_path, "\n".join(urls))
    assert sum(entry.count for entry in entries) == 1999
    assert [problem.line for problem in problems] == [1501]
    assert notes == [f"{tmp_path / 'file'}: one URI per line"]


def test_a_lookup_that_outweighs_all_others_is_named(tmp_path: Path) -> None:
    entries, _, notes = read(tmp_path, "".join(f"{URL}{i} {3}\n" for i in range(50)) + f"{URL}much 23320900\n")
    assert sum(entry.count for entry in entries) == 23321050
    assert notes[1].startswith("warning: one line is 100.0% of all lookups: http://x.com/much ×23,320,900")


def test_a_lookup_that_is_all_of_a_log_is_named(tmp_path: Path) -> None:
    assert "100.0% of all lookups" in read(tmp_path, f"{URL} 23320900\n")[2][1]
    assert len(read(tmp_path, f"{URL}\n")[2]) == 1


def test_a_spreadsheets_thousands_are_counts_and_other_cells_are_named(tmp_path: Path) -> None:
    text = f'url,clicks\n{URL},"1,207"\n{URL}a,"12,07"\n{URL}b,many\n'
    entries, problems, _ = read(tmp_path, text)
    assert entries == [LogEntry(URL, count=1207)]
    assert [(problem.line, problem.reason) for problem in problems] == [
        (3, "not a number: '12,07'"),
        (4, "not a number: 'many'"),
    ]


def test_a_count_column_must_be_one_on_all_lines(tmp_path: Path) -> None:
    text = "".join(f"{URL}{i} {i}\n" for i in range(1, 9)) + f"{URL}a x1\n"
    entries, _, _ = read(tmp_path, text)
    assert all(entry.count == 1 for entry in entries)


def test_format_and_columns_override(tmp_path: Path) -> None:
    text = "".join(f"{URL}{i} {1356998400 + i}\n" for i in range(9))
    assert read(tmp_path, text, Asked.of("", "url,count"))[0][0].count == 1356998400
    assert read(tmp_path, text, Asked.of("", "url,-"))[0][0] == LogEntry(f"{URL}0")
    assert read(tmp_path, text, Asked.of("words", "url,time"))[0][0].at == NEW_YEAR
    assert len(read(tmp_path, text, Asked.of("list"))[1]) == 9
    assert read(tmp_path, f"time,url\n5,{URL}\n", Asked.of("csv", "count,url"))[0] == [LogEntry(URL, count=5)]


@pytest.mark.parametrize(
    ("file_format", "columns"),
    [("xml", ""), ("", "time,place"), ("", "time"), ("", "url,url"), ("list", "time,url"), ("cdx", "url,time")],
)
def test_what_cannot_be_meant(file_format: str, columns: str) -> None:
    with pytest.raises(UsageError):
        Asked.of(file_format, columns)


def test_other_names_of_formats() -> None:
    assert [Asked.of(name).format for name in ("auto", "URLs", "clf", "tab", "ukvs")] == [
        "",
        "list",
        "log",
        "tsv",
        "map",
    ]


PATHS = st.text("abcdefghij0123456789-._~", min_size=0, max_size=12)


@given(
    st.lists(st.tuples(PATHS, st.integers(1, 10**8)), min_size=1, max_size=60),
    st.sampled_from(["\t", ",", ";", "|", " "]),
    st.booleans(),
)
def test_tables_of_counts_are_read_back(rows: list[tuple[str, int]], separator: str, first: bool) -> None:
    """Against the rows they were made of; numbers that are all plausible dates (8 digits) are dates."""
    from recollect.formats.logs import parse_entry

    lines = [separator.join((str(n), URL + path) if first else (URL + path, str(n))) for path, n in rows]
    form = decide(lines)
    assert form is not None and form.style is Style.TABLE and form.separator == separator
    dates = [is_time(str(n)) for _, n in rows]
    if not any(dates):
        assert [parse_entry(line, form) for line in lines] == [LogEntry(URL + path, count=n) for path, n in rows]


@given(st.lists(PATHS, min_size=1, max_size=80), st.data())
def test_a_list_stays_a_list_whatever_numbers_some_lines_end_in(paths: list[str], data: st.DataObject) -> None:
    marked = data.draw(st.sets(st.integers(0, len(paths) - 1), max_size=len(paths) // 3))
    lines = [
        URL + path + (f" {data.draw(st.integers(0, 10**14))}" if at in marked else "") for at, path in enumerate(paths)
    ]
    assert decide(lines) == Form(Style.LIST)
