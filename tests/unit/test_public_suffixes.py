"""The registered domain of a host: the same answers as `PublicSuffixList()` gives, read more quickly."""

from __future__ import annotations

import pytest
from publicsuffixlist import PSLFILE, PublicSuffixList

from recollect.uris.suffixes import registered_name


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


def test_every_rule_that_is_not_ascii_and_its_punycode_answer_as_the_library_does() -> None:
    library = PublicSuffixList()
    with open(PSLFILE, encoding="utf-8") as lines:  # noqa: PTH123
        rules = [line.split()[0] for line in lines if line.strip() and not line.startswith("//")]
    different = [rule for rule in rules if not rule.isascii()] + rules[::50]
    assert len(different) > 200
    for rule in different:
        name = rule.lstrip("!").removeprefix("*.")
        for host in (f"a.b.{name}", "a.b." + name.encode("idna").decode("ascii"), name):
            assert registered_name(host) == library.privatesuffix(host), host
