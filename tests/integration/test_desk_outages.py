"""Archives that are down, slow or refuse, and come back: a desk waits, says so, and completes what it delivered."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from desk_world import RunningDesk, running_desk, until
from fake_archive import Fake, served, site
from loopback import Request, answer

pytestmark = pytest.mark.xdist_group("desk-outages")
QUICK = {"RECOLLECT_DESK_PICTURES": "0", "RECOLLECT_DESK_HEARTBEAT": "1"}


class Moody(Fake):
    """An archive with moods: up, down (503), refusing (429 with Retry-After), slow (seconds for each answer)."""

    mood = "up"
    slowness = 0.0

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(self.slowness)
        if self.mood == "down":
            writer.write(answer(b"", "503 Service Unavailable"))
        elif self.mood == "refusing":
            writer.write(answer(b"", "429 Too Many Requests", Retry_After="3600"))
        else:
            await super().__call__(request, writer)


def moody(*paths: str) -> Moody:
    made = Moody()
    made.pages, made.types = (plain := site(*paths)).pages, plain.types
    for path in paths:
        made.add(path, f"<title>{path}</title><p>The page {path}, with words of its own.</p>")
    return made


@contextlib.contextmanager
def desk_of(tmp_path: Path, **archives: Moody) -> Iterator[RunningDesk]:
    with contextlib.ExitStack() as stack:
        listed = []
        for name, fake in archives.items():
            archive = stack.enter_context(served(fake))
            entry = {"id": name, "name": f"The {name} archive", "cdx": archive.cdx, "raw": archive.raw}
            listed.append(entry)
        path = tmp_path / "archives.json"
        path.write_text(json.dumps(listed))
        yield stack.enter_context(running_desk(tmp_path / "desk", path, **QUICK))


def sooner(desk: RunningDesk, column: str, seconds: float) -> None:
    """Let what is planned for later be due."""
    with contextlib.closing(sqlite3.connect(desk.folder / "desk.sqlite", timeout=30)) as db, db:
        db.execute(f"UPDATE job SET {column} = {column} - ? WHERE {column} IS NOT NULL", (seconds,))


def survey(desk: RunningDesk, uri: str = "http://lost.example/") -> tuple[int, str]:
    page = ""
    status = 0

    def look() -> bool:
        nonlocal page, status
        reply = desk.ask("GET", f"/survey?uri={uri}")
        page, status = reply.text, reply.status
        return "Asking the archives" not in page

    until(look, 60)
    return status, page


def test_an_outage_of_all_archives_is_not_nothing_and_is_asked_again(tmp_path: Path) -> None:
    one, two = moody("/a.html"), moody("/b.html")
    one.mood = two.mood = "down"
    with desk_of(tmp_path, north=one, south=two) as desk:
        status, page = survey(desk)
        assert status == 503 and "list nothing" not in page and "Nothing found" not in page
        assert "The north archive and The south archive did not answer" in page and "We ask again at" in page
        job = desk.queue("http://lost.example/")
        reply = desk.wait(job, "waiting")
        assert {a["name"] for a in reply["outages"]} == {"The north archive", "The south archive"}
        words = desk.ask("GET", f"/jobs/{job.id}?token={job.token}").text
        assert "The archives did not answer" in words and "We try again at" in words and "write to you" in words
        one.mood = two.mood = "up"
        with contextlib.closing(sqlite3.connect(desk.folder / "desk.sqlite", timeout=30)) as db, db:
            db.execute("UPDATE listing SET created = created - 400")
        status, page = survey(desk)
        assert status == 200 and "did not answer" not in page, "an outage is not an answer for the next who asks"
        sooner(desk, "resume_at", 3600)
        assert desk.wait(job, "ready")["summary"]["pages"] == 3
        assert desk.mail("op@mail.example", "lost.example")


def test_a_half_answer_is_delivered_named_and_completed_when_the_archive_is_back(tmp_path: Path) -> None:
    one, two = moody("/a.html", "/b.html"), Moody()
    two.add("/b.html", "<title>b</title><p>Only the other archive holds this page.</p>")
    two.add("/c.html", "<title>c</title><p>And this one.</p>")
    del one.pages["http://lost.example/b.html", "20100101000000"]
    two.mood = "down"
    with desk_of(tmp_path, north=one, south=two) as desk:
        status, page = survey(desk)
        assert status == 200 and "The south archive did not answer" in page
        job = desk.submit("http://lost.example/", "half@mail.example")
        desk.confirm(job)
        reply = desk.wait(job, "ready")
        assert reply["summary"]["pages"] == 2
        assert [a["name"] for a in reply["outages"]] == ["The south archive"] and reply["retry_at"] > time.time()
        page = desk.ask("GET", f"/jobs/{job.id}?token={job.token}").text
        assert "The south archive did not answer" in page and "We try again at" in page
        other = desk.submit("http://lost.example/", "next@mail.example")
        assert other.id != job.id, "the next person does not inherit the half result"
        two.mood = "up"
        sooner(desk, "retry_at", 3600)
        until(lambda: desk.show(job)["summary"]["pages"] >= 3, 60, lambda: str(desk.show(job)))
        reply = desk.show(job)
        assert reply["state"] == "ready" and reply["outages"] == [] and reply["retry_at"] is None
        assert "is back" in desk.mail("half@mail.example", "More has turned up").get_content()
        body = desk.ask("GET", reply["result"]["zip"]).body
        assert body[:2] == b"PK" and len(body) == reply["result"]["files"]["result.zip"]["size"]
        assert desk.operator("GET", "/api/statistics").json["completed"] == 1


def test_an_archive_that_takes_ten_seconds_for_an_answer_is_listed(tmp_path: Path) -> None:
    slow = moody("/a.html")
    slow.slowness = 10.0
    with desk_of(tmp_path, slow=slow) as desk:
        status, page = survey(desk)
        assert status == 200 and "did not answer" not in page and "pages and files may come back" in page


def test_a_refusing_archive_does_not_hold_what_is_complete(tmp_path: Path) -> None:
    one, two = moody(*(f"/{number}.html" for number in range(11))), Moody()
    two.mood = "refusing"
    with desk_of(tmp_path, north=one, south=two) as desk:
        job = desk.queue("http://lost.example/")
        reply = desk.wait(job, "ready", "waiting")
        assert reply["state"] == "ready" and reply["summary"]["pages"] == 12
        assert [a["name"] for a in reply["outages"]] == ["The south archive"] and reply["retry_at"]
