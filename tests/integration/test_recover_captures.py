"""Every capture of a site in WARC and WACZ, and the site as of a day, over real archives (pywb)."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from pywb_archive import Capture, PywbArchive, pywb_archive, pywb_archives

START = "http://club.example/"
YEARS = ("2004", "2006", "2008", "2010")


def page(year: str, body: str = "") -> bytes:
    words = f"The rowing club of the lake in the year {year}: races, boats and members, news and results. " * 5
    links = '<link rel="stylesheet" href="/look.css"><a href="/boats.html">boats</a>'
    return f"<html><head><title>Rowing club</title>{links}</head><body><p>{words}{body}</p></body></html>".encode()


def shots() -> list[Capture]:
    """A front page that changes each time, a page with the same bytes for years, a stylesheet with two states."""
    boats = page("all years", "Our boats.")
    found = [Capture(START, f"{year}0601000000", page(year)) for year in YEARS]
    found += [Capture(f"{START}boats.html", f"{year}0701000000", boats) for year in YEARS]
    found += [
        Capture(f"{START}look.css", f"{year}0601000000", f"p {{ color: #{year} }}".encode(), "text/css")
        for year in (YEARS[0], YEARS[0][:3] + "5", YEARS[3])
    ]
    found.append(Capture(f"{START}boats.html", "20090701000000", b"<h1>Not found</h1>", status="404 Not Found"))
    return found


def run(tmp_path: Path, archives: list[PywbArchive], *arguments: str, out: str = "site") -> dict[str, Any]:
    entries = [{"id": f"a{n}", "cdx": one.cdx, "raw": one.raw} for n, one in enumerate(archives)]
    (tmp_path / "archives.json").write_text(json.dumps(entries))
    where = [START, "-o", str(tmp_path / out)] if "--resume" not in arguments else []
    command = [sys.executable, "-m", "recollect", "recover", *where, "--archives", str(tmp_path / "archives.json")]
    done = subprocess.run([*command, "--yes", *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads((tmp_path / out / "report.json").read_text())
    return report


def records(path: Path) -> list[tuple[str, str, str]]:
    """(kind, address, moment) of each record."""
    with path.open("rb") as file:
        headers = [(record.rec_type, record.rec_headers) for record in ArchiveIterator(file)]
    return [(kind, h["WARC-Target-URI"], h["WARC-Date"]) for kind, h in headers if kind != "warcinfo"]


@pytest.mark.parametrize("how", ["all", "unique"])
def test_every_capture_is_in_the_warc_and_the_wacz_replays_each_of_them(tmp_path: Path, how: str) -> None:
    wanted = [c for c in shots() if c.status == "200 OK"]
    with pywb_archives([(tmp_path / "a", shots(), ()), (tmp_path / "b", shots()[:3], ())]) as archives:
        chosen = ["--all-captures"] if how == "all" else ["--all-captures", "unique"]
        report = run(tmp_path, archives, *chosen)
    if how == "unique":
        seen: dict[bytes, Capture] = {}
        for capture in wanted:
            seen[capture.body] = capture  # the newest of equal bytes is the one of the site
        wanted = list(seen.values())
    found = records(tmp_path / "site/recovered.warc.gz")
    assert sorted((uri, at.replace("-", "").replace(":", "")[:8]) for _, uri, at in found) == sorted(
        (c.uri, c.timestamp[:8]) for c in wanted
    )
    assert sum(kind == "revisit" for kind, _, _ in found) == (3 if how == "all" else 0)
    assert report["all_captures"] == {"kept": len(wanted) - 3, "left_out": {}}
    # Equal bytes cost one request: one list from each archive, and one request for each content.
    assert report["totals"]["requests"] <= 2 * 2 + 8
    with pywb_archive(tmp_path / "again", warcs=[tmp_path / "site/recovered.wacz"]) as replayed:
        for capture in wanted:
            address = f"{replayed.base}/{replayed.collection}/{capture.timestamp}id_/{capture.uri}"
            with urllib.request.urlopen(address, timeout=30) as answer:
                assert answer.read() == capture.body


def test_each_resource_has_a_page_of_its_captures(tmp_path: Path) -> None:
    with pywb_archive(tmp_path / "a", shots()) as archive:
        run(tmp_path, [archive])
        assert not (tmp_path / "site/captures").exists()
        run(tmp_path, [archive], "--resume", str(tmp_path / "site"), "--all-captures")
    listed = (tmp_path / "site/captures/index.html").read_text()
    links = [part.partition('"')[0] for part in listed.split('<a href="')[1:]]
    assert len(links) == 3 and all((tmp_path / "site/captures" / link).is_file() for link in links)
    boats = next(link for link in links if "boats" in link)
    text = (tmp_path / "site/captures" / boats).read_text()
    assert [year for year in YEARS if f">{year}-07-01 " in text] == list(YEARS) and "2009-07-01" not in text
    assert text.count("the same") == 3 and "changed" not in text.partition("<tbody>")[2]
    assert "captures/index.html" in (tmp_path / "site/START-HERE.html").read_text()


def test_the_site_as_of_a_day_is_coherent_and_tells_distances(tmp_path: Path) -> None:
    with pywb_archive(tmp_path / "a", shots()) as archive:
        report = run(tmp_path, [archive], "--at", "2005-05-01")
    at = {one["uri"]: (one["captured_at"][:10], one["days_from_at"]) for one in report["resources"]}
    # Of the front page 2004 and 2006 are 334 and 396 days away; its stylesheet is of the day of the page, not of --at.
    assert at == {
        START: ("2004-06-01", -334),
        f"{START}boats.html": ("2004-07-01", -304),
        f"{START}look.css": ("2004-06-01", -334),
    }
