"""What every command shares: JSON to stdout, tables and progress to people, batches of URIs from files and pipes.

Hides: terminal detection, NO_COLOR, throttled progress. Data goes to stdout, talk to stderr; progress is drawn only
on a terminal and only when a job lasts over a second.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TextIO

import click

from recollect.errors import UsageError
from recollect.model import Progress, ProgressCallback
from recollect.quantities import format_size

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
temp_dir_option = click.option(
    "--temp-dir",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, writable=True),
    help="Folder for temporary sort files.  [default: the system's temporary folder]",
)


_line_of: Callable[[str], str] | None = None


def say_with(line_of: Callable[[str], str] | None) -> None:
    """Choose how `talk` writes a message; None is as it is."""
    global _line_of
    _line_of = line_of


def says_json() -> bool:
    """Whether messages are written for programs."""
    return _line_of is not None


def talk(message: str) -> None:
    """A sentence for the person watching (stderr)."""
    click.echo(message if _line_of is None else _line_of(message), err=True)


def emit_json(value: Any) -> None:
    """One JSON document on stdout."""
    click.echo(_json(value, indent=2))


def emit_json_line(value: Any) -> None:
    """One JSON value per line on stdout, for streams (see `emit_line`)."""
    emit_line(_json(value))


def emit_line(text: str) -> None:
    """One line on stdout, for streams: not flushed line by line, but before the program waits for more input."""
    if sys.stdout is not None:
        sys.stdout.write(text + "\n")


def _json(value: Any, indent: int | None = None) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:  # bytes of an input that were no UTF-8, or a terminal without Unicode
        text = json.dumps(value, indent=indent, default=str)
    return text


_FOLDED = 20  # width to which words may be folded in a table
# Letters, signs and punctuation of one column each, and what rich takes for styles or emoji in a heading.
_NARROW = re.compile(r"[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0377\u0391-\u03c9\u2010-\u2027\u2190-\u2193]*")
_MARKUP = re.compile(r"\[|:[^\s/]+:")
_FILE_WIDTH = 160  # of a table that is not drawn on a terminal


def emit_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    title: str = "",
    right: Sequence[int] = (),
    file: TextIO | None = None,
) -> None:
    """A table for people; columns whose index is in `right` are aligned right. A column without remarks is left out."""
    out = file or sys.stdout
    cells = [[str(cell) for cell in row] for row in rows]
    kept = [index for index, header in enumerate(headers) if header or any(row[index] for row in cells)]
    columns = [[headers[index], *(row[index] for row in cells)] for index in kept]
    numbers = [index in right for index in kept]
    text = None if _has_style(out) else plain_table(columns, numbers, title)
    if text is None:
        _draw_table(columns, numbers, title, out)
    else:
        out.write(text)


def _has_style(out: TextIO) -> bool:
    """Whether rich would draw with colours, to the width of a terminal, or without lines."""
    forced = any(name in os.environ for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))
    return forced or out.isatty() or not (getattr(out, "encoding", None) or "").lower().startswith("utf")


def plain_table(columns: Sequence[Sequence[str]], numbers: Sequence[bool], title: str = "") -> str | None:
    """The table that rich draws into a file, made without it (importing rich takes 0.03 s); None where cells need
    folding, measuring or markup."""
    above = title.split("\n") if title else []
    headings = [*above, *(column[0] for column in columns)]
    texts = [*above, *(cell for column in columns for cell in column)]
    if not all(_NARROW.fullmatch(text) and text == text.strip() for text in texts) or any(
        map(_MARKUP.search, headings)
    ):
        return None
    widths = [max(map(len, column)) for column in columns]
    whole = sum(widths) + 3 * (len(widths) - 1)
    if not widths or 0 in widths or not max(map(len, above), default=0) <= whole <= _FILE_WIDTH:
        return None
    padded = [
        [cell.rjust(width) if number else cell.ljust(width) for cell in column]
        for column, width, number in zip(columns, widths, numbers, strict=True)
    ]
    head, *body = zip(*padded, strict=True)
    lines = [line.ljust(whole) for line in above]
    lines += [" ┃ ".join(head), "━╇━".join("━" * width for width in widths), *(" │ ".join(row) for row in body)]
    return "".join(line + "\n" for line in lines)


def _draw_table(columns: Sequence[Sequence[str]], numbers: Sequence[bool], title: str, out: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    color: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    console = Console(file=out, width=None if out.isatty() else _FILE_WIDTH, color_system=color, highlight=False)
    for block in _blocks(columns, numbers, console.width):
        table = Table(title=title or None, title_justify="left", header_style="bold", show_edge=False, pad_edge=False)
        for index in block:
            if numbers[index]:
                table.add_column(columns[index][0], justify="right", no_wrap=True)
            else:
                table.add_column(columns[index][0], overflow="fold")
        for row in range(1, len(columns[0])):
            table.add_row(*(Text(columns[index][row]) for index in block))
        console.print(table)
        title = ""


def _blocks(columns: Sequence[Sequence[str]], numbers: Sequence[bool], width: int) -> list[list[int]]:
    """The columns in as many tables as a narrow terminal needs to show numbers whole; each begins with the first."""
    from rich.cells import cell_len

    needed = [max(map(cell_len, column)) for column in columns]
    needed = [size if number else min(size, _FOLDED) for size, number in zip(needed, numbers, strict=True)]
    blocks = [[0]]
    for index in range(1, len(columns)):
        if len(blocks[-1]) > 1 and sum(needed[i] + 3 for i in [*blocks[-1], index]) - 3 > width:
            blocks.append([0])
        blocks[-1].append(index)
    return blocks


def lines_of(source: str) -> Iterator[str]:
    """The non-empty lines of a file, or of stdin for `-`; see `numbered_lines`."""
    return (line for _, line in numbered_lines(source))


def numbered_lines(source: str) -> Iterator[tuple[int, str]]:
    """Number and text of the non-empty lines of a file (compressed or not), or of stdin for `-`.

    Bytes that are not UTF-8 are kept as surrogates. Lines of a pipe are given as they come, and what has been written
    to stdout is flushed before waiting for more.
    """
    if source == "-" and not _is_compressed(sys.stdin):
        yield from _clean(_as_they_come(sys.stdin))
        return
    from recollect.formats.containers import open_input

    with open_input(source) as stream:
        yield from _clean(stream)


def _is_compressed(stdin: Any) -> bool:
    """By the first bytes of gzip, bzip2 and zstd, without taking them away; the container looks closer."""
    if stdin is None:
        raise UsageError("nothing to read", where="standard input", why="it is closed")
    head: bytes = stdin.buffer.peek(4)[:4]
    return head[:2] == b"\x1f\x8b" or head[:3] == b"BZh" or head == b"\x28\xb5\x2f\xfd" or head[1:] == b"\x2a\x4d\x18"


def _as_they_come(stdin: Any) -> Iterator[bytes]:
    rest = b""
    while True:
        if sys.stdout is not None:
            sys.stdout.flush()
        piece = stdin.buffer.read1(1 << 16)
        if not piece:
            break
        lines = (rest + piece).split(b"\n")
        rest = lines.pop()
        yield from lines
    if rest:
        yield rest


def _clean(stream: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    for number, raw in enumerate(stream, start=1):
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")  # the mark that Windows programs put in front
        line = raw.rstrip(b"\r\n").decode("utf-8", "surrogateescape")
        if line.strip():
            yield number, line


@contextmanager
def progress_bar(*, quiet: bool = False) -> Iterator[ProgressCallback]:
    """A callback that draws `Progress` on stderr: on a terminal a bar, after the first second."""
    if quiet or not sys.stderr.isatty():
        yield lambda _progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    started = time.monotonic()
    tasks: dict[str, TaskID] = {}
    running = False

    def show(progress: Progress) -> None:
        nonlocal running
        now = time.monotonic()
        if now - started < 1.0:
            return
        if not running:
            bar.start()
            running = True
        amount = _amount(progress, now - started)
        if progress.stage not in tasks:
            tasks[progress.stage] = bar.add_task(progress.stage, total=progress.total, amount=amount)
        bar.update(tasks[progress.stage], completed=progress.done, total=progress.total, amount=amount)

    try:
        yield show
    finally:
        if running:
            bar.stop()


def _amount(progress: Progress, seconds: float) -> str:
    if progress.unit == "bytes":
        total = f"/{format_size(progress.total)}" if progress.total is not None else ""
        rate = f"{format_size(progress.done / max(seconds, 0.001))}/s"
        if progress.lines is not None:
            rate += f" {progress.lines / max(seconds, 0.001):,.0f} lines/s"
        return f"{format_size(progress.done)}{total} {rate}"
    total = f"/{progress.total:,}" if progress.total is not None else ""
    return f"{progress.done:,}{total} {progress.unit} {progress.done / max(seconds, 0.001):,.0f}/s"
