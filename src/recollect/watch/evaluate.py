"""How good a watch is: synthetic lives and labelled pages together, with the figures it must reach.

Hides nothing: counts what `lives` and `labelled` give.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from recollect.watch.labelled import Label, judged_pages
from recollect.watch.lives import Figures, Story, evaluate_lives

MOST_FALSE_ALARMS = 0.05
MOST_DAYS = 8.0
LEAST_DETECTED = 0.95
MOST_FALSE_PAGES = 0.04


@dataclass(frozen=True, slots=True)
class Pages:
    """How the signals did on pages of one half of the sites."""

    half: str
    counts: dict[Label, tuple[int, int]]
    """For each label, how many pages there were and how many were called foreign."""

    @property
    def detected(self) -> float:
        return self._share(True)

    @property
    def false_alarms(self) -> float:
        return self._share(False)

    def _share(self, foreign: bool) -> float:
        mine = [pair for label, pair in self.counts.items() if label.foreign == foreign]
        return sum(called for _, called in mine) / sum(total for total, _ in mine)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All figures."""

    lives: tuple[Figures, ...]
    train: Pages
    test: Pages

    @property
    def false_alarms(self) -> float:
        """A site and year, over all stories."""
        return sum(one.false_alarms * one.years for one in self.lives) / sum(one.years for one in self.lives)

    @property
    def loss(self) -> Figures:
        return next(one for one in self.lives if one.story is Story.LOSS)

    @property
    def good(self) -> bool:
        days = self.loss.days_median
        return (
            self.false_alarms <= MOST_FALSE_ALARMS
            and days is not None
            and days <= MOST_DAYS
            and self.test.detected >= LEAST_DETECTED
            and self.test.false_alarms <= MOST_FALSE_PAGES
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "false_alarms_per_site_year": self.false_alarms,
            "loss_days_median": self.loss.days_median,
            "takeover_detected": self.test.detected,
            "takeover_false_alarms": self.test.false_alarms,
            "good": self.good,
            "lives": [asdict(one) for one in self.lives],
            "pages": [
                {"half": half.half, "detected": half.detected, "false_alarms": half.false_alarms}
                | {"labels": {label.value: {"pages": n, "foreign": m} for label, (n, m) in half.counts.items()}}
                for half in (self.train, self.test)
            ],
        }


def evaluate(lives: int, sites: int, seed: int) -> Evaluation:
    """Replay `lives` lives of each story, and judge pages of `sites` generated sites."""
    pages: Counter[tuple[bool, Label]] = Counter()
    foreign: Counter[tuple[bool, Label]] = Counter()
    for page in judged_pages(sites, seed):
        pages[page.test, page.label] += 1
        foreign[page.test, page.label] += page.foreign

    def half(name: str, test: bool) -> Pages:
        return Pages(name, {label: (pages[test, label], foreign[test, label]) for label in Label})

    return Evaluation(tuple(evaluate_lives(lives, seed)), half("train", False), half("test", True))
