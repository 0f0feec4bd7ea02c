"""The canonicalization of McCown (2007, section V.3): his examples, then cases that he leaves open."""

from __future__ import annotations

import pytest

from recollect.errors import BadURI
from recollect.recovery.canonical import Rules, UrlVariants, canonical, visit_key

# Section V.3.1: original URL, canonical URL, as printed.
PRINTED = [
    ("http://FOO.ORG/BAR.html", "http://foo.org/BAR.html"),
    ("http://foo.org/index.html", "http://foo.org/"),
    ("http://foo.org/bar.html#section1", "http://foo.org/bar.html"),
    ("http://foo.org/./a/b/../c/./bar.html", "http://foo.org/a/c/bar.html"),
    ("http://foo.org//a///b", "http://foo.org/a/b"),
    ("http://foo.org/%7Ebar/a%20b/?test=g%20%8a", "http://foo.org/~bar/a+b/?test=g%20%8A"),
    ("http://foo.org/?page=123&jsessionid=999A9EF028317A82AC83F0FD59385A", "http://foo.org/?page=123"),
]


@pytest.mark.parametrize(("original", "expected"), PRINTED)
def test_the_printed_examples(original: str, expected: str) -> None:
    assert canonical(original) == expected


@pytest.mark.parametrize(
    ("original", "expected"),
    [
        ("http://foo.org/a/index.htm", "http://foo.org/a/"),
        ("http://foo.org/a/default.htm", "http://foo.org/a/"),
        ("http://foo.org/index.html?x=1", "http://foo.org/index.html?x=1"),  # not the end of the URL
        ("http://foo.org/myindex.html", "http://foo.org/myindex.html"),
        ("http://foo.org/../../x", "http://foo.org/x"),
        ("http://foo.org/a/..", "http://foo.org/"),
        ("http://foo.org/a/b/.", "http://foo.org/a/b/"),
        ("http://foo.org/a?b=//c/../d", "http://foo.org/a?b=//c/../d"),  # slashes and dots of a query are its own
        ("http://foo.org/%2e%2e/x", "http://foo.org/x"),
        ("http://foo.org/a%2fb", "http://foo.org/a%2Fb"),  # decoded it would be another resource
        ("http://foo.org/a%3fb%23c%25d", "http://foo.org/a%3Fb%23c%25d"),
        ("http://foo.org:80/", "http://foo.org/"),
        ("https://foo.org:443/", "https://foo.org/"),
        ("https://foo.org:80/", "https://foo.org:80/"),
        ("http://foo.org", "http://foo.org/"),
        ("http://foo.org/a?x=1&amp;y=2", "http://foo.org/a?x=1&y=2"),
        ("http://foo.org/a?", "http://foo.org/a"),
        ("http://user:pw@foo.org/", "http://foo.org/"),
        ("http://foo.org/é", "http://foo.org/%C3%A9"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://foo.org/a;jsessionid=1A2B?x=1", "http://foo.org/a?x=1"),
        ("http://foo.org/?PHPSESSID=abc123&a=1", "http://foo.org/?a=1"),
        ("http://foo.org/?sid=0123456789abcdef0123456789abcdef", "http://foo.org/"),
        ("http://foo.org/?sid=12", "http://foo.org/?sid=12"),
        ("http://foo.org/?ASPSESSIONIDABCDEFGH=ABCDEFGHIJKLMNOPQRSTUVWX&b", "http://foo.org/?b"),
        ("http://foo.org/(S(0123456789abcdefghij0123))/p.aspx", "http://foo.org/p.aspx"),
    ],
)
def test_what_the_rules_mean_in_detail(original: str, expected: str) -> None:
    assert canonical(original) == expected


@pytest.mark.parametrize("other", ["https://www.foo.org/", "http://foo.org:80/index.html", "HTTP://WWW.FOO.ORG"])
def test_one_visit_key_over_scheme_www_port_and_index(other: str) -> None:
    assert visit_key(other) == "http://foo.org/"


def test_every_guess_can_be_switched_off_and_case_can_be_switched_on() -> None:
    uri = "https://www.foo.org/A/index.html"
    assert visit_key(uri, Rules(fold_www=False)) == "http://www.foo.org/A/"
    assert visit_key(uri, Rules(fold_scheme=False)) == "https://foo.org/A/"
    assert visit_key(uri, Rules(drop_index=False)) == "http://foo.org/A/index.html"
    assert visit_key("http://foo.org/A/INDEX.HTML?B=C", Rules(ignore_case=True)) == "http://foo.org/a/index.html?b=c"
    assert visit_key("http://foo.org/A/INDEX.HTML", Rules(ignore_case=True)) == "http://foo.org/a/"
    session = "http://foo.org/?phpsessid=1"
    assert visit_key(session, Rules(drop_sessions=False)) == session


def test_www_is_a_prefix_only_before_a_whole_domain() -> None:
    assert visit_key("http://www.com/") == "http://www.com/"


@pytest.mark.parametrize("text", ["", "foo.org/", "mailto:x@y", "ftp://foo.org/", "http:///x", "javascript:void(0)"])
def test_what_is_not_a_web_address_is_refused(text: str) -> None:
    with pytest.raises(BadURI):
        canonical(text)


def test_listings_tell_about_slashes_index_pages_and_case() -> None:
    variants = UrlVariants()
    keys = ["http://foo.org/bar/", "http://foo.org/leaf", "http://foo.org/home/index.php", "http://foo.org/Case.html"]
    variants.learn_from(keys, redirects=["http://foo.org/moved", "http://foo.org/bar"])
    assert variants.stand_ins("http://foo.org/bar") == ["http://foo.org/bar/"]  # listed, but only as a redirect
    assert variants.stand_ins("http://foo.org/leaf/") == ["http://foo.org/leaf"]
    assert variants.stand_ins("http://foo.org/home/") == ["http://foo.org/home/index.php"]
    assert variants.stand_ins("http://foo.org/bar/default.asp") == ["http://foo.org/bar/"]
    assert variants.stand_ins("http://foo.org/case.HTML") == ["http://foo.org/Case.html"]
    assert variants.stand_ins("http://foo.org/bar/") == []  # held itself: nothing is guessed
    assert variants.stand_ins("http://foo.org/moved") == []
    assert variants.stand_ins("http://foo.org/none") == []
    silent = UrlVariants(Rules(learn=False))
    silent.learn_from(keys)
    assert silent.stand_ins("http://foo.org/leaf/") == []
