"""What is decided without a network: whose failure it is, where recoveries go, how foreign text is shown."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest

from recollect.archives.live import Failure, LiveAnswer
from recollect.archives.registry import Archive
from recollect.errors import UsageError
from recollect.watch.board import Board, Line
from recollect.watch.cli.run import _resolver, registered_domain
from recollect.watch.cli.tools import refuse_private, shown, site_uri
from recollect.watch.network import Witnesses, is_offline
from recollect.watch.notices import atom, letter_of
from recollect.watch.pages.board import dashboard_page
from recollect.watch.records import NoticeRecord, OnLoss, Site
from recollect.watch.recoveries import recovery_folder
from recollect.watch.states import Notice, ResourceState, SiteState, SiteStatus

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def site(name: str, state: SiteState = SiteState.FINE, failing: bool = False) -> Site:
    status = SiteStatus(state, T0, T0, T0 if failing else None, int(failing))
    return Site(f"http://{name}.example/", T0, T0, status=status)


def offline(
    failed: list[Site],
    others: list[Site] = [],  # noqa: B006
    *,
    answered: bool = False,
    up: tuple[str, ...] = (),
    canaries: tuple[str, ...] = (),
    failure: Failure = Failure.TIMEOUT,
    archives: tuple[str, ...] = (),
    domains: tuple[str, ...] = (),
) -> bool:
    async def ask(uri: str) -> LiveAnswer:
        return LiveAnswer(uri, uri, 200) if uri in up else LiveAnswer(uri, uri, failure=failure)

    async def ask_dns(domain: str) -> bool:
        return domain in up

    listed = tuple(Archive(f"a{n}", timemap=f"{uri}timemap/") for n, uri in enumerate(archives))
    witnesses = Witnesses(lambda one: ask(one.uri), ask, ask, ask_dns, canaries, listed, domains)
    return asyncio.run(is_offline(failed, answered, others, witnesses))


A, B, C, D = (site(name) for name in "abcd")


def test_several_sites_that_fail_at_once_are_the_local_network() -> None:
    assert offline([A, B, C])
    assert not offline([A, B])
    assert not offline([A, B, C], answered=True)


def test_sites_that_are_not_due_are_asked_too() -> None:
    assert offline([A], [B, C, D])
    assert not offline([A], [B, C, D], up=(C.uri,))
    assert not offline([A], [B])


def test_sites_that_failed_before_prove_nothing() -> None:
    gone = [site(name, SiteState.LOST, failing=True) for name in "xyz"]
    failing = [site(name, failing=True) for name in "uvw"]
    assert not offline(gone)
    assert not offline(failing)
    assert not offline([A, *gone, *failing])
    assert offline([A, B, C, *gone])


def test_sites_of_one_host_are_one() -> None:
    assert not offline([replace(A, uri=f"http://one.example/{n}") for n in range(5)])


def test_an_archive_or_dns_that_answers_is_a_canary() -> None:
    archives = ("http://one.archive.example/", "http://two.archive.example/")
    assert offline([A, B, C], archives=archives, domains=("a.example",))
    assert not offline([A, B, C], archives=archives, up=archives[1:])
    assert not offline([A, B, C], archives=archives, domains=("a.example",), up=("a.example",))
    assert not offline([A, B, C], domains=("a.example",), up=("example",)), "the domain above answers"
    assert not offline([A, B, C], canaries=("http://k.example/",), archives=archives, up=archives[:1])


def test_a_single_site_and_all_witnesses_that_fail_are_the_local_network() -> None:
    archives = ("http://one.archive.example/", "http://two.archive.example/")
    assert offline([A], archives=archives)
    assert not offline([A], archives=archives[:1])
    assert offline([A], archives=archives[:1], domains=("a.example",))


def test_canaries_decide_where_there_are_some() -> None:
    assert offline([A], canaries=("http://canary.example/",))
    assert not offline([A, B, C], canaries=("http://canary.example/", "http://up.example/"), up=("http://up.example/",))
    assert not offline([A], answered=True, canaries=("http://canary.example/",)), "a dead canary does not blind a watch"
    with pytest.raises(UsageError, match="canary"):
        offline([A], canaries=("http://10.0.0.1/",), failure=Failure.REFUSED)


def test_every_site_and_loss_has_a_folder_of_its_own() -> None:
    uris = (
        "http://h.example/",
        "https://h.example/",
        "http://h.example/~a/",
        "http://h.example/~b/",
        "http://h.example:81/",
    )
    lost = [Site(uri, T0, T0, status=SiteStatus(SiteState.LOST, T0)) for uri in uris]
    again = replace(lost[0], status=SiteStatus(SiteState.LOST, T0 + timedelta(days=90)))
    folders = [recovery_folder(one) for one in (*lost, again)]
    assert len(set(folders)) == 6
    assert folders[0] == "recovered/h.example-20260101"
    assert all("/" not in folder.removeprefix("recovered/") and ".." not in folder for folder in folders)
    assert recovery_folder(replace(lost[0], on_loss=OnLoss.NOTIFY)) == ""
    assert recovery_folder(site("fine")) == ""


@pytest.mark.parametrize(
    "uri", ["http://a.example/\nBcc: x@y.example", "http://a.example/\x1b[31m", "http://a b/", "ftp://a/"]
)
def test_addresses_that_would_inject_headers_are_refused(uri: str) -> None:
    with pytest.raises(UsageError):
        site_uri(uri)


def test_addresses_are_kept_in_one_spelling() -> None:
    assert site_uri("a.example") == "http://a.example/"
    assert site_uri(" HTTP://a.example?x#top ") == "http://a.example/?x"


@pytest.mark.parametrize(
    "uri", ["http://2130706433/", "http://\u2460\u2461\u2466.0.0.1/", "http://localhost./", "http://[::1]/"]
)
def test_private_addresses_in_any_spelling_are_refused_when_they_are_added(uri: str) -> None:
    with pytest.raises(UsageError):
        refuse_private(uri, allowed=False)


def test_what_a_page_says_cannot_write_headers_or_command_a_terminal() -> None:
    why = "its title says \x1b]0;owned\x07\r\nBcc: x@y.example"
    assert "\x1b" not in shown(why) and "\n" not in shown(why)
    letter = letter_of(NoticeRecord(1, A.uri, Notice.LOST, T0, T0, why), A)
    assert "\n" not in letter.subject


def test_what_a_page_says_cannot_write_markup() -> None:
    evil = '"><script>alert(1)</script>\x00\x1b\ufffe'
    site = replace(A, status=SiteStatus(SiteState.MOVED, T0), moved_to=evil, recovery=evil)
    feed = ElementTree.fromstring(atom({A.uri: site}, [NoticeRecord(1, A.uri, Notice.MOVED, T0, T0, evil)], T0))
    assert "<script>" in "".join(feed.itertext())
    page = dashboard_page(Board(T0, (Line(site, dict.fromkeys(ResourceState, 0)),), ()))
    assert "<script" not in page and "&lt;script&gt;" in page


def test_domains_of_registries() -> None:
    assert registered_domain("http://www.club.co.uk/x") == "club.co.uk"
    assert [registered_domain(uri) for uri in ("http://127.0.0.1/", "http://[::1]/", "http://localhost/")] == [""] * 3


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("192.0.2.1", "192.0.2.1", 53),
        ("192.0.2.1:5353", "192.0.2.1", 5353),
        ("[2001:db8::1]:5353", "2001:db8::1", 5353),
        ("2001:db8::1", "2001:db8::1", 53),
    ],
)
def test_resolvers_as_people_write_them(text: str, host: str, port: int) -> None:
    made = _resolver(text)
    assert made is not None and (made.host, made.port) == (host, port)
    with pytest.raises(UsageError):
        _resolver("192.0.2.1:dns")
