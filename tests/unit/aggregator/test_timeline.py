"""The timeline: well-formed whatever it is given, bounded however much there is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.aggregator.http.timeline import BINS, LEFT, RIGHT, WIDTH, Scale, timeline
from recollect.formats.timemap import Memento, Mementos, TimeMap, merge

SVG = ElementTree.Element


def captures(*moments: datetime, archive: str = "a") -> tuple[str, TimeMap]:
    return archive, TimeMap.of(Memento(f"http://x.example/{archive}/{n}", at) for n, at in enumerate(moments))


def drawn(mementos: Mementos, names: dict[str, str] | None = None) -> SVG:
    return ElementTree.fromstring(timeline(mementos, names or {}))


moments = st.datetimes(datetime(1990, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))


@given(st.lists(moments, min_size=1, max_size=30), st.text(max_size=40))
def test_every_capture_is_in_one_mark_of_a_well_formed_picture(times: list[datetime], name: str) -> None:
    mementos = merge([captures(*times)])
    printable = "".join(c for c in name if c.isprintable())
    picture = drawn(mementos, {"a": printable})
    labels = [mark.get("aria-label", "") for mark in picture.iter("a") if "#" not in mark.get("href", "")]
    assert sum(int(label.rpartition(": ")[2].split(" ")[0]) for label in labels) == len(mementos)
    for circle in picture.iter("circle"):
        assert LEFT <= float(circle.get("cx", "0")) <= WIDTH - RIGHT
    for line in picture.iter("line"):
        assert 0 <= float(line.get("x1", "0")) <= WIDTH


@given(moments, st.timedeltas(timedelta(0), timedelta(days=40_000)))
def test_scales_hold_their_captures_and_have_few_labels(first: datetime, span: timedelta) -> None:
    last = first + min(span, datetime.max.replace(tzinfo=UTC) - first)
    scale = Scale.around(first, last)
    assert scale.start <= first <= last <= scale.end
    assert 1 <= len(scale.ticks()) <= 26
    assert all(LEFT - 1 <= x <= WIDTH for x, _ in scale.ticks())


def test_a_hundred_thousand_captures_make_no_larger_picture_than_its_bins() -> None:
    start = datetime(2000, 1, 1, tzinfo=UTC)
    many = merge([captures(*(start + timedelta(hours=n) for n in range(100_000)))])
    picture = timeline(many, {})
    assert picture.count("<circle") <= BINS
    assert len(picture) < 100_000


def test_rows_are_archives_with_most_captures_first() -> None:
    start = datetime(2010, 5, 1, tzinfo=UTC)
    few, more = captures(start, archive="few"), captures(start, start + timedelta(days=400), archive="more")
    picture = drawn(merge([few, more]), {"few": "Few", "more": "More"})
    names = [text.text for text in picture.iter("text") if text.get("class") == "row-name"]
    assert names == ["More", "Few"]


def test_a_mark_leads_to_the_middle_capture_of_its_bin() -> None:
    start = datetime(2010, 5, 1, tzinfo=UTC)
    picture = drawn(merge([captures(start, start + timedelta(seconds=1), start + timedelta(seconds=2))]))
    (mark,) = [mark for mark in picture.iter("a") if "#" not in mark.get("href", "")]
    assert mark.get("href") == "http://x.example/a/1"
    assert mark.get("aria-label") == "a: 3 captures, 1 May 2010"


@pytest.mark.parametrize("name", ["<script>x</script>", "\"'&<>", "a" * 200])
def test_names_stay_text(name: str) -> None:
    picture = drawn(merge([captures(datetime(2010, 5, 1, tzinfo=UTC))]), {"a": name})
    assert not list(picture.iter("script"))
    titles = [title.text for title in picture.iter("title")]
    assert name in titles
