"""Datetimes of web archives in all their spellings."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.datetimes import (
    asked_digits,
    format_day,
    format_http_date,
    format_iso,
    format_timestamp,
    parse_any,
    parse_asked,
    parse_http_date,
    parse_or_none,
    parse_timestamp,
)
from recollect.errors import FormatError, UsageError


def utc(*fields: int) -> datetime:
    return datetime(*fields, tzinfo=UTC)  # type: ignore[arg-type, misc]


ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29), timezones=ZONES).map(
    lambda moment: moment.replace(microsecond=0)
)


@given(MOMENTS)
def test_what_is_written_is_read_back(moment: datetime) -> None:
    for write, read in (
        (format_timestamp, parse_timestamp),
        (format_http_date, parse_http_date),
        (format_iso, parse_any),
        (format_timestamp, parse_any),
        (format_http_date, parse_any),
    ):
        back = read(write(moment))
        assert back == moment
        assert back.tzinfo is UTC


@given(MOMENTS, MOMENTS)
def test_timestamps_and_iso_sort_as_time_does(a: datetime, b: datetime) -> None:
    assert (format_timestamp(a) < format_timestamp(b)) == (a < b)
    assert (format_iso(a) < format_iso(b)) == (a < b)


@given(st.integers(0, 99_999_999_999_999).map(lambda number: f"{number:014d}"), st.sampled_from([4, 6, 8, 10, 12, 14]))
@example("00000000000000", 14)
@example("99999999999999", 14)
@example("20190231000000", 8)
def test_any_digits_are_some_moment_and_its_first_is_not_after_its_last(digits: str, length: int) -> None:
    first, last = parse_timestamp(digits[:length]), parse_timestamp(digits[:length], end=True)
    assert first <= last
    assert first.microsecond == 0
    assert parse_timestamp(format_timestamp(first)) == first


@given(st.text(max_size=40) | st.text(alphabet="0123456789-+:TZ. GMTSunNov,", max_size=32))
@example("0001-01-01T00:00:00+14:00")
@example("Mon, 01 Jan 0001 00:00:00 +1400")
@example("9999-12-31T23:59:59-14:00")
@example("\udcff")
@example("١٩٩٩")
def test_any_text_is_a_moment_or_a_format_error(text: str) -> None:
    for read in (parse_any, parse_http_date, parse_timestamp):
        try:
            moment = read(text)
        except FormatError as error:
            assert error.why
            str(error).encode()
        else:
            assert (moment.tzinfo, moment.microsecond) == (UTC, 0)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2007", utc(2007, 1, 1), utc(2007, 12, 31, 23, 59, 59)),
        ("200702", utc(2007, 2, 1), utc(2007, 2, 28, 23, 59, 59)),
        ("20070531", utc(2007, 5, 31), utc(2007, 5, 31, 23, 59, 59)),
        ("2007053120", utc(2007, 5, 31, 20), utc(2007, 5, 31, 20, 59, 59)),
        ("20070531203500", utc(2007, 5, 31, 20, 35), utc(2007, 5, 31, 20, 35)),
        ("20190231000000", utc(2019, 2, 28), utc(2019, 2, 28)),
        ("20080230", utc(2008, 2, 29), utc(2008, 2, 29, 23, 59, 59)),
        ("20070000000000", utc(2007, 1, 1), utc(2007, 1, 1)),
        ("20071399256199", utc(2007, 12, 31, 23, 59, 59), utc(2007, 12, 31, 23, 59, 59)),
        ("20161231235960", utc(2016, 12, 31, 23, 59, 59), utc(2016, 12, 31, 23, 59, 59)),
        ("0000", utc(1, 1, 1), utc(1, 12, 31, 23, 59, 59)),
    ],
)
def test_short_and_impossible_timestamps(text: str, first: datetime, last: datetime) -> None:
    assert parse_timestamp(text) == first
    assert parse_timestamp(text, end=True) == last


@pytest.mark.parametrize(
    "text", ["", "200", "20070", "200705312", "200705312035001", "2007-05-31", " 2007", "-007", "٢٠٠٧"]
)
def test_other_texts_are_not_timestamps(text: str) -> None:
    with pytest.raises(FormatError, match="not a timestamp"):
        parse_timestamp(text)


MAY = utc(2007, 5, 31, 20, 35)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Thu, 31 May 2007 20:35:00 GMT", MAY),
        ("thu, 31 may 2007 20:35:00 gmt", MAY),
        ("Mon, 31 May 2007 20:35:00 GMT", MAY),
        ("Thu 31 May 2007 20:35:00 GMT", MAY),
        ("31 May 2007 20:35:00 GMT", MAY),
        ("Thu, 31 May 2007 20:35:00 UTC", MAY),
        ("Thu, 31 May 2007 20:35:00", MAY),
        ("Thu, 31 May 2007 20:35 GMT", MAY),
        ("Thu, 31 May 2007 22:35:00 +0200", MAY),
        ("Thu, 31 May 2007 15:05:00 -05:30", MAY),
        ("Thursday, 31-May-07 20:35:00 GMT", MAY),
        ("Thu May 31 20:35:00 2007", MAY),
        ("  Thu,  31  May  2007  20:35:00  GMT ", MAY),
        ("Sun Nov  6 08:49:37 1994", utc(1994, 11, 6, 8, 49, 37)),
        ("Sun, 6 Nov 1994 8:49:37 GMT", utc(1994, 11, 6, 8, 49, 37)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", utc(1994, 11, 6, 8, 49, 37)),
        ("Sat, 31 Dec 2016 23:59:60 GMT", utc(2016, 12, 31, 23, 59, 59)),
        ("Fri, 1 September 2017 00:00:00 GMT", utc(2017, 9, 1)),
        ("Thu, 01 Jan 1970 00:00:00 GMT", utc(1970, 1, 1)),
        ("01-Jan-69 00:00:00 GMT", utc(2069, 1, 1)),
    ],
)
def test_http_dates_as_archives_send_them(text: str, moment: datetime) -> None:
    assert parse_http_date(text) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "Thu, 31 Foo 2007 20:35:00 GMT",
        "Thu, 31 Feb 2007 20:35:00 GMT",
        "Thu, 31 May 2007 25:35:00 GMT",
        "Thu, 31 May 2007 20:35:00 EST",
        "Thu, 31 May 2007 20:35:00 +9999",
        "Thu, 31 May 20070 20:35:00 GMT",
        "Thu, 00 May 2007 20:35:00 GMT",
        "2007-05-31T20:35:00Z",
    ],
)
def test_other_texts_are_not_http_dates(text: str) -> None:
    with pytest.raises(FormatError, match="not an HTTP date"):
        parse_http_date(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2007", utc(2007, 1, 1)),
        ("2007-05", utc(2007, 5, 1)),
        ("2007-05-31", utc(2007, 5, 31)),
        ("2007-05-31 20:35", MAY),
        ("2007-05-31T20:35:00", MAY),
        ("2007-05-31T20:35:00Z", MAY),
        ("2007-05-31T20:35:00.999Z", MAY),
        ("2007-05-31T22:35:00+02:00", MAY),
        ("2016-12-31T23:59:60Z", utc(2016, 12, 31, 23, 59, 59)),
        ("20070531203500", MAY),
        ("20070531T203500Z", MAY),
        ("Thu, 31 May 2007 20:35:00 GMT", MAY),
        (" 2007-05-31T20:35:00Z\n", MAY),
    ],
)
def test_whatever_people_type(text: str, moment: datetime) -> None:
    assert parse_any(text) == moment


def test_what_is_not_a_datetime_is_answered_with_examples() -> None:
    with pytest.raises(FormatError, match="not a datetime: 'yesterday': expected like 2007") as caught:
        parse_any("yesterday")
    assert "GMT" in caught.value.why


def test_a_datetime_without_zone_is_utc_whatever_the_machine_says(monkeypatch: pytest.MonkeyPatch) -> None:
    naive = datetime(2007, 5, 31, 20, 35)
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        assert format_timestamp(naive) == "20070531203500"
        assert format_http_date(naive) == "Thu, 31 May 2007 20:35:00 GMT"
        assert format_iso(naive) == "2007-05-31T20:35:00Z"
        assert parse_any("2007-05-31T20:35:00") == MAY
    finally:
        monkeypatch.undo()
        time.tzset()


def test_early_years_keep_their_four_digits() -> None:
    assert format_iso(utc(31, 1, 2)) == "0031-01-02T00:00:00Z"
    assert format_http_date(utc(31, 1, 2)) == "Thu, 02 Jan 0031 00:00:00 GMT"


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2009", utc(2009, 1, 1), utc(2009, 12, 31, 23, 59, 59)),
        ("2009-02", utc(2009, 2, 1), utc(2009, 2, 28, 23, 59, 59)),
        (" 200902 ", utc(2009, 2, 1), utc(2009, 2, 28, 23, 59, 59)),
        ("2009-06-01", utc(2009, 6, 1), utc(2009, 6, 1, 23, 59, 59)),
        ("2009-06-01T12", utc(2009, 6, 1, 12), utc(2009, 6, 1, 12, 59, 59)),
        ("2009-06-01 12:30", utc(2009, 6, 1, 12, 30), utc(2009, 6, 1, 12, 30, 59)),
        ("2009-06-01T12:30:05z", utc(2009, 6, 1, 12, 30, 5), utc(2009, 6, 1, 12, 30, 5)),
        ("20090601123005", utc(2009, 6, 1, 12, 30, 5), utc(2009, 6, 1, 12, 30, 5)),
        ("2009-06-01T12:30:05+02:00", utc(2009, 6, 1, 10, 30, 5), utc(2009, 6, 1, 10, 30, 5)),
        ("Mon, 01 Jun 2009 12:30:05 GMT", utc(2009, 6, 1, 12, 30, 5), utc(2009, 6, 1, 12, 30, 5)),
    ],
)
def test_what_people_type_is_a_stretch_of_time(text: str, first: datetime, last: datetime) -> None:
    assert (parse_asked(text), parse_asked(text, end=True)) == (first, last)


@pytest.mark.parametrize(
    "text", ["", "someday", "2009-06-31", "20090229", "2009-13", "0000", "20140", "2009-06-01T25", "20090601126000"]
)
def test_a_date_that_no_calendar_has_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="not a date") as raised:
        parse_asked(text)
    assert "2014-06-30" in raised.value.hint


def test_digits_of_a_date_and_a_day_of_digits() -> None:
    assert asked_digits("2014-06") == "201406" and asked_digits("2014-06-30T12:00Z") == "201406301200"
    assert format_day("20140630120000") == format_day(20140630120000) == "2014-06-30"


def test_what_cannot_be_read_or_is_not_there_is_none() -> None:
    assert parse_or_none("2014") == utc(2014, 1, 1)
    assert parse_or_none("soon") is parse_or_none("") is parse_or_none(None) is None
