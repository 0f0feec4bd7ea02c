"""Sitemaps as sites have them: several in robots.txt, gzip, plain lists, indexes larger than a visit, other hosts."""

from __future__ import annotations

import asyncio
import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recollect.archives.live import LiveClient
from recollect.archives.robots import ask_robots
from recollect.watch.sitemaps import MOST_FILES, sitemap_addresses
from web_servers import plain

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
T0 = datetime(2026, 5, 1, tzinfo=UTC)


def urls(*addresses: str) -> str:
    return f"<urlset {NS}>{''.join(f'<url><loc>{uri}</loc></url>' for uri in addresses)}</urlset>"


def index(*addresses: str) -> str:
    return f"<sitemapindex {NS}>{''.join(f'<sitemap><loc>{uri}</loc></sitemap>' for uri in addresses)}</sitemapindex>"


def listed(base: str, day: int = 0) -> dict[str, str]:
    async def ask() -> dict[str, str]:
        async with LiveClient(user_agent="t", allow_private=True, pace=0) as client:
            robots = await ask_robots(client, f"{base}/")
            return await sitemap_addresses(client, f"{base}/", robots, T0 + timedelta(days=day))

    return {uri.removeprefix(base): place.removeprefix(base) for uri, place in asyncio.run(ask()).items()}


def test_every_form_of_sitemap_is_read_and_pages_named_like_one_are_pages(tmp_path: Path) -> None:
    with plain(tmp_path, tmp_path) as port:
        base = f"http://127.0.0.1:{port}"
        places = ("one.xml.gz", "list.txt", "index.xml", "private/map.xml")
        lines = [f"Sitemap: {base}/{name}" for name in places] + ["sitemap: https://cdn.example/other.xml"]
        (tmp_path / "robots.txt").write_text("\n".join(["User-agent: *", "Disallow: /private", *lines]))
        pages = (f"{base}/a", f"{base}/sitemap.html", f"{base}/feed.xml", "http://other.example/z")
        (tmp_path / "one.xml.gz").write_bytes(gzip.compress(urls(*pages).encode()))
        (tmp_path / "list.txt").write_text(f"{base}/b\n{base}/c\n")
        (tmp_path / "index.xml").write_text(index(f"{base}/child.xml", "http://other.example/child.xml"))
        (tmp_path / "child.xml").write_text(urls(f"{base}/d"))
        (tmp_path / "private").mkdir()
        (tmp_path / "private" / "map.xml").write_text(urls(f"{base}/secret"))
        assert listed(base) == {
            **dict.fromkeys(("/a", "/sitemap.html", "/feed.xml"), "/one.xml.gz"),
            **dict.fromkeys(("/b", "/c"), "/list.txt"),
            "/d": "/child.xml",
        }


def test_of_a_large_index_all_files_are_read_in_turn(tmp_path: Path) -> None:
    with plain(tmp_path, tmp_path) as port:
        base = f"http://127.0.0.1:{port}"
        (tmp_path / "sitemap.xml").write_text(index(*(f"{base}/{n}.xml" for n in range(20))))
        for number in range(20):
            (tmp_path / f"{number}.xml").write_text(urls(f"{base}/page/{number}"))
        days = [listed(base, day) for day in range(3)]
        assert [len(found) for found in days] == [MOST_FILES - 1] * 3
        assert len(set().union(*days)) == 20
