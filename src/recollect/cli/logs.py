"""Messages of services: as text for people, or as JSON lines for programs that collect logs (`--log-format json`).

Hides: the two ways a message takes, `console.talk` and the standard library's logging. A line of JSON is

    {"time": "2026-01-02T03:04:05Z", "level": "info", "logger": "recollect.web", "message": "..."}

and `exception` where there is one. All of it goes to stderr.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

import click

from recollect.cli import console
from recollect.datetimes import format_iso


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        moment = datetime.fromtimestamp(record.created, UTC)
        return json_line(
            moment,
            record.levelname.lower(),
            record.name,
            record.getMessage(),
            self.formatException(record.exc_info) if record.exc_info else "",
        )


def json_line(moment: datetime, level: str, logger: str, message: str, exception: str = "") -> str:
    """One message for a program."""
    said = {"time": format_iso(moment), "level": level, "logger": logger, "message": message}
    return json.dumps(said | ({"exception": exception} if exception else {}), ensure_ascii=False)


def _choose(_context: click.Context, _option: click.Parameter, value: str) -> None:
    if value == "json":
        console.say_with(lambda message: json_line(datetime.now(UTC), "info", "recollect", message))
    else:
        console.say_with(None)


def log_option(command: Any) -> Any:
    """--log-format."""
    return click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        expose_value=False,
        is_eager=True,
        callback=_choose,
        help="Messages on stderr: text, or one JSON object per line.",
    )(command)


def start_logging(verbose: bool) -> None:
    """Send the messages of the libraries to stderr, in the format that was chosen."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if console.says_json() else text)
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])
