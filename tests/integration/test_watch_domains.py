"""Domains whose registration ends: told by the registry's answers, and by what it said last; simulated days."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from pathlib import Path

import pytest

from recollect.archives.client import ArchiveClient
from recollect.archives.live import LiveClient
from recollect.cli import main
from recollect.watch.cli.mail import OutboxMailer
from recollect.watch.registration import Registration
from recollect.watch.run import Tools, run_round
from recollect.watch.store import Store
from small_dns import dns_server, reply
from watch_sites import Web, sites

T0 = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def web() -> Iterator[Web]:
    with sites() as made:
        yield made


@pytest.fixture
def data(web: Web, tmp_path: Path) -> Path:
    """A watch of one site."""
    folder = tmp_path / "watch"
    (tmp_path / "archives.json").write_text("[]")
    given = ["watch", "add", web.uri(0), "--data", str(folder), "--allow-private", "--on-loss", "notify"]
    more = ["--archives", str(tmp_path / "archives.json"), "--email", "anna@mail.example", "--now", T0.isoformat()]
    assert main.run([*given, *more]) == 0
    return folder


def mails(data: Path) -> list[tuple[str, str]]:
    found = [message_from_bytes(file.read_bytes(), policy=policy.default) for file in (data / "outbox").glob("*.eml")]
    return sorted((mail["Subject"], mail.get_content()) for mail in found)


def months(data: Path, *days: int, rdap: str = "", name_server: str = "") -> None:
    """Run a watch on days; `name_server` is what DNS says."""

    async def run() -> None:
        answers = dns_server(lambda question, _: reply(question, name_server)) if name_server else nullcontext()
        async with ArchiveClient() as client, answers as resolver:
            with Store(data) as store:
                tools = Tools(
                    live=lambda allowed: LiveClient(user_agent="t", allow_private=allowed, pace=0),
                    archives=lambda _: (),
                    client=client,
                    rdap=rdap,
                    resolver=resolver,
                    domain=lambda _: "club.example",
                    own_services=True,
                    mailer=OutboxMailer(store.folder, "", ""),
                )
                for number in days:
                    await run_round(store, tools, T0 + timedelta(days=number))

    asyncio.run(run())


def registry(web: Web, ends: datetime) -> str:
    """The address of an RDAP server that says when a domain ends."""
    events = [{"eventAction": "expiration", "eventDate": ends.isoformat()}]
    answer = {"objectClassName": "domain", "events": events, "entities": [{"roles": ["registrar"], "handle": "R1"}]}
    web.at(1).files["/domain/club.example"] = ("application/rdap+json", json.dumps(answer))
    return web.uri(1)


def test_a_domain_that_expires_soon_is_told_and_one_renewed_meanwhile_is_not(web: Web, data: Path) -> None:
    ends = T0 + timedelta(days=60)
    rdap = registry(web, ends)
    months(data, 0, 7, 14, 21, 28, rdap=rdap)
    assert mails(data) == []
    months(data, 31, 32, 33, 54, 55, rdap=rdap)
    assert [subject.partition(": ")[2] for subject, _ in mails(data)] == ["the registration of its domain ends"] * 2
    assert all("The registration of club.example ends on 2026-03-02" in text for _, text in mails(data))
    registry(web, ends + timedelta(days=365))
    months(data, 56, 60, 61, 70, rdap=rdap)
    assert len(mails(data)) == 2, "renewed, and asked again before any notice"


def test_a_registry_that_stops_answering_does_not_silence_the_end_of_a_domain(web: Web, data: Path) -> None:
    rdap = registry(web, T0 + timedelta(days=60))
    months(data, 0, 7, rdap=rdap)
    web.at(1).files.clear()
    months(data, 14, 28, 35, 45, rdap=rdap, name_server="ns1.host.example")
    assert mails(data) == [], "it may have been renewed"
    months(data, 54, 55, 56, rdap=rdap, name_server="ns1.host.example")
    [(_, text)] = mails(data)
    assert "ends on 2026-03-02 (in 6 days), by the registry's last answer" in text
    with Store(data) as store:
        known = Registration.from_json(store.sites()[0].registration)
    assert known is not None and known.registrar == "R1", "what is not answered stays as it was"
    assert known.served_by == ("ns1.host.example",)
