"""What belongs to a site."""

from __future__ import annotations

import pytest

from recollect.errors import BadURI, UsageError
from recollect.recovery.lister import site_queries
from recollect.recovery.scope import Scope, check_patterns, registered_domain


@pytest.mark.parametrize(
    ("start", "extent", "uri", "inside"),
    [
        ("http://a.example/", "prefix", "https://www.a.example/x", True),
        ("http://a.example/", "prefix", "http://b.a.example/x", False),
        ("http://a.example/", "subdomains", "http://b.a.example/x", True),
        ("http://a.example/", "subdomains", "http://bad-a.example/x", False),
        ("http://a.example/~joe/", "prefix", "http://a.example/~joe", True),
        ("http://a.example/~joe/", "prefix", "http://a.example/~joe/x?y", True),
        ("http://a.example/~joe/", "prefix", "http://a.example/~joey/", False),
        ("http://a.example/~joe", "prefix", "http://a.example/~joe/x", True),
        ("http://a.example/~joe", "prefix", "http://a.example/~joey", False),
        ("http://a.example/d/start.html", "prefix", "http://a.example/d/other.html", True),
        ("http://a.example/d/start.html", "prefix", "http://a.example/e", False),
        ("http://a.example/d/start.html", "host", "http://a.example/e", True),
        ("http://a.example:8080/", "prefix", "http://a.example/", False),
        ("http://a.example/", "prefix", "mailto:x", False),
        ("http://a.example/p.html?id=1", "page", "https://www.a.example/p.html?id=1", True),
        ("http://a.example/p.html?id=1", "page", "http://a.example/p.html", False),
        ("http://a.example/", "page", "http://a.example/x", False),
    ],
)
def test_pages(start: str, extent: str, uri: str, inside: bool) -> None:
    assert Scope((start,), extent).holds(uri) is inside  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("assets", "uri", "inside"),
    [
        ("scope", "http://a.example/logo.gif", False),
        ("domain", "http://a.example/logo.gif", True),
        ("domain", "http://static.a.example/logo.gif", True),
        ("domain", "http://cdn.other.example/logo.gif", False),
        ("anywhere", "http://cdn.other.example/logo.gif", True),
    ],
)
def test_what_a_page_embeds_may_lie_further_away(assets: str, uri: str, inside: bool) -> None:
    scope = Scope(("http://a.example/~joe/",), assets=assets)  # type: ignore[arg-type]
    assert scope.holds(uri, embedded=True) is inside
    assert not scope.holds(uri)


def test_patterns_are_globs_parts_or_regular_expressions() -> None:
    scope = Scope(("http://a.example/",), include=("*/blog/*", "/img/"), exclude=("re:[?&]print=", "*.zip"))
    assert scope.holds("http://a.example/")  # the start is always wanted
    assert scope.holds("http://a.example/blog/1") and scope.holds("http://a.example/img/x.png")
    assert not scope.holds("http://a.example/shop/1")
    assert not scope.holds("http://a.example/blog/1?print=1") and not scope.holds("http://a.example/blog/a.zip")
    with pytest.raises(UsageError):
        check_patterns(["re:("])


def test_a_scope_survives_the_journal() -> None:
    scope = Scope(("http://a.example/",), "subdomains", "anywhere", ("x",), ("y",))
    assert Scope.from_json(scope.to_json(), scope.rules) == scope


def test_nothing_or_nonsense_to_start_with_is_an_error() -> None:
    with pytest.raises(UsageError):
        Scope(())
    with pytest.raises(BadURI):
        Scope(("not a url",))


def test_registered_domains() -> None:
    assert registered_domain("cdn.shop.example.co.uk") == "example.co.uk"
    assert registered_domain("127.0.0.1") == "127.0.0.1"


def test_listings_for_a_scope_and_what_they_cover() -> None:
    (query,) = site_queries(Scope(("https://www.a.example/~joe/",)))
    assert (query.query.uri, query.query.match) == ("https://www.a.example/~joe", "prefix")
    assert query.covers("http://a.example/~joe/x") and query.covers("http://a.example/~joe")
    assert not query.covers("http://a.example/img.png")
    (root,) = site_queries(Scope(("http://a.example/", "http://www.a.example/index.html")))
    assert root.query.uri == "http://a.example/"
    (domain,) = site_queries(Scope(("http://www.a.example/",), "subdomains"))
    assert (domain.query.uri, domain.query.match) == ("a.example", "domain")
    assert domain.covers("http://b.a.example:81/") and not domain.covers("http://ba.example/")


def test_one_page_takes_what_it_embeds_from_its_domain_and_lists_itself_alone() -> None:
    scope = Scope(("http://a.example/p.html",), "page")
    assert scope.holds("http://img.a.example/x.png", embedded=True)
    assert not scope.holds("http://a.example/next.html") and not scope.holds("http://b.example/x.png", embedded=True)
    [query] = site_queries(scope)
    assert query.query.match == "exact"
    assert query.covers("http://a.example/p.html") and not query.covers("http://a.example/p.html/x")
