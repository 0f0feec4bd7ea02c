"""What one visit shows: failures, walls, moves, redesigns and takeovers."""

from __future__ import annotations

import pytest

from recollect.archives.live import Failure, Hop, LiveAnswer
from recollect.recovery.fingerprint import SiteFingerprint, page_of
from recollect.recovery.links import read_document
from recollect.watch.states import VisitResult
from recollect.watch.visit import Confirmation, judge_visit

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
def portrait() -> SiteFingerprint:
    known = SiteFingerprint()
    for body in PAST:
        known.learn(page_of(read_document(body, URI, "text/html"), URI))
    return SiteFingerprint.from_json(known.to_json())


def test_the_sites_own_page_is_its_own(portrait: SiteFingerprint) -> None:
    assert judge_visit(answer(), portrait).seen is VisitResult.OWN


def test_without_a_past_a_page_is_taken_for_the_sites_own() -> None:
    assert judge_visit(answer(), SiteFingerprint()).seen is VisitResult.OWN


def test_a_redesign_is_not_a_takeover(portrait: SiteFingerprint) -> None:
    new = html(
        "River Rowing Club - welcome",
        "Quite another text about this and that, in new colours. " * 8,
        "/members",
        "/races",
        "/shop",
    )
    assert judge_visit(answer(new), portrait).seen is VisitResult.OWN


@pytest.mark.parametrize("status", [401, 403, 429, 451])
def test_refusals_say_nothing(portrait: SiteFingerprint, status: int) -> None:
    assert judge_visit(answer(b"no", status), portrait).seen is VisitResult.BLOCKED


def test_a_wall_against_robots_says_nothing(portrait: SiteFingerprint) -> None:
    wall = html("Just a moment...", "Checking your browser before accessing the site. DDoS protection by Someone.")
    assert judge_visit(answer(wall), portrait).seen is VisitResult.BLOCKED


@pytest.mark.parametrize("status", [403, 405, 406, 429, 503])
def test_a_wall_against_robots_says_nothing_whatever_its_status(portrait: SiteFingerprint, status: int) -> None:
    wall = html("Just a moment...", "Checking your browser before accessing the site. DDoS protection by Someone.")
    assert judge_visit(answer(wall, status), portrait).seen is VisitResult.BLOCKED


@pytest.mark.parametrize("status", [502, 504, 521, 522, 530])
def test_a_proxy_whose_server_is_gone_is_a_failure_with_any_status(portrait: SiteFingerprint, status: int) -> None:
    page = html("club.example | Connection timed out", "Error 522. Performance & security by Cloudflare")
    assert judge_visit(answer(page, status), portrait).seen is VisitResult.FAILED


def test_a_page_without_links_title_and_text_is_not_the_sites_own(portrait: SiteFingerprint) -> None:
    for body in (b"", b"<html></html>", html("", "Coming soon"), html("Hello", "")):
        assert judge_visit(answer(body), portrait).seen is VisitResult.FOREIGN, body
        gone = [LiveAnswer(f"{URI}races", f"{URI}races", 404)]
        assert judge_visit(answer(body), portrait, old=gone).seen is VisitResult.FOREIGN_CONFIRMED
        assert judge_visit(answer(body), SiteFingerprint()).seen is VisitResult.OWN, "unless nothing is known"
    file = LiveAnswer(URI, URI, 200, {"content-type": "application/octet-stream"}, bytes(100))
    assert judge_visit(file, portrait).seen is VisitResult.FOREIGN
    assert judge_visit(answer(html("River Rowing Club", "")), portrait).seen is VisitResult.OWN


@pytest.mark.parametrize("status", [404, 410, 500, 503])
def test_errors_of_the_front_page_are_failures(portrait: SiteFingerprint, status: int) -> None:
    assert judge_visit(answer(b"", status), portrait).seen is VisitResult.FAILED


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
def test_failures_are_distinguished(portrait: SiteFingerprint, failure: Failure, seen: VisitResult) -> None:
    assert judge_visit(LiveAnswer(URI, URI, failure=failure), portrait).seen is seen


def test_when_the_local_network_fails_a_visit_says_nothing(portrait: SiteFingerprint) -> None:
    assert (
        judge_visit(LiveAnswer(URI, URI, failure=Failure.TIMEOUT), portrait, offline=True).seen is VisitResult.OFFLINE
    )


