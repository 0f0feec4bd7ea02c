"""TimeMaps: what is written is read back, merging and negotiation equal a brute force, damage never crashes."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.datetimes import format_http_date, parse_http_date
from recollect.formats.timemap import (
    MEDIA_TYPES,
    Memento,
    Mementos,
    Paging,
    Place,
    Problems,
    TimeMap,
    link_header,
    merge,
    model,
    parse_links,
    parse_timemap,
    quote,
    resolve,
    safe_uri,
    structured,
    write_memento,
    write_timemap,
)
from recollect.formats.timemap import read as read_module
from recollect.formats.timemap.found import Found
from recollect.formats.timemap.read import pieces_of, read_lines, read_well_formed

PLACE = Place("http://agg.example", "http://lost.example/?a=1")
moments = st.datetimes(datetime(1991, 8, 6), datetime(2099, 12, 31), timezones=st.just(UTC)).map(
    lambda m: m.replace(microsecond=0)
)
# Few moments and few URIs, so that ties and duplicates are common.
close_moments = st.integers(0, 12).map(lambda n: datetime(2015, 1, 1, tzinfo=UTC) + timedelta(seconds=n * 7))
tails = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
uris = tails.map(lambda tail: safe_uri(f"http://arc.example/web/20150101000000/http://lost.example/{tail}"))
names = st.sampled_from(["ia", "arc", "b.example", 'odd "name"\\'])


def lists(times: st.SearchStrategy[datetime]) -> st.SearchStrategy[list[tuple[str, TimeMap]]]:
    mementos = st.builds(Memento, uris | st.sampled_from(["http://a.example/1", "http://a.example/2"]), times)
    return st.lists(st.tuples(names, st.lists(mementos, max_size=8).map(TimeMap.of)), max_size=5)


@given(lists(moments), st.sampled_from(list(MEDIA_TYPES)))
def test_what_is_written_is_read_back_without_a_problem(timemaps: list[tuple[str, TimeMap]], kind: str) -> None:
    merged = merge(timemaps)
    body = b"".join(write_timemap(kind, PLACE, merged))
    again = parse_timemap(body, MEDIA_TYPES[kind], PLACE.timemap(kind))
    assert again.problems == ()
    assert again.pages == ()
    assert again.original == PLACE.original
    assert again.timegate == PLACE.timegate
    assert {(m.uri, m.captured_at) for m in again} == {(m.uri, m.captured_at) for m in merged}


@given(lists(moments), st.integers(1, 5))
def test_pages_hold_everything_once_and_name_each_other(timemaps: list[tuple[str, TimeMap]], size: int) -> None:
    merged = merge(timemaps)
    paging = Paging(1, size)
    count = paging.count(len(merged))
    seen: list[str] = []
    for number in range(1, count + 1):
        body = b"".join(write_timemap("link", PLACE, merged, paging=Paging(number, size)))
        page = parse_timemap(body, MEDIA_TYPES["link"], PLACE.timemap("link", number))
        assert page.problems == ()
        assert [p.uri for p in page.pages] == [PLACE.timemap("link", n) for n in range(1, count + 1) if n != number]
        seen += [m.uri for m in merge([("x", page)])]
        for kind in ("json", "cdxj"):
            other = b"".join(write_timemap(kind, PLACE, merged, paging=Paging(number, size)))
            assert len(merge([("x", parse_timemap(other, "", ""))])) >= len(page)
    assert seen == [m.uri for m in sorted(merged, key=lambda m: m.captured_at)] or sorted(seen) == sorted(
        m.uri for m in merged
    )


@given(lists(moments))
def test_json_is_valid_and_complete(timemaps: list[tuple[str, TimeMap]]) -> None:
    merged = merge(timemaps)
    document = json.loads(b"".join(write_timemap("json", PLACE, merged, extra={"failed": ["x"]})))
    assert [(m["uri"], m["archive"]) for m in document["mementos"]["list"]] == [(m.uri, m.archive) for m in merged]
    assert document["failed"] == ["x"]
    assert ("first" in document["mementos"]) == bool(merged.rows)


@given(lists(close_moments))
def test_merging_keeps_each_memento_once_in_order(timemaps: list[tuple[str, TimeMap]]) -> None:
    merged = merge(timemaps)
    order = list(dict.fromkeys(name for name, _ in timemaps))
    everything = [(m.captured_at, order.index(name), m.uri) for name, timemap in timemaps for m in timemap]
    expected, seen = [], set()
    for row in sorted(everything):
        if row[2] not in seen:
            seen.add(row[2])
            expected.append(row)
    assert [(m.captured_at, order.index(m.archive), m.uri) for m in merged] == expected


@given(lists(close_moments), st.randoms(use_true_random=False))
def test_merging_does_not_depend_on_the_order_within_a_timemap(timemaps: list[tuple[str, TimeMap]], random) -> None:
    shuffled = []
    for name, timemap in timemaps:
        mementos = list(timemap)
        random.shuffle(mementos)
        shuffled.append((name, TimeMap.of(mementos)))
    assert merge(shuffled) == merge(timemaps)


@given(lists(close_moments), close_moments, st.integers(-40, 40))
def test_negotiation_equals_a_brute_force(timemaps: list[tuple[str, TimeMap]], at: datetime, shift: int) -> None:
    merged = merge(timemaps)
    wanted = at + timedelta(seconds=shift)
    choice = merged.negotiate(wanted)
    everything = list(merged)
    if not everything:
        assert choice is None
        return
    assert choice is not None
    # Nearest in time; then the earlier; then the first of its moment looking forward, the last looking back.
    ranked = sorted(
        range(len(everything)),
        key=lambda i: (
            abs(everything[i].captured_at - wanted),
            everything[i].captured_at,
            i if everything[i].captured_at >= wanted else -i,
        ),
    )
    best = ranked[0]
    assert choice.closest == everything[best]
    assert choice.prev == (everything[best - 1] if best else None)
    assert choice.next == (everything[best + 1] if best + 1 < len(everything) else None)
    assert (choice.first, choice.last) == (everything[0], everything[-1])


@given(lists(close_moments), st.none() | close_moments, st.none() | close_moments)
def test_a_range_holds_what_lies_in_it(
    timemaps: list[tuple[str, TimeMap]], since: datetime | None, until: datetime | None
) -> None:
    merged = merge(timemaps)
    expected = [
        m for m in merged if (since is None or m.captured_at >= since) and (until is None or m.captured_at <= until)
    ]
    assert list(merged.between(since, until)) == expected


@given(lists(moments).filter(lambda t: len(merge(t)) > 0), moments)
def test_descriptions_and_headers_are_valid_links(timemaps: list[tuple[str, TimeMap]], at: datetime) -> None:
    choice = merge(timemaps).negotiate(at)
    assert choice is not None
    header = link_header(PLACE, choice)
    assert "\n" not in header and "\r" not in header
    links = list(parse_links(header))
    assert [link.target for link in links if "original" in link.rels] == [PLACE.original]
    named = {rel: link for link in links for rel in link.rels if "memento" in link.rels}
    assert named["first"].target == choice.first.uri
    assert named["last"].target == choice.last.uri
    assert all(parse_http_date(link.params["datetime"]) for link in links if "memento" in link.rels)
    assert json.loads(write_memento("json", PLACE, choice))["mementos"]["closest"]["uri"] == choice.closest.uri
    for kind in MEDIA_TYPES:
        body = write_memento(kind, PLACE, choice)
        again = parse_timemap(body, MEDIA_TYPES[kind], "http://agg.example/")
        assert again.problems == ()
        assert {m.uri for m in again} == {
            m.uri for m in (choice.first, choice.prev, choice.closest, choice.next, choice.last) if m
        }


noise = st.text(st.sampled_from("<>;,=\"'\\ \n\tabrel/:.memento{}[]!20150101GMT\x00é"), max_size=120)


def line_of(uri: str, at: datetime) -> str:
    return f'<{uri}>; rel="memento"; datetime="{format_http_date(at)}"'


lines = st.builds(line_of, uris | st.just("https://arc.example/x"), moments)
regular = st.lists(lines, min_size=3, max_size=12)
# Each breaks a line in its own way; read well or badly, all readers must read it alike.
DAMAGE = (
    *(('rel="', 'rel ="'), ('rel="memento"', 'rel="first memento"'), ('rel="memento"', 'rel="timemap"')),
    *(("<http", "< http"), ("<http", "<HTTP"), ("<http:/", "<"), ("http:", "ftp:"), ("arc", "a rc"), ("arc", "a<rc")),
    *(("arc", "a>rc"), ("arc", 'a"rc'), ("arc", "ä"), (" GMT", " UTC"), (" GMT", ""), (" 20", " 0"), ("1", "9")),
    *((", ", ",  "), (":", "6"), ("0", " "), ("2", "25:61:61"), ('GMT"', 'GMT"; license="a, b"'), ('GMT"', "GMT'")),
    *((">; ", ">;"), ('"; datetime', '";datetime'), ("memento", "Memento"), ("datetime", "anchor")),
)
damages = st.tuples(st.integers(0, 11), st.sampled_from(DAMAGE), st.integers(1, 20))
ends = st.sampled_from([",\n"] * 8 + [",\r\n", ", ", "\n", ";\n", ",\n,\n", ",\n\n", ""])
heads = st.sampled_from(
    [
        "",
        '<http://lost.example/>; rel="original",\n',
        '<http://lost.example/>; rel="original",\n<http://arc.example/>; rel="self"; '
        'until="Fri, 01 Jan 2016 00:00:00 GMT",\n',
    ]
)


def by_one_reader(
    text: str, read: Callable[[str, Found], object]
) -> tuple[list[tuple[str, str, str]], tuple[str, ...]]:
    found = Found("http://arc.example/", Problems())
    read(text, found)
    timemap = found.timemap("link")
    return sorted(zip(timemap.moments, timemap.uris, timemap.stems, strict=True)), timemap.problems


def tolerantly(text: str, found: Found) -> None:
    for link in parse_links(text, found.problems):
        found.link(link)


@given(heads, regular, st.lists(damages, max_size=2), st.lists(ends, min_size=12, max_size=12))
def test_lines_read_at_once_are_read_as_one_by_one(
    head: str, rows: list[str], broken: list[tuple[int, tuple[str, str], int]], between: list[str]
) -> None:
    for number, (old, new), times in broken:
        rows[number % len(rows)] = rows[number % len(rows)].replace(old, new, times)
    text = head + "".join(row + end for row, end in zip(rows, between, strict=False))
    fast = by_one_reader(text, lambda text, found: read_well_formed(read_lines(text, found), found))
    assert fast == by_one_reader(text, read_well_formed)


@given(noise, noise, regular)
def test_lines_after_and_before_noise_are_read_as_one_by_one(before: str, after: str, rows: list[str]) -> None:
    text = before + ",\n".join(rows) + after
    fast = by_one_reader(text, lambda text, found: read_well_formed(read_lines(text, found), found))
    assert fast == by_one_reader(text, read_well_formed)


@given(heads, regular, st.lists(damages, max_size=1))
def test_the_fast_path_reads_what_the_tolerant_one_reads(
    head: str, rows: list[str], broken: list[tuple[int, tuple[str, str], int]]
) -> None:
    for number, (old, new), times in broken:
        rows[number % len(rows)] = rows[number % len(rows)].replace(old, new, times)
    text = head + ",\n".join(rows)
    fast, _ = by_one_reader(text, lambda text, found: read_well_formed(read_lines(text, found), found))
    slow, _ = by_one_reader(text, tolerantly)
    assert fast == slow


def test_lines_of_an_archive_are_read_at_once() -> None:
    rows = [line_of(f"https://arc.example/{n}", datetime(2015, 1, 1, n, 59, 59, tzinfo=UTC)) for n in range(24)]
    found = Found("http://arc.example/", Problems())
    rest = read_lines(",\n".join(rows), found)
    assert rest == f"{rows[0]},\n{rows[-1]}"
    assert found.moments == [f"20150101{n:02d}:59:59" for n in range(1, 23)]


@given(lists(moments), st.sampled_from(list(MEDIA_TYPES)), st.floats(0, 1))
def test_a_body_cut_off_anywhere_gives_mementos_that_are_true(
    timemaps: list[tuple[str, TimeMap]], kind: str, share: float
) -> None:
    # URI-Ms without digits, so that only the written datetime gives the time.
    merged = merge([(name, TimeMap.of(Memento(m.uri.replace("20150101000000", "x"), m.captured_at) for m in timemap))
                    for name, timemap in timemaps])  # fmt: skip
    body = b"".join(write_timemap(kind, PLACE, merged))
    part = parse_timemap(body[: int(len(body) * share)], MEDIA_TYPES[kind], PLACE.timemap(kind))
    assert {(m.uri, m.captured_at) for m in part} <= {(m.uri, m.captured_at) for m in merged}


@given(noise | st.text(max_size=60))
@example("<" * 50 + ">" * 50)
@example('<a>; rel="' + '\\"' * 20)
@example('{"mementos": {"list": [{"uri": "\\ud800", "datetime": "2015"}]}}')
@example('{"mementos": {"list": [{"uri": {"a": 1}, "datetime": 3}]}, "original_uri": []}')
@example('[["timestamp"], [1], "x"]')
def test_noise_never_crashes_and_never_makes_an_unsafe_uri(text: str) -> None:
    for body in (text.encode("utf-8", "surrogatepass"), b"\xff" + text.encode("utf-16", "surrogatepass")):
        timemap = parse_timemap(body, "application/link-format", "http://arc.example/timemap/link/x")
        for uri in timemap.uris:
            assert uri == safe_uri(uri)
            assert uri.startswith(("http://", "https://"))
        for _ in timemap:
            pass
        b"".join(write_timemap("link", PLACE, merge([("x", timemap)])))


@given(st.binary(max_size=200))
def test_bytes_never_crash(body: bytes) -> None:
    parse_timemap(body, "", "http://arc.example/")


@given(st.text(), st.text(max_size=30))
def test_resolving_gives_a_safe_web_address_or_nothing(base: str, target: str) -> None:
    for place in (base, f"http://arc.example/{base}"):
        uri = resolve(place, target)
        assert uri is None or (uri == safe_uri(uri) and uri.lower().startswith(("http:", "https:")))


@given(st.text())
def test_a_quoted_value_is_one_value(text: str) -> None:
    (link,) = parse_links(f"<http://x.example/>; title={quote(text)}; rel=memento")
    assert link.rels == ("memento",)
    printable = "".join(c if " " <= c <= "~" else "?" for c in text)
    assert link.params["title"] == printable


@pytest.mark.parametrize(
    "body",
    [
        "<" * 300_000,
        "<http:// " * 40_000,
        "<http://a.example/ <http://a.example/" * 10_000 + ">",
        "< " + " " * 300_000,
        ">" * 300_000,
        '<http://a.example/>; rel="' * 15_000,
        "<http://a.example/>;" + " " * 300_000 + "x",
        "<http://a.example/>; " + "a" * 300_000,
        "{" * 300_000,
        '{"a":' * 50_000,
        "[" * 100_000,
        "20150101000000 {" * 20_000,
    ],
    ids=range(12),
)
def test_hostile_bodies_are_read_in_linear_time(body: str) -> None:
    import time

    started = time.process_time()
    parse_timemap(body.encode(), "application/link-format", "http://arc.example/")
    # Generous: quadratic reading of any of these takes minutes.
    assert time.process_time() - started < 5


def test_an_empty_answer_is_valid_in_every_format() -> None:
    for kind in MEDIA_TYPES:
        body = b"".join(write_timemap(kind, PLACE, Mementos()))
        assert len(parse_timemap(body, MEDIA_TYPES[kind], PLACE.timemap(kind))) == 0
    assert json.loads(b"".join(write_timemap("json", PLACE, Mementos())))["mementos"] == {"list": []}


@given(lists(close_moments), st.sampled_from(list(MEDIA_TYPES)), st.integers(150, 600))
def test_reading_and_merging_in_pieces_changes_nothing(
    timemaps: list[tuple[str, TimeMap]], kind: str, size: int
) -> None:
    whole = merge(timemaps)
    body = b"".join(write_timemap(kind, PLACE, whole))
    read = parse_timemap(body, MEDIA_TYPES[kind], PLACE.timemap(kind))
    listed = sorted(zip(read.moments, read.uris, read.stems, strict=True))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(read_module, "PIECE", size)
        patched.setattr(read_module, "_LONG", 1)
        patched.setattr(structured, "_LARGE", 1)
        patched.setattr(model, "_PIECE", 1 + size % 5)
        again = parse_timemap(body, MEDIA_TYPES[kind], PLACE.timemap(kind))
        assert sorted(zip(again.moments, again.uris, again.stems, strict=True)) == listed
        assert again.problems == read.problems
        assert merge(timemaps) == whole


@given(st.text(alphabet='<>;,"= ahtp:/\n', max_size=200), st.integers(1, 20))
def test_pieces_are_the_text(text: str, size: int) -> None:
    pieces = list(pieces_of(text.encode(), size))
    assert b"".join(pieces) == text.encode()
    assert all(len(piece) <= 4 * size for piece in pieces)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.sampled_from([None, 2]),
)
def test_json_in_pieces_is_json(document: object, indent: int | None) -> None:
    text = json.dumps(document, indent=indent)
    assert structured._in_pieces(text, Problems(), lambda: False) == document
    for cut in range(max(0, len(text) - 40), len(text)):
        try:
            expected = json.loads(text[:cut])
        except ValueError:
            with pytest.raises(ValueError):
                structured._in_pieces(text[:cut], Problems(), lambda: False)
        else:
            assert structured._in_pieces(text[:cut], Problems(), lambda: False) == expected


@pytest.mark.parametrize("kind", ["link", "json", "cdxj"])
def test_reading_ends_on_request_and_keeps_what_was_read(kind: str) -> None:
    start = datetime(2001, 1, 1, tzinfo=UTC)
    many = merge(
        [("a", TimeMap.of(Memento(f"http://a.example/{n}", start + timedelta(hours=n)) for n in range(30_000)))]
    )
    body = b"".join(write_timemap(kind, PLACE, many))
    read = parse_timemap(body, MEDIA_TYPES[kind], PLACE.timemap(kind), stop=lambda: True)
    assert 1000 < len(read) < 30_000
    assert read.missing == "it came too late to be read whole"
