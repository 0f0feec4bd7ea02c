"""All that survives comes back and is counted honestly: stories over real archives (pywb)."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from archive_gate import gate
from pywb_archive import Capture, PywbArchive, pywb_archive, pywb_archives

START = "http://gone.example/"


def page(title: str, *links: str) -> bytes:
    anchors = " ".join(f'<a href="{link}">{link}</a>' for link in links)
    words = f"{title} is a page about the choir, its concerts and the people who sing in it every week. " * 4
    return (
        f"<html><head><title>{title}</title></head><body><h1>{title}</h1><p>{words}</p>{anchors}</body></html>".encode()
    )


def registry(folder: Path, entries: Sequence[dict[str, Any]]) -> str:
    path = folder / "archives.json"
    path.write_text(json.dumps(list(entries)))
    return str(path)


def entry(archive: PywbArchive, name: str = "one") -> dict[str, Any]:
    return {"id": name, "name": name.title(), "cdx": archive.cdx, "raw": archive.raw, "timemap": archive.timemap}


def recover(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "recollect", "recover", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def farewell() -> list[Capture]:
    """A newest front page with one link, and forty older posts that only archives list."""
    posts = [
        Capture(f"{START}posts/{2004 + n % 3}/{n}.html", f"{2004 + n % 3}0601000000", page(f"Post {n}"))
        for n in range(40)
    ]
    return [
        Capture(START, "20090101000000", page("Farewell", "thanks.html")),
        Capture(f"{START}thanks.html", "20090101000000", page("Thanks", "/", "guestbook.html")),
        *posts,
    ]


def test_older_posts_come_back_and_have_a_page_of_their_own(tmp_path: Path) -> None:
    with pywb_archive(tmp_path / "a", farewell()) as archive:
        listed = registry(tmp_path, [entry(archive)])
        done = recover(START, "-o", str(tmp_path / "site"), "--archives", listed)
    report = json.loads((tmp_path / "site/report.json").read_text())
    assert report["figures"]["listed"] == report["figures"]["listed_back"] == 42
    assert report["figures"]["unlinked_pages"] == 40 and report["figures"]["never_saved_pages"] == 1
    said = done.stderr
    assert "all 42 addresses that archives list came back; 1 linked page was never saved" in said
    assert "also found: 40 older pages, not linked from the newest front page" in said
    assert "100%" not in said and "Your site is back" not in said
    for place in (tmp_path / "site", tmp_path / "site/rehost/public/_recollect"):
        text = (place / "also-found.html").read_text()
        assert "Pages of 2004" in text and "Pages of 2006" in text and "gone.example/posts/2005/" in text
        links = [part.partition('"')[0] for part in text.split('href="')[1:]]
        assert len(links) == 40 and all((place / link).is_file() for link in links)
    page_text = (tmp_path / "site/report.html").read_text()
    assert "all 42 addresses" in page_text and "also-found.html" in page_text and "100%" not in page_text


def test_linked_resources_come_first_then_listed_pages_then_listed_files(tmp_path: Path) -> None:
    captures = [*farewell(), Capture(f"{START}aaa.zip", "20050101000000", b"PK data", "application/zip")]
    with pywb_archive(tmp_path / "a", captures) as archive:
        listed = registry(tmp_path, [entry(archive)])
        log = tmp_path / "log"
        recover(START, "-o", str(tmp_path / "site"), "--archives", listed, "--log", str(log), "--quota", "5000")
    order = [json.loads(line)["uri"] for line in log.read_text().splitlines()]
    assert order[0] == START and set(order[1:3]) == {f"{START}thanks.html", f"{START}guestbook.html"}
    assert order[-1] == f"{START}aaa.zip" and len(order) == 44


def test_the_knowledgeable_policy_says_how_much_it_leaves(tmp_path: Path) -> None:
    with pywb_archive(tmp_path / "a", farewell()) as archive:
        listed = registry(tmp_path, [entry(archive)])
        done = recover(START, "-o", str(tmp_path / "site"), "--archives", listed, "--policy", "knowledgeable")
    assert "4% of 42 addresses that archives list; 1 linked page was never saved" in done.stderr
    assert "40 more are listed, but no link leads there; --policy exhaustive" in done.stderr
    assert "A part of your site is back" in done.stderr


def two_halves() -> tuple[list[Capture], list[Capture]]:
    """A site of which one archive holds the first pages, another one the rest."""
    names = [f"{n}.html" for n in range(8)]
    front = Capture(START, "20090101000000", page("Home", *names))
    pages = [Capture(f"{START}{name}", "20090101000000", page(name)) for name in names]
    return [front, *pages[:4]], pages[4:]


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        ("refuses its list", "two refused; what it lists is not known"),
        ("fails to list", "two failed; what it lists is not known"),
        ("is silent", "two did not answer in time; what it lists is not known"),
        ("refuses captures", "two refused; it lists 4 addresses of this site; 4 of them are not back"),
        ("lists what it does not have", "two does not have all that it lists; it lists 4 addresses"),
    ],
)
def test_an_archive_that_fails_is_named_and_a_rerun_asks_only_it(tmp_path: Path, failure: str, words: str) -> None:
    first, second = two_halves()
    with (
        pywb_archives([(tmp_path / "a", first, ()), (tmp_path / "b", second, ())]) as running,
        gate(running[0]) as one,
        gate(running[1]) as two,
    ):
        match failure:
            case "refuses its list":
                two.refuse("/", 429)
            case "fails to list":
                two.refuse("/", 500)
            case "is silent":
                two.silence("/")
            case "refuses captures":
                two.refuse("id_/", 403)
            case "lists what it does not have":
                two.refuse("id_/", 404)
        listed = registry(tmp_path, [entry(one.archive, "one"), entry(two.archive, "two")])
        out = str(tmp_path / "my site")
        done = recover(START, "-o", out, "--archives", listed, "--patience", "1s", code=BLOCKED_CODE.get(failure, 3))
        assert words in done.stderr, done.stderr
        assert "Your site is back" not in done.stderr and "100%" not in done.stderr
        line = next(line for line in done.stderr.splitlines() if line.startswith("two ") and ": recollect " in line)
        command = line.partition(": recollect ")[2]
        one.open()
        two.open()
        again = recover(*shlex.split(command)[1:], code=0)
        assert one.requests == [] and two.requests != []
        assert "Your site is back" in again.stderr and "100% of 9 addresses that archives list" in again.stderr
        two.open()
        last = recover("--resume", out)
        assert one.requests == [] and two.requests == [] and "Your site is back" in last.stderr


BLOCKED_CODE = {"refuses captures": 0}  # nothing more can be recovered by itself: the archive does not give it out


def test_a_resumed_recovery_applies_an_option_or_refuses_it_by_name(tmp_path: Path) -> None:
    with pywb_archive(tmp_path / "a", farewell()) as archive:
        listed = registry(tmp_path, [entry(archive)])
        out = str(tmp_path / "site")
        recover(START, "-o", out, "--archives", listed, "--policy", "knowledgeable")
        refused = recover("--resume", out, "--at", "2005-01-01", "--scope", "host", code=2)
        assert "--scope, --at cannot change in a resumed recovery" in refused.stderr
        done = recover("--resume", out, "--policy", "exhaustive")
        assert "also found: 40 older pages" in done.stderr
        again = recover("http://www.gone.example/", "-o", out, "--archives", listed)  # one site, one folder
        assert "all 42 addresses" in again.stderr


def spelled() -> list[Capture]:
    """A site whose links are in other spellings than its captures."""
    links = ("news/index.html", "about", "%7Ejoe/", "Photos/Cat.html", "list?PHPSESSID=abc&n=1", "/story/deep.html")
    at = "20090101000000"
    return [
        Capture(START, at, page("Home", *links)),
        Capture(f"{START}news/", at, page("News")),
        Capture(f"{START}about/", at, page("About", "team.html")),
        Capture(f"{START}about/team.html", at, page("Team")),
        Capture(f"{START}~joe/index.htm", at, page("Joe")),
        Capture(f"{START}photos/cat.html", at, page("Cat")),
        Capture(f"{START}list?n=1", at, page("List")),
        Capture(f"{START}story/deep.html", at, page("Deep")),
    ]


@pytest.mark.parametrize("interface", ["timemap", "timegate"])
def test_an_archive_without_a_listing_is_asked_in_other_spellings(tmp_path: Path, interface: str) -> None:
    """Relative links resolve against the address that the archive holds: `team.html` is below `/about/`."""
    with pywb_archive(tmp_path / "a", spelled()) as archive:
        listed = registry(tmp_path, [{"id": "only", interface: getattr(archive, interface)}])
        done = recover(START, "-o", str(tmp_path / "site"), "--archives", listed)
    report = json.loads((tmp_path / "site/report.json").read_text())
    addresses = {resource["uri"].removeprefix("http://gone.example") for resource in report["resources"]}
    assert len(addresses) == 8 and {"/about/", "/about/team.html", "/news/"} <= addresses, done.stderr
    assert report["missing"] == [] and "never saved" not in done.stderr
    assert "All that is linked came back; no archive gave a list" in done.stderr  # more may be held, and is not known
    home = (tmp_path / "site/gone.example/index.html").read_text()
    assert "not-recovered" not in home


def test_a_rendering_is_offered_for_review_and_a_thumbnail_never_beats_the_original(tmp_path: Path) -> None:
    names = ["paper.pdf", "notes.doc", "gone.ps", "logo.png", "only.png"]
    front = Capture(START, "20090101000000", page("Home", *names))
    rendering = page("Notes of the choir").replace(b"<h1>", b"<h1>Version of the file: ")
    error = b"<title>Page not found</title><p>Sorry, the page was not found. " + b"Menu of the site. " * 20
    original = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 47
    canonical = [
        front,
        Capture(f"{START}paper.pdf", "20080101000000", b"%PDF-1.4 the paper", "application/pdf"),
        Capture(f"{START}logo.png", "20080101000000", original, "image/png"),
    ]
    cache = [
        front,
        Capture(f"{START}paper.pdf", "20090301000000", rendering),
        Capture(f"{START}notes.doc", "20090301000000", rendering.replace(b"Notes", b"Other notes")),
        Capture(f"{START}gone.ps", "20090301000000", error),
        Capture(f"{START}logo.png", "20090301000000", b"\x89PNG\r\n\x1a\n.." + b"x", "image/png"),
        Capture(f"{START}only.png", "20090301000000", b"\x89PNG\r\n\x1a\n" + b"y" * 90, "image/png"),
    ]
    with pywb_archives([(tmp_path / "a", canonical, ()), (tmp_path / "b", cache, ())]) as (one, two):
        other = entry(two, "two") | {"altered": ["image/*", "application/pdf"]}
        no_listing = {"id": "two", "name": "Two", "timemap": two.timemap, "raw": two.raw}
        reports = []
        for n, second in enumerate((entry(two, "two"), other, no_listing)):
            listed = registry(tmp_path, [entry(one), second])
            recover(START, "-o", str(tmp_path / f"site{n}"), "--archives", listed)
            reports.append(json.loads((tmp_path / f"site{n}/report.json").read_text()))
    for report in reports:
        back = {r["uri"].removeprefix(START): r for r in report["resources"]}
        assert back["paper.pdf"]["media_type"] == "application/pdf" and not back["paper.pdf"]["altered"]
        assert back["logo.png"]["length"] == len(original) and not back["logo.png"]["altered"]
        assert back["notes.doc"]["suspect"] == "rendering" and back["notes.doc"]["altered"]
        assert "gone.ps" not in back and "only.png" in back
    altered = {r["uri"].removeprefix(START): r["altered"] for r in reports[1]["resources"]}
    assert altered["only.png"] and not altered["paper.pdf"]


def test_a_site_as_of_a_day_says_how_far_each_resource_is_from_it(tmp_path: Path) -> None:
    linked = page("Home", "a.html", "b.html").replace(b"<h1>", b'<img src="i.png"><h1>')
    captures = [
        Capture(START, "20120430120000", linked),
        Capture(START, "20140101000000", linked.replace(b"Home", b"Later home")),
        Capture(f"{START}i.png", "20120429000000", b"\x89PNG\r\n\x1a\n" + b"1" * 90, "image/png"),
        Capture(f"{START}i.png", "20120502000000", b"\x89PNG\r\n\x1a\n" + b"2" * 90, "image/png"),
        Capture(f"{START}a.html", "20120501220000", page("A")),
        Capture(f"{START}a.html", "20140101000000", page("A, later")),
        Capture(f"{START}b.html", "20130505000000", page("B")),
    ]
    with pywb_archive(tmp_path / "a", captures) as archive:
        listed = registry(tmp_path, [entry(archive)])
        done = recover(START, "-o", str(tmp_path / "site"), "--archives", listed, "--at", "2012-05-01")
    report = json.loads((tmp_path / "site/report.json").read_text())
    days = {r["uri"].removeprefix(START): r["days_from_at"] for r in report["resources"]}
    # The image is that of its page, not the nearest to the day.
    assert report["at"].startswith("2012-05-01") and days == {"": -1, "i.png": -2, "a.html": 0, "b.html": 369}
    assert {name: n for name, n in report["distances"].items() if n} == {"same day": 1, "same week": 2, "further": 1}
    assert "the site on 2012-05-01; captured in the: same day 1, same week 2, further 1" in done.stderr
    rows = [line.split("\t") for line in (tmp_path / "site/summary.tsv").read_text().splitlines()]
    assert {row[1].removeprefix(START): row[7] for row in rows}["b.html"] == "+369 days"
    text = (tmp_path / "site/report.html").read_text()
    assert "The site on 2012-05-01" in text and "Furthest from the day" in text
