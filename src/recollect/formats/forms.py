r"""The form of a list or log, decided once for the whole file: which column is what, and what separates columns.

Detects a form from a sample of lines. A number next to a URL may be a count, a time, a status or an
identifier; one line does not show which, all lines together do:

    list      one URI or SURT per line, with its spaces
    log       lines that describe themselves: Common and Combined logs, MemGator's log, JSON objects
    table     columns separated by tabs, commas, semicolons, bars or spaces, with or without a line that names them

Columns of a table are time, url, status and count. Fourteen digits, ISO 8601 and plausible epochs (1990 to 2100, also
in milli- and microseconds) are times, and so is a column of years. A number is a count only where it is one on all
lines of the sample and every column of the table is understood; numbers of lines (ranks) and identifiers are not
counts. A name in the first line, or `--columns`, overrides that.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from recollect.errors import UsageError
from recollect.formats.accesslines import access_line
from recollect.formats.cells import are_counts, are_identifiers, are_numbers_of_lines, are_years, is_time, is_word
from recollect.formats.lists import uri_of_line
from recollect.uris import is_surt

_NAMES = {
    "url": ("url", "uri", "uri_r", "uri-r", "urir", "surt", "original", "urlkey", "link", "address", "target"),
    "time": ("time", "at", "datetime", "date", "timestamp", "ts", "epoch", "when"),
    "status": ("status", "status_code", "statuscode", "code"),
    "count": ("count", "hits", "requests", "n", "frequency", "clicks", "lookups"),
}
# Wider lines are not rows of a table: testing each of 100,000 cells takes longer than reading the file.
_MOST_COLUMNS = 1024
COLUMN_OF = {name: column for column, names in _NAMES.items() for name in names}
# Where a table has both, the URL as it was captured is better than its key.
_BEST_URL = ("url", "uri", "original")
# Names of numbers that are not counts.
_NOT_COUNTS = re.compile(r".*(?:id|rank|year)|no|nr|#|index|position|line|size|bytes|length|user")
_SKIPPED = ("", "-", "_", "x", "skip", "other")
_SEPARATORS = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars", " ": "spaces"}
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/]|(?:dns|urn|warcinfo|filedesc|mailto|javascript|about|data):\S", re.I)
_HOST = re.compile(r"(?:[^\W_](?:[\w-]*[^\W_])?\.)+([^\W_](?:[\w-]*[^\W_])?)\.?(?::\d{1,5})?(?=[/?#]|$)")
_LOCAL = re.compile(r"(?:localhost|\[[0-9a-f:.]+\])(?::\d{1,5})?(?=[/?#]|$)", re.I)
_CONTROLS = re.compile(r"[\0-\x20\x7f]")
# In a word without a scheme also bytes that are not text.
_NOT_TEXT = re.compile(r"[\x80-\x9f\ud800-\udfff\ufffd]")
# Endings of file names that are not top-level domains: a list of files is not a list of hosts.
_FILE_ENDINGS = re.compile(
    r"arc|avro|bz2|cdxj?|cfg|conf|csv|db|gif|gz|html?|idx|ini|jar|jpe?g|js|jsonl?|loc|log|lst|md5|orc|parquet|pdf|php|"
    r"pickle|png|rst|sha1|sha256|sha512|sum|tar|tgz|tmp|toml|tsv|txt|ukvs|wacz|warc|xml|xz|ya?ml|zst"
)
_JSON_URL = re.compile(rf'"(?:{"|".join(_NAMES["url"])})"\s*:')
_MEMGATOR = re.compile(r"(?:INFO|ERROR|FATAL|BENCHMARK|WARNING): \d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)? ")
_STATUS = re.compile(r"[1-5]\d\d|-", re.ASCII)
_USUAL_STATUS = re.compile(r"20[0146]|30[1-478]|40[0134]|410|429|451|50[0234]")
_STATUS_ROWS = 10
# A column of numbers that are neither counts nor anything else that is read.
_NUMBER = "number"
# Lines of a sample that may be broken: one in fifty.
_BROKEN = 50


Enough = Callable[[Sequence[bool]], bool]


class Style(StrEnum):
    """How the lines of a list or log are built."""

    LIST = "list"
    LOG = "log"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a file; of a table also its separator (a blank stands for any white space), its columns (empty for
    one that is not read), and whether its first line names them."""

    style: Style
    separator: str = ""
    columns: tuple[str, ...] = ()
    named: bool = False

    def __str__(self) -> str:
        if self.style is not Style.TABLE:
            return "one URI per line" if self.style is Style.LIST else "log lines"
        names = ", ".join(column or "-" for column in self.columns)
        return f"columns {names} separated by {_SEPARATORS[self.separator]}" + (", named" if self.named else "")

    def cells(self, line: str) -> list[str]:
        """The cells of a line of a table."""
        return split(line, self.separator)


