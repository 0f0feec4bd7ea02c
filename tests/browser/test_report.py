"""The report in a real browser: nothing is fetched, nothing overflows, light, dark and printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs_world import write_files
from recollect.profiles.statistics.report import ReportOptions, write_report

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install playwright)")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_files(folder)
    out = folder / "report.html"
    options = ReportOptions(name="A very long name of an archive " * 4)
    write_report([folder / "indexes"], out, accesses=[folder / "access.log"], options=options)
    return out


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_readable_without_script_or_network_at_any_width(
    browser: sync_api.Browser, report: Path, scheme: str, width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(report.as_uri())
    assert asked == [report.as_uri()] and complaints == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    shown = page.locator("svg.chart").evaluate_all("all => all.map(one => one.getBoundingClientRect().width)")
    assert len(shown) >= 8 and min(shown) > 200
    colours = page.evaluate("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]")
    ink, ground = (sum(int(part) for part in colour[4:-1].split(",")[:3]) for colour in colours)
    assert (ink < ground) == (scheme == "light") and abs(ink - ground) > 400
    context.close()


def test_tables_are_opened_in_print(browser: sync_api.Browser, report: Path) -> None:
    page = browser.new_page()
    page.goto(report.as_uri())
    table = page.locator("details table").first
    closed = table.bounding_box()
    page.emulate_media(media="print")
    opened = table.bounding_box()
    assert not (closed and closed["height"]) and opened is not None and opened["height"] > 20
    page.close()
