"""What the commands of a watch share: the folder, addresses, shares."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.watch.store import Store

data_option = click.option(
    "--data", "folder", required=True, type=click.Path(file_okay=False), help="Folder of the watch."
)


def example(*lines: str) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  recollect watch {line}" for line in lines)


def open_store(folder: str, *, read_only: bool = False) -> Store:
    from recollect.watch.store import Store

    return Store(folder, create=False, read_only=read_only)


def site_uri(uri: str) -> str:
    """The address of a site as it is kept."""
    from urllib.parse import urlsplit

    text = uri if "://" in uri else f"http://{uri}"
    try:
        split = urlsplit(text)
        host = split.hostname
    except ValueError as error:
        raise UsageError("not an address", where=uri, why=str(error)) from error
    if split.scheme not in ("http", "https") or not host:
        raise UsageError("not the address of a site", where=uri, hint="like http://site.example/")
    return text if split.path else text + "/"


def refuse_private(uri: str, allowed: bool) -> None:
    """An address literal that is private is refused when it is added; names are looked at with every visit."""
    from urllib.parse import urlsplit

    from recollect.archives.live import is_public

    host = urlsplit(uri).hostname or ""
    try:
        private = not is_public(host)
    except ValueError:
        private = host == "localhost" or host.endswith(".localhost")
    if private and not allowed:
        raise UsageError("a private address is not called", where=uri, hint="--allow-private")


def percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.0%}"


def secret_of(path: str | None) -> str:
    """The text of a file with a secret; empty without one."""
    if path is None:
        return ""
    text = Path(path).read_text().strip()
    if not text:
        raise UsageError("the file is empty", where=path)
    return text
