"""Lives of sites against an oracle that knows who owned each capture."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from experiments.replayed import errors_of, replay
from experiments.site_stories import STORIES, make_story

from recollect.recovery.ownership import Owner

# A taker who copies design, addresses and names, and changes only the texts, differs in these alone.
MOST_FOREIGN = {"copied": 0.05, "returned": 0.03}


@pytest.mark.parametrize("kind", STORIES)
def test_pages_come_from_the_owners_years_or_not_at_all(kind: str) -> None:
    total: Counter[str] = Counter()
    stories = 6
    for seed in range(9000, 9000 + stories):
        story = make_story(kind, seed)
        total.update(errors_of(story, replay(story)))
    assert total["foreign taken"] <= MOST_FOREIGN.get(kind, 0.0) * total["own pages"], total
    assert total["own lost"] <= 0.02 * total["own pages"], total
    assert total["end wrong"] <= (1 if kind == "copied" else 0), total
    assert total["looks"] <= 10 * stories, total


def test_the_story_of_figure_34_has_its_periods() -> None:
    done = replay(make_story("figure34", 9000))
    owners = [period.owner for period in done.ownership.periods]
    assert owners[0] is Owner.OWN and set(owners[1:]) <= {Owner.OTHER, Owner.PARKED}
    assert all(first.end <= second.start for first, second in pairwise(done.ownership.periods))


def test_a_site_that_was_sold_and_came_back_has_a_gap() -> None:
    done = replay(make_story("returned", 9001))
    owners = [period.owner for period in done.ownership.periods]
    assert owners[0] is owners[-1] is Owner.OWN and Owner.OTHER in owners and done.ownership.ended_at is None
