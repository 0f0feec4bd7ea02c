"""Whatever colour an operator chooses, links, buttons and the texts on them can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.ui import colours
from recollect.ui.colours import accent_css, contrast


@given(st.integers(0, 0xFFFFFF))
def test_any_colour_can_be_read_on_light_and_dark_paper(number: int) -> None:
    sheet = accent_css(f"#{number:06X}")
    pairs = re.findall(r"--accent: (#\w{6}); --accent-ink: (#\w{6});", sheet)
    assert len(pairs) == 2
    for (accent, ink), papers in zip(pairs, (colours._LIGHT, colours._DARK), strict=True):
        assert contrast(accent, ink) >= 4.5 and all(contrast(accent, paper) >= 4.5 for paper in papers)


def test_the_papers_are_those_of_the_style_sheet() -> None:
    sheet = (Path(colours.__file__).parent / "static" / "look.css").read_text()
    light, dark = sheet.split("@media (prefers-color-scheme: dark)", 1)
    for text, papers in ((light, colours._LIGHT), (dark, colours._DARK)):
        assert {f"#{one}" for one in re.findall(r"--(?:paper|card): #(\w{6})", text.split("@media print")[0])} <= set(
            papers
        )


@pytest.mark.parametrize(("colour", "kept"), [("#204060", True), ("#246", True), ("#ffee00", False)])
def test_a_colour_that_can_be_read_stays_as_it_is(colour: str, kept: bool) -> None:
    full = colour if len(colour) == 7 else "#224466"
    assert (f"--accent: {full};" in accent_css(colour).splitlines()[0]) == kept


@pytest.mark.parametrize("text", ["", "blue", "#12", "#12345", "#1234567", "#20406g", "#204060;}*{display:none}"])
def test_what_is_not_a_colour_changes_nothing(text: str) -> None:
    assert accent_css(text) == ""
