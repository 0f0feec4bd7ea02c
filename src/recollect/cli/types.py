"""Types of option values: sizes, durations, shares and dates, each read by its one parser.

A value that cannot be read is a usage error that names the option.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from recollect.datetimes import parse_asked
from recollect.errors import UsageError
from recollect.quantities import parse_duration, parse_share, parse_size

if TYPE_CHECKING:
    _Type = click.ParamType[Any]
else:  # generic at run time only since click 8.4
    _Type = click.ParamType


class _Parsed(_Type):
    """A value read by one of the shared parsers."""

    def __init__(self, name: str, kind: type, parse: Callable[[Any], Any]) -> None:
        self.name = name
        self._kind = kind
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, self._kind):  # a default
            return value
        try:
            return self._parse(value)
        except UsageError as error:
            self.fail(f"{error}" + (f"; {error.hint}" if error.hint else ""), param, ctx)


SIZE = _Parsed("size", int, parse_size)
DURATION = _Parsed("duration", float, parse_duration)
SHARE = _Parsed("share", float, parse_share)
DATE = _Parsed("date", datetime, parse_asked)
END_DATE = _Parsed("date", datetime, partial(parse_asked, end=True))


class Joined(click.Option):
    """An option whose values add up to one text, such as `--use a,b --use c`: `a,b,c`. Without a value it is empty."""

    def __init__(self, *names: Any, pattern: str = "{}", between: str = ",", **more: Any) -> None:
        more["multiple"] = True
        super().__init__(*names, **more)
        self._pattern, self._between = pattern, between

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        values = [text for text in super().process_value(ctx, value) if text]
        if len(values) < 2:
            return values[0] if values else ""
        return self._between.join(self._pattern.format(text) for text in values)


archives_option = click.option(
    "--archives",
    "registry",
    metavar="FILE|URL",
    help="List of archives (MemGator's archives.json, or TOML or JSON).  [default: public archives]",
)


def _name_operator(_context: click.Context, _option: click.Parameter, contact: str | None) -> None:
    """Let every client of this process, and of those it starts, name the operator."""
    if contact:
        from recollect.archives.opening import CONTACT_VARIABLE, operator_agent

        operator_agent(contact=contact)  # refuses what a header cannot hold
        os.environ[CONTACT_VARIABLE] = contact


contact_option = click.option(
    "--contact",
    expose_value=False,
    callback=_name_operator,
    metavar="ADDRESS",
    help="Your mail or web address, for the archives (User-Agent).  [default: RECOLLECT_CONTACT]",
)
