"""The figures that a watch must reach, on lives and pages that nothing was tuned on."""

from __future__ import annotations

import json
import random

import pytest

from recollect.cli import main
from recollect.watch.lives import Life, Story, make_life, replay


def test_few_false_alarms_and_quick_detection(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["watch", "evaluate", "--lives", "100", "--sites", "80", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["false_alarms_per_site_year"] <= 0.05
    assert 7 <= told["loss_days_median"] <= 8
    assert told["takeover_detected"] >= 0.95
    assert told["takeover_false_alarms"] <= 0.04
    by_story = {one["story"]: one for one in told["lives"]}
    assert all(by_story[name]["detected"] >= 0.99 for name in ("loss", "parking", "takeover", "moved", "return"))
    assert by_story["steady"]["detected"] is None


def test_a_life_without_outages_raises_no_alarm_and_a_long_outage_one() -> None:
    quiet = Life(Story.STEADY, 365, 730, (), False, 0)
    assert replay(quiet, random.Random(1)).false_alarms == 0
    broken = Life(Story.STEADY, 365, 730, ((100.0, 120.0),), False, 0)
    assert replay(broken, random.Random(1)).false_alarms == 1


def test_the_same_seed_is_the_same_life() -> None:
    first, second = (make_life(Story.LOSS, random.Random(3)) for _ in range(2))
    assert first == second


def test_figures_that_are_too_bad_are_an_error() -> None:
    from dataclasses import replace

    from recollect.watch.evaluate import evaluate

    done = evaluate(20, 10, 1)
    assert not replace(done, lives=tuple(replace(one, false_alarms=0.06) for one in done.lives)).good
    assert not replace(done, lives=tuple(replace(one, days_median=8.1) for one in done.lives)).good
