"""URI-Key policies of Alam et al. (2015)."""

from __future__ import annotations

import pytest

from recollect.errors import BadURI, UsageError
from recollect.uris import POLICIES, parse_policy, policy_key, surt

FIGURE_2 = surt("https://www.news.BBC.co.uk/images/Logo.png?width=200&height=80&rotate=90#top").encode()


def test_there_are_the_23_policies_of_the_paper() -> None:
    assert len(set(POLICIES)) == len(POLICIES) == 23
    assert sum(name.startswith("H") for name in POLICIES) == 17
    assert sum(name.startswith("D") for name in POLICIES) == 5
    assert all(parse_policy(name).name == name for name in POLICIES)


@pytest.mark.parametrize(
    ("policy", "key"),
    [
        ("H1P0", b"uk)/"),
        ("H2P0", b"uk,co)/"),
        ("H2P1", b"uk,co)/"),
        ("H3P0", b"uk,co,bbc)/"),
        ("H3P3", b"uk,co,bbc)/"),
        ("H4P0", b"uk,co,bbc,news)/"),
        ("H4P1", b"uk,co,bbc,news)/images"),
        ("H5P0", b"uk,co,bbc,news)/"),
        ("HxP0", b"uk,co,bbc,news)/"),
        ("HxP1", b"uk,co,bbc,news)/images"),
        ("HxP2", b"uk,co,bbc,news)/images/logo.png"),
        ("HxPx", b"uk,co,bbc,news)/images/logo.png"),
        ("H12P34", b"uk,co,bbc,news)/images/logo.png"),
        ("DDom", b"uk,co,bbc)/"),
        ("DSub", b"uk,co,bbc)/1"),
        ("DPth", b"uk,co,bbc)/1/2"),
        ("DQry", b"uk,co,bbc)/1/2/3"),
        ("DIni", b"uk,co,bbc)/1/2/3/i"),
        ("URIR", b"uk,co,bbc,news)/images/logo.png?height=80&rotate=90&width=200"),
    ],
)
def test_figure_2_of_the_paper(policy: str, key: bytes) -> None:
    assert policy_key(FIGURE_2, policy) == key


@pytest.mark.parametrize(
    ("uri", "policy", "key"),
    [
        ("http://example.com/", "DIni", b"com,example)/0/0/0/-"),
        ("http://example.com/~me/", "DIni", b"com,example)/0/1/0/-"),
        ("http://example.com/%C3%BC", "DIni", b"com,example)/0/1/0/-"),
        ("http://example.com/9", "DIni", b"com,example)/0/1/0/9"),
        ("http://example.com/?a&&b=", "DQry", b"com,example)/0/0/2"),
        ("http://a.b.c.example.com:8080/x", "DSub", b"com,example)/3"),
        ("http://co.uk/x", "DDom", b"uk,co)/"),
        ("http://localhost:8080/x", "DDom", b"localhost)/"),
        ("http://a.b.unknown-ending/", "DSub", b"unknown-ending,b)/1"),
        ("http://1.2.3.4:80/a/b", "DPth", b"4,3,2,1)/0/2"),
        ("http://[::1]:8080/a", "DSub", b"[::1])/0"),
        ("http://www.xn--fiqs8s/", "DDom", b"xn--fiqs8s)/"),
        ("http://a.xn--55qx5d.cn/", "DDom", b"cn,xn--55qx5d,a)/"),
        ("http://1.2.3.4/a/b", "H1P1", b"4,3,2,1)/a"),
        ("http://example.com:8080/a", "H2P1", b"com,example)/"),
        ("http://example.com:8080/a", "HxP1", b"com,example:8080)/a"),
        ("http://example.com/*?*= x", "URIR", b"com,example)/%2a?%2a=%20x"),
        ("http://example.com/?", "URIR", b"com,example)/"),
    ],
)
def test_policies_at_the_edges(uri: str, policy: str, key: bytes) -> None:
    assert policy_key(surt(uri).encode(), policy) == key


def test_a_cut_that_ends_in_an_empty_segment_leaves_no_trailing_slash() -> None:
    assert policy_key(b"com,x)/a//b", "HxP2") == b"com,x)/a"
    assert policy_key(b"com,x)//b", "HxP1") == b"com,x)/"


def test_names_are_read_in_any_case() -> None:
    assert parse_policy("hXp3") == parse_policy("HxP3")
    assert parse_policy("dini").name == "DIni"
    assert parse_policy("urir").name == "URIR"


@pytest.mark.parametrize("name", ["", "H0P0", "HP", "H1", "P1", "H1P", "HxP-1", "H1P0 ", "D", "DAll", "H١P0"])
def test_other_names_are_refused_with_the_choice(name: str) -> None:
    with pytest.raises(UsageError, match="no such policy") as caught:
        parse_policy(name)
    assert "HxPx" in caught.value.hint


@pytest.mark.parametrize("policy", POLICIES)
def test_no_policy_makes_a_key_of_what_is_none(policy: str) -> None:
    with pytest.raises(BadURI):
        policy_key(b"dns:example.com", policy)
