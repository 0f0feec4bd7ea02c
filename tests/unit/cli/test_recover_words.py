"""What the flags of survey and recover mean, and what they say while they work."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.cli.recover import _moment, _quota, _size
from recollect.cli.recoverytalk import _timeline, duration, status_words
from recollect.errors import UsageError
from recollect.recovery.crawl import Status
from recollect.recovery.meter import Quota
from recollect.recovery.options import Options
from recollect.recovery.scope import Scope


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2009", datetime(2009, 1, 1, tzinfo=UTC), datetime(2009, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("2009-02", datetime(2009, 2, 1, tzinfo=UTC), datetime(2009, 2, 28, 23, 59, 59, tzinfo=UTC)),
        ("2009-06-01", datetime(2009, 6, 1, tzinfo=UTC), datetime(2009, 6, 1, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_a_date_at_the_end_of_a_range_includes_all_of_it(text: str, first: datetime, last: datetime) -> None:
    assert (_moment(text), _moment(text, end=True)) == (first, last)


def test_dates_in_other_forms_and_nonsense() -> None:
    assert _moment("2009-06-01T12:30:00Z") == datetime(2009, 6, 1, 12, 30, tzinfo=UTC)
    assert _moment(None) is None
    with pytest.raises(UsageError, match="not a date"):
        _moment("someday")


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
def test_what_is_no_quota(text: str) -> None:
    with pytest.raises(UsageError):
        _quota(text)


def test_sizes() -> None:
    assert [_size(text) for text in ("5", "10kB", "2.5MB", "1g")] == [5, 10_000, 2_500_000, 10**9]
    with pytest.raises(UsageError):
        _size("much")


def test_options_survive_the_journal() -> None:
    options = Options(Scope(("http://a.example/",)), policy="naive", limit=3, quotas={"*": Quota(5, 60.0)})
    assert Options.from_json(options.to_json()) == options


def test_durations_are_words() -> None:
    said = [duration(s) for s in (0.2, 45, 600, 8000, 400_000)]
    assert said == ["under a second", "45 s", "10 min", "2 h 13 min", "5 days"]


def test_a_status_in_one_line() -> None:
    status = Status(
        "recovering", {"page": 3, "asset": 4}, {"page": 1}, {"asset": 2}, {"ia": 9}, {"ia": 91}, {"ia": 30.0}, 12.0
    )
    assert status_words(status) == (
        "pages + assets: found 3 + 4, left 1 + 0, missing 0 + 2"
        " · 12 s to go · ia asks us to wait 30 s · 9 requests · ia 91 left"
    )
    assert status_words(Status("listing", listed=1234)) == "listing: 1,234 captures"


def test_the_timeline_shows_years_without_captures_too() -> None:
    lines = _timeline({2008: 8, 2010: 1}).splitlines()
    assert lines[1].split() == ["2008", "2009", "2010"] and lines[2].split() == ["8", "0", "1"]
    assert "████" in lines[0] and "▁▁▁▁" in lines[0]
