"""What the commands of a watch share: the folder, addresses, how numbers and foreign text are shown."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.watch.store import Store

    _Type = click.ParamType[Any]
else:
    _Type = click.ParamType

data_option = click.option(
    "--data", "folder", required=True, type=click.Path(file_okay=False), help="Folder of the watch."
)


class Period(_Type):
    """A length of time: `30m`, `12h`, `2d`."""

    name = "period"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(m|h|d|w)", str(value).strip().lower())
        unit = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
        period = timedelta(**{unit[found[2]]: float(found[1])}) if found else timedelta(0)
        if not timedelta(minutes=10) <= period <= timedelta(days=30):
            self.fail(f"{value!r} is not a time between 10m and 30d, like 12h or 2d", param, ctx)
        return period


PERIOD = Period()


def example(*lines: str) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  recollect watch {line}" for line in lines)


def open_store(folder: str, *, read_only: bool = False) -> Store:
    from recollect.watch.store import Store

    return Store(folder, create=False, read_only=read_only)


def site_uri(uri: str) -> str:
    """The address of a site as it is kept."""
    from urllib.parse import urlsplit

    text = uri.strip() if "://" in uri else f"http://{uri.strip()}"
    if not text.isprintable() or " " in text:
        raise UsageError("not an address", where=repr(uri), why="it has spaces or control characters")
    try:
        split = urlsplit(text)
        host = split.hostname
    except ValueError as error:
        raise UsageError("not an address", where=uri, why=str(error)) from error
    if split.scheme.lower() not in ("http", "https") or not host:
        raise UsageError("not the address of a site", where=uri, hint="like http://site.example/")
    return split._replace(scheme=split.scheme.lower(), path=split.path or "/", fragment="").geturl()


def refuse_private(uri: str, allowed: bool) -> None:
    """A private address is refused when it is given; what a name leads to is looked at with every request."""
    from urllib.parse import urlsplit

    from recollect.archives.live import refusal

    host = (urlsplit(uri).hostname or "").rstrip(".")
    local = not allowed and (host == "localhost" or host.endswith(".localhost"))
    why = refusal(uri, allowed)
    if local or why:
        private = local or not refusal(uri, allow_private=True)
        raise UsageError("this address is not asked", where=uri, why=why, hint="--allow-private" if private else "")


def shown(text: object) -> str:
    """Text that others wrote, for a terminal: without control characters, which a terminal obeys."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def secret_of(path: str | None) -> str:
    """The text of a file with a secret; empty without one."""
    if path is None:
        return ""
    text = Path(path).read_text().strip()
    if not text or not text.isprintable():
        raise UsageError("not a file with one line of text", where=path)
    return text
