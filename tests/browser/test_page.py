"""The page for people in a real browser: find captures, see who was asked, stay safe, work without script."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.formats.timemap import safe_uri
from small_archives import SmallArchives, serving, small_archives

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install playwright)")
URI = "http://lost.example/"
EVIL = "http://lost.example/?q=<script>window.hurt=1</script>\"'><img src=x onerror=window.hurt=1>"
STAMPS = [f"{year}{month:02d}15120000" for year in range(2009, 2020) for month in (2, 7, 11)]


@pytest.fixture(scope="module")
def archives() -> Iterator[SmallArchives]:
    with small_archives() as archives:
        archives.add("large", {URI: STAMPS, safe_uri(EVIL): ["20150101000000"]})
        archives.add("small", {URI: ["20140304050607"]}, keys={"name": "<b onclick=window.hurt=1>Small & old"})
        archives.add("empty", {})
        archives.add("broken", {}, status=503)
        archives.add("ruled", {URI: ["20150101000000"]}, keys={"never": ["lost.example"]})
        yield archives


@pytest.fixture(scope="module")
def base(archives: SmallArchives, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(archives.write(tmp_path_factory.mktemp("page")), "--no-learn", "--no-cache") as base:
        yield base


def find(page: sync_api.Page, base: str, uri: str) -> None:
    page.goto(base + "/")
    page.get_by_label("Address of a page").fill(uri)
    page.get_by_role("button", name="Find captures").click()
    page.locator("main.result").wait_for()


def states(page: sync_api.Page) -> dict[str, str]:
    rows = page.locator("table.archives tbody tr")
    return {
        row.locator("td").nth(0).inner_text(): row.locator("td").nth(1).inner_text()
        for row in (rows.nth(i) for i in range(rows.count()))
    }


def test_captures_of_a_page_across_archives(page: sync_api.Page, base: str) -> None:
    foreign: list[str] = []
    page.on("request", lambda request: foreign.append(request.url) if not request.url.startswith(base) else None)
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    find(page, base, "lost.example/")
    assert page.get_by_role("heading", name=f"{len(STAMPS) + 1} captures in 2 archives").is_visible()
    assert page.get_by_text("15 February 2009", exact=True).is_visible()
    assert page.locator("svg.timeline circle").count() == len(STAMPS) + 1
    assert not page.locator("section.asking").is_visible()
    assert states(page) == {
        "Large": "found",
        "<b onclick=window.hurt=1>Small & old": "found",
        "Empty": "none",
        "Broken": "failed",
        "Ruled": "skipped",
    }
    assert page.get_by_text("This may not be all: 1 archive did not answer.").is_visible()
    assert "never lost.example" in page.locator("tr.skipped .why").inner_text()
    assert page.locator("tr.failed .why").inner_text() == "status 503"
    assert foreign == [] and messages == []


def test_a_mark_leads_to_its_memento(page: sync_api.Page, base: str, archives: SmallArchives) -> None:
    find(page, base, URI)
    page.locator("svg.timeline .c1 a.mark").click()
    page.get_by_text("replayed small 20140304050607").wait_for()
    assert page.url == archives.uri_m("small", "20140304050607", URI)


def test_a_mark_is_named_when_the_pointer_or_the_keyboard_comes_to_it(page: sync_api.Page, base: str) -> None:
    find(page, base, URI)
    page.locator("svg.timeline .c1 a.mark").hover()
    assert page.locator(".tip").inner_text() == "<b onclick=window.hurt=1>Small & old: 1 capture, 4 March 2014"
    page.locator("svg.timeline .c0 a.mark").first.focus()
    assert page.locator(".tip").inner_text().startswith("Large: 1 capture, 15 February 2009")
    page.keyboard.press("Escape")
    assert not page.locator(".tip").is_visible()


def test_a_date_leads_to_the_nearest_capture(page: sync_api.Page, base: str, archives: SmallArchives) -> None:
    find(page, base, URI)
    page.get_by_label("Go to the capture nearest to").fill("2014-03-01")
    page.get_by_role("button", name="Go", exact=True).click()
    page.wait_for_url(archives.uri_m("small", "20140304050607", URI))


def test_a_bar_opens_its_year(page: sync_api.Page, base: str) -> None:
    find(page, base, URI)
    year = page.locator("details#y2012")
    assert year.get_attribute("open") is None
    page.locator("svg.timeline a.mark[href='#y2012']").first.click()
    assert year.get_attribute("open") is not None
    assert year.get_by_role("link").count() == 3


def test_hostile_addresses_and_names_stay_text(page: sync_api.Page, base: str) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    find(page, base, EVIL)
    assert page.evaluate("window.hurt") is None
    assert dialogs == []
    assert page.locator("main.result img, main.result script, main.result b[onclick]").count() == 0
    assert page.get_by_role("heading", name="1 capture in 1 archive").is_visible()


def test_what_is_not_an_address_is_reported_kindly(page: sync_api.Page, base: str) -> None:
    for typed in ("javascript:alert(1)", "http://"):
        page.goto(base + "/")
        page.get_by_label("Address of a page").fill(typed)
        page.get_by_role("button", name="Find captures").click()
        assert page.get_by_role("heading", name="Not the address of a page").is_visible()
        assert page.get_by_label("Address of a page").input_value() == typed


def test_nothing_found_is_said_with_what_is_missing(page: sync_api.Page, base: str) -> None:
    find(page, base, "http://nowhere.example/")
    assert page.get_by_role("heading", name="No captures found").is_visible()
    assert page.get_by_text("But not every archive answered, see below.").is_visible()
    assert page.locator("svg.timeline").count() == 0


def test_everything_works_without_script(browser: sync_api.Browser, base: str, archives: SmallArchives) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    find(page, base, URI)
    page.locator("svg.timeline .c1 a.mark").click()
    page.wait_for_url(archives.uri_m("small", "20140304050607", URI))
    context.close()


def test_dark_and_light_follow_the_reader(browser: sync_api.Browser, base: str) -> None:
    shades = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(base + "/")
        shades[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        context.close()
    assert shades["light"] != shades["dark"]


def test_a_narrow_screen_does_not_scroll_sideways(browser: sync_api.Browser, base: str) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 700})
    page = context.new_page()
    find(page, base, URI)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    table = page.locator("div.scroll:has(table.archives)")
    assert table.evaluate("box => box.scrollWidth <= box.clientWidth"), "why an archive failed is not out of sight"
    field = page.locator("header form[role=search] input[name=uri]")
    assert field.evaluate("field => field.clientWidth") > 120, "the button leaves space for the address"
    context.close()


def test_who_has_answered_is_seen_while_others_are_waited_for(page: sync_api.Page, tmp_path: Path) -> None:
    with small_archives() as archives:
        archives.add("quick", {URI: ["20150101000000"]})
        archives.add("slow", {URI: ["20160101000000"]}, delay=3)
        with serving(archives.write(tmp_path), "--no-learn", "--no-cache") as base:
            started = time.monotonic()
            page.goto(f"{base}/?uri={URI}", wait_until="commit")
            page.locator(".asking li", has_text="Quick").wait_for()
            assert time.monotonic() - started < 2.5
            assert page.locator("main.result").count() == 0
            page.get_by_role("heading", name="2 captures in 2 archives").wait_for()
            assert not page.locator("section.asking").is_visible()
