"""TimeMaps as archives really send them: each row breaks the format in one way, and has the expected result.

Sources: RFC 7089 (examples of its own), RFC 8288 section 3 (grammar of links), and violations seen in public archives:
semicolons between links and spaces before `=`, `rel="memento last"`, doubled first mementos and `:80` at the Internet
Archive, ISO-8859-1 and HTML at status 200, pywb's `mp_`, commas and fragments in URI-Ms, unsorted lists, JSON and CDXJ.
"""

from __future__ import annotations

import gzip
import random

import pytest

from recollect.datetimes import format_timestamp
from recollect.formats.timemap import TimeMap, merge, parse_timemap
from recollect.formats.timemap import read as read_module

BASE = "http://arc.example/timemap/link/http://lost.example/"
A = ("20090214231500", "http://arc.example/web/20090214231500/http://lost.example/")
B = ("20110630120005", "http://arc.example/web/20110630120005/http://lost.example/")
C = ("20130101000000", "http://arc.example/web/20130101000000/http://lost.example/")
DATE_A = "Sat, 14 Feb 2009 23:15:00 GMT"
DATE_B = "Thu, 30 Jun 2011 12:00:05 GMT"
DATE_C = "Tue, 01 Jan 2013 00:00:00 GMT"
HEAD = '<http://lost.example/>; rel="original",\n<http://arc.example/timemap/link/http://lost.example/>; rel="self",\n'


def link(uri: str, date: str, rel: str = "memento") -> str:
    return f'<{uri}>; rel="{rel}"; datetime="{date}"'


LA, LB, LC = link(A[1], DATE_A), link(B[1], DATE_B), link(C[1], DATE_C)


def held(path: str) -> str:
    return f"http://arc.example/web/20090214231500/http://lost.example/{path}"


def read(body: str | bytes, content_type: str = "application/link-format") -> TimeMap:
    return parse_timemap(body.encode() if isinstance(body, str) else body, content_type, BASE)


def mementos(timemap: TimeMap) -> list[tuple[str, str]]:
    return [(format_timestamp(m.captured_at), m.uri) for m in merge([("arc", timemap)])]


