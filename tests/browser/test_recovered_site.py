"""A site recovered from three real archives, opened in a real browser: every link works, nothing leaves the disk."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from pywb_archive import pywb_archives
from websites import website, write_warc

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install playwright)")


@pytest.fixture(scope="module")
def recovered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recovered folder, moved elsewhere after it was made."""
    folder = tmp_path_factory.mktemp("recovered")
    site = website(seed=7, pages=12)
    holdings = []
    for number, shots in enumerate(site.scattered(3, seed=2)):
        write_warc(folder / f"{number}.warc.gz", shots)
        holdings.append((folder / f"archive-{number}", (), [folder / f"{number}.warc.gz"]))
    with pywb_archives(holdings) as running:
        entries = [{"id": f"p{n}", "cdx": a.cdx, "raw": a.raw} for n, a in enumerate(running)]
        (folder / "archives.json").write_text(json.dumps(entries))
        command = [sys.executable, "-m", "recollect", "recover", site.start, "-o", str(folder / "site")]
        subprocess.run([*command, "--archives", str(folder / "archives.json"), "-q"], check=True, timeout=120)
    return Path(shutil.move(folder / "site", tmp_path_factory.mktemp("else where") / "söme #folder"))


def test_every_link_works_and_no_request_leaves_the_disk(recovered: Path, page: sync_api.Page) -> None:
    left: list[str] = []
    failed: list[str] = []
    page.on("request", lambda request: None if request.url.startswith(("file:", "data:")) else left.append(request.url))
    # A request that the next page interrupts did not fail.
    page.on(
        "requestfailed", lambda r: None if r.failure == "net::ERR_ABORTED" else failed.append(f"{r.url} {r.failure}")
    )
    root = recovered.resolve().as_uri()
    waiting, seen, outside = [(recovered / "lost.example" / "index.html").resolve().as_uri()], set[str](), set[str]()
    while waiting:
        address = waiting.pop()
        if address in seen:
            continue
        seen.add(address)
        if not address.endswith((".html", "/")):
            assert Path(unquote(urlsplit(address).path)).is_file(), address
            continue
        page.goto(address)
        for frame in page.frames:
            broken = "() => [...document.images].filter(i => !(i.complete && i.naturalWidth)).map(i => i.src)"
            assert frame.evaluate(broken) == [], address
        for link in page.evaluate("() => [...document.links].map(a => a.href)"):
            (waiting.append(link.partition("#")[0]) if link.startswith(root) else outside.add(link))
    assert left == [] and failed == []
    assert outside == set(), "what is missing leads to a local page that says so"
    assert any(address.endswith("/not-recovered.html") for address in seen)
    assert len(seen) > 35


def test_the_report_opens_and_leads_to_the_site(recovered: Path, page: sync_api.Page) -> None:
    page.goto((recovered / "report.html").resolve().as_uri())
    assert page.locator("figure.chart svg").count() >= 2
    page.click("text=Open the recovered site")
    assert page.title() == "The lost site"
