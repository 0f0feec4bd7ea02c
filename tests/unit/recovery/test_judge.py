"""Verdicts over captures: what answers in place of a page is refused, and pages about such things stay."""

from __future__ import annotations

import pytest

from recollect.recovery.judge import (
    CONFIDENCE,
    DOUBTFUL_FROM,
    REJECTED_FROM,
    Rejection,
    Rule,
    judge,
    judge_redirect,
    same_page,
)
from recollect.recovery.links import Document, read_document
from recollect.recovery.verdicts import Verdict

LONG = "The history of the harbour is long and well told by those who lived there. " * 100


def verdict(html: str, uri: str = "http://a.example/page.html", media_type: str = "text/html", repeats: int = 0) -> str:
    data = html.encode()
    document = read_document(data, uri, media_type)
    rejection = judge(document, uri, media_type, repeats=repeats, content=data)
    return rejection.verdict if rejection else "good"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<title>404 Not Found</title><p>nginx", "soft-404"),
        ("<title>Page not found - My Site</title><p>menu menu", "soft-404"),
        ("<title>My Site</title><p>Sorry, the page you requested could not be found.", "soft-404"),
        ("<title>Seite nicht gefunden</title><p>Hoppla", "soft-404"),
        ("<title>Страница не найдена</title>", "soft-404"),
        ("<title>My Site</title><h1>Error 404</h1>", "soft-404"),
        ("<title>Oops</title><p>We can’t find that page.", "soft-404"),
        ("<title>My Site</title><h1>This page is gone</h1>", "soft-404"),
        ("<title>a.example</title><p>This domain is for sale!", "parked"),
        ("<title>a.example - Buy this domain</title>", "parked"),
        ("<title>Apache2 Ubuntu Default Page: It works</title>", "default-page"),
        ("<title>x</title><p>This account has been suspended.", "suspended"),
        ("<title>a.example</title><p>a.example is for sale", "parked"),
        ("<title>Just a moment...</title><p>Checking your browser before accessing", "anti-bot"),
        ("<title>Attention Required! | Cloudflare</title><p>Please complete the security check", "anti-bot"),
        ("<title>Log in</title><form><input type=password></form>", "login"),
        ("<title>Best Casino Bonus</title><p>Play poker and slots online", "hijacked"),
        ("<title>Situs Judi Slot Gacor</title><p>Casino togel poker online sbobet</p>", "hijacked"),
        ("<title>500 Internal Server Error</title><p>nginx", "error-page"),
        ("<title>Boats</title><p>Fatal error: Call to undefined function x() in /home/a/b.php on line 3", "error-page"),
        ("<title>Boats</title><p>Error establishing a database connection", "error-page"),
        ("<title>Service temporarily unavailable</title>", "error-page"),
        # and these are pages like any other
        ("<title>Gate 500</title><p>A gate of the harbour.", "good"),
        ("<title>Server errors</title><p>" + LONG + "internal server error", "good"),
        ("<title>Our shop</title><p>Everything in this shop is for sale.", "good"),
        ("<title>Lost keys</title><p>I could not find my keys in the garden this morning.", "good"),
        ("<title>Not found: a memoir</title><p>" + LONG, "good"),
        ("<title>The story of error 404</title><p>" + LONG, "good"),
        ("<title>My Site</title><p>" + LONG + "the page could not be found", "good"),
        ("<title>Home</title><p>Sign in or read on.<form><input type=password></form>" + LONG, "good"),
        ("<title>Parking in the town</title><p>Parking near the market costs nothing.", "good"),
        ("<title>Poker evening</title><p>We play poker on Fridays in the parish hall.", "good"),
        ("<title>Article 404</title><p>A short note about stones and rivers.", "good"),
        ("<title></title><p>Hello", "good"),
        ("<title>404 errors and how to live with them</title><p>" + LONG[:3000], "good"),
        ("<title>404 Not Found | My Site</title><p>" + LONG[:3000], "soft-404"),
        ("<title>My Site - Page not found</title><p>" + LONG[:3000], "soft-404"),
        ("<title>Login</title><form><input type=password></form><p>" + LONG[:900], "good"),  # a forum with its posts
        ("<title>Members</title><p>Please sign in.<form><input type=password></form>", "login"),
        ("<title>x</title><p>Please accept all cookies to continue.", "cookie-wall"),
        ("<title>Recipes</title><p>We value your privacy. " + LONG[:1200], "good"),  # a banner above a page
        ("", "good"),
    ],
)
def test_verdicts(html: str, expected: str) -> None:
    assert verdict(html) == expected


