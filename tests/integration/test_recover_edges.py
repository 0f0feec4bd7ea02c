"""Thumbnails, forbidding robots, archives without a front page, questions on a terminal, the end in a survey."""

from __future__ import annotations

import json
import os
import pty
import random
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fake_archive import Fake, served
from loopback import Request, answer
from recollect.recovery.options import Options
from recollect.recovery.recover import recover, survey_site
from recollect.recovery.scope import Scope
from recollect.recovery.verdicts import Verdict

START = "http://lost.example/"
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(random.Random(1).randbytes(12_000))
THUMBNAIL = b"\x89PNG\r\n\x1a\n123"


class Vague(Fake):
    """A list without lengths."""

    def rows(self, uri: str, match: str) -> list[dict[str, str]]:
        return [row | {"length": "-"} for row in super().rows(uri, match)]


def report(folder: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return value


@pytest.mark.parametrize("lengths", [True, False], ids=["listed", "not-listed"])
@pytest.mark.parametrize("given", [True, False], ids=["original-given", "original-refused"])
def test_a_thumbnail_never_beats_the_original_and_is_marked_when_alone(
    tmp_path: Path, lengths: bool, given: bool
) -> None:
    whole, small = Fake(), Fake() if lengths else Vague()
    whole.add("/", "<title>Home</title><p>Our house.</p><img src='/house.png'>")
    whole.add("/house.png", PICTURE, "20070101000000", "image/png")
    small.add("/house.png", THUMBNAIL, "20100101000000", "image/png")
    if not given:
        whole.overrides["id_/http://lost.example/house.png"] = lambda _request: answer(b"no", "403 Forbidden")
    with served(whole, id="whole") as one, served(small, id="small") as two:
        done = recover(START, tmp_path / "out", archives=[one, two])
    assert done.report is not None
    picture = next(r for r in done.report.resources if r.uri.endswith("house.png"))
    assert (picture.archive, picture.altered) == (("whole", False) if given else ("small", True))
    if not lengths and given:
        from recollect.recovery.journal import Journal
        from recollect.recovery.store import Store

        with Store.open(tmp_path / "out") as store:
            assert [a.verdict for a in Journal(store).attempts(picture.key)] == [Verdict.REDUCED]


class Live(Fake):
    """A live site, and an archive of its front page."""

    robots = "User-agent: *\nDisallow: /private/\n"

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def reply(self, request: Request) -> bytes:
        if request.path.startswith(("/cdx", "/web/")):
            return super().reply(request)
        self.asked.append(request.path)
        if request.path == "/robots.txt":
            return answer(self.robots.encode(), Content_Type="text/plain")
        return answer(f"<title>Live</title><p>{request.path} is live.</p>".encode(), Content_Type="text/html")


@pytest.mark.parametrize(
    ("robots", "expected"),
    [("User-agent: *\nDisallow: /private/\n", {"/public.html"}), ("User-agent: *\nDisallow: /\n", set())],
    ids=["a-part", "everything"],
)
def test_the_live_web_is_asked_within_its_robots_txt(tmp_path: Path, robots: str, expected: set[str]) -> None:
    live = Live()
    live.robots = robots
    with served(live) as archive:
        start = archive.cdx.removesuffix("cdx")
        links = "<a href='/private/a.html'>a</a><a href='/public.html'>b</a>"
        live.add(start, f"<title>Home</title><p>Hello.</p>{links}")
        options = Options(Scope((start,)), live_fallback=True)
        done = recover(start, tmp_path / "out", archives=[archive], options=options)
    assert done.report is not None
    assert {r.uri.removeprefix(start[:-1]) for r in done.report.resources if r.live} == expected
    assert not [path for path in live.asked if path.startswith("/private/")]
    assert live.asked.count("/robots.txt") == 1
    assert "/private/a.html" in {m.uri.removeprefix(start[:-1]) for m in done.report.missing}


class TimeMapsOnly(Fake):
    """An archive without a listing."""

    def reply(self, request: Request) -> bytes:
        uri = request.path.removeprefix("/timemap/")
        if uri == request.path:
            return super().reply(request)
        rows = [stamp for own, stamp in self.pages if own == uri]
        if not rows:
            return answer(b"none", "404 Not Found")
        memento = f'<{self.base}/web/{rows[0]}id_/{uri}>; rel="memento"; datetime="Fri, 01 Jan 2010 00:00:00 GMT"'
        text = f'<{uri}>; rel="original",\n{memento}\n'
        return answer(text.encode(), Content_Type="application/link-format")

    base = ""


def test_an_archive_of_timemaps_without_the_front_page_is_asked_for_other_pages(tmp_path: Path) -> None:
    listed, other = Fake(), TimeMapsOnly()
    listed.add("/", "<title>Home</title><p>Hi.</p>" + "".join(f"<a href='/{n}.html'>{n}</a>" for n in range(30)))
    for n in range(20, 30):
        listed.add(f"/{n}.html", f"<title>{n}</title><p>Page number {n} of the site.</p>")
    for n in range(3):
        other.add(f"/{n}.html", f"<title>{n}</title><p>Page number {n} of the site.</p>")
    empty = TimeMapsOnly()
    with served(listed, id="listed") as one, served(other, id="other") as two, served(empty, id="empty") as three:
        other.base, empty.base = (a.cdx.removesuffix("/cdx") for a in (two, three))
        from dataclasses import replace

        bare = [replace(a, cdx="", timemap=a.cdx.replace("/cdx", "/timemap/")) for a in (two, three)]
        done = recover(START, tmp_path / "out", archives=[one, *bare])
    assert done.report is not None
    assert {r.uri for r in done.report.resources if r.archive == "other"} == {f"{START}{n}.html" for n in range(3)}
    # An archive that holds nothing is left alone after a few pages, in all their spellings.
    assert len(empty.times) < len(other.times), (len(empty.times), len(other.times))


def test_the_last_good_capture_of_a_survey_is_the_owners(tmp_path: Path) -> None:
    fake = Fake()
    chapters = [f"chapter{n}.html" for n in range(12)]
    menu = "".join(f"<a href='/{name}'>{name}</a>" for name in chapters)
    words = "The manual of the weather station: sensors, wiring, calibration, storage and the monthly reading. " * 4
    for month in ("03", "06", "09"):
        fake.add(
            "/", f"<title>Weather station manual</title>{menu}<p>{words} Edition {month}.</p>", f"2012{month}01000000"
        )
    for name in chapters:
        fake.add(f"/{name}", f"<title>{name}</title>{menu}<p>{words}{name}</p>", "20120901000000")
    goods = [f"shoes-{n}.php" for n in range(8)]
    shop = "".join(f"<a href='/{name}'>buy</a>" for name in goods)
    text = "Running trainers, boots and sandals at outlet prices with free delivery this weekend, order yours now. " * 4
    fake.add("/", f"<title>Outlet of trainers</title>{shop}<p>{text}</p>", "20190501000000")
    for name in goods:
        fake.add(f"/{name}", f"<title>{name} outlet</title>{shop}<p>{text}{name}</p>", "20190601000000")
    with served(fake) as archive:
        found = survey_site(START, archives=[archive])
    assert found.last_good is not None and found.last_good.year == 2012
    assert [period.owner for period in found.ownership] == ["own", "other"]


def on_terminal(command: list[str], answers: dict[str, str], seconds: float = 60) -> tuple[int, str]:
    """Run a command on a terminal of its own; each answer is typed when its question was shown."""
    parent, child = pty.openpty()
    process = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, close_fds=True)
    os.close(child)
    shown, waiting, end = "", dict(answers), time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([parent], [], [], 0.2)[0]:
            try:
                part = os.read(parent, 4096)
            except OSError:
                break
            if not part:
                break
            shown += part.decode("utf-8", "replace")
        for question in [question for question in waiting if question in shown]:
            os.write(parent, f"{waiting.pop(question)}\n".encode())
    os.close(parent)
    return process.wait(10), shown