def test_a_page_that_says_not_found_is_a_failure(portrait: SiteFingerprint) -> None:
    assert (
        judge_visit(answer(html("404 Not Found", "The page could not be found.")), portrait).seen is VisitResult.FAILED
    )


def test_a_permanent_redirect_to_another_host_is_a_move_and_a_temporary_one_is_not(portrait: SiteFingerprint) -> None:
    there = "http://newclub.example/"
    moved = judge_visit(answer(url=there, hops=(Hop(301, URI),)), portrait)
    assert (moved.seen, moved.moved_to) == (VisitResult.MOVED, there)
    assert judge_visit(answer(url=there, hops=(Hop(302, URI),)), portrait).seen is VisitResult.OWN
    assert judge_visit(answer(url="http://www.club.example/", hops=(Hop(301, URI),)), portrait).seen is VisitResult.OWN


def test_a_permanent_redirect_is_a_move_however_the_new_host_answers(portrait: SiteFingerprint) -> None:
    there, hops = "http://newclub.example/", (Hop(301, URI),)
    assert judge_visit(answer(b"", 404, url=there, hops=hops), portrait).seen is VisitResult.MOVED
    gone = LiveAnswer(URI, there, hops=hops, failure=Failure.NO_NAME)
    assert judge_visit(gone, portrait).seen is VisitResult.MOVED
    refused = LiveAnswer(URI, "http://10.0.0.1/", hops=hops, failure=Failure.REFUSED)
    assert judge_visit(refused, portrait).seen is VisitResult.BLOCKED


def test_a_permanent_redirect_to_a_domain_seller_is_not_a_move(portrait: SiteFingerprint) -> None:
    page = html("club.example is for sale", "This domain is for sale. Buy this domain.")
    seen = judge_visit(answer(page, url="http://seller.example/?d=club", hops=(Hop(301, URI),)), portrait)
    assert (seen.seen, seen.confirmations) == (VisitResult.FOREIGN_CONFIRMED, (Confirmation.JUDGE,))


def test_another_sites_content_is_foreign_and_confirmed_by_old_addresses_that_are_gone(
    portrait: SiteFingerprint,
) -> None:
    assert judge_visit(answer(SHOP), portrait).seen is VisitResult.FOREIGN
    gone = [LiveAnswer(f"{URI}races", f"{URI}races", 404)]
    seen = judge_visit(answer(SHOP), portrait, old=gone)
    assert (seen.seen, seen.confirmations) == (VisitResult.FOREIGN_CONFIRMED, (Confirmation.OLD_ADDRESSES_GONE,))
    still = [LiveAnswer(f"{URI}races", f"{URI}races", 200, body=PAST[1])]
    assert judge_visit(answer(SHOP), portrait, old=still).seen is VisitResult.FOREIGN


def test_a_catch_all_page_for_old_addresses_counts_as_gone(portrait: SiteFingerprint) -> None:
    front = answer(SHOP)
    assert judge_visit(front, portrait, old=[front], impossible=front).seen is VisitResult.FOREIGN_CONFIRMED


def test_a_parked_or_hijacked_page_is_confirmed_by_the_judge(portrait: SiteFingerprint) -> None:
    parked = html("club.example", "This domain is for sale. Buy this domain.")
    for body in (parked, CASINO):
        seen = judge_visit(answer(body), portrait)
        assert (seen.seen, seen.confirmations) == (VisitResult.FOREIGN_CONFIRMED, (Confirmation.JUDGE,))


def test_a_change_of_registration_confirms(portrait: SiteFingerprint) -> None:
    seen = judge_visit(answer(SHOP), portrait, changes=[Confirmation.REGISTRATION])
    assert seen.seen is VisitResult.FOREIGN_CONFIRMED
    assert judge_visit(answer(), portrait, changes=[Confirmation.REGISTRATION]).seen is VisitResult.OWN


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
    portrait: SiteFingerprint, title: str, text: str, expected: VisitResult
) -> None:
    assert judge_visit(answer(html(title, text)), portrait).seen is expected
    article = html("How databases fail", f"{text} " + "An article tells of many things that happen to servers. " * 60)
    seen = judge_visit(answer(article), SiteFingerprint()).seen
    assert seen is VisitResult.OWN or expected is VisitResult.DEFAULT_PAGE, "a long text about it is an article"
