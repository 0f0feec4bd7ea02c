"""Whether failures are those of the local network.

Hides: which witnesses are asked. One that answers is enough: the local network works, and what fails is the site. In
this order:

- sites that were due, whose answers are known already;
- canaries, which the operator names;
- archives: they are watched over by others, and a watch has to reach them anyway;
- DNS: a certain answer for a name that is in no cache comes from the servers of its domain;
- watched sites that are not due and were well until now.

If none answers, the local network fails where a canary was asked, or where three different witnesses or sites that were
well fail at once; with fewer of them, a failure is the site's. Sites that failed before are not evidence: a watch whose
sites are all lost must not take itself for offline. An archive on a private address says nothing about the internet
and is only asked for sites on such addresses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from recollect.archives.live import Failure, LiveAnswer
from recollect.archives.registry import Archive
from recollect.errors import UsageError
from recollect.watch.records import Site
from recollect.watch.states import SiteState

FAIL_AT_ONCE = 3
"""Without canaries: sites, archives and DNS that fail at once, and nothing that answers, mean that the local network is
down."""
MOST_ARCHIVES = 4
MOST_DOMAINS = 3

Ask = Callable[[str], Awaitable[LiveAnswer]]


@dataclass(frozen=True)
class Witnesses:
    """Who can be asked whether the local network works, beside the sites that were due."""

    ask_site: Callable[[Site], Awaitable[LiveAnswer]]
    ask_canary: Ask
    ask_archive: Ask
    ask_dns: Callable[[str], Awaitable[bool]] | None = None
    """Whether a DNS server knows a domain; None if none is configured."""
    canaries: Sequence[str] = ()
    archives: Sequence[Archive] = ()
    domains: Sequence[str] = ()
    """The registered domains of the sites that failed."""


async def is_offline(failed: Sequence[Site], answered: bool, others: Iterable[Site], witnesses: Witnesses) -> bool:
    """Whether sites failed because the local network does. `others` are the watched sites that were not due."""
    if answered or not failed:
        return False
    canaries, archives, domains = await asyncio.gather(_canaries(witnesses), _archives(witnesses), _domains(witnesses))
    if any((*canaries, *archives, *domains)):
        return False
    if canaries:
        return True
    hosts = {host_of(site) for site in failed if _was_well(site)}
    if not hosts:
        return False
    chosen = _others_that_were_well(others, hosts)
    if len(hosts) + len(chosen) + len(archives) + bool(domains) < FAIL_AT_ONCE:
        return False
    return all(answer.failure is not None for answer in await asyncio.gather(*map(witnesses.ask_site, chosen)))


async def _canaries(witnesses: Witnesses) -> list[bool]:
    """Which canaries answer."""
    answers = await asyncio.gather(*map(witnesses.ask_canary, witnesses.canaries))
    for answer in answers:
        if answer.failure is Failure.REFUSED:
            raise UsageError("this canary is not asked", where=answer.asked, why=answer.why, hint="--allow-private")
    return [answer.failure is None for answer in answers]


async def _archives(witnesses: Witnesses) -> list[bool]:
    """Which archives answer, whatever they say: the front pages of their servers are asked for."""
    fronts = {front: None for archive in witnesses.archives if (front := _front_of(archive))}
    answers = await asyncio.gather(*map(witnesses.ask_archive, list(fronts)[:MOST_ARCHIVES]))
    return [answer.failure is None for answer in answers if answer.failure is not Failure.REFUSED]


def _front_of(archive: Archive) -> str:
    split = urlsplit(archive.cdx or archive.timemap or archive.timegate or archive.raw)
    return f"{split.scheme}://{split.netloc}/" if split.netloc else ""


async def _domains(witnesses: Witnesses) -> list[bool]:
    """For which domains of failed sites, or domains above them, DNS has a certain answer."""
    if witnesses.ask_dns is None:
        return []
    names = dict.fromkeys(witnesses.domains[:MOST_DOMAINS])
    names |= dict.fromkeys(above for name in list(names) if (above := name.partition(".")[2]))
    return list(await asyncio.gather(*map(witnesses.ask_dns, names)))


def _others_that_were_well(others: Iterable[Site], hosts: set[str]) -> list[Site]:
    found: dict[str, Site] = {}
    for site in others:
        if _was_well(site) and host_of(site) not in hosts:
            found.setdefault(host_of(site), site)
    return list(found.values())[:FAIL_AT_ONCE]


def _was_well(site: Site) -> bool:
    return site.status.state in (SiteState.FINE, SiteState.BACK) and site.status.failing_since is None


def host_of(site: Site) -> str:
    """Host and port: what fails together."""
    return urlsplit(site.uri).netloc.lower()
