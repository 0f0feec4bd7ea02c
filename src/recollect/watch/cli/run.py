"""What `watch check` and `watch run` do: the tools of a round, rounds until they are stopped, recoveries.

A recovery may take hours. A run that goes on recovers beside its rounds; Ctrl-C stops it, and what it has stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from math import inf
from typing import TYPE_CHECKING

from recollect.cli.console import talk
from recollect.errors import UsageError
from recollect.watch.cli.tools import secret_of

if TYPE_CHECKING:
    from recollect.archives.client import ArchiveClient
    from recollect.archives.names import NameServer
    from recollect.archives.registry import Archive
    from recollect.model import ProgressCallback
    from recollect.watch.check import Check
    from recollect.watch.recoveries import Recoverer
    from recollect.watch.run import Round, Tools
    from recollect.watch.store import Store

_POLL = 60.0


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of `watch run`."""

    canaries: tuple[str, ...] = ()
    smtp: str = ""
    from_address: str = ""
    desk: str | None = None
    desk_token_file: str | None = None
    rdap: str = ""
    resolver: str = ""
    save: str | None = None
    save_key_file: str | None = None
    own_services: bool = False
    dashboard: str = ""


async def run_once(store: Store, options: RunOptions, now: datetime, progress: ProgressCallback) -> Round:
    """One round, with its recoveries."""
    from recollect.archives.opening import ClientOptions, open_client
    from recollect.watch.holdings import ARCHIVE_TIMEOUT
    from recollect.watch.run import run_round

    async with open_client(ClientOptions(timeout=ARCHIVE_TIMEOUT)) as client:
        return await run_round(store, make_tools(client, store, options, progress), now)


async def run_until_stopped(
    store: Store, options: RunOptions, show: Callable[[Round], None], progress: ProgressCallback
) -> None:
    """A round a minute; lost sites are recovered beside them."""
    from recollect.archives.opening import ClientOptions, open_client
    from recollect.watch.holdings import ARCHIVE_TIMEOUT
    from recollect.watch.recoveries import run_recoveries
    from recollect.watch.run import run_round

    async with open_client(ClientOptions(timeout=ARCHIVE_TIMEOUT)) as client:
        tools = make_tools(client, store, options, progress)
        assert tools.recoverer is not None
        recovering: asyncio.Task[tuple[tuple[str, ...], tuple[str, ...]]] | None = None
        try:
            while True:
                done = await run_round(store, tools, datetime.now(UTC), recoveries=False)
                if done.visited or done.failures:
                    show(done)
                if recovering is not None and recovering.done():
                    for uri in recovering.result()[0]:
                        talk(f"recovered: {uri}")
                    for failure in recovering.result()[1]:
                        talk(f"failed: {failure}")
                    recovering = None
                if recovering is None:
                    recovering = asyncio.create_task(run_recoveries(store, tools.recoverer, datetime.now(UTC)))
                await asyncio.sleep(_POLL)
        finally:
            if recovering is not None:
                recovering.cancel()
                await asyncio.gather(recovering, return_exceptions=True)


def make_tools(client: ArchiveClient, store: Store, options: RunOptions, progress: ProgressCallback) -> Tools:
    """What a round works with."""
    from recollect.archives.live import LiveClient, refusal
    from recollect.archives.opening import operator_agent
    from recollect.watch.accepting import accept_link, key_of
    from recollect.watch.cli.mail import DeskJobs, OutboxMailer
    from recollect.watch.cli.recovering import LocalRecoveries
    from recollect.watch.run import Tools
    from recollect.watch.saving import SaveEndpoint

    if options.smtp and not options.from_address:
        raise UsageError("mails need a sender", where="--smtp", hint="--from-address watch@example.org")
    given = (("--rdap", options.rdap), ("--save", options.save), ("--desk", options.desk))
    for option, url in (*given, *(("--canary", canary) for canary in options.canaries)):
        why = refusal(url, allow_private=True) if url else ""
        if why:
            raise UsageError("not an allowed address", where=f"{option} {url}", why=why)
    local = LocalRecoveries(store.folder)
    recoverer: Recoverer = local
    if options.desk is not None:
        recoverer = DeskJobs(options.desk, secret_of(options.desk_token_file), store.folder, local)
    return Tools(
        live=lambda allowed: LiveClient(user_agent=operator_agent(), allow_private=allowed),
        archives=_archives(),
        client=client,
        canaries=options.canaries,
        recoverer=recoverer,
        mailer=OutboxMailer(store.folder, options.smtp, options.from_address),
        rdap=options.rdap,
        resolver=_resolver(options.resolver),
        domain=registered_domain,
        save=SaveEndpoint(options.save, secret_of(options.save_key_file)) if options.save else None,
        own_services=options.own_services,
        progress=progress,
        accept=lambda site: accept_link(options.dashboard, key_of(store.folder), site),
    )


