"""The other keys under which a map may hold a URI."""

from __future__ import annotations

import pytest

from recollect.errors import BadURI
from recollect.uris import policy_spellings, spellings


def test_a_plain_uri_has_one_key_and_its_trailing_slash() -> None:
    assert spellings("http://example.com/") == [b"com,example)/"]
    assert spellings("http://example.com/a?q=1") == [b"com,example)/a", b"com,example)/a/"]


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("http://example.com/a//b", [b"com,example)/a//b"]),
        ("com,example)/a//b", [b"com,example)/a/b"]),
        ("http://example.com/A", [b"com,example)/A"]),
        ("http://example.com/A/", [b"com,example)/A/"]),
        ("http://example.com/ü", [b"com,example)/\xc3\xbc"]),
        ("http://example.com/%C3%BC", [b"com,example)/\xc3\xbc", b"com,example)/%C3%BC"]),
        ("http://example.com/%7Ex", [b"com,example)/%7ex"]),
        ("http://example.com/a/../b", [b"com,example)/a/../b"]),
        ("http://www.example.com/", [b"com,example,www)/"]),
        ("http://1.2.3.4:80/a", [b"1.2.3.4)/a"]),
        ("http://[::1]:8080/", [b"[::1:8080])/", b"::1:8080)/"]),
        ("[::1]:8080)/", [b"[::1:8080])/", b"::1:8080)/"]),
        ("::1:8080)/", [b"[::1]:8080)/", b"::1:8080)/"]),
        ("http://[::1]/", [b"::1)/"]),
        ("http://bücher.example/", [b"example,b%c3%bccher)/", b"example,b\xc3\xbccher)/"]),
        ("http://xn--bcher-kva.example/", [b"example,b%c3%bccher)/"]),
        ("http://(com,Example,)/A/?q", [b"http://(com,Example,)/A", b"com,example)/a/"]),
    ],
)
def test_other_spellings_come_after_the_normal_key(text: str, others: list[bytes]) -> None:
    found = spellings(text)
    assert found[0] not in others
    assert set(others) <= set(found)
    assert len(found) == len(set(found))


def test_bad_uris_have_no_spellings() -> None:
    with pytest.raises(BadURI):
        spellings("http://com,example/")


def test_an_undecodable_punycode_label_is_kept() -> None:
    assert spellings("http://xn--\xfc-.example/")[0].startswith(b"example,")
    assert spellings("http://xn--999999999.example/")[0] == b"example,xn--999999999)/"


def test_spellings_under_a_policy_keep_the_query_where_it_counts() -> None:
    uri = "http://example.com/a//b?y=2&x=1"
    assert policy_spellings(uri, "HxPx") == spellings(uri)
    assert policy_spellings(uri, "HxP0") == [b"com,example)/"]
    assert policy_spellings(uri, "DQry") == [b"com,example)/0/2/2"]
    assert policy_spellings(uri, "URIR")[0] == b"com,example)/a/b?x=1&y=2"
    assert b"com,example)/a//b?y=2&x=1" in policy_spellings(uri, "URIR")
    assert policy_spellings("com,example)/a?y=2", "URIR") == [b"com,example)/a?y=2"]