# name, body, mementos that must come out, a problem that must be named ("" if it is not a violation)
SEPARATORS = [
    ("well formed", f"{HEAD}{LA},\n{LB},\n{LC}\n", [A, B, C], ""),
    ("all in one line", f"{LA}, {LB}, {LC}", [A, B, C], ""),
    ("carriage returns", f"{LA},\r\n{LB},\r\n{LC}\r\n", [A, B, C], ""),
    ("comma first", f",\n{LA},\n{LB}", [A, B], ""),
    ("comma last", f"{LA},\n{LB},\n", [A, B], ""),
    ("empty members", f"{LA},,,\n,{LB}", [A, B], ""),
    ("no spaces at all", f"{LA},{LB}".replace("; ", ";"), [A, B], ""),
    ("semicolons between links", f"{LA};\n{LB};\n{LC}", [A, B, C], "a semicolon between links"),
    ("no comma, new line", f"{LA}\n{LB}\n{LC}", [A, B, C], "no comma between links"),
    ("no comma, same line", f"{LA} {LB}", [A, B], "no comma between links"),
    (
        "no comma after the original, as in RFC 7089 figure 30",
        f'<http://lost.example/>;rel="original"\n<http://arc.example/x>;rel="timegate",\n {LA},\n {LB}',
        [A, B],
        "no comma between links",
    ),
    ("text before the links", f"# made by hand\n{LA}", [A], "text between links"),
    ("a comma for a semicolon", LA.replace('"; datetime', '", datetime'), [A], "a comma between parameters"),
    ("no semicolon", LA.replace('"; datetime', '" datetime'), [A], "no semicolon between parameters"),
]
PARAMETERS = [
    ("spaces around =", f"{LA},{LB}".replace("=", " = "), [A, B], ""),
    ("datetime before rel", f'<{A[1]}>; datetime="{DATE_A}"; rel="memento"', [A], ""),
    ("single quotes", f"<{A[1]}>; rel='memento'; datetime='{DATE_A}'", [A], "single quotes"),
    ("rel without quotes", f'<{A[1]}>; rel=memento; datetime="{DATE_A}"', [A], ""),
    ("date without quotes", f"<{A[1]}>; rel=memento; datetime={DATE_A},\n{LB}", [A, B], "a date without quotes"),
    ("names in upper case", f'<{A[1]}>; REL="memento"; DateTime="{DATE_A}"', [A], ""),
    ("relation in upper case", f'<{A[1]}>; rel="Memento"; datetime="{DATE_A}"', [A], ""),
    ("first memento", link(A[1], DATE_A, "first memento"), [A], ""),
    ("memento last", link(A[1], DATE_A, "memento last"), [A], ""),
    ("first last memento", link(A[1], DATE_A, "first last memento"), [A], ""),
    ("spaces in rel", link(A[1], DATE_A, "  first   memento "), [A], ""),
    ("semicolon in a title", f'{LA}; title="one; two, three",\n{LB}', [A, B], ""),
    ("escaped quotes in a title", f'{LA}; title="a \\"b\\", <c>",\n{LB}', [A, B], ""),
    ("a flag", f"{LA}; nofollow,\n{LB}", [A, B], ""),
    ("other parameters", f'{LA}; license="http://l.example/"; collection="web",\n{LB}', [A, B], ""),
    ("second rel is ignored", f'<{A[1]}>; rel="memento"; rel="next"; datetime="{DATE_A}"', [A], ""),
    ("a quote not closed before the next", LA.replace('memento"', "memento"), [A], "a quote that is never closed"),
    ("the relation is a word, not a part of one", f"{link(A[1], DATE_A, 'x-memento')},\n{LB}", [B], "not a memento"),
    ("an extension relation", f"{link(A[1], DATE_A, 'http://x.example/memento')},\n{LB}", [B], "not a memento"),
    ("no rel", f'<{A[1]}>; datetime="{DATE_A}",\n{LB}', [B], "not a memento"),
    ("an anchor of the same resource", f'{HEAD}{LA}; anchor="http://www.lost.example"', [A], ""),
    ("an anchor of another", f'{HEAD}{LA}; anchor="http://other.example/",\n{LB}', [B], "of another resource"),
]
DATES = [
    ("one-digit day", link(B[1], "Thu, 2 Jun 2011 12:00:05 GMT"), [("20110602120005", B[1])], "RFC 1123"),
    ("UTC", link(A[1], DATE_A.replace("GMT", "UTC")), [A], "RFC 1123"),
    ("+0000", link(A[1], DATE_A.replace("GMT", "+0000")), [A], "RFC 1123"),
    ("a real offset", link(A[1], "Sun, 15 Feb 2009 01:15:00 +0200"), [A], "RFC 1123"),
    ("wrong weekday", link(A[1], DATE_A.replace("Sat", "Mon")), [A], "RFC 1123"),
    ("ISO 8601", link(A[1], "2009-02-14T23:15:00Z"), [A], "RFC 1123"),
    ("RFC 850", link(A[1], "Saturday, 14-Feb-09 23:15:00 GMT"), [A], "RFC 1123"),
    ("lower case", link(A[1], DATE_A.lower()), [A], "RFC 1123"),
    ("14 digits", link(A[1], A[0]), [A], "RFC 1123"),
    ("missing, digits in the URI", f'<{A[1]}>; rel="memento"', [A], "taken from its URI"),
    ("empty, digits in the URI", link(A[1], ""), [A], "taken from its URI"),
    ("no such day, digits in the URI", link(A[1], "Sat, 31 Feb 2009 23:15:00 GMT"), [A], "an unreadable date"),
    ("no such hour, digits in the URI", link(A[1], "Sat, 14 Feb 2009 29:15:00 GMT"), [A], "an unreadable date"),
    ("missing, nowhere else", '<http://arc.example/AB12-CD34>; rel="memento"', [], "without a readable datetime"),
    (
        "in the future",
        link("http://arc.example/web/29990101000000/http://lost.example/", "Tue, 01 Jan 2999 00:00:00 GMT"),
        [("29990101000000", "http://arc.example/web/29990101000000/http://lost.example/")],
        "",
    ),
]
NO_URI = "characters that have no place in a URI"
TARGETS = [
    ("comma", link(held("a,b,c"), DATE_A), [(A[0], held("a,b,c"))], ""),
    ("semicolon", link(held(";sid=1?a=1;b=2"), DATE_A), [(A[0], held(";sid=1?a=1;b=2"))], ""),
    ("fragment", link(held("#top"), DATE_A), [(A[0], held("#top"))], ""),
    ("one quote", f"{link(held('?q=' + chr(34) + 'x'), DATE_A)},\n{LB}", [(A[0], held("?q=%22x")), B], NO_URI),
    ("two quotes", f"{link(held('?q=' + chr(34) * 2), DATE_A)},\n{LB}", [(A[0], held("?q=%22%22")), B], NO_URI),
    ("greater than", f"{link(held('?a>b'), DATE_A)},\n{LB}", [(A[0], held("?a%3Eb")), B], NO_URI),
    ("less than", f"{link(held('?a<b'), DATE_A)},\n{LB}", [(A[0], held("?a%3Cb")), B], NO_URI),
    ("spaces", link(held("a b c"), DATE_A), [(A[0], held("a%20b%20c"))], NO_URI),
    ("tab", link(held("a\tb"), DATE_A), [(A[0], held("a%09b"))], NO_URI),
    ("not ASCII", link(held("é中"), DATE_A), [(A[0], held("%C3%A9%E4%B8%AD"))], NO_URI),
    ("brackets and bars stay", link(held("?a[]={x}|y^z"), DATE_A), [(A[0], held("?a[]={x}|y^z"))], ""),
    ("escapes stay", link(held("100%25%2F%3f"), DATE_A), [(A[0], held("100%25%2F%3f"))], ""),
    (
        "relative to the host",
        link("/web/20090214231500/http://lost.example//x/../y", DATE_A),
        [(A[0], "http://arc.example/web/20090214231500/http://lost.example//x/../y")],
        "",
    ),
    ("relative to the protocol", link("//arc.example/web/20090214231500/http://lost.example/", DATE_A), [A], ""),
    ("relative to the folder", link("../../../../../web/20090214231500/http://lost.example/", DATE_A), [A], ""),
    ("script", link("javascript:alert(1)", DATE_A) + ",\n" + LB, [B], "not a web address"),
    ("never closed", f"<{A[1]}; rel=memento,\n{LB}", [B], "without closing '>'"),
    ("never closed, same line", f"<{A[1]}; rel=memento, {LB}", [B], "without closing '>'"),
]
LISTS = [
    ("unsorted", f"{LC},\n{LA},\n{LB}", [A, B, C], ""),
    ("first twice, as at the Internet Archive", f"{link(A[1], DATE_A, 'first memento')},\n{LA},\n{LB}", [A, B], ""),
    (
        "with and without :80, as at the Internet Archive",
        f"{link(A[1].replace('lost.example/', 'lost.example:80/'), DATE_A)},\n{LA}",
        [A],
        "",
    ),
    (
        ":80 alone stays",
        link(A[1].replace("lost.example/", "lost.example:80/"), DATE_A),
        [(A[0], A[1].replace("lost.example/", "lost.example:80/"))],
        "",
    ),
    ("only an original", '<http://lost.example/>; rel="original"', [], ""),
    ("nothing", "", [], ""),
    ("byte-order mark", "\ufeff" + f"{LA},\n{LB}", [A, B], "a byte-order mark"),
    ("cut off in a target", f"{LA},\n<{B[1][:40]}", [A], "without closing '>'"),
    ("cut off in rel", f'{LA},\n<{B[1]}>; rel="mem', [A], "never closed"),
    ("cut off in a date", f'{LA},\n<{B[1]}>; rel="memento"; datetime="Thu, 30 Jun 2011 12:00', [A, B], "never closed"),
]
OTHERS = [
    ("HTML", "<!DOCTYPE html><html><body>None here</body></html>", [], "an HTML page"),
    ("HTML without doctype", "\n <html><a href='x'>x</a></html>", [], "an HTML page"),
    ("noise", '\x00\x01<<<>>>"""', [], "this is not a TimeMap"),
    ("words", "Too many requests", [], "this is not a TimeMap"),
    (
        "MemGator's JSON",
        '{"original_uri": "http://lost.example/", "mementos": {"list": [{"datetime": "2009-02-14T23:15:00Z", '
        f'"uri": "{A[1]}"}}], "first": {{"datetime": "2009-02-14T23:15:00Z", "uri": "{A[1]}"}}}}}}',
        [A],
        "",
    ),
    ("JSON, several URIs", f'{{"mementos": {{"list": [{{"datetime": "{DATE_A}", "uri": ["{A[1]}"]}}]}}}}', [A], ""),
    ("JSON, a plain list", f'[{{"datetime": "2009-02-14T23:15:00Z", "uri": "{A[1]}"}}]', [A], ""),
    ("JSON, empty", '{"mementos": []}', [], ""),
    ("JSON of something else", '{"error": "no"}', [], "JSON without mementos"),
    (
        "JSON, cut off",
        f'{{"mementos": {{"list": [{{"datetime": "{DATE_A}", "uri": "{A[1]}"}}, {{"datetime": "Thu, 3',
        [A],
        "cut-off JSON",
    ),
    (
        "JSON rows of a CDX server",
        f'[["urlkey","timestamp","original"],["k","{A[0]}","http://lost.example/"]]',
        [(A[0], f"http://arc.example/{A[0]}/http://lost.example/")],
        "",
    ),
    (
        "NDJSON of pywb",
        f'{{"urlkey": "k", "timestamp": "{A[0]}", "url": "http://lost.example/"}}\n',
        [(A[0], f"http://arc.example/{A[0]}/http://lost.example/")],
        "",
    ),
    (
        "MemGator's CDXJ",
        f'!context ["x"]\n!meta {{"original_uri": "http://lost.example/"}}\n{A[0]} {{"uri": "{A[1]}", "rel": "x"}}',
        [A],
        "",
    ),
    (
        "CDXJ with SURT",
        f'example,lost)/ {A[0]} {{"url": "http://lost.example/"}}',
        [(A[0], f"http://arc.example/{A[0]}/http://lost.example/")],
        "",
    ),
    ("CDXJ, cut off", f'{A[0]} {{"uri": "{A[1]}"}}\n{B[0]} {{"uri": "http', [A], "a line that cannot be read"),
]
ROWS = SEPARATORS + PARAMETERS + DATES + TARGETS + LISTS + OTHERS


