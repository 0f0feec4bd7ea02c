"""Chances of wildcards: counts matter, a fit recovers known odds, reliability and Brier score are measured."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from recollect.cli.main import run
from recollect.errors import FormatError
from recollect.formats.frequency import Frequency
from recollect.maps.calibration import PRIOR, Case, Model, calibration_of, case_of, fit

KEY = b"pt,site)/a/b"


def chance(wildcard: str, frequency: str, bits: int = 0) -> float:
    return PRIOR.chance(case_of(wildcard.encode(), Frequency.parse(frequency), KEY, bits=bits))


def test_counts_depth_and_sets_change_the_chance() -> None:
    assert chance("pt,site,*", "2/2") < chance("pt,site,*", "1000000/500000")
    assert chance("pt,*", "1000/500") < chance("pt,site,*", "1000/500") < chance("pt,site)/a/*", "1000/500")
    assert chance("pt,site,*", "20/20") < chance("pt,site,*", "20/20", bits=6)
    for odd in ("/", "5", "/5", "0+/0+", f"{2**62}/{2**62}"):
        assert 0 < chance("*", odd) < 1 and 0 < chance("pt,site)/a/b/*", odd) < 1


def test_a_fit_recovers_known_odds_and_few_cases_change_little() -> None:
    random_ = random.Random(1)
    truth = Model((-1.0, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), "known")
    cases = [Case(random_.choice([1, 10, 1000]), None, 2, 0, 2, False) for _ in range(20_000)]
    held = [random_.random() < truth.chance(case) for case in cases]
    model = fit(cases, held, "test")
    for case in set(cases):
        assert model.chance(case) == pytest.approx(truth.chance(case), abs=0.03)
    few = fit(cases[:2], [True, True], "test")
    assert few.chance(cases[0]) < 0.7 and fit([], [], "test") == PRIOR


def test_a_learned_model_is_read_back_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    model = Model(tuple(number / 8 for number in range(9)), "a log", 7)
    model.save(tmp_path / "chances.json")
    assert Model.load(tmp_path / "chances.json") == model
    for text in ("{", "[]", '{"version": 1, "weights": {"one": "NaN"}, "fitted_on": "", "cases": 1}', "\xff"):
        (tmp_path / "bad.json").write_text(text, "latin-1")
        with pytest.raises(FormatError):
            Model.load(tmp_path / "bad.json")


def test_reliability_brier_and_curve() -> None:
    found = calibration_of([0.9, 0.9, 0.2, 0.0], [True, False, False, False], 3, "test")
    assert found is not None and found.brier == pytest.approx((0.01 + 0.81 + 0.04) / 4)
    assert found.brier_base == pytest.approx(0.25 * 0.75)
    assert [(one.lookups, one.observed) for one in found.bins] == [(1, 0.0), (1, 0.0), (2, 0.5)]
    assert [(point.precision, point.recall, point.asked) for point in found.curve] == [
        (0.5, 1.0, 0.5),
        (0.25, 1.0, 1.0),
    ]
    assert calibration_of([], [], 0, "test") is None


def test_evaluate_measures_and_learns_chances(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = '!fields {keys: ["surt"], values: ["frequency"]}\n'
    held = [f"com,site{number})/p{page}" for number in range(30) for page in range(3)]
    (tmp_path / "all.ukvs").write_text(head + "".join(f"{key} 1/1\n" for key in sorted(held)))
    wild = [f"com,site{number})/* 3/3\n" for number in range(30)]
    (tmp_path / "map.ukvs").write_text(head + "".join(sorted(wild)))
    (tmp_path / "log.txt").write_text("".join(f"{key}\n{key.replace('/p', '/q')}\n" for key in held))
    command = ["evaluate", str(tmp_path / "map.ukvs"), "--holdings", str(tmp_path / "all.ukvs")]
    command += ["--lookups", str(tmp_path / "log.txt"), "--json", "--learn", str(tmp_path / "chances.json")]
    assert run(command) == 0
    shipped = json.loads(capsys.readouterr().out)["maps"][0]
    assert run([*command, "--chances", str(tmp_path / "chances.json")]) == 0
    learned = json.loads(capsys.readouterr().out)["maps"][0]
    assert learned["calibration"]["by_wildcards"] == 180
    assert learned["calibration"]["brier"] == pytest.approx(0.25, abs=0.02)  # half of them are held
    assert learned["calibration"]["brier"] < shipped["calibration"]["brier"]
    assert shipped["precision_recall"][-1]["recall"] == 1 and "TimeMaps" in shipped["calibration"]["model"]