def _resolver(text: str) -> NameServer | None:
    from recollect.archives.names import NameServer, system_resolver

    if not text:
        return system_resolver()
    host, colon, port = text.rpartition(":")
    if colon and ":" not in host.strip("[]"):
        if not port.isdigit() or not 0 < int(port) < 65536:
            raise UsageError("not a DNS server", where=f"--resolver {text}", hint="like 192.0.2.53 or 192.0.2.53:5353")
        return NameServer(host, int(port))
    if text.startswith("[") and port.isdigit() and host.endswith("]"):
        return NameServer(host.strip("[]"), int(port))
    return NameServer(text.strip("[]"))


def registered_domain(uri: str) -> str:
    """The domain that a registry knows; empty for an address or a name below no public suffix."""
    from recollect.watch.registration import host_of

    host = host_of(uri)
    if not host or ":" in host or host.replace(".", "").isdigit():
        return ""
    return _suffixes().privatesuffix(host) or ""


@cache
def _suffixes():  # type: ignore[no-untyped-def]  # the package has no types
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


def _archives() -> Callable[[str], tuple[Archive, ...]]:
    from recollect.archives.registry import load_archives

    return cache(lambda path: load_archives(path or None))


async def check_site(
    uri: str, sample: int, archives: str | None, allow_private: bool, progress: ProgressCallback
) -> Check:
    """Look once at a live site, and at what archives hold of it."""
    from recollect.archives.live import Failure, LiveClient
    from recollect.archives.opening import ClientOptions, open_client, operator_agent
    from recollect.archives.registry import load_archives
    from recollect.recovery.fingerprint import SiteFingerprint
    from recollect.watch.check import check_of
    from recollect.watch.holdings import ARCHIVE_TIMEOUT
    from recollect.watch.look import Look
    from recollect.watch.states import VisitResult
    from recollect.watch.visit import judge_visit

    at = datetime.now(UTC)
    chosen = [archive for archive in load_archives(archives) if not archive.ignore]
    async with (
        LiveClient(user_agent=operator_agent(), allow_private=allow_private) as live,
        open_client(ClientOptions(timeout=ARCHIVE_TIMEOUT)) as client,
    ):
        front = await live.get(uri)
        if front.failure is Failure.CERTIFICATE:
            what, hint = "the certificate of the site is not accepted", "renew it: visitors see a warning"
            raise UsageError(what, where=uri, why=front.why, hint=hint)
        if front.failure is not None:
            private = front.failure is Failure.REFUSED
            hint = "--allow-private" if private else "recollect survey shows what archives have"
            raise UsageError("the site does not answer", where=uri, why=front.why, hint=hint)
        visit = judge_visit(front, SiteFingerprint())
        if visit.seen in (VisitResult.FAILED, VisitResult.BLOCKED):
            hint = "recollect survey shows what archives have"
            raise UsageError("the site shows no content of its own", where=uri, why=visit.why, hint=hint)
        if visit.seen is not VisitResult.OWN:
            talk(f"note: {visit.why}; this may not be the site's own content")
        look = Look(live, client, chosen, uri, sample, progress=progress, archive_seconds=inf)
        looked = [one async for one in look.resources(front, {}, at)]
    return check_of(uri, at, looked, disallowed=len(look.disallowed))
