"""What the cells of a table hold: times, counts, and numbers that are neither.

One cell does not show whether a number is a count; all cells of a column together do. Judgements of a column need some
rows, because few numbers look like anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from recollect.datetimes import parse_any, parse_timestamp
from recollect.errors import FormatError

_COUNT = re.compile(r"\d{1,12}|\d{1,3}(?:,\d{3}){1,3}", re.ASCII)
_DIGITS = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d(?:-\d\d.*)?|[A-Za-z]{3}, .*|\d{1,2}/[A-Za-z]{3}/\d{4}:.*", re.DOTALL)
_WORD = re.compile(r"[^\W\d][\w ?#%&()/.-]{0,40}|#")
# Epochs from 1990 to 2100, in seconds.
_FIRST, _LAST = 631_152_000, 4_102_444_800
_YEARS = range(1990, 2036)
# Rows from which a column of numbers can be judged.
_FEW, _SOME = 10, 20
# A number as large as this is not a count of lookups.
_IDENTIFIER = 10**9


def is_word(cell: str) -> bool:
    """Whether a cell is a name that a person gave a column: a word or several, no number."""
    return bool(_WORD.fullmatch(cell))


def count_of(text: str) -> int:
    """The number of a cell, also with commas between thousands; raises ValueError."""
    if not _COUNT.fullmatch(text):
        raise ValueError(text)
    return int(text.replace(",", ""))


def are_counts(cells: Sequence[str]) -> bool:
    """Whether every cell is a whole number."""
    return all(_COUNT.fullmatch(cell) for cell in cells)


def are_identifiers(cells: Sequence[str]) -> bool:
    """Whether a column of whole numbers holds numbers that are too large for counts."""
    return len(cells) >= _FEW and all(count_of(cell) >= _IDENTIFIER for cell in cells)


def are_numbers_of_lines(cells: Sequence[str]) -> bool:
    """Whether a column of whole numbers numbers its lines, as in a list by rank."""
    numbers = [count_of(cell) for cell in cells]
    return len(numbers) >= _SOME and numbers[0] in (0, 1) and numbers == list(range(numbers[0], numbers[-1] + 1))


def are_years(cells: Sequence[str]) -> bool:
    """Whether a column holds years."""
    return len(cells) >= _FEW and all(len(cell) == 4 and cell.isdecimal() and int(cell) in _YEARS for cell in cells)


def is_time(cell: str) -> bool:
    """Whether a cell is a time, and hardly a number."""
    if _DATE.fullmatch(cell):
        return moment_of(cell) is not None
    if not _DIGITS.fullmatch(cell):
        return False
    if cell.isdigit() and len(cell) in (8, 12, 14):
        return _is_date(cell)
    return _epoch(cell) is not None


def is_epoch(cell: str) -> bool:
    """Whether a cell is a number of seconds (or parts of them) since 1970, and no date."""
    return is_time(cell) and bool(_DIGITS.fullmatch(cell)) and not (cell.isdigit() and len(cell) in (8, 12, 14))


def moment_of(cell: str) -> datetime | None:
    """The time of a cell, in UTC: digits, ISO 8601, an HTTP date, a log's date, an epoch; None if it is none."""
    text = cell.strip()
    if _DIGITS.fullmatch(text) and not (text.isdigit() and len(text) in (4, 6, 8, 12, 14)):
        seconds = _epoch(text)
        return None if seconds is None else datetime.fromtimestamp(int(seconds), UTC)
    try:
        return parse_any(re.sub(r"^(\d{1,2})/([A-Za-z]{3})/(\d{4}):", r"\1 \2 \3 ", text))
    except FormatError:
        return None


def _is_date(digits: str) -> bool:
    moment = parse_timestamp(digits)
    return 1990 <= moment.year < 2100 and f"{moment:%Y%m%d%H%M%S}".startswith(digits)


def _epoch(text: str) -> float | None:
    """Seconds since 1970 of a number of seconds, milli-, micro- or nanoseconds in the years 1990 to 2100."""
    value = float(text)
    for unit in (1, 10**3, 10**6, 10**9):
        if _FIRST <= value / unit < _LAST:
            return value / unit
    return None
