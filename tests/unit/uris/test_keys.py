"""Keys: the normal form against its table, and the tree they form."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.errors import BadURI
from recollect.uris import ancestors, covers, is_surt, key_of_uri, lookup_keys, parent, segments, uri_key
from tables import read_table

TABLE = read_table(Path(__file__).parents[2] / "conformance" / "uri_keys.tsv")


def key_or_mark(surt: bytes) -> str:
    try:
        return uri_key(surt).decode("ascii")
    except BadURI:
        return "!"


@pytest.mark.parametrize("heading", TABLE)
def test_uri_key_follows_its_table(heading: str) -> None:
    for surt, expected in TABLE[heading]:
        assert (surt, key_or_mark(surt.encode("latin-1"))) == (surt, expected)


def test_the_key_of_a_key_is_that_key() -> None:
    keys = [key for rows in TABLE.values() for _, key in rows if key != "!"]
    assert [key_or_mark(key.encode()) for key in keys] == keys


def test_what_has_a_key_is_a_surt_and_nothing_else_is() -> None:
    for rows in TABLE.values():
        for surt, key in rows:
            if surt.isascii():
                assert is_surt(surt) == (key != "!"), surt


@pytest.mark.parametrize(
    "text",
    ["http://example.com/", "example.com/a)b", "http://x.com/(a)/", "www.example.com", ""],
)
def test_uris_are_not_surts(text: str) -> None:
    assert not is_surt(text)


def test_text_without_bytes_is_not_a_surt() -> None:
    assert not is_surt("com,example)/\ud800")
    assert is_surt("com,example)/\udcff")


@pytest.mark.parametrize(
    ("uri", "key"),
    [
        ("http://www.Example.com/A/b/?q=1#top", b"com,example)/a/b"),
        ("https://example.com", b"com,example)/"),
        ("http://example.com/a//b/", b"com,example)/a/b"),
        ("http://example.com/*", b"com,example)/%2a"),
        ("http://1.2.3.4:8080/", b"4,3,2,1:8080)/"),
        ("http://[::1]/", b"[::1])/"),
        ("http://[::1]:8080/a", b"[::1]:8080)/a"),
        ("http://!meta/", b"%21meta)/"),
        ("http://bücher.example/ü", b"example,xn--bcher-kva)/%c3%bc"),
    ],
)
def test_key_of_a_uri(uri: str, key: bytes) -> None:
    assert key_of_uri(uri) == key


@pytest.mark.parametrize(
    "uri", ["mailto:me@example.com", "dns:example.com", "example.com:8080/a", "javascript:alert(1)"]
)
def test_a_uri_without_a_host_has_no_key_and_the_error_says_what_to_do(uri: str) -> None:
    with pytest.raises(BadURI, match="no host") as caught:
        key_of_uri(uri)
    assert "http://" in caught.value.hint


def test_lookup_keys_are_those_of_the_design() -> None:
    assert lookup_keys(b"com,x:8080)/a/b") == [
        b"com,x:8080)/a/b",
        b"com,x:8080)/a/b/*",
        b"com,x:8080)/a/*",
        b"com,x:8080)/*",
        b"com,x:8080,*",
        b"com,x,*",
        b"com,*",
        b"*",
    ]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"com)/", [b"com)/", b"com)/*", b"com,*", b"*"]),
        (b"4,3,2,1)/a", [b"4,3,2,1)/a", b"4,3,2,1)/a/*", b"4,3,2,1)/*", b"4,3,2,1,*", b"*"]),
        (b"4,3,2,1:80)/", [b"4,3,2,1:80)/", b"4,3,2,1:80)/*", b"4,3,2,1:80,*", b"4,3,2,1,*", b"*"]),
        (b"[::1]:80)/", [b"[::1]:80)/", b"[::1]:80)/*", b"[::1]:80,*", b"[::1],*", b"*"]),
        (
            b"com,x)/a//b",
            [b"com,x)/a//b", b"com,x)/a//b/*", b"com,x)/a//*", b"com,x)/a/*", b"com,x)/*", b"com,x,*", b"com,*", b"*"],
        ),
        (b"256,3,2,1)/", [b"256,3,2,1)/", b"256,3,2,1)/*", b"256,3,2,1,*", b"256,3,2,*", b"256,3,*", b"256,*", b"*"]),
    ],
)
def test_lookup_keys_of_ports_addresses_and_empty_segments(key: bytes, expected: list[bytes]) -> None:
    assert lookup_keys(key) == expected
    assert [key, *ancestors(key)] == expected


@pytest.mark.parametrize(
    ("key", "hosts", "path"),
    [
        (b"com,x)/", (b"com", b"x"), ()),
        (b"com,x:80)/a/b", (b"com", b"x", b":80"), (b"a", b"b")),
        (b"com,x)//a", (b"com", b"x"), (b"", b"a")),
        (b"com,x)/a/*", (b"com", b"x"), (b"a", b"*")),
        (b"com,x)/*", (b"com", b"x"), (b"*",)),
        (b"com,x,*", (b"com", b"x", b"*"), ()),
        (b"4,3,2,1:80,*", (b"4,3,2,1", b":80", b"*"), ()),
        (b"[::1]:80)/", (b"[::1]", b":80"), ()),
        (b"*", (b"*",), ()),
    ],
)
def test_segments(key: bytes, hosts: tuple[bytes, ...], path: tuple[bytes, ...]) -> None:
    assert segments(key) == (hosts, path)


def test_parents_lead_to_the_star_and_end_there() -> None:
    assert parent(b"com,x)/a") == b"com,x)/a/*"
    assert parent(b"com,x)/a/*") == b"com,x)/*"
    assert parent(b"com,x)/*") == b"com,x,*"
    assert parent(b"com,x:80,*") == b"com,x,*"
    assert parent(b"com,*") == b"*"
    assert parent(b"4,3,2,1,*") == b"*"
    assert parent(b"*") is None


@pytest.mark.parametrize(
    ("wild", "key", "expected"),
    [
        (b"com,x)/a/*", b"com,x)/a", True),
        (b"com,x)/a/*", b"com,x)/a/b", True),
        (b"com,x)/a/*", b"com,x)/a/b/*", True),
        (b"com,x)/a/*", b"com,x)/a-b", False),
        (b"com,x)/a/*", b"com,x)/", False),
        (b"com,x)/*", b"com,x)/", True),
        (b"com,x)/*", b"com,x,y)/", False),
        (b"com,x)/*", b"com,x:80)/", False),
        (b"com,x,*", b"com,x)/a", True),
        (b"com,x,*", b"com,x:80)/a", True),
        (b"com,x,*", b"com,x,y)/a", True),
        (b"com,x,*", b"com,xy)/a", False),
        (b"com,x,*", b"com,*", False),
        (b"4,3,*", b"4,3,2,1)/", False),
        (b"*", b"4,3,2,1)/", True),
        (b"*", b"*", True),
        (b"com,x)/a", b"com,x)/a", True),
        (b"com,x)/a", b"com,x)/a/b", False),
    ],
)
def test_covers(wild: bytes, key: bytes, expected: bool) -> None:
    assert covers(wild, key) is expected
