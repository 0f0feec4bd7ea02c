"""robots.txt as RFC 9309 reads it, and what it means when it cannot be had."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.archives.live import Failure, LiveAnswer
from recollect.archives.robots import Robots, Rule, matches, parse_robots, robots_of

URI = "http://a.example"


def allowed(text: str, path: str) -> bool:
    return parse_robots(text.encode()).allow(URI + path)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/fish", "/fish.html", True),
        ("/fish", "/Fish", False),
        ("/fish/", "/fish", False),
        ("/*.php", "/a/b.php?x=1", True),
        ("/*.php$", "/a/b.php?x=1", False),
        ("/*.php$", "/a/b.php", True),
        ("/fish*.php", "/fishheads/catfish.php?a", True),
        ("/*/x$", "/x", False),
        ("/$", "/", True),
        ("/$", "/a", False),
        ("/a*a$", "/a", False),
    ],
)
def test_a_pattern_covers_a_path(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


@given(st.text("ab*$", max_size=8), st.text("ab$", max_size=8))
def test_patterns_match_as_a_regular_expression_would(pattern: str, path: str) -> None:
    end = r"\Z" if pattern.endswith("$") else ""
    expression = ".*".join(map(re.escape, pattern.removesuffix("$").split("*"))) + end
    assert matches(pattern, path) is (re.match(expression, path) is not None)


def test_the_longest_rule_decides_and_allowing_wins_a_draw() -> None:
    text = "User-agent: *\nDisallow: /p\nAllow: /p/public\nDisallow: /same\nAllow: /same\n"
    assert not allowed(text, "/p/x")
    assert allowed(text, "/p/public/x")
    assert allowed(text, "/same")
    assert allowed(text, "/")


def test_the_group_of_our_agent_replaces_that_for_all_agents() -> None:
    text = "User-agent: *\nDisallow: /\n\nUser-Agent: other\nUser-agent: Recollect # us\nDisallow: /a\n"
    assert allowed(text, "/b")
    assert not allowed(text, "/a")


def test_escapes_are_one_spelling_and_a_byte_order_mark_is_not_a_rule() -> None:
    assert not allowed("\ufeffUser-agent: *\nDisallow: /%7euser/", "/~user/x")
    assert not allowed("User-agent: *\nDisallow: /caf\u00e9", "/caf%C3%A9")
    assert allowed("User-agent: *\nDisallow:\n", "/x")


@pytest.mark.parametrize(("status", "free"), [(200, True), (404, True), (410, True), (401, False), (403, False)])
def test_a_missing_file_allows_and_a_refusal_disallows(status: int, free: bool) -> None:
    assert robots_of(LiveAnswer(URI, URI, status)).allow(URI + "/a") is free


@pytest.mark.parametrize("answer", [LiveAnswer(URI, URI, 503), LiveAnswer(URI, URI, 429)])
def test_a_server_that_fails_or_asks_to_wait_disallows(answer: LiveAnswer) -> None:
    assert not robots_of(answer).allow(URI + "/a")
    assert not robots_of(LiveAnswer(URI, URI, failure=Failure.TIMEOUT)).allow(URI + "/a")


def test_a_page_instead_of_the_file_is_not_a_file() -> None:
    page = LiveAnswer(URI, URI, 200, {"content-type": "text/html"}, b"User-agent: *\nDisallow: /")
    assert robots_of(page).allow(URI + "/a")


def test_huge_and_hostile_files_are_read_in_bounded_time() -> None:
    lines = b"User-agent: *\n" + b"Disallow: /" + b"*a" * 2000 + b"\n" + b"Disallow: /x*y*z\n" * 500_000
    started = time.process_time()
    robots = parse_robots(lines)
    assert robots.allow(URI + "/" + "a" * 1500)
    assert time.process_time() - started < 5


@given(st.binary(max_size=300), st.text(max_size=20))
def test_any_bytes_are_read(content: bytes, path: str) -> None:
    parse_robots(content).allow(URI + "/" + path)
    Robots((Rule(path, False),)).allow(URI)
