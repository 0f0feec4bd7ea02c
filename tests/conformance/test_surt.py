"""SURTs against written tables and against the `surt` package 0.3.1."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.errors import BadURI
from recollect.uris import surt
from reference_surt import reference_surt
from tables import read_table

HERE = Path(__file__).parent
SAME = read_table(HERE / "surt.tsv")
DIFFERENT = read_table(HERE / "surt_deviations.tsv")


def test_the_table_has_at_least_500_cases() -> None:
    uris = [uri for rows in SAME.values() for uri, _ in rows]
    assert len(set(uris)) == len(uris) >= 500


@pytest.mark.parametrize("heading", SAME)
def test_same_as_the_surt_package(heading: str) -> None:
    for uri, expected in SAME[heading]:
        assert (uri, reference_surt(uri)) == (uri, expected)
        assert (uri, surt(uri)) == (uri, expected)


@pytest.mark.parametrize("heading", DIFFERENT)
def test_differs_from_the_surt_package_only_as_written(heading: str) -> None:
    for uri, ours, theirs in DIFFERENT[heading]:
        assert (uri, _answer(uri)) == (uri, ours)
        assert (uri, _their_answer(uri)) == (uri, theirs)


def test_every_deviation_is_documented_with_its_reason() -> None:
    page = (HERE.parents[1] / "docs" / "uris.md").read_text("utf-8")
    for rows in DIFFERENT.values():
        shown = [
            f"`{uri.encode('ascii', 'backslashreplace').decode()}`" if uri else "an empty text" for uri, _, _ in rows
        ]
        assert any(one in page for one in shown), shown


def _answer(uri: str) -> str:
    try:
        return surt(uri)
    except BadURI as error:
        return f"! {error.why}"


def _their_answer(uri: str) -> str:
    try:
        return reference_surt(uri)
    except (ValueError, AttributeError) as error:
        return f"! {type(error).__name__}"
