# ruff: noqa: E501
"""What readers keep of foreign bytes is bounded: memory grows with the input by a small factor, and not with its claims."""

from __future__ import annotations

import tracemalloc

import pytest

from attack.parsers import PARSERS
from recollect.archives.robots import MOST_BYTES, MOST_RULES, parse_robots

MB = 1 << 20
READERS = {
    "robots rules": [b"User-agent: a\n" * 20_000 + b"Disallow: /aaaa\n" * 15_000, b"User-agent: *\nDisallow: /%ff%ff\n" * 16_000],
    "robots links": [b"Sitemap: http://x.com/a\n" * 20_000],
    "sitemap links": [b"<urlset>" + b"<url><loc>http://x.com/a</loc></url>" * 14_000],
    "sitemap of lines": [b"".join(b"http://x.com/%d\n" % n for n in range(30_000))],
    "feed links": [b"<rss>" + b"<item><link>http://x.com/1</link></item>" * 12_000, b"<rss>" * 100_000],
    "manifest links": [b'{"icons": [' + b'{"src": "a"},' * 40_000 + b"{}]}", b"[" * 500_000],
    "listing": [b"[" + b'["com,x)/","20200101000000","http://x.com/"],' * 11_000 + b"[]]", b"com,x)/ 20200101000000 {}\n" * 19_000],
    "timemap": [b'<http://a/>; rel="memento"; datetime="Wed, 01 Jan 2020 00:00:00 GMT",\n' * 7_000, b"<http://a/>;" * 40_000],
    "html links": [b"<a href=/a>" * 45_000, b"<div>" * 100_000, b"<base href=" + b"a" * 250_000 + b"/>" + b"<a href=b>" * 25_000],
    "html restored": [b"<base href=" + b"a" * 250_000 + b"/>" + b"<a href=b>" * 25_000],
    "page as Markdown": [b"<base href=" + b"a" * 250_000 + b"/>" + b"<a href=b>" * 25_000],
    "svg restored": [b"<!DOCTYPE svg [<!ENTITY a '" + b"a" * 1000 + b"'><!ENTITY b '" + b"&a;" * 1000 + b"'>]><svg>" + b"&b;" * 1000 + b"</svg>"],
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_reader_keeps_little_of_half_a_megabyte(name: str) -> None:
    for data in READERS[name]:
        PARSERS[name].run(data[:1000])  # modules are loaded
        tracemalloc.start()
        PARSERS[name].run(data)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 100 * MB, f"{len(data):,} bytes took {most / MB:.0f} MB: {data[:40]!r}"


def test_rules_of_other_agents_are_not_kept() -> None:
    many = b"".join(b"User-agent: agent%d\n" % n for n in range(10_000)) + b"Disallow: /a\n" * 20_000
    assert len(many) < MOST_BYTES
    assert parse_robots(many).rules == ()
    mine = parse_robots(b"User-agent: recollect\n" + many[: MOST_BYTES // 2].rpartition(b"\n")[0])
    assert len(mine.rules) <= MOST_RULES
