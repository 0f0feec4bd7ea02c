"""`watch edit`: change the options of a watched site; its state and its observations stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from recollect.errors import UsageError
from recollect.watch.cli.tools import refuse_private, site_uri
from recollect.watch.records import OnLoss
from recollect.watch.store import Store


def edit_site(store: Store, uri: str, given: Mapping[str, Any]) -> list[str]:
    """Set the options that are given (not None); what changed, in words."""
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise UsageError("nothing to change", where=uri, hint="--email, --every, --canary ...")
    with store.transaction():
        site = store.site(uri)
        if site is None:
            raise UsageError("this site is not watched", where=uri, hint="recollect watch status --data DIR")
        for name in ("webhook", "canary"):
            if changes.get(name):
                refuse_private(site_uri(changes[name]), site.allow_private)
        if "on_loss" in changes:
            changes["on_loss"] = OnLoss(changes["on_loss"])
        if changes.get("archives"):
            changes["archives"] = str(Path(changes["archives"]).resolve())
        if "every" in changes and site.last_visit is not None:
            changes["next_visit"] = min(site.next_visit, site.last_visit + changes["every"])
            if changes["every"] > site.every and site.next_visit == site.last_visit + site.every:
                changes["next_visit"] = site.last_visit + changes["every"]
        store.put_site(replace(site, **changes))
    return [f"{name.replace('_', '-')}: {_shown(value)}" for name, value in changes.items() if name != "next_visit"]


def _shown(value: object) -> str:
    if isinstance(value, timedelta):
        return f"{value.total_seconds() / 3600:g} h"
    return str(value) or "none"
