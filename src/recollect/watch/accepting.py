"""An owner accepts the present content of a site: a relaunch that looked foreign, pages removed on purpose, new links.

Hides: what acceptance changes, and the signature of the links that do it. A link is signed with a key of the data
folder (HMAC-SHA-256), and holds for one state of one site since one moment: it cannot be guessed, and an old link does
nothing. Opening it only asks; the button on that page accepts, because mail programs open links by themselves.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from urllib.parse import urlencode

from recollect.errors import UsageError
from recollect.watch.pageloss import lost_pages
from recollect.watch.records import Site, VisitRecord
from recollect.watch.states import HIDDEN, SiteState, SiteStatus, VisitResult
from recollect.watch.store import Store

KEY = "accept.key"
_ACCEPTABLE = HIDDEN | {SiteState.TAKEN_OVER, SiteState.PAGES_LOST}


def can_accept(site: Site) -> bool:
    """Whether there is something that an owner can accept."""
    return site.status.state in _ACCEPTABLE or _is_other_content(site) or bool(site.notes.injected)


def _is_other_content(site: Site) -> bool:
    """Whether the present content is not what was known of the site."""
    state = site.status.state
    if site.notes.placeholder and state in (SiteState.SUSPECT, SiteState.LOST):
        return True
    return state in (SiteState.SUSPECT, SiteState.TAKEN_OVER) and site.status.foreign_since is not None


def accept(store: Store, uri: str, now: datetime) -> str:
    """Take the present content of a site for its own; what was accepted, in words. The next visit, which is due at
    once, learns its content; pages that are gone are forgotten, and new links are known."""
    with store.transaction():
        site = store.site(uri)
        if site is None:
            raise UsageError("this site is not watched", where=uri, hint="recollect watch status --data DIR")
        if not can_accept(site):
            hints = {SiteState.MOVED: "recollect watch add with the new address"}
            why = f"it is {site.status.state.value.replace('-', ' ')}"
            raise UsageError("nothing to accept", where=uri, why=why, hint=hints.get(site.status.state, ""))
        resources = store.resources(uri)
        lost = lost_pages(resources)
        foreign = _is_other_content(site)
        for one in resources if foreign else lost:  # another site has other pages, which are found again
            store.forget_resource(uri, one.uri)
        words = [
            *(["the present content"] if foreign or site.status.is_hidden else []),
            *([f"{len(lost):,} lost pages"] if lost else []),
            *(["links to " + ", ".join(site.notes.injected[:5])] if site.notes.injected else []),
        ]
        told = "accepted by the owner: " + ("; ".join(words) or "the present state")
        status = SiteStatus(SiteState.FINE, now, site.status.last_own)
        notes = replace(
            site.notes,
            accept=foreign or site.status.is_hidden or site.notes.accept,
            refuted=tuple({*site.notes.refuted, *([site.status.state.value] if site.status.is_hidden else [])}),
            pages_since="",
            placeholder=False,
            injected=(),
            outside=tuple(sorted({*site.notes.outside, *site.notes.injected})),
        )
        store.add_visit(VisitRecord(uri, now, VisitResult.OWN, SiteState.FINE, told))
        store.put_site(replace(site, status=status, notes=notes, next_visit=min(now, site.next_visit)))
    return told


def key_of(folder: Path, *, create: bool = True) -> bytes:
    """The key of a data folder, made when it is first needed; empty if there is none and it cannot be made."""
    path = folder / KEY
    if create and not path.exists():
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with suppress(FileExistsError, PermissionError), os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(secrets.token_hex(32).encode())
    try:
        return path.read_bytes()
    except OSError:
        return b""


def signature(key: bytes, site: Site) -> str:
    """What proves that a link was made here, for this state of the site."""
    status = site.status
    cause = "\n".join((site.uri, status.state.value, str(status.since), *site.notes.injected))
    return hmac.new(key, cause.encode(), hashlib.sha256).hexdigest() if key else ""


def is_signed(key: bytes, site: Site, signed: str) -> bool:
    return bool(key) and hmac.compare_digest(signature(key, site).encode(), signed.encode("utf-8", "replace"))


def accept_link(base: str, key: bytes, site: Site) -> str:
    """The address of the page that accepts; empty without a dashboard's address or where nothing can be accepted."""
    if not base or not key or not can_accept(site):
        return ""
    return f"{base.rstrip('/')}/accept?{urlencode({'site': site.uri, 'signed': signature(key, site)})}"
