"""The page that `publish` writes, in Chromium, on a plain web server: answers without a service."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from recollect.cli.main import run

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install playwright)")
COUNT = 120_000


@pytest.fixture(scope="module")
def maps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two maps: a large one of many blocks, and one of pages only."""
    folder = tmp_path_factory.mktemp("maps")
    keys = sorted({f"com,site{n % 997}-{n * 7919 % 1_000_003:x})/page/{n}" for n in range(COUNT)})
    index = folder / "large.cdxj"
    index.write_text("".join(f'{key} 20150101000000 {{"status": "200"}}\n' for key in keys))
    made = ("--updated-at", "2026-03-01", "-q")
    assert run(["profile", str(index), "-o", str(folder / "large.ukvs"), "--name", "Large Archive", *made]) == 0
    lines = 'org,small)/a 20150101000000 {"mime": "text/html", "status": "200"}\n'
    (folder / "pages.cdxj").write_text(lines)
    options = ("--media-type", "text/html", *made)
    assert run(["profile", str(folder / "pages.cdxj"), "-o", str(folder / "pages.ukvs"), *options]) == 0
    index.unlink()
    (folder / "pages.cdxj").unlink()
    return folder


def answers(page: sync_api.Page, uri: str) -> list[str]:
    page.get_by_label("Address of a page").fill(uri)
    page.get_by_role("button", name="Look it up").click()
    page.get_by_label(f"Answers for {uri if '://' in uri else 'http://' + uri}").wait_for()
    page.wait_for_function("!document.getElementById('answers').innerText.includes('looking …')")
    return page.locator("#answers li").all_inner_texts()


def test_a_published_map_answers_in_the_browser(
    page: sync_api.Page, maps: Path, tmp_path: Path, nginx: Callable[..., str]
) -> None:
    assert run(["publish", str(maps / "large.ukvs"), "--to", str(tmp_path / "www")]) == 0
    key = next(line for line in (maps / "large.ukvs").read_text().splitlines() if line.startswith("com,site5"))
    host, _, path = key.split()[0].partition(")")
    base = nginx(tmp_path / "www")
    ranges: list[str] = []
    page.on("request", lambda request: ranges.append(request.url) if request.url.endswith(".gz") else None)
    page.goto(f"{base}/mementomap/index.html")
    held = f"{'.'.join(reversed(host.split(',')))}{path}"
    assert answers(page, held) == ["Large Archive Yes, 1 capture is listed (map of 2026-03-01)."]
    assert 1 <= len(ranges) <= 8, "a handful of requests"
    asked = len(ranges)
    assert answers(page, held + "/absent") == ["Large Archive No capture is listed (map of 2026-03-01)."]
    assert len(ranges) - asked <= 2, "blocks are kept"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_directory_of_maps_tells_which_archives_hold_an_address(
    page: sync_api.Page, maps: Path, tmp_path: Path, nginx: Callable[..., str]
) -> None:
    registry = [{"id": "pages", "name": "Pages of Small", "timegate": "https://replay.example/web/"}]
    (tmp_path / "archives.json").write_text(json.dumps(registry))
    options = ("--directory", "--to", str(tmp_path / "www"), "--archives", str(tmp_path / "archives.json"))
    assert run(["publish", str(maps), *options]) == 0
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(f"{nginx(tmp_path / 'www')}/index.html")
    large, small = answers(page, "http://small.org/a")
    assert large.startswith("Large Archive No capture is listed")
    assert small.startswith("Pages of Small Yes") and small.endswith("Open the captures")
    link = page.get_by_role("link", name="Open the captures")
    assert link.get_attribute("href") == "https://replay.example/web/http://small.org/a"
    _, picture = answers(page, "http://small.org/logo.png")
    assert "The map cannot tell: only text/html" in picture
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