# What `--input-format` takes, with other names that people use for the same.
_FORMATS = {
    "list": ("urls", "uris", "surts", "urllist"),
    "log": ("access-log", "clf", "combined", "memgator", "json", "jsonl", "jsonlines"),
    "table": ("columns",),
    "tsv": ("tab", "tabs"),
    "csv": (),
    "words": ("blanks", "space", "spaces", "ssv"),
    "cdx": (),
    "cdxj": (),
    "warc": (),
    "arc": (),
    "wacz": (),
    "parquet": (),
    "timemap": (),
    "map": ("ukvs",),
}
_FORMAT_OF = {name: known for known, names in _FORMATS.items() for name in (known, *names)}
_SEPARATOR_OF = {"tsv": "\t", "csv": ",", "words": " "}
LOOKUP_FORMATS = ("list", "log", "table", "tsv", "csv", "words")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person says of the form of files: `--input-format` and `--columns`; empty where it is to be detected."""

    format: str = ""
    columns: tuple[str, ...] = ()

    @staticmethod
    def of(file_format: str = "", columns: str = "") -> Asked:
        """From the texts of the options; raises UsageError."""
        plain = file_format.strip().lower()
        known = "" if plain in ("", "auto") else _FORMAT_OF.get(plain)
        if known is None:
            raise UsageError("no such format", where=repr(file_format), hint=f"one of auto, {', '.join(_FORMATS)}")
        names = tuple(_column(name) for name in columns.split(",")) if columns.strip() else ()
        if names and "url" not in names:
            hint = "write it as --columns time,url or --columns url,count"
            raise UsageError("no column of URLs", where=repr(columns), hint=hint)
        read = [name for name in names if name]
        if len(set(read)) < len(read):
            raise UsageError(
                "a column is named twice", where=repr(columns), hint="write - for columns that are not read"
            )
        if names and known and known not in ("table", "tsv", "csv", "words"):
            raise UsageError(
                f"--columns are of tables, not of --input-format {file_format}", hint="leave out one of them"
            )
        return Asked(known, names)

    @property
    def is_lookups(self) -> bool:
        """Whether it names the form of a list or log, not of an index."""
        return bool(self.columns) or self.format in LOOKUP_FORMATS

    def form(self, lines: Sequence[str]) -> Form | None:
        """The form of a file with these lines; what the caller specified is kept."""
        if self.format in ("list", "log"):
            return Form(Style(self.format))
        separators = [_SEPARATOR_OF[self.format]] if self.format in _SEPARATOR_OF else list(_SEPARATORS)
        if self.columns:
            return _with_columns(lines, self.columns, separators)
        if not self.format:
            return decide(lines)
        return _named_table(lines, separators) or _typed_table(lines, separators, _most)


def _column(name: str) -> str:
    plain = name.strip().lower()
    if plain in _SKIPPED:
        return ""
    if plain not in COLUMN_OF:
        raise UsageError("no such column", where=repr(name), hint="time, url, status, count, or - for others")
    return COLUMN_OF[plain]


def decide(lines: Sequence[str]) -> Form | None:
    """The form of a file that has these lines (of its beginning); None if it is neither list nor log nor table."""
    data = [line for line in lines if line.strip() and not line.startswith("#")]
    if not data:
        return None
    form = _named_table(data, list(_SEPARATORS))
    if form is not None:
        return form
    if _most([bool(is_surt(line.strip()) and not re.search(r"\s", line.strip())) for line in data]):
        return Form(Style.LIST)
    if _half([describes_itself(line) for line in data]):
        return Form(Style.LOG)
    form = _typed_table(data, list(_SEPARATORS), _nearly_all)
    if form is not None:
        return form
    if _half([(uri := uri_of_line(line)) is not None and looks_like_uri(uri) for line in data]):
        return Form(Style.LIST)
    form = _typed_table(data, list(_SEPARATORS), _most)
    if form is None and any(map(describes_itself, data)) and _half([_may_be_of_a_log(line) for line in data]):
        return Form(Style.LOG)
    return form


def _may_be_of_a_log(line: str) -> bool:
    """Whether a line is of a log, or broken JSON, or a URI alone, which logs may hold, too."""
    return describes_itself(line) or line.startswith("{") or looks_like_uri(uri_of_line(line) or "")


def describes_itself(line: str) -> bool:
    """Whether a line is of a log with an unmistakable format."""
    if line.startswith("{"):
        return bool(_JSON_URL.search(line))
    return bool(_MEMGATOR.match(line)) or access_line(line) is not None


def looks_like_uri(word: str) -> bool:
    """Whether a word is a URI, a SURT, or a host (with path) without scheme; file names are not."""
    text = word.strip().strip("<>")
    if not text or _CONTROLS.search(text):
        return False
    if is_surt(text) or _SCHEME.match(text) or _LOCAL.match(text):
        return True
    host = _HOST.match(text)
    if host is None or _NOT_TEXT.search(text):
        return False
    last = host[1].lower()
    # An address of numbers alone is one of four.
    if last.isdigit():
        return len(text[: host.end()].partition(":")[0].split(".")) == 4
    return host.end() < len(text) or not _FILE_ENDINGS.fullmatch(last)


def split(line: str, separator: str) -> list[str]:
    """The cells of a line."""
    if separator == " ":
        return line.split()
    if '"' in line:
        try:
            return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]
        except csv.Error:  # a cell of more than 128 kB
            pass
    return [cell.strip() for cell in line.split(separator)]


def _nearly_all(found: Sequence[bool]) -> bool:
    return bool(found) and found.count(False) <= len(found) // _BROKEN


def _most(found: Sequence[bool]) -> bool:
    return bool(found) and 4 * found.count(True) >= 3 * len(found)


def _half(found: Sequence[bool]) -> bool:
    return 2 * found.count(True) >= len(found)


def names_columns(line: str, separator: str) -> tuple[str, ...] | None:
    """The columns that a line names, when it names a URL column and holds no data; of two for one thing the better."""
    cells = [cell.strip().strip('"').lower() for cell in split(line, separator)]
    if not 2 <= len(cells) <= _MOST_COLUMNS:
        return None
    urls = [cell for cell in cells if COLUMN_OF.get(cell) == "url"]
    if not urls or any(looks_like_uri(cell) for cell in cells):
        return None
    best = next((name for name in _BEST_URL if name in urls), urls[0])
    columns: list[str] = []
    known: set[str] = set()
    for cell in cells:
        column = COLUMN_OF.get(cell, "")
        taken = column in known or (column == "url" and cell != best)
        columns.append("" if taken else column)
        known.add(columns[-1])
    return tuple(columns)


def _named_table(lines: Sequence[str], separators: Sequence[str]) -> Form | None:
    """A table whose first line names its columns, and whose other lines have as many."""
    for separator in separators:
        columns = names_columns(lines[0], separator)
        if columns is None:
            continue
        widths = [len(split(line, separator)) for line in lines[1:]]
        if separator != " " or _nearly_all([width == len(columns) for width in widths] or [True]):
            return Form(Style.TABLE, separator, columns, True)
    return None


def _typed_table(lines: Sequence[str], separators: Sequence[str], enough: Enough) -> Form | None:
    """A table by what its columns hold; its first line may have names for them that say nothing here."""
    for separator in separators:
        rows = [split(line, separator) for line in lines]
        width = max(map(len, rows), key=[len(row) for row in rows].count)
        if not 2 <= width <= _MOST_COLUMNS or not enough([len(row) == width for row in rows]):
            continue
        named = len(rows) > 1 and len(rows[0]) == width and all(map(_is_name, rows[0]))
        names = [cell.lower() for cell in rows[0]] if named else [""] * width
        rows = [row for row in rows[named:] if len(row) == width]
        first = [row[0] for row in rows]
        columns = _typed([[row[at] for row in rows] for at in range(width)], enough, names)
        # In front of a URL they are ranks (1,example.com); padded with spaces they are the counts of `uniq -c`.
        if columns is not None and columns[0] == "count" and separator != " " and are_numbers_of_lines(first):
            columns = (_NUMBER, *columns[1:])
        # Separated by spaces, a URL with spaces is cut; only a time next to it shows that the words are columns.
        if columns is not None and (separator != " " or "" not in columns or "time" in columns):
            return Form(Style.TABLE, separator, tuple("" if name == _NUMBER else name for name in columns), named)
    return None


def _is_name(cell: str) -> bool:
    return is_word(cell) and not looks_like_uri(cell)


def _typed(columns: Sequence[Sequence[str]], enough: Enough, names: Sequence[str]) -> tuple[str, ...] | None:
    """What columns hold; None if no column holds URLs, or only that column is understood."""
    # A column of whole URIs is better than one of hosts, which may be those of clients.
    urls = [at for at, cells in enumerate(columns) if enough([looks_like_uri(cell) for cell in cells])]
    whole = [at for at in urls if enough([bool(_SCHEME.match(cell) or is_surt(cell)) for cell in columns[at]])]
    kinds: list[str] = []
    known: set[str] = set()  # kinds that a column has already: a line may have a hundred thousand cells
    for at, cells in enumerate(columns):
        if at == next(iter(whole or urls), -1):
            kinds.append("url")
        elif "time" not in known and (enough([is_time(cell) for cell in cells]) or are_years(cells)):
            kinds.append("time")
        elif "status" not in known and _are_statuses(cells, len(columns), enough):
            kinds.append("status")
        elif "count" not in known and are_counts(cells):
            kinds.append(_NUMBER if _NOT_COUNTS.fullmatch(names[at]) or are_identifiers(cells) else "count")
        else:
            kinds.append("")
        known.add(kinds[-1])
    if "" in kinds:  # a number among columns that are not understood may be anything
        kinds = [
            "" if kind in ("count", _NUMBER) or (kind == "status" and not _are_statuses(cells, 2, enough)) else kind
            for kind, cells in zip(kinds, columns, strict=True)
        ]
    return tuple(kinds) if "url" in kinds and any(kind not in ("", "url") for kind in kinds) else None


def _are_statuses(cells: Sequence[str], width: int, enough: Enough) -> bool:
    if width > 2 and any(cell != "-" for cell in cells):
        return enough([bool(_STATUS.fullmatch(cell)) for cell in cells])
    return len(cells) >= _STATUS_ROWS and all(_USUAL_STATUS.fullmatch(cell) for cell in cells)


def _with_columns(lines: Sequence[str], columns: tuple[str, ...], separators: Sequence[str]) -> Form:
    """A table of columns that were said: the separator that gives most lines as many and URLs in their place."""
    data = [line for line in lines if line.strip() and not line.startswith("#")]
    at = columns.index("url")

    def fitting(separator: str) -> int:
        rows = [split(line, separator) for line in data]
        return sum(len(row) == len(columns) and looks_like_uri(row[at]) for row in rows)

    separator = max(separators, key=fitting)
    named = bool(data) and names_columns(data[0], separator) is not None
    return Form(Style.TABLE, separator, columns, named)