@pytest.mark.parametrize(("body", "expected", "problem"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_right_mementos_or_a_named_problem(body: str, expected: list[tuple[str, str]], problem: str) -> None:
    timemap = read(body)
    assert mementos(timemap) == expected
    if problem:
        assert any(problem in words for words in timemap.problems), timemap.problems
    else:
        assert timemap.problems == ()


@pytest.mark.parametrize(
    "body",
    [
        f'{{"mementos": {{"list": [{{"datetime": "2009-02-14T23:15:00Z", "uri": "{A[1]}"}}, {{"dat'.encode(),
        gzip.compress(link(A[1], DATE_A).encode() + b"," + random.Random(1).randbytes(10_000))[:-5000],
    ],
    ids=["json", "gzip"],
)
def test_what_is_cut_off_says_that_something_may_be_missing(body: bytes) -> None:
    timemap = read(body)
    assert timemap.missing
    assert not read(link(A[1], DATE_A)).missing


def test_irregular_links_are_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_module, "MAX_IRREGULAR", 100)
    timemap = read("<http://arc.example/>; rel=odd," * 200 + link(A[1], DATE_A))
    assert "the rest is not read" in timemap.missing


def test_bytes_that_are_not_utf8_stay_the_bytes_they_are() -> None:
    body = link(held("caf\xe9"), DATE_A).encode("latin-1")
    assert mementos(read(body, "application/link-format; charset=ISO-8859-1")) == [(A[0], held("caf%E9"))]


def test_utf8_is_read_as_utf8_whatever_the_charset_says() -> None:
    body = link(held("café"), DATE_A)
    assert mementos(read(body, "application/link-format; charset=ISO-8859-1")) == [(A[0], held("caf%C3%A9"))]


def test_gzip_that_was_not_announced_is_read() -> None:
    timemap = read(gzip.compress(f"{LA},\n{LB}".encode()))
    assert mementos(timemap) == [A, B]
    assert timemap.problems == ("gzip without Content-Encoding",)


def test_broken_gzip_is_named() -> None:
    timemap = read(b"\x1f\x8b\x08\x00broken")
    assert (len(timemap), timemap.kind) == (0, "other")
    assert "broken gzip" in timemap.problems[1]


def test_links_under_an_html_content_type_are_still_links() -> None:
    assert mementos(read(f"{LA},\n{LB}", "text/html; charset=utf-8")) == [A, B]


@pytest.mark.parametrize("kind", ["other", "link", "empty", "json", "cdxj"])
def test_the_kind_tells_a_miss_from_a_page_that_is_not_a_timemap(kind: str) -> None:
    bodies = {
        "other": "<html></html>",
        "link": '<http://lost.example/>; rel="original"',
        "empty": " \n",
        "json": '{"mementos": []}',
        "cdxj": "!meta {}\n",
    }
    assert read(bodies[kind]).kind == kind


PAGE_1 = "http://arc.example/timemap/link/1/http://lost.example/"
PAGE_2 = "http://arc.example/timemap/link/2/http://lost.example/"
TYPED = 'type="application/link-format"'
PAGES = [
    ("an index", f'{HEAD}<{PAGE_1}>; rel="timemap"; {TYPED},\n<{PAGE_2}>; rel="timemap"; {TYPED}', [PAGE_1, PAGE_2]),
    ("a next page", f'{HEAD}{LA},\n<{PAGE_2}>; rel="timemap next"; {TYPED}', [PAGE_2]),
    ("a page named twice", f'<{PAGE_2}>; rel="timemap",\n<{PAGE_2}>; rel="timemap last"', [PAGE_2]),
    ("self is not a page", f'<{PAGE_1}>; rel="self timemap",\n<{PAGE_1}>; rel="timemap"; {TYPED},\n{LA}', []),
    ("self by another scheme is not a page", f'<https{BASE[4:]}>; rel="timemap"; {TYPED},\n{LA}', []),
    (
        "the same in JSON is not a page",
        f'{LA},\n<http://arc.example/timemap/json/x>; rel="timemap"; type="application/json"',
        [],
    ),
    (
        "JSON is followed when there is nothing else",
        f'{HEAD}<http://arc.example/timemap/json/x>; rel="timemap"; type="application/json"',
        ["http://arc.example/timemap/json/x"],
    ),
    ("relative", f'{HEAD}</timemap/link/2/http://lost.example/>; rel="timemap"; {TYPED}', [PAGE_2]),
    ("Time Travel's JSON index", f'{{"timemap_index": [{{"from": "x", "uri": "{PAGE_2}"}}]}}', [PAGE_2]),
]


@pytest.mark.parametrize(("body", "expected"), [row[1:] for row in PAGES], ids=[row[0] for row in PAGES])
def test_pages_still_to_be_read(body: str, expected: list[str]) -> None:
    assert [page.uri for page in read(body).pages] == expected


def test_pages_carry_their_range() -> None:
    body = f'<{PAGE_2}>; rel="timemap"; {TYPED}; from="{DATE_A}"; until="{DATE_B}"'
    (page,) = read(body).pages
    assert page.since is not None and page.until is not None
    assert [format_timestamp(page.since), format_timestamp(page.until)] == [A[0], B[0]]


def test_original_and_timegate_are_kept() -> None:
    timemap = read(f'{HEAD}</timegate/http://lost.example/>; rel="timegate",\n{LA}')
    assert (timemap.original, timemap.timegate) == (
        "http://lost.example/",
        "http://arc.example/timegate/http://lost.example/",
    )
