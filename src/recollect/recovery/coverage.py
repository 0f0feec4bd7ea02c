"""How many of a site's pages archives have captured, and how fresh: what protection can count on.

Hides: listing. Unknown is not no: an archive that does not answer is named, and what it may hold is not counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any
from urllib.parse import urljoin

from recollect.archives.opening import ClientOptions, open_client
from recollect.archives.registry import Archive
from recollect.blocking import blocking
from recollect.errors import ArchiveError, BadURI, UsageError
from recollect.recovery.canonical import visit_key
from recollect.recovery.choose import is_content, resolve_revisits
from recollect.recovery.journal import Journal
from recollect.recovery.lister import Lister, site_queries
from recollect.recovery.meter import Meter, evenly, quotas_of
from recollect.recovery.options import Options
from recollect.recovery.scope import Scope
from recollect.recovery.store import Store

_FRESH = timedelta(days=90)
_TIMEOUT = 120.0


@dataclass(frozen=True, slots=True)
class SiteCoverage:
    """Of `pages`, `captured` have a capture, `fresh` one of the last 90 days; `failed` archives are unknown."""

    pages: int
    captured: int
    fresh: int
    median_age_days: float | None
    failed: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "pages": self.pages,
            "captured": self.captured,
            "fresh": self.fresh,
            "median_age_days": self.median_age_days,
            "failed": [{"archive": archive, "reason": why} for archive, why in self.failed],
        }


@blocking
def site_coverage(
    archives: Sequence[Archive],
    uri: str,
    pages: Sequence[str],
    now: datetime,
    on_page: Callable[[str, int], None] = lambda _archive, _captures: None,
) -> SiteCoverage:
    """Ask archives for the captures of a site's pages, given as references below `uri`, with their escapes.

    `on_page` is called with an archive and how many captures it has listed so far.
    """
    base = uri if "://" in uri else f"http://{uri}"
    base = base if base.endswith("/") else f"{base}/"
    options = Options(Scope((base,)))

    async def ask(store: Store) -> SiteCoverage:
        journal = Journal(store)
        async with open_client(ClientOptions(timeout=_TIMEOUT)) as client:
            lister = Lister(Meter(client, journal, quotas_of(archives, {})), journal, options.rules, on_page)
            polite = [evenly(archive) for archive in archives]
            await asyncio.gather(
                lister.list_site(polite, site_queries(options.scope)), lister.ask_front(polite, options.scope.start)
            )
        return _counted(journal, base, pages, now)

    try:
        with Store.in_memory() as store:
            return asyncio.run(ask(store))
    except BadURI as error:
        raise UsageError("not a URL", where=uri, hint="--coverage http://site.example/") from error


def _counted(journal: Journal, base: str, pages: Sequence[str], now: datetime) -> SiteCoverage:
    listings = list(journal.listings().values())
    failed = [(one.archive, one.detail or one.state) for one in listings if one.state in ("failed", "part")]
    if listings and len(failed) == len(listings):
        raise ArchiveError("no archive answered", where=failed[0][0], why=failed[0][1], hint="recollect archives check")
    rules = Options(Scope((base,))).rules
    newest = []
    for name in pages:
        key = visit_key(urljoin(base, name), rules)
        moments = [c.captured_at for c in resolve_revisits(journal.candidates(key)) if is_content(c.status)]
        if moments:
            newest.append(max(moments))
    ages = [(now - moment).total_seconds() / 86400 for moment in newest]
    fresh = sum(now - moment <= _FRESH for moment in newest)
    return SiteCoverage(len(pages), len(newest), fresh, round(median(ages), 1) if ages else None, tuple(failed))
