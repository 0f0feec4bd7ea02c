"""A server with several sites dies: the watch says so, because archives, DNS and canaries answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from pathlib import Path

import pytest

from pywb_archive import Capture, pywb_archive
from recollect.archives.client import ArchiveClient
from recollect.archives.live import LiveClient
from recollect.archives.names import NameServer, gives_answers
from recollect.archives.registry import load_archives
from recollect.cli import main
from recollect.watch.cli.mail import OutboxMailer
from recollect.watch.records import OnLoss, Site
from recollect.watch.run import Round, Tools, run_round
from recollect.watch.states import SiteState, SiteStatus
from recollect.watch.store import Store
from small_dns import dns_server, reply

T0 = datetime(2026, 1, 1, tzinfo=UTC)
NO_NAME, SERVFAIL = 0x8183, 0x8182


@contextmanager
def watched(data: Path, *uris: str, archives: str = "") -> Iterator[Store]:
    """Sites that were well yesterday."""
    fine = SiteStatus(SiteState.FINE, T0, T0)
    with Store(data) as store:
        with store.transaction():
            for uri in uris:
                site = Site(uri, T0, T0 + timedelta(days=1), 10, OnLoss.NOTIFY, archives, allow_private=True)
                store.put_site(replace(site, email="anna@mail.example", status=fine, last_visit=T0))
        yield store


def run_days(store: Store, days: range, **tools) -> Round:
    async def run() -> Round:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(ArchiveClient())
            made = Tools(
                live=lambda allowed: LiveClient(user_agent="t", allow_private=allowed, pace=0.0, timeout=5.0),
                archives=lambda path: load_archives(path) if path else (),
                client=client,
                mailer=OutboxMailer(store.folder, "", ""),
                **{name: value for name, value in tools.items() if name != "dns"},
            )
            if (flags := tools.get("dns")) is not None:
                server = dns_server(lambda question, _: reply(question, flags=flags))
                resolver = await stack.enter_async_context(server)
                made = replace(made, resolver=resolver, domain=lambda _: "club.example")
            for number in days:
                done = await run_round(store, made, T0 + timedelta(days=number))
            return done

    return asyncio.run(run())


def subjects(data: Path) -> list[str]:
    mails = [message_from_bytes(file.read_bytes(), policy=policy.default) for file in (data / "outbox").glob("*.eml")]
    return sorted(mail["Subject"] for mail in mails)


DEAD = tuple(f"http://127.0.1.{number}:1/" for number in range(1, 5))  # a port on which every connection is refused


def test_a_dead_server_with_four_sites_is_reported_because_an_archive_answers(tmp_path: Path) -> None:
    held = [Capture(f"{DEAD[0]}page", "20251201000000", b"<title>Boats</title><p>Boats", "text/html")]
    with pywb_archive(tmp_path / "pywb", held) as archive:
        listed = tmp_path / "archives.json"
        listed.write_text(f'[{{"id": "mine", "timemap": "{archive.timemap}", "cdx": "{archive.cdx}"}}]')
        with watched(tmp_path / "watch", *DEAD, archives=str(listed)) as store:
            run_days(store, range(1, 10))
            assert {site.status.state for site in store.sites()} == {SiteState.LOST}
    assert subjects(tmp_path / "watch") == [f"{uri} is lost" for uri in DEAD]


@pytest.mark.parametrize(("flags", "expected"), [(NO_NAME, SiteState.LOST), (SERVFAIL, SiteState.FINE)])
def test_dns_that_answers_for_certain_is_a_canary(tmp_path: Path, flags: int, expected: SiteState) -> None:
    with watched(tmp_path, *DEAD) as store:
        run_days(store, range(1, 10), dns=flags)
        assert {site.status.state for site in store.sites()} == {expected}


def test_a_dns_server_that_does_not_answer_knows_nothing() -> None:
    assert not asyncio.run(gives_answers(NameServer("127.0.0.1", 1), "club.example", timeout=5.0))


def test_offline_that_lasts_is_one_mail_after_a_day(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with watched(tmp_path, *DEAD) as store:
        assert run_days(store, range(1, 2)).offline_since is None
        assert subjects(tmp_path) == []
        assert run_days(store, range(2, 8)).offline_since == T0 + timedelta(days=1)
    assert subjects(tmp_path) == [f"{DEAD[0]} cannot be watched: nothing answers"]
    text = next((tmp_path / "outbox").glob("*.eml")).read_text()
    assert all(uri in text for uri in DEAD)
    assert main.run(["watch", "status", "--data", str(tmp_path), "--fail-on", "offline"]) == 1
    assert "nothing answers since 2026-01-02" in capsys.readouterr().out
    with Store(tmp_path) as store:
        run_days(store, range(8, 34))
    assert len(subjects(tmp_path)) == 2, "and one a month while it lasts"


def test_a_canary_that_answers_decides(tmp_path: Path) -> None:
    with pywb_archive(tmp_path / "pywb", []) as any_server, watched(tmp_path / "watch", *DEAD) as store:
        canary = any_server.timemap.partition("/timemap")[0] + "/"
        run_days(store, range(1, 10), canaries=(canary,), own_services=True)
        assert {site.status.state for site in store.sites()} == {SiteState.LOST}
