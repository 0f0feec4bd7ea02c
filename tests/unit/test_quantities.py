"""Sizes, durations and shares: one grammar each, for options, settings and parameters."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect.cli.types import DATE, DURATION, END_DATE, SHARE, SIZE
from recollect.errors import UsageError
from recollect.quantities import (
    counted,
    format_duration,
    format_percent,
    format_size,
    parse_duration,
    parse_share,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("500000", 500_000),
        (7, 7),
        ("500 kB", 500_000),
        ("10K", 10_000),
        ("64MB", 64_000_000),
        ("2.5mb", 2_500_000),
        (".5k", 500),
        ("1g", 10**9),
        ("2GiB", 2 << 30),
        ("64 MiB", 64 << 20),
        ("1Ki", 1024),
        ("3T", 3 * 10**12),
        ("12 bytes", 12),
        ("5B", 5),
    ],
)
def test_sizes(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "much", "-5", "5 kkB", "5i", "0", "0.1", "1e3", "5 MBit", True, "५"])
def test_what_is_not_a_size(text: str | bool) -> None:
    with pytest.raises(UsageError):
        parse_size(text)


def test_a_size_may_be_zero_where_that_has_a_meaning() -> None:
    assert parse_size("0", least=0) == 0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        (1.5, 1.5),
        ("500ms", 0.5),
        ("10 m", 600),
        ("10min", 600),
        ("24H", 86400),
        ("7d", 604800),
        ("2 weeks", 1209600),
        ("1h30m", 5400),
        ("1 day 2 hours", 93600),
        ("0", 0),
    ],
)
def test_durations(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-3", "5 q", "1h30", "10 10", True, "h"])
def test_what_is_not_a_duration(text: str | bool) -> None:
    with pytest.raises(UsageError, match="not a duration"):
        parse_duration(text)


@given(st.integers(0, 10**9), st.sampled_from(["ms", "s", "m", "h", "d", "w"]))
def test_a_duration_is_its_number_times_its_unit(number: int, unit: str) -> None:
    assert parse_duration(f"{number}{unit}") == pytest.approx(number * parse_duration(f"1{unit}"))


def test_shares() -> None:
    assert [parse_share(text) for text in ("1%", "0.5 %", "0.01", "1", "100%", 0.2)] == [0.01, 0.005, 0.01, 1, 1, 0.2]
    assert parse_share("0", zero=True) == 0
    for text in ("0", "0%", "101%", "2", "-1%", "nan", "x", "", True):
        with pytest.raises(UsageError, match="not a share"):
            parse_share(text)


def test_quantities_as_people_read_them() -> None:
    assert [format_size(count) for count in (None, 999, 1000, 1.5e6, 2e9, 3e15)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.5 MB",
        "2.0 GB",
        "3000.0 TB",
    ]
    said = [format_duration(seconds) for seconds in (0.2, 45, 600, 8000, 400_000)]
    assert said == ["under a second", "45 s", "10 min", "2 h 13 min", "5 days"]


def test_an_option_that_cannot_be_read_is_named_with_the_forms_that_can() -> None:
    @click.command()
    @click.option("--size", type=SIZE, default="2MB")
    @click.option("--wait", type=DURATION)
    @click.option("--part", type=SHARE)
    @click.option("--from", "since", type=DATE)
    @click.option("--to", "until", type=END_DATE)
    def command(**options: object) -> None:
        click.echo(" ".join(str(options[name]) for name in ("size", "wait", "part", "since", "until")))

    said = CliRunner().invoke(command, ["--wait", "1m", "--part", "5%", "--from", "2014", "--to", "2014"])
    assert said.output == "2000000 60.0 0.05 2014-01-01 00:00:00+00:00 2014-12-31 23:59:59+00:00\n"
    for name, value in (("--size", "x"), ("--wait", "x"), ("--part", "x"), ("--from", "x"), ("--to", "2014-02-30")):
        said = CliRunner().invoke(command, [name, value])
        assert said.exit_code == 2 and f"'{name}'" in said.output and "write it as" in " ".join(said.output.split())


def test_no_other_module_has_a_grammar_of_sizes_durations_or_dates() -> None:
    """There were three grammars of sizes and ten of dates, and they disagreed on MiB and on 31 June."""
    root = Path(recollect.__file__).parent
    own = {"quantities.py", "datetimes.py"}
    grammar = re.compile(r"\[kmgt\w]*\][?]?\)?[(]?i[?]|\bms\|s\|m\b|def _?(parse_)?(size|moment|duration)\(text: str")
    found = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in sorted(root.rglob("*.py"))
        if path.name not in own
        for line in path.read_text("utf-8").splitlines()
        if grammar.search(line)
    ]
    assert found == []


def test_a_number_agrees_with_its_noun() -> None:
    assert [counted(n, "lookup") for n in (0, 1, 2, 1200)] == ["0 lookups", "1 lookup", "2 lookups", "1,200 lookups"]
    assert counted(1, "entry", "entries") == "1 entry"
    assert counted(3, "entry", "entries") == "3 entries"


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_a_percentage_never_says_more_than_there_is(part: int, whole: int) -> None:
    part = min(part, whole)
    words = format_percent(part, whole)
    if words == "less than 1%":
        assert 0 < part < whole / 100
    else:
        assert 0 <= 100 * part - int(words.removesuffix("%")) * whole < whole
    assert (words == "100%") is (part == whole) and (words == "0%") is (part == 0)
