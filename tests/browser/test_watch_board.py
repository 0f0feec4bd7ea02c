"""The dashboard of a watch in a real browser: as a file and served, wide and narrow, light and dark."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.request import urlopen

import pytest

from desk_world import start
from recollect.watch.records import Resource, Site
from recollect.watch.states import Held, Live, Notice, ResourceState, SiteState, SiteStatus
from recollect.watch.store import Store

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install playwright)")
T0 = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three sites over 30 weeks; one is lost in week 19."""
    folder = tmp_path_factory.mktemp("watch")
    names = ["http://fine.example/", "http://<b>lost</b>.example/", "http://new.example/" + "a" * 200]
    with Store(folder) as store, store.transaction():
        for number, (name, state) in enumerate(
            zip(names, (SiteState.FINE, SiteState.LOST, SiteState.SUSPECT), strict=True)
        ):
            at = T0 + timedelta(weeks=30)
            status = SiteStatus(state, T0 + timedelta(weeks=19), last_own=T0 + timedelta(weeks=18))
            store.put_site(Site(name, T0, at, status=status, last_visit=at))
            for week in range(30):
                gone = state is SiteState.LOST and week >= 19
                held, none = 10 + week * (number + 1), max(0, 60 - 2 * week)
                live = {ResourceState.REPLICATED: held, ResourceState.VULNERABLE: none}
                lost = {ResourceState.ENDANGERED: held, ResourceState.UNRECOVERABLE: none}
                counts = dict.fromkeys(ResourceState, 0) | (lost if gone else live) | {ResourceState.UNKNOWN: 3}
                store.add_tally(name, T0 + timedelta(weeks=week, hours=number), counts)
            for index in range(4):
                held_state = Held.HELD if index else Held.NOT_HELD
                store.put_resource(Resource(name, f"{name}{index}", "text/html", Live.LIVE, T0, held_state, T0))
        store.add_notice(names[1], Notice.LOST, T0, T0, "status 503")
    return folder


@pytest.fixture(scope="module")
def written(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from recollect.cli import main

    out = tmp_path_factory.mktemp("page") / "page.html"
    assert main.run(["watch", "dashboard", "--data", str(data), "-o", str(out)]) == 0
    return out


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1300])
def test_readable_as_a_file_at_any_width(browser: sync_api.Browser, written: Path, scheme: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(written.as_uri())
    assert asked == [written.as_uri()] and complaints == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    hidden = page.evaluate("[...document.querySelectorAll('.scroll')].map(one => one.scrollWidth - one.clientWidth)")
    assert max(hidden) <= 0, "nothing is cut off"
    areas = page.locator("svg.areas polygon")
    assert areas.count() == 5
    fills = areas.evaluate_all("all => all.map(one => getComputedStyle(one).fill)")
    assert len(set(fills)) == 5 and "rgb(0, 0, 0)" not in fills
    rows = page.locator("table").first.locator("tbody tr")
    assert rows.count() == 3
    assert rows.first.inner_text().startswith("http://<b>lost</b>.example/")
    badges = rows.locator(".badge")
    colours = badges.evaluate_all("all => all.map(one => getComputedStyle(one).backgroundColor)")
    assert len(set(colours)) == 3, "states differ in colour"
    assert len({text.split()[0] for text in badges.all_inner_texts()}) == 3, "and by a sign"
    rows.first.locator("a").click()
    assert page.locator(":target h2").inner_text() == "http://<b>lost</b>.example/", "a row leads to the site's part"
    context.close()


def test_served_with_status_and_feed(browser: sync_api.Browser, data: Path) -> None:
    process, said, line = start(["watch", "serve", "--data", str(data), "--port", "0"], "listens on")
    try:
        base = line.split()[-1]
        page = browser.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(base)
        assert page.locator("h1").inner_text() == "Watched sites"
        assert page.locator("svg.areas polygon").count() == 5
        assert complaints == [], "the content policy allows all that the page needs"
        page.close()
        with urlopen(base + "status.json", timeout=30) as answer:
            reply = json.load(answer)
        assert len(reply["sites"]) == 3 and len(reply["series"]) == 90
        with urlopen(base + "atom.xml", timeout=30) as answer:
            assert b"is lost" in answer.read()
    finally:
        process.terminate()
        assert process.wait(30) == 0, said


def test_a_row_leads_to_the_page_of_the_site_and_a_button_accepts_it(browser: sync_api.Browser, tmp_path: Path) -> None:
    uri = "http://relaunched.example/"
    taken = SiteStatus(SiteState.TAKEN_OVER, T0, T0, foreign_since=T0, confirmed=True)
    with Store(tmp_path) as store, store.transaction():
        store.put_site(Site(uri, T0, T0 + timedelta(days=1), status=taken, last_visit=T0))
        gone = Resource(uri, f"{uri}old", "text/html", Live.LIVE, T0, Held.NOT_HELD, T0)
        store.put_resource(gone)
    process, said, line = start(["watch", "serve", "--data", str(tmp_path), "--port", "0"], "listens on")
    try:
        base = line.split()[-1]
        page = browser.new_page()
        page.goto(base)
        page.locator("tbody a").first.click()
        assert page.locator("h2").first.inner_text() == uri
        assert "held by no archive" in page.inner_text("main"), "advice is on the page"
        page.get_by_role("button", name="Accept the present content").click()
        assert "is accepted" in page.locator("h1").inner_text()
        page.close()
        with Store(tmp_path) as store:
            [site] = store.sites()
        assert site.status.state is SiteState.FINE and site.notes.accept
    finally:
        process.terminate()
        assert process.wait(30) == 0, said


@pytest.mark.parametrize("width", [400, 1300])
def test_the_table_of_a_check_fits(browser: sync_api.Browser, tmp_path: Path, width: int) -> None:
    from recollect.watch.check import check_of
    from recollect.watch.holdings import Copy, ResourceReport
    from recollect.watch.pages.check import check_page

    site = "http://site.example/"
    looked = [
        ResourceReport(
            Resource(site, f"{site}{'very-long-name-' * 12}{n}", "text/html", Live.LIVE, T0, Held.HELD, T0, 1.0)
            if n % 2
            else Resource(site, f"{site}{'x' * 150}{n}", "text/html", Live.LIVE, T0, Held.NOT_HELD, T0),
            None,
            (Copy("web.archive.org", T0, "", 0.95),) if n % 2 else (),
        )
        for n in range(8)
    ]
    file = tmp_path / "check.html"
    file.write_text(check_page(check_of(site, T0, looked)))
    page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    hidden = page.evaluate("[...document.querySelectorAll('.scroll')].map(one => one.scrollWidth - one.clientWidth)")
    assert max(hidden) <= 0, "nothing is cut off"
    page.close()
