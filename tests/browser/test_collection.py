"""A WACZ of another tool as a site on the disk, in a real browser: every internal link works, and each page shows what
its replay shows."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from pywb_archive import PYWB_PYTHON, pywb_archive
from websites import website, write_warc

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install playwright)")
SHOWN = """() => ({
  title: document.title,
  text: (document.body ? document.body.innerText : "").replace(/\\s+/g, " ").trim(),
  images: [...document.images].map(i => [i.naturalWidth, i.naturalHeight]),
  colour: document.body ? getComputedStyle(document.body).color : "",
})"""


def make_wacz(folder: Path) -> Path:
    """A collection as crawlers package it: pywb's own indexer, seeds, no trace of Recollect."""
    site = website(seed=11, pages=10, troubles=False)
    warc = folder / "data.warc.gz"
    write_warc(warc, site.crawl([site.end]))
    indexed = subprocess.run(
        [str(PYWB_PYTHON), "-m", "pywb.indexer.cdxindexer", "-j", "-s", str(warc)], capture_output=True, check=True
    )
    path = folder / "collection.wacz"
    with zipfile.ZipFile(path, "w") as package:
        package.write(warc, "archive/data.warc.gz")
        package.writestr("indexes/index.cdx.gz", gzip.compress(indexed.stdout, mtime=0))
        lines = [{"format": "json-pages-1.0", "id": "pages"}, {"url": site.start, "seed": True}]
        package.writestr("pages/pages.jsonl", "\n".join(json.dumps(line) for line in lines))
        package.writestr("datapackage.json", json.dumps({"profile": "data-package", "wacz_version": "1.1.1"}))
    return path


def shown(page: Any, address: str) -> dict[str, Any]:
    page.goto(address, wait_until="load")
    result: dict[str, Any] = page.evaluate(SHOWN)
    return result


def replayed(page: Any, address: str) -> dict[str, Any]:
    """What the frame of a replay shows, without the banner around it."""
    page.goto(address, wait_until="load")
    frame = page.wait_for_selector("iframe#replay_iframe").content_frame()
    frame.wait_for_load_state("load")
    result: dict[str, Any] = frame.evaluate(SHOWN)
    return result


def test_a_collection_becomes_a_site_that_shows_what_its_replay_shows(tmp_path: Path, page: Any) -> None:
    with pywb_archive(tmp_path / "pywb") as archive:
        del archive  # skips where pywb is not installed
    path = make_wacz(tmp_path)
    out = tmp_path / "site"
    command = [sys.executable, "-m", "recollect", "recover", "--only", str(path), "-o", str(out)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert "address: http://lost.example/" in done.stderr
    report = json.loads((out / "report.json").read_text())
    assert report["by_archive"] == {"collection.wacz": len(report["resources"])}
    outside: list[str] = []
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else outside.append(r.url))
    pages = {
        one["uri"]: (out / one["file"]).resolve() for one in report["resources"] if one["media_type"] == "text/html"
    }
    assert len(pages) >= 10
    seen: dict[str, dict[str, Any]] = {}
    for uri, file in pages.items():
        seen[uri] = shown(page, file.as_uri())
        for link in page.evaluate("() => [...document.links].map(a => a.href)"):
            assert link.startswith("file:"), f"{uri} links to {link}"
            assert Path(unquote(urlsplit(link).path)).exists(), f"{uri} links to {link}"
    assert outside == []
    replay = tmp_path / "replay"
    with pywb_archive(replay, warcs=[tmp_path / "data.warc.gz"]) as archive:
        for uri in list(pages)[:8]:
            told = next(one for one in report["resources"] if one["uri"] == uri)
            stamp = "".join(c for c in told["captured_at"] if c.isdigit())[:14]
            assert replayed(page, f"{archive.base}/web/{stamp}/{uri}") == seen[uri], uri
