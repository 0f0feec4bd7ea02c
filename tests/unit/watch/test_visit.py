"""What one visit shows: failures, walls, moves, redesigns and takeovers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recollect.archives.certificates import Certificate
from recollect.archives.live import Failure, Hop, LiveAnswer
from recollect.recovery.fingerprint import SiteFingerprint, page_of
from recollect.recovery.links import read_document
from recollect.watch.states import VisitResult
from recollect.watch.visit import Confirmation, Visit, certified, judge_visit

URI = "http://club.example/"
WORDS = (
    "The rowing club meets every morning at the river, where members train in boats and races are held in spring. " * 3
)


def html(title: str, text: str, *paths: str) -> bytes:
    links = "".join(f'<a href="{path}">{path}</a>' for path in paths)
    return f"<html><head><title>{title}</title></head><body><p>{text}</p>{links}</body></html>".encode()


OWN = html("River Rowing Club", WORDS, "/members", "/races", "/boats", "/news", "/contact")
PAST = [OWN, html("Races | River Rowing Club", WORDS, "/races/2020", "/races/2021", "/members")]
CASINO = html(
    "Best slots casino bonus",
    "Play casino slots and poker with a betting bonus, jackpot every day. " * 9,
    "/bonus",
    "/slots",
    "/play",
)
SHOP = html(
    "Cheap garden furniture",
    "Tables, chairs and umbrellas for terraces, delivered within days to homes. " * 6,
    "/tables",
    "/chairs",
    "/sale",
)


def answer(body: bytes = OWN, status: int = 200, **more) -> LiveAnswer:
    return LiveAnswer(URI, more.pop("url", URI), status, {"content-type": "text/html"}, body, **more)


@pytest.fixture
def fingerprint() -> SiteFingerprint:
    known = SiteFingerprint()
    for body in PAST:
        known.learn(page_of(read_document(body, URI, "text/html"), URI))
    return SiteFingerprint.from_json(known.to_json())


def test_the_sites_own_page_is_its_own(fingerprint: SiteFingerprint) -> None:
    assert judge_visit(answer(), fingerprint).seen is VisitResult.OWN


def test_without_a_past_a_page_is_taken_for_the_sites_own() -> None:
    assert judge_visit(answer(), SiteFingerprint()).seen is VisitResult.OWN


def test_a_redesign_is_not_a_takeover(fingerprint: SiteFingerprint) -> None:
    new = html(
        "River Rowing Club - welcome",
        "Quite another text about this and that, in new colours. " * 8,
        "/members",
        "/races",
        "/shop",
    )
    assert judge_visit(answer(new), fingerprint).seen is VisitResult.OWN


@pytest.mark.parametrize("status", [401, 403, 429, 451])
def test_refusals_say_nothing(fingerprint: SiteFingerprint, status: int) -> None:
    assert judge_visit(answer(b"no", status), fingerprint).seen is VisitResult.BLOCKED


def test_a_wall_against_robots_says_nothing(fingerprint: SiteFingerprint) -> None:
    wall = html("Just a moment...", "Checking your browser before accessing the site. DDoS protection by Someone.")
    assert judge_visit(answer(wall), fingerprint).seen is VisitResult.BLOCKED


@pytest.mark.parametrize("status", [403, 405, 406, 429, 503])
def test_a_wall_against_robots_says_nothing_whatever_its_status(fingerprint: SiteFingerprint, status: int) -> None:
    wall = html("Just a moment...", "Checking your browser before accessing the site. DDoS protection by Someone.")
    assert judge_visit(answer(wall, status), fingerprint).seen is VisitResult.BLOCKED


@pytest.mark.parametrize("status", [502, 504, 521, 522, 530])
def test_a_proxy_whose_server_is_gone_is_a_failure_with_any_status(fingerprint: SiteFingerprint, status: int) -> None:
    page = html("club.example | Connection timed out", "Error 522. Performance & security by Cloudflare")
    assert judge_visit(answer(page, status), fingerprint).seen is VisitResult.FAILED


def test_a_page_without_links_title_and_text_is_neither_the_sites_own_nor_another_site(
    fingerprint: SiteFingerprint,
) -> None:
    little = [
        b"",
        b"<html></html>",
        html("", "Coming soon"),
        html("Hello", ""),
        html("New", "We are moving house. " * 5),
    ]
    for body in little:
        gone = [LiveAnswer(f"{URI}races", f"{URI}races", 404)]
        assert judge_visit(answer(body), fingerprint, old=gone).seen is VisitResult.PLACEHOLDER, body
        sold = judge_visit(answer(body), fingerprint, changes=[Confirmation.REGISTRATION])
        assert sold.seen is VisitResult.FOREIGN_CONFIRMED, "the domain has another owner"
        assert judge_visit(answer(body), SiteFingerprint()).seen is VisitResult.OWN, "unless nothing is known"
    file = LiveAnswer(URI, URI, 200, {"content-type": "application/octet-stream"}, bytes(100))
    assert judge_visit(file, fingerprint).seen is VisitResult.PLACEHOLDER
    assert judge_visit(answer(html("River Rowing Club", "")), fingerprint).seen is VisitResult.OWN


@pytest.mark.parametrize(
    ("status", "wait", "expected"),
    [
        (503, "3600", VisitResult.MAINTENANCE),
        (503, "Wed, 01 Jul 2026 08:00:00 GMT", VisitResult.MAINTENANCE),
        (503, "5", VisitResult.FAILED),
        (503, "", VisitResult.FAILED),
        (500, "3600", VisitResult.FAILED),
        (402, "", VisitResult.SUSPENDED),
    ],
)
def test_a_server_that_says_when_it_is_back_is_in_maintenance(
    fingerprint: SiteFingerprint, status: int, wait: str, expected: VisitResult
) -> None:
    shown = replace(
        answer(html("Away", "Working."), status), headers={"content-type": "text/html", "retry-after": wait}
    )
    assert judge_visit(shown, fingerprint).seen is expected


@pytest.mark.parametrize("status", [404, 410, 500, 503])
def test_errors_of_the_front_page_are_failures(fingerprint: SiteFingerprint, status: int) -> None:
    assert judge_visit(answer(b"", status), fingerprint).seen is VisitResult.FAILED


@pytest.mark.parametrize(
    ("failure", "seen"),
    [
        (Failure.NO_NAME, VisitResult.NO_NAME),
        (Failure.TIMEOUT, VisitResult.FAILED),
        (Failure.UNREACHABLE, VisitResult.FAILED),
        (Failure.TLS, VisitResult.FAILED),
        (Failure.REFUSED, VisitResult.BLOCKED),
    ],
)
def test_failures_are_distinguished(fingerprint: SiteFingerprint, failure: Failure, seen: VisitResult) -> None:
    assert judge_visit(LiveAnswer(URI, URI, failure=failure), fingerprint).seen is seen


def test_when_the_local_network_fails_a_visit_says_nothing(fingerprint: SiteFingerprint) -> None:
    assert (
        judge_visit(LiveAnswer(URI, URI, failure=Failure.TIMEOUT), fingerprint, offline=True).seen
        is VisitResult.OFFLINE
    )


def test_a_page_that_says_not_found_is_a_failure(fingerprint: SiteFingerprint) -> None:
    assert (
        judge_visit(answer(html("404 Not Found", "The page could not be found.")), fingerprint).seen
        is VisitResult.FAILED
    )


def test_a_permanent_redirect_to_another_host_is_a_move_and_a_temporary_one_is_not(
    fingerprint: SiteFingerprint,
) -> None:
    there = "http://newclub.example/"
    moved = judge_visit(answer(url=there, hops=(Hop(301, URI),)), fingerprint)
    assert (moved.seen, moved.moved_to) == (VisitResult.MOVED, there)
    assert judge_visit(answer(url=there, hops=(Hop(302, URI),)), fingerprint).seen is VisitResult.OWN
    assert (
        judge_visit(answer(url="http://www.club.example/", hops=(Hop(301, URI),)), fingerprint).seen is VisitResult.OWN
    )


def test_a_permanent_redirect_is_a_move_however_the_new_host_answers(fingerprint: SiteFingerprint) -> None:
    there, hops = "http://newclub.example/", (Hop(301, URI),)
    assert judge_visit(answer(b"", 404, url=there, hops=hops), fingerprint).seen is VisitResult.MOVED
    gone = LiveAnswer(URI, there, hops=hops, failure=Failure.NO_NAME)
    assert judge_visit(gone, fingerprint).seen is VisitResult.MOVED
    refused = LiveAnswer(URI, "http://10.0.0.1/", hops=hops, failure=Failure.REFUSED)
    assert judge_visit(refused, fingerprint).seen is VisitResult.BLOCKED


def test_a_permanent_redirect_to_a_domain_seller_is_not_a_move(fingerprint: SiteFingerprint) -> None:
    page = html("club.example is for sale", "This domain is for sale. Buy this domain.")
    seen = judge_visit(answer(page, url="http://seller.example/?d=club", hops=(Hop(301, URI),)), fingerprint)
    assert (seen.seen, seen.confirmations) == (VisitResult.FOREIGN_CONFIRMED, (Confirmation.JUDGE,))


def test_another_sites_content_is_foreign_and_confirmed_by_old_addresses_that_are_gone(
    fingerprint: SiteFingerprint,
) -> None:
    assert judge_visit(answer(SHOP), fingerprint).seen is VisitResult.FOREIGN
    gone = [LiveAnswer(f"{URI}races", f"{URI}races", 404)]
    seen = judge_visit(answer(SHOP), fingerprint, old=gone)
    assert (seen.seen, seen.confirmations) == (VisitResult.FOREIGN_CONFIRMED, (Confirmation.OLD_ADDRESSES_GONE,))
    still = [LiveAnswer(f"{URI}races", f"{URI}races", 200, body=PAST[1])]
    assert judge_visit(answer(SHOP), fingerprint, old=still).seen is VisitResult.FOREIGN


def test_a_catch_all_page_for_old_addresses_counts_as_gone(fingerprint: SiteFingerprint) -> None:
    front = answer(SHOP)
    assert judge_visit(front, fingerprint, old=[front], impossible=front).seen is VisitResult.FOREIGN_CONFIRMED


def test_a_parked_or_hijacked_page_is_confirmed_by_the_judge(fingerprint: SiteFingerprint) -> None:
    parked = html("club.example", "This domain is for sale. Buy this domain.")
    for body in (parked, CASINO):
        seen = judge_visit(answer(body), fingerprint)
        assert (seen.seen, seen.confirmations) == (VisitResult.FOREIGN_CONFIRMED, (Confirmation.JUDGE,))


def test_a_change_of_registration_confirms(fingerprint: SiteFingerprint) -> None:
    seen = judge_visit(answer(SHOP), fingerprint, changes=[Confirmation.REGISTRATION])
    assert seen.seen is VisitResult.FOREIGN_CONFIRMED
    assert judge_visit(answer(), fingerprint, changes=[Confirmation.REGISTRATION]).seen is VisitResult.OWN


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("Database Error", "Error establishing a database connection", VisitResult.FAILED),
        ("", "Fatal error: Uncaught Error: Call to undefined function a() in /srv/x.php on line 3", VisitResult.FAILED),
        ("500 Internal Server Error", "Internal Server Error", VisitResult.FAILED),
        ("Apache2 Debian Default Page: It works", "This is the default welcome page. " * 60, VisitResult.DEFAULT_PAGE),
        ("IIS Windows Server", "", VisitResult.DEFAULT_PAGE),
        ("Website suspended", "This website has been suspended due to non-payment.", VisitResult.SUSPENDED),
        ("Hosting", "Diese Domain wurde gesperrt.", VisitResult.SUSPENDED),
        ("Wartung", "Wir führen Wartungsarbeiten durch.", VisitResult.MAINTENANCE),
        ("Sito in manutenzione", "Torniamo presto", VisitResult.MAINTENANCE),
        ("club.example", "This domain name has expired. Renew your domain.", VisitResult.DOMAIN_EXPIRED),
    ],
)
def test_pages_of_a_host_and_errors_are_not_content_of_others(
    fingerprint: SiteFingerprint, title: str, text: str, expected: VisitResult
) -> None:
    assert judge_visit(answer(html(title, text)), fingerprint).seen is expected
    article = html("How databases fail", f"{text} " + "An article tells of many things that happen to servers. " * 60)
    seen = judge_visit(answer(article), SiteFingerprint()).seen
    assert seen is VisitResult.OWN or expected is VisitResult.DEFAULT_PAGE, "a long text about it is an article"


@pytest.mark.parametrize(
    ("days", "problem", "expected", "words"),
    [
        (9, "", VisitResult.OWN, ""),
        (-2, "", VisitResult.CERTIFICATE_EXPIRED, "expired on 2026-02-27"),
        (-2, "certificate has expired", VisitResult.CERTIFICATE_EXPIRED, "expired on 2026-02-27"),
        (9, "certificate has expired", VisitResult.CERTIFICATE_EXPIRED, "not accepted: certificate has expired"),
        (9, "Hostname mismatch", VisitResult.BAD_CERTIFICATE, "not accepted: Hostname mismatch"),
        (9, "self-signed certificate", VisitResult.BAD_CERTIFICATE, "not accepted: self-signed"),
    ],
)
def test_a_certificate_is_named_with_a_date_only_if_that_has_passed(
    days: int, problem: str, expected: VisitResult, words: str
) -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    certificate = Certificate(at - timedelta(days=80), at + timedelta(days=days))
    found = certified(Visit(VisitResult.OWN), certificate, problem, at)
    assert found.seen is expected and words in found.why
    assert certified(Visit(VisitResult.FOREIGN), certificate, problem, at).seen is VisitResult.FOREIGN
