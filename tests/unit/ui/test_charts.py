"""Charts keep their promises for any data: axes true to time, gaps as gaps, labels apart."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.ui import charts
from recollect.ui.charts import Chart, Drawing, text_width

_names = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=40)
_counts = st.dictionaries(_names, st.one_of(st.none(), st.integers(0, 10**9)), max_size=40)
_dates = st.dates(date(1990, 1, 1), date(2030, 1, 1))


def _texts(drawing: Drawing) -> list[tuple[float, float, float]]:
    """(height, left, right) of every text."""
    found = []
    for shape in drawing.shapes:
        if shape.element == "text" and shape.text:
            x, y = float(shape.attributes["x"]), float(shape.attributes["y"])
            wide = text_width(shape.text)
            left = (
                x - {"start": 0.0, "middle": wide / 2, "end": wide}[str(shape.attributes.get("text-anchor", "start"))]
            )
            found.append((y, left, left + wide))
    return found


def _apart(chart: Chart) -> None:
    for drawing in chart.drawings:
        texts = sorted(_texts(drawing))
        for (y, _, end), (next_y, start, _) in pairwise(texts):
            assert y != next_y or start >= end, texts


@given(_counts, st.booleans())
def test_labels_of_columns_do_not_touch_and_the_table_has_every_figure(
    counts: dict[str, int | None], log: bool
) -> None:
    chart = charts.columns(counts, "Copies", ("year", "copies"), log=log)
    _apart(chart)
    assert [row[0] for row in chart.rows] == list(counts)


@given(_counts)
def test_a_missing_value_is_drawn_as_a_gap_and_not_as_zero(counts: dict[str, int | None]) -> None:
    for drawing in charts.columns(counts, "Copies", ("year", "copies")).drawings:
        gaps = [shape for shape in drawing.shapes if shape.attributes.get("class") == "gap"]
        assert len(gaps) == sum(value is None for value in counts.values())


@given(
    st.lists(
        st.tuples(_dates, st.one_of(st.none(), st.floats(0, 1e9))), min_size=2, max_size=30, unique_by=lambda p: p[0]
    )
)
def test_a_time_axis_is_true_to_time(points: list[tuple[date, float | None]]) -> None:
    points.sort()
    chart = charts.lines({"a": points}, "Values", "date")
    first, last = points[0][0], points[-1][0]
    for drawing in chart.drawings:
        xs = [float(s.attributes["cx"]) for s in drawing.shapes if s.element == "circle"]
        known = [at for at, value in points if value is not None]
        assert len(xs) == len(known)
        for at, x in zip(known, xs, strict=True):
            share = (at - first) / (last - first)
            assert x == pytest.approx(48 + (drawing.width - 54) * share, abs=0.11)
        lines = sum(shape.element == "polyline" for shape in drawing.shapes)
        assert lines == len(charts.unbroken([(datetime(a.year, a.month, a.day, tzinfo=UTC), v) for a, v in points]))
    _apart(chart)


@given(st.dictionaries(_names, st.dictionaries(st.integers(1990, 2030), st.integers(1, 10**7)), max_size=40), _dates)
def test_the_life_of_a_site_stays_inside_of_its_drawing(counts: dict[str, dict[int, int]], at: date) -> None:
    spans = [charts.Span(at, at + timedelta(days=900), "bad", "another owner")]
    moments = [charts.Moment(at, "chosen"), charts.Moment(at + timedelta(days=3), "the last good copy of all")]
    for drawing in charts.life(counts, "Life", ("year", "copies"), spans=spans, moments=moments).drawings:
        for shape in drawing.shapes:
            if shape.element == "circle":
                x, r = float(shape.attributes["cx"]), float(shape.attributes["r"])
                assert x - r >= 0 and x + r <= drawing.width + 1
            if shape.element == "text":
                assert float(shape.attributes["y"]) <= drawing.height
        for _, left, right in _texts(drawing):
            assert (left >= -1 and right <= drawing.width + 1) or right - left > drawing.width


@given(st.floats(0, 1e12), st.booleans())
def test_ticks_are_round_and_reach_the_largest_value(most: float, log: bool) -> None:
    found = charts.ticks(most, log)
    assert found[-1] >= most * (1 - 1e-9) and found == sorted(set(found))
    assert len(found) <= (14 if log else 7)


def test_a_donut_has_the_whole_in_its_parts() -> None:
    chart = charts.donut({"a": 3, "b": 1}, ["good", "bad"], "Parts", ("part", "files"), "75%")
    [drawing] = chart.drawings
    parts = [
        str(shape.attributes["stroke-dasharray"]) for shape in drawing.shapes if "stroke-dasharray" in shape.attributes
    ]
    assert sum(float(re.split(" ", part)[0]) for part in parts) == pytest.approx(339.3, abs=0.2)
