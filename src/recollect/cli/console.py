"""What every command shares: JSON to stdout, tables and progress to people, batches of URIs from files and pipes.

Hides: terminal detection, NO_COLOR, throttled progress. Data goes to stdout, talk to stderr; progress is drawn only
on a terminal and only when a job lasts over a second.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import click

from recollect.model import Progress, ProgressCallback

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON for programs instead of text for people."
)


def talk(message: str) -> None:
    """A sentence for the person watching (stderr)."""
    click.echo(message, err=True)


def emit_json(value: Any) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def emit_json_line(value: Any) -> None:
    """One JSON value per line on stdout, for streams."""
    click.echo(json.dumps(value, ensure_ascii=False, default=str))


def emit_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    title: str = "",
    right: Sequence[int] = (),
    file: TextIO | None = None,
) -> None:
    """A table for people; columns whose index is in `right` are set flush right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", header_style="bold", show_edge=False, pad_edge=False)
    for index, header in enumerate(headers):
        table.add_column(header, justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    out = file or sys.stdout
    Console(file=out, width=None if out.isatty() else 160, highlight=False).print(table)


def lines_of(source: str) -> Iterator[str]:
    """The non-empty lines of a file, or of stdin for `-`; undecodable bytes are kept as surrogates."""
    if source == "-":
        stream: Iterable[bytes] = sys.stdin.buffer
        yield from _clean(stream)
        return
    with open(source, "rb") as handle:  # noqa: PTH123 - a path as the user typed it
        yield from _clean(handle)


def _clean(stream: Iterable[bytes]) -> Iterator[str]:
    for raw in stream:
        line = raw.rstrip(b"\r\n").decode("utf-8", "surrogateescape")
        if line.strip():
            yield line


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
        total = f"/{human_bytes(progress.total)}" if progress.total is not None else ""
        return f"{human_bytes(progress.done)}{total} {human_bytes(progress.done / max(seconds, 0.001))}/s"
    total = f"/{progress.total:,}" if progress.total is not None else ""
    return f"{progress.done:,}{total} {progress.unit} {progress.done / max(seconds, 0.001):,.0f}/s"


def human_bytes(count: float | None) -> str:
    """`1.4 GB` (powers of ten, as disks are sold)."""
    value = float(count or 0)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("unreachable")
