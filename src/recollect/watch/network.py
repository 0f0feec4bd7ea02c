"""Whether failures are those of the local network.

Hides: which sites are asked. If any site that was due answered, the local network works. Otherwise the canaries decide;
without canaries, several watched sites that were well until now and fail at the same time mean that the local network
fails. Sites that are not due are asked, too, so that this works however visits are spread over the day. Sites that
failed before are not evidence: a watch whose sites are all lost must not take itself for offline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from urllib.parse import urlsplit

from recollect.archives.live import Failure, LiveAnswer
from recollect.errors import UsageError
from recollect.watch.records import Site
from recollect.watch.states import SiteState

SITES_AT_ONCE = 3
"""Without canaries: hosts that fail at once, and no other that answers, mean that the local network is down."""

Ask = Callable[[Site], Awaitable[LiveAnswer]]


async def is_offline(
    failed: Sequence[Site],
    answered: bool,
    others: Iterable[Site],
    ask: Ask,
    canaries: Sequence[str],
    ask_canary: Callable[[str], Awaitable[LiveAnswer]],
) -> bool:
    """Whether sites failed because the local network does. `others` are the watched sites that were not due."""
    if answered or not failed:
        return False
    if canaries:
        answers = await asyncio.gather(*map(ask_canary, canaries))
        for answer in answers:
            if answer.failure is Failure.REFUSED:
                raise UsageError("this canary is not asked", where=answer.asked, why=answer.why, hint="--allow-private")
        return all(answer.failure is not None for answer in answers)
    hosts = {host_of(site) for site in failed if _was_well(site)}
    witnesses: dict[str, Site] = {}
    for site in others:
        if _was_well(site) and host_of(site) not in hosts:
            witnesses.setdefault(host_of(site), site)
    chosen = list(witnesses.values())[:SITES_AT_ONCE]
    if len(hosts) + len(chosen) < SITES_AT_ONCE:
        return False
    return all(answer.failure is not None for answer in await asyncio.gather(*map(ask, chosen)))


def _was_well(site: Site) -> bool:
    return site.status.state in (SiteState.FINE, SiteState.BACK) and site.status.failing_since is None


def host_of(site: Site) -> str:
    """Host and port: what fails together."""
    return urlsplit(site.uri).netloc.lower()
