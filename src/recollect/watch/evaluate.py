"""How good a watch is: synthetic lives and labelled pages together, with the figures it must reach.

Hides nothing: counts what `lives` and `labelled` give.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recollect.watch.labelled import Label, Pages, judged_pages
from recollect.watch.lives import Figures, Story, evaluate_lives
from recollect.watch.realpages import RealPages, judge_pages

MOST_FALSE_ALARMS = 0.05
MOST_DAYS = 8.0
LEAST_DETECTED = 0.95
MOST_FALSE_PAGES = 0.04


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All figures."""

    lives: tuple[Figures, ...]
    train: Pages
    test: Pages
    real: RealPages | None = None

    @property
    def false_alarms(self) -> float:
        """A site and year, over all stories."""
        return sum(one.false_alarms * one.years for one in self.lives) / sum(one.years for one in self.lives)

    @property
    def false_warnings(self) -> float:
        """Of certificates that were renewed later, a site and year, over all stories."""
        return sum(one.false_warnings * one.years for one in self.lives) / sum(one.years for one in self.lives)

    def of(self, story: Story) -> Figures:
        return next(one for one in self.lives if one.story is story)

    @property
    def loss(self) -> Figures:
        return self.of(Story.LOSS)

    @property
    def good(self) -> bool:
        days = self.loss.days_median
        pages = [self.test, *((self.real.pages,) if self.real is not None else ())]
        return (
            self.false_alarms <= MOST_FALSE_ALARMS
            and days is not None
            and days <= MOST_DAYS
            and all(one.detected is None or one.detected >= LEAST_DETECTED for one in pages)
            and all(one.false_alarms is None or one.false_alarms <= MOST_FALSE_PAGES for one in pages)
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "false_alarms_per_site_year": self.false_alarms,
            "loss_days_median": self.loss.days_median,
            "certificate_warned": self.of(Story.EXPIRED).warned,
            "certificate_warned_days": self.of(Story.EXPIRED).warned_days,
            "certificate_false_warnings_per_site_year": self.false_warnings,
            "takeover_detected": self.test.detected,
            "takeover_false_alarms": self.test.false_alarms,
            "good": self.good,
            "lives": [asdict(one) for one in self.lives],
            "pages": [{"half": half.name, **_shares(half)} for half in (self.train, self.test)],
            "real": None
            if self.real is None
            else {"sites": self.real.sites, "past": self.real.past, **_shares(self.real.pages)}
            | {"wrong": list(self.real.wrong)},
        }


def _shares(pages: Pages) -> dict[str, Any]:
    labels = {label.value: {"pages": shown, "foreign": called} for label, (shown, called) in pages.counts.items()}
    return {"detected": pages.detected, "false_alarms": pages.false_alarms, "labels": labels}


def evaluate(lives: int, sites: int, seed: int, folder: Path | None = None) -> Evaluation:
    """Replay `lives` lives of each story, and judge pages of `sites` generated sites, and those of a folder."""
    pages: Counter[tuple[bool, Label]] = Counter()
    foreign: Counter[tuple[bool, Label]] = Counter()
    for page in judged_pages(sites, seed):
        pages[page.test, page.label] += 1
        foreign[page.test, page.label] += page.foreign

    def half(name: str, test: bool) -> Pages:
        return Pages(name, {label: (pages[test, label], foreign[test, label]) for label in Label})

    real = judge_pages(folder) if folder is not None else None
    return Evaluation(tuple(evaluate_lives(lives, seed)), half("train", False), half("test", True), real)
