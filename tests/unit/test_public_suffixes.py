"""The registered domain of a host: the same answers as `PublicSuffixList()` gives, read more quickly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from publicsuffixlist import PSLFILE, PublicSuffixList

from recollect.uris.suffixes import registered_name

LIBRARY = PublicSuffixList()


@pytest.mark.parametrize(
    ("host", "registered"),
    [
        ("cdn.example.co.uk", "example.co.uk"),
        ("co.uk", None),
        ("a.www.ck", "www.ck"),  # an exception of *.ck
        ("a.b.xn--55qx5d.cn", "b.xn--55qx5d.cn"),
        ("a.b.公司.cn", "b.公司.cn"),
        ("example.unknown-suffix", "example.unknown-suffix"),
    ],
)
def test_the_registered_domain_of_a_host(host: str, registered: str | None) -> None:
    assert registered_name(host) == registered


def test_hosts_of_every_rule_and_its_punycode_are_answered_as_by_the_library() -> None:
    with open(PSLFILE, encoding="utf-8") as lines:  # noqa: PTH123
        rules = [line.split()[0] for line in lines if line.strip() and not line.startswith("//")]
    assert len(rules) > 5000
    for rule in rules:
        name = rule.lstrip("!").removeprefix("*.")
        encoded = name if name.isascii() else name.encode("idna").decode("ascii")
        for host in (name, f"b.{name}", f"a.b.{name}", f"a.b.{encoded}", encoded):
            assert registered_name(host) == LIBRARY.privatesuffix(host), host


@given(
    st.lists(
        st.sampled_from(["a", "B", "www", "com", "uk", "co", "ck", "jp", "kobe", "city", "", "公司", "cn", "xn--"])
    )
)
def test_any_labels_are_answered_as_by_the_library(labels: list[str]) -> None:
    host = ".".join(labels)
    assert registered_name(host) == LIBRARY.privatesuffix(host)