def test_a_login_page_may_be_a_login_page() -> None:
    html = "<title>Log in</title><form><input type=password></form>"
    assert verdict(html, "http://a.example/login.php") == "good"


@pytest.mark.parametrize("name", ["logo.gif", "style.css", "doc.PDF", "app.js"])
def test_html_in_place_of_a_file_is_a_soft_404(name: str) -> None:
    assert verdict("<html><p>Welcome", f"http://a.example/{name}") == "soft-404"


@pytest.mark.parametrize("name", ["paper.pdf", "Report.DOC", "table.xls", "talk.ppt", "thesis.ps"])
def test_an_html_rendering_of_a_document_is_asked_about_and_errors_in_its_place_are_not(name: str) -> None:
    uri = f"http://a.example/{name}"
    assert verdict(f"<title>Harbour</title><p>{LONG}", uri) == "rendering"
    assert verdict(f"<title>Page not found</title><p>Sorry, not found. {'Menu. ' * 60}", uri) == "soft-404"
    assert verdict(f"<title>Harbour</title><p>{LONG}", uri, repeats=2) == "soft-404"  # the same page at other addresses
    assert verdict(f"<title>Harbour</title><p>{LONG}", "http://a.example/logo.gif") == "soft-404"


def test_scripts_that_write_html_under_a_file_s_name_with_a_query_are_kept() -> None:
    assert verdict("<html><p>Welcome", "http://a.example/view.pdf?page=2") == "good"


def test_many_urls_with_the_same_apology_are_one_error_page() -> None:
    html = "<title>Our site</title><p>Sorry! Something went wrong here."
    assert (verdict(html, repeats=0), verdict(html, repeats=6)) == ("good", "soft-404")


@pytest.mark.parametrize(
    ("target", "in_scope", "home", "expected"),
    [
        ("http://other.example/", False, False, "redirected-away"),
        ("http://a.example/", True, True, "redirected-away"),
        ("http://a.example/errors/404.html", True, False, "soft-404"),
        ("http://a.example/login?next=x", True, False, "login"),
        ("http://a.example/new.html", True, False, None),
    ],
)
def test_redirects(target: str, in_scope: bool, home: bool, expected: str | None) -> None:
    found = judge_redirect("http://a.example/old", target, target_in_scope=in_scope, target_is_home=home)
    assert (found.verdict if found else None) == expected


def test_another_name_of_the_front_page_may_lead_to_it_unless_it_has_content_of_its_own() -> None:
    def verdict_of(has_content: bool) -> object:
        return judge_redirect(
            "http://a.example/index.php",
            "http://a.example/",
            target_in_scope=True,
            target_is_home=True,
            has_content=has_content,
        )

    assert verdict_of(False) is None and verdict_of(True) is not None


def test_two_captures_of_one_page_are_known_as_such() -> None:
    def read(html: str) -> Document:
        found = read_document(html.encode(), "http://a.example/", "text/html")
        assert found is not None
        return found

    words = "ships ropes knots sails harbours tides charts lamps bells anchors"
    old, new = read(f"<title>Club</title><p>{words} 2009"), read(f"<title>The club</title><p>{words} poker casino 2014")
    other = read("<title>Best bonus</title><p>casino slots poker betting togel gacor online play win money now")
    assert same_page(old, new) and same_page(new, old) and not same_page(old, other)
    assert same_page(read("<p>two words"), read("<p>two words")) and not same_page(read("<p>one"), read("<p>two"))
    assert not same_page(read("<p>"), read("<p>")), "two empty pages say nothing about each other"


def test_verdicts_are_values_and_words() -> None:
    page = read_document(b"<title>404 Not Found</title>", "http://a.example/", "text/html")
    rejection = judge(page, "http://a.example/", "text/html")
    assert rejection is not None and rejection.verdict is Verdict.SOFT_404 and rejection.verdict == "soft-404"


def test_confidence_grows_with_rules_that_agree_and_one_rule_alone_does_not_reject() -> None:
    def found(html: str) -> Rejection:
        document = read_document(html.encode(), "http://a.example/x", "text/html")
        rejection = judge(document, "http://a.example/x", "text/html")
        assert rejection is not None
        return rejection

    one = found("<title>Page not found</title><p>Boats and ropes.")
    two = found("<title>Page not found</title><p>The requested page could not be found on this server.")
    assert one.rules == (Rule.TITLE_404,) and two.rules == (Rule.TITLE_404, Rule.TEXT_404)
    assert DOUBTFUL_FROM <= one.confidence < REJECTED_FROM <= two.confidence < 1
    assert not one.certain and two.certain
    assert all(DOUBTFUL_FROM <= value < REJECTED_FROM for rule, value in CONFIDENCE.items() if rule != "file-is-html")
