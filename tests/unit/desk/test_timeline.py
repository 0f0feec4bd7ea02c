"""The life of a site on its page: each period of an owner has its place, its colour and its words."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.desk.http import views_job
from recollect.ui.messages import using

COLOURS = {"own": "good", "other": "bad", "parked": "warn"}
_owners = st.lists(
    st.tuples(st.sampled_from(sorted(COLOURS)), st.integers(30, 2000)), min_size=1, max_size=6
)  # owner, days until the next


def summary_of(periods: list[tuple[str, int]]) -> dict[str, Any]:
    owners, day = [], date(2001, 3, 1)
    for owner, days in periods:
        last = day + timedelta(days=days - 1)
        owners.append({"owner": owner, "from": f"{day}T00:00:00Z", "to": f"{last}T00:00:00Z"})
        day += timedelta(days=days)
    return {"owners": owners, "years": {"one": {"2001": 3, str(day.year): 1}}}


@given(_owners)
def test_periods_follow_each_other_without_gap_in_the_colours_of_their_owners(periods: list[tuple[str, int]]) -> None:
    summary = summary_of(periods)
    spans = views_job._spans(summary, [2001, 2030])
    assert [str(span.first) for span in spans] == [one["from"][:10] for one in summary["owners"]]
    assert all(one.last == after.first for one, after in pairwise(spans)) and spans[-1].last == date(2030, 12, 31)
    assert [span.colour for span in spans] == [COLOURS[owner] for owner, _ in periods]
    chart = views_job._life(summary)
    assert chart is not None
    drawn = [shape for shape in chart.drawings[0].shapes if str(shape.attributes.get("class", "")).startswith("span-")]
    assert len(drawn) == len(periods), "each is drawn"


@pytest.mark.parametrize(
    ("periods", "words"),
    [
        ([("own", 900)], "The copies are from 2001 to 2003."),
        ([("own", 900), ("other", 400)], "Yours until August 2003, then another owner."),
        ([("own", 900), ("parked", 200)], "The site was yours until 2003, then parked (2003 to 2004)."),
        (
            [("own", 900), ("other", 400), ("own", 800)],
            "The site was yours until 2003, then another owner (2003 to 2004), then yours again until 2006.",
        ),
    ],
)
def test_the_sentence_tells_whose_site_it_was(periods: list[tuple[str, int]], words: str) -> None:
    summary = summary_of(periods)
    ends = [one["from"] for one, before in zip(summary["owners"][1:], summary["owners"], strict=False)]
    if periods[-1][0] != "own":
        summary["ended_at"] = ends[-1]
    years = sorted(summary["years"]["one"])
    with using("en"):
        assert views_job._life_words(summary, years[0], years[-1]).startswith(words)
    with using("de"):
        assert views_job._life_words(summary, years[0], years[-1]) != words


def test_nothing_is_said_of_years_of_which_nothing_is_known() -> None:
    owners = [
        {"owner": "own", "from": "2008-04-01T00:00:00Z", "to": "2012-04-01T00:00:00Z"},
        {"owner": "other", "from": "2019-06-01T00:00:00Z", "to": "2021-06-01T00:00:00Z"},
    ]
    summary = {"owners": owners, "years": {"one": {"2010": 1, "2012": 5}}, "ended_at": "2019-06-01T00:00:00Z"}
    own, other = views_job._spans(summary, [2010, 2012])
    assert (own.last, other.first, other.last) == (date(2012, 4, 1), date(2019, 6, 1), date(2021, 6, 1))
    with using("en"):
        words = views_job._life_words(summary, "2010-04-01", "2012-04-01")
    assert words.startswith("Yours until April 2012 at least; June 2019 is the first copy of another owner.")


def test_archives_go_by_their_names() -> None:
    chart = views_job._life({"years": {"one": {"2010": 1}}}, {"one": "The First Archive"})
    assert chart is not None
    assert any("The First Archive" in (shape.text or "") for drawing in chart.drawings for shape in drawing.shapes)


def test_a_worker_of_another_version_cannot_break_the_page() -> None:
    broken = [{"owner": "pirates", "from": "2001", "to": ""}, {"owner": "own", "from": "2003-01-01", "to": "x"}]
    summary = {"owners": broken, "years": {"one": {"2001": 1, "x": 2}}}
    assert views_job._life(summary) is not None and views_job._life_words(summary, "2001-01-01", "2001-02-01")