@pytest.mark.parametrize(("choice", "pages"), [("all", 12), ("linked", 2), ("nothing", 0)])
def test_before_a_run_above_a_quota_a_person_chooses_how_much(tmp_path: Path, choice: str, pages: int) -> None:
    fake = Fake()
    fake.add("/", "<title>Farewell</title><p>Good bye to all of you.</p><a href='/t.html'>Thanks</a>", "20150101000000")
    fake.add("/t.html", "<title>Thanks</title><p>Thank you for all the letters.</p>", "20150101000000")
    for n in range(10):
        words = f"An old page of the choir, number {n}, about concerts, songs and the people who sang them. " * 4
        fake.add(f"/old{n}.html", f"<title>Old {n}</title><p>{words}</p>", "20050101000000")
    with served(fake) as archive:
        entry = [{"id": "fake", "cdx": archive.cdx, "raw": archive.raw}]
        (tmp_path / "archives.json").write_text(json.dumps(entry))
        command = [sys.executable, "-m", "recollect", "recover", START, "-o", str(tmp_path / "site"), "--quota", "5/1s"]
        command += ["--archives", str(tmp_path / "archives.json"), "--wait"]
        code, shown = on_terminal(command, {"Recover all, linked, or nothing?": choice})
    assert "all that archives list: about" in shown and "more than one period of the quota" in shown
    if choice == "nothing":
        assert not (tmp_path / "site/report.json").exists() and code == 3
    else:
        assert report(tmp_path / "site")["totals"]["pages"] == pages


def test_review_on_a_terminal_asks_page_by_page(tmp_path: Path) -> None:
    fake = Fake()
    fake.add("/", "<title>Home</title><p>Hello.</p><a href='/a.html'>a</a><a href='/b.html'>b</a>")
    for name in ("a", "b"):
        fake.add(f"/{name}.html", f"<title>Club</title><p>Sorry, the page {name} does not exist.</p>")
    with served(fake) as archive:
        recover(START, tmp_path / "site", archives=[archive])
    before = report(tmp_path / "site")
    assert len(before["suspects"]) == 2
    command = [sys.executable, "-m", "recollect", "review", str(tmp_path / "site")]
    _, shown = on_terminal(command, {"a.html": "m", "b.html": "n"})
    assert "a.html" in shown, shown
    after = report(tmp_path / "site")
    assert len(after["suspects"]) < 2, shown
