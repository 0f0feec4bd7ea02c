"""404.js on the error page of a site of another origin: the newest captures, in the reader's language."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recollect.ui.pages import asset
from small_archives import serving, small_archives

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install playwright)")
GONE = "http://lost.example/page"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with small_archives() as archives:
        archives.add("one", {GONE: [f"20{year:02d}0304000000" for year in range(5, 20)]})
        with serving(archives.write(tmp_path_factory.mktemp("gone")), "--no-learn") as base:
            yield base


def test_the_script_is_small_and_sets_nothing() -> None:
    text = asset("404.js").decode()
    assert len(text.encode()) <= 5000
    assert not any(word in text for word in ("document.cookie", "localStorage", ".style", "innerHTML"))


def test_an_error_page_offers_the_newest_captures(
    browser: sync_api.Browser, base: str, tmp_path: Path, nginx: Callable[..., str]
) -> None:
    script = f'<script src="{base}/404.js" data-uri="{GONE}" data-until="2015" data-limit="3" async></script>'
    (tmp_path / "404.html").write_text(f"<!doctype html><title>Gone</title><h1>Not here</h1>{script}")
    site = nginx(tmp_path, server="error_page 404 /404.html;")
    context = browser.new_context(locale="de-AT")
    try:
        page = context.new_page()
        page.goto(f"{site}/page")
        links = page.locator(".recollect-captures li a")
        links.first.wait_for()
        assert [text.partition(" · ")[0] for text in links.all_inner_texts()] == [
            "4. März 2015",
            "4. März 2014",
            "4. März 2013",
        ]
        assert "Webarchive haben Kopien" in page.locator(".recollect-captures").inner_text()
        assert page.get_by_role("link", name="Alle Kopien").get_attribute("href").startswith(f"{base}/?uri=http%3A")
        assert context.cookies() == []
        page.goto(f"{site}/404.html")
    finally:
        context.close()


def test_a_page_without_captures_is_left_as_it_is(
    page: sync_api.Page, base: str, tmp_path: Path, nginx: Callable[..., str]
) -> None:
    (tmp_path / "404.html").write_text(f'<!doctype html><title>Gone</title><script src="{base}/404.js" async></script>')
    site = nginx(tmp_path, server="error_page 404 /404.html;")
    with page.expect_response(lambda answer: "/timemap/json" in answer.url) as caught:
        page.goto(f"{site}/never-captured")
    assert caught.value.status == 404
    assert page.locator(".recollect-captures").count() == 0
