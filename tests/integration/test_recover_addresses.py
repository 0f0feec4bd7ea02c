"""A page under its later or other address: gaps filled by rules of the site's own, over real archives (pywb)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pywb_archive import Capture, pywb_archive
from recollect.archives.registry import Archive
from recollect.recovery.options import Options
from recollect.recovery.recover import recover
from recollect.recovery.scope import Scope

START = "http://paper.example/"
SUBJECTS = ["harbour", "bakery", "railway", "orchestra", "lighthouse", "carnival", "library", "glacier"]


def story(n: int, links: str = "", head: str = "") -> bytes:
    subject = SUBJECTS[n % len(SUBJECTS)]
    words = " ".join(
        f"The {subject} of our town, part {part} of {n}, {subject}s and their people." for part in range(9)
    )
    title = f"The {subject} story {n}"
    body = f"<h1>{title}</h1><p>{words}</p>{links}"
    return f"<html><head><title>{title}</title>{head}</head><body>{body}</body></html>".encode()


def front(links: list[tuple[str, str]]) -> bytes:
    anchors = " ".join(f'<a href="{href}">{text}</a>' for href, text in links)
    body = f"<p>News of the town, every week.</p>{anchors}"
    return f"<html><head><title>The Paper</title></head><body>{body}</body></html>".encode()


def moved(source: str, target: str) -> Capture:
    return Capture(f"{START}{source}", "20080301000000", b"", status="301 Moved", headers=(("Location", target),))


def run(tmp_path: Path, captures: list[Capture], **archive: Any) -> dict[str, Any]:
    with pywb_archive(tmp_path / "a", captures) as running:
        listing = archive or {"cdx": running.cdx}
        if archive:
            listing = {"timemap": running.timemap}
        known = Archive(id="one", raw=running.raw, **listing)
        recover(START, tmp_path / "site", archives=[known], options=Options(Scope((START,))))
    report: dict[str, Any] = json.loads((tmp_path / "site/report.json").read_text())
    return report


def newspaper(links: list[tuple[str, str]]) -> list[Capture]:
    """Stories that moved from `/story?id=N` to `/story_N`; archives saw the move of the first four."""
    captures = [
        Capture(START, "20070101000000", front([*((f"story?id={n}", f"Story {n}") for n in range(1, 5)), *links]))
    ]
    captures += [moved(f"story?id={n}", f"{START}story_{n}") for n in range(1, 5)]
    captures += [Capture(f"{START}story_{n}", "20080401000000", story(n)) for n in range(1, 9)]
    return captures


def test_a_story_comes_from_its_later_address_with_the_rule_named(tmp_path: Path) -> None:
    links = [("story?id=7", "The glacier story"), ("story?id=8", "more"), ("story?id=90", "Story 90")]
    report = run(tmp_path, newspaper(links))
    filled = {one["uri"]: one for one in report["found_under"]}
    assert filled.keys() == {f"{START}story?id=7", f"{START}story?id=8"}
    seven = filled[f"{START}story?id=7"]
    assert seven["found_under"] == f"{START}story_7" and seven["rule"] == "/story?id=… = /story_…"
    assert seven["evidence"] == "4 redirects"
    assert [one["uri"] for one in report["missing"]] == [f"{START}story?id=90"]
    assert "2 linked pages were found under another address" in report["sentences"]
    # Nothing new was made: the resource is the one that was archived, under its own address.
    assert {one["uri"] for one in report["resources"]} == {START, *(f"{START}story_{n}" for n in range(1, 9))}
    shown = (tmp_path / "site/report.html").read_text()
    assert "Found under another address" in shown and "/story?id=… = /story_…" in shown
    line = next(line for line in (tmp_path / "site/summary.tsv").read_text().splitlines() if "\tfound under " in line)
    assert f"{START}story?id=7" in line and f"found under {START}story_7 by the rule" in line
    # The link of the front page leads to the file of the other address, and the kit answers the old one.
    page = (tmp_path / "site/paper.example/index.html").read_text()
    hrefs = {text: href for href, text in re.findall(r'<a href="([^"]+)">([^<]+)</a>', page)}
    assert (
        hrefs["The glacier story"].startswith("story_7")
        and "story_7" in (tmp_path / "site/rehost/nginx.conf").read_text().partition("id=7")[2].partition("\n")[0]
    )


def test_a_link_that_names_another_subject_is_not_filled(tmp_path: Path) -> None:
    report = run(tmp_path, newspaper([("story?id=7", "Zeppelins")]))
    assert not report["found_under"] and [one["uri"] for one in report["missing"]] == [f"{START}story?id=7"]


def test_nothing_is_filled_when_two_addresses_of_the_rule_are_different_pages(tmp_path: Path) -> None:
    captures = [*newspaper([("story?id=7", "The glacier story"), ("story?id=6", "Six")])]
    captures.append(Capture(f"{START}story?id=6", "20080101000000", story(60_003)))
    report = run(tmp_path, captures)
    assert not report["found_under"] and [one["uri"] for one in report["missing"]] == [f"{START}story?id=7"]


def test_two_redirects_are_not_enough(tmp_path: Path) -> None:
    captures = [c for c in newspaper([("story?id=7", "The glacier story")]) if c.uri[-4:] not in ("id=3", "id=4")]
    assert not run(tmp_path, captures)["found_under"]


def test_canonical_links_and_equal_bytes_count_and_the_rule_holds_backwards(tmp_path: Path) -> None:
    """The new addresses are linked and not archived, the old ones are."""
    names = ["autumn-fair", "new-roof", "old-mill", "river-walk", "summer-play"]
    head = '<link rel="canonical" href="/news/{}/">'
    captures = [Capture(START, "20100101000000", front([(f"news/{name}/", name.replace("-", " ")) for name in names]))]
    for n, name in enumerate(names):
        body = story(n, links=f"<p>{name.replace('-', ' ')}</p>", head=head.format(name) if n < 2 else "")
        captures.append(Capture(f"{START}{name}.shtml", "20090101000000", body))
        if n in (0, 2):
            captures.append(Capture(f"{START}news/{name}/", "20100101000000", body))
    report = run(tmp_path, captures)
    assert {one["uri"] for one in report["found_under"]} == {f"{START}news/{names[n]}/" for n in (1, 3, 4)}
    evidence = {"2 canonical links, 2 pages with equal bytes, 2 pages with equal titles"}
    assert {one["evidence"] for one in report["found_under"]} == evidence


def test_an_archive_without_a_listing_is_asked_for_the_other_address(tmp_path: Path) -> None:
    links = [("story?id=7", "The glacier story"), ("story?id=90", "Ninety")]
    report = run(tmp_path, newspaper(links), timemap=True)
    assert [one["found_under"] for one in report["found_under"]] == [f"{START}story_7"]
    assert [one["uri"] for one in report["missing"]] == [f"{START}story?id=90"]  # and no address of a rule


def test_a_later_run_takes_the_address_itself_once_it_is_archived(tmp_path: Path) -> None:
    captures = newspaper([("story?id=7", "The glacier story")])
    assert run(tmp_path, captures)["found_under"]
    captures.append(Capture(f"{START}story?id=7", "20070601000000", story(7)))
    with pywb_archive(tmp_path / "b", captures) as running:
        recover(START, tmp_path / "site", archives=[Archive(id="one", cdx=running.cdx, raw=running.raw)])
    report = json.loads((tmp_path / "site/report.json").read_text())
    assert not report["found_under"] and not report["missing"]
    assert f"{START}story?id=7" in {one["uri"] for one in report["resources"]}
