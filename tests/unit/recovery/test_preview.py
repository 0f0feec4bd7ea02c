"""What a preview answers: types, redirects, other hosts, unknown parameters, and nothing of the live web."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.recovery.preview import Reply, reply
from recollect.recovery.store import Store
from stores import fill

HOME = b"""<script src="http://gone.net/x.js"></script><img src="//cdn.net/i.png"><a href="http://www.lost.example/p?q=1">p</a>
<a href="/never">n</a><a href="http://other.org/">o</a><iframe src="http://ads.net/"></iframe>"""
SITE = [
    ("http://lost.example/", "text/html", HOME),
    ("http://lost.example/p?q=1", "text/html", b"<title>P</title>"),
    ("http://lost.example/s.css", "text/css", b"a{}"),
    ("http://cdn.net/", "text/html", b"<title>CDN</title><a href='http://lost.example/'>x</a>"),
    ("http://cdn.net/i.png", "image/png", b"\x89PNG"),
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    redirects = [
        ("http://lost.example/old", "http://lost.example/p?q=1"),
        ("http://lost.example/away", "http://o.org/"),
    ]
    with fill(tmp_path, SITE, redirects=redirects, start="http://lost.example/") as store:
        yield store


def header(answer: Reply, name: str) -> str:
    return dict(answer.headers).get(name, "")


def test_pages_keep_their_addresses_and_load_nothing_from_elsewhere(store: Store) -> None:
    answer = reply(store, "/", "127.0.0.1:8000")
    body = answer.body.decode()
    assert answer.status == 200 and header(answer, "Content-Type") == "text/html; charset=utf-8"
    assert 'src="/_recollect/hosts/cdn.net/i.png"' in body and 'href="/p?q=1"' in body and 'href="/never"' in body
    assert 'src="data:text/javascript,"' in body and 'src="about:blank"' in body and 'href="http://other.org/"' in body
    assert "default-src 'self'" in header(answer, "Content-Security-Policy")
    assert reply(store, "/_recollect/hosts/cdn.net/i.png").body == b"\x89PNG"


@pytest.mark.parametrize("target", ["/s.css", "/s.css?v=2", "/S.css/../s.css"])
def test_unknown_parameters_change_nothing(store: Store, target: str) -> None:
    assert reply(store, target).body == b"a{}"


def test_redirects_lead_on_and_never_out(store: Store) -> None:
    inside, outside = reply(store, "/old"), reply(store, "/away")
    assert (inside.status, header(inside, "Location")) == (301, "/p?q=1")
    assert header(outside, "Location") == "/_recollect/hosts/o.org/"
    assert reply(store, header(outside, "Location")).status == 404


def test_what_is_missing_is_not_found_and_named_without_harm(store: Store) -> None:
    answer = reply(store, "/<script>alert(1)</script>")
    assert answer.status == 404 and b"<script" not in answer.body
    for target in ("*", "", "/../../etc/passwd", "//", "http://[broken/"):
        assert reply(store, target).status in (200, 404)


def test_as_a_proxy_it_gives_what_was_archived(store: Store) -> None:
    assert reply(store, "http://cdn.net/").body == SITE[3][2]
    assert reply(store, "/", "cdn.net").body == SITE[3][2]
    assert reply(store, "http://live.example/").status == 404
