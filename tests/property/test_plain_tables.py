"""A table that is written without rich is the one that rich draws."""

import io

from hypothesis import given
from hypothesis import strategies as st

from recollect.cli.console import _draw_table, plain_table

cells = st.text(st.sampled_from("ab 1,%/)*é\t[:"), max_size=12) | st.text(
    st.sampled_from("xy "), min_size=50, max_size=90
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[str]], list[bool]]:
    rows, width = draw(st.integers(0, 4)), draw(st.integers(1, 5))
    columns = [[draw(cells) for _ in range(rows + 1)] for _ in range(width)]
    return columns, [draw(st.booleans()) for _ in range(width)]


@given(tables(), st.text("ab :\n/é", max_size=20))
def test_it_is_what_rich_draws(table: tuple[list[list[str]], list[bool]], title: str) -> None:
    columns, numbers = table
    text = plain_table(columns, numbers, title)
    if text is not None:
        drawn = io.TextIOWrapper(io.BytesIO(), "utf-8")
        _draw_table(columns, numbers, title, drawn)
        drawn.seek(0)
        assert text == drawn.read()


def test_ordinary_tables_need_no_rich() -> None:
    assert plain_table([["URI", "http://a/"], ["held", "1,000"]], [False, True]) == (
        "URI       ┃  held\n━━━━━━━━━━╇━━━━━━\nhttp://a/ │ 1,000\n"
    )
