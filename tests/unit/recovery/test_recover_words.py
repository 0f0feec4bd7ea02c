"""What the flags of survey and recover mean, and what they say while they work."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from recollect.errors import UsageError
from recollect.recovery.cli.recover import _quota
from recollect.recovery.cli.summary import _timeline, show_survey, status_words
from recollect.recovery.meter import Quota
from recollect.recovery.options import Options
from recollect.recovery.outputs import Outputs
from recollect.recovery.progress import Status
from recollect.recovery.scope import Scope
from recollect.recovery.store import Store
from recollect.recovery.survey import ArchiveSurvey, ListingState, Survey


@pytest.mark.parametrize(
    ("text", "name", "quota"),
    [
        ("1000", "*", Quota(1000, 86400)),
        ("ia=1000/day", "ia", Quota(1000, 86400)),
        ("5/min", "*", Quota(5, 60)),
        ("5/10min", "*", Quota(5, 600)),
        ("x.y-z=7/hours", "x.y-z", Quota(7, 3600)),
    ],
)
def test_quotas(text: str, name: str, quota: Quota) -> None:
    assert _quota(text) == (name, quota)


@pytest.mark.parametrize("text", ["", "x", "ia=", "5/year", "-3"])
def test_what_is_not_a_quota(text: str) -> None:
    with pytest.raises(UsageError):
        _quota(text)


def test_options_survive_the_journal() -> None:
    options = Options(Scope(("http://a.example/",)), policy="naive", limit=3, quotas={"*": Quota(5, 60.0)})
    assert Options.from_json(options.to_json()) == options


def test_a_status_in_one_line() -> None:
    status = Status(
        "recovering", {"page": 3, "asset": 4}, {"page": 1}, {"asset": 2}, {"ia": 9}, {"ia": 91}, {"ia": 30.0}, 12.0
    )
    assert status_words(status) == (
        "pages + assets: found 3 + 4, left 1 + 0, missing 0 + 2"
        " · 12 s to go · ia pauses for 30 s · 9 requests · ia 91 left"
    )
    assert status_words(Status("listing", listed=1234)) == "listing: 1,234 captures"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (ListingState.COMPLETE, "No archive lists any capture of it."),
        (ListingState.FAILED, "whether there are any is not known"),
        (ListingState.TRUNCATED, "whether there are any is not known"),
    ],
)
def test_an_archive_that_did_not_answer_may_hold_captures(state: ListingState, words: str) -> None:
    out = io.StringIO()
    show_survey(Survey(("http://x.com/",), (ArchiveSurvey("a", "A", state),)), out)
    assert words in out.getvalue()


def test_the_timeline_shows_years_without_captures_too() -> None:
    lines = _timeline({2008: 8, 2010: 1}).splitlines()
    assert lines[1].split() == ["2008", "2009", "2010"] and lines[2].split() == ["8", "0", "1"]
    assert "████" in lines[0] and "▁▁▁▁" in lines[0]


def test_a_resumed_recovery_writes_what_it_wrote_before_except_for_new_options(tmp_path: Path) -> None:
    from recollect.recovery.cli.recover import _outputs

    with Store.create(tmp_path) as store:
        store.set_meta("outputs", Outputs(wacz=False, missing="keep").to_json())
    nothing = dict.fromkeys(("no_tree", "no_warc", "no_wacz", "no_kit", "summary", "missing"))
    assert _outputs(nothing, tmp_path) == Outputs(wacz=False, missing="keep")
    assert _outputs({**nothing, "missing": "neutral", "no_kit": True}, tmp_path) == Outputs(wacz=False, kit=False)
    assert _outputs(nothing, None) == Outputs()
