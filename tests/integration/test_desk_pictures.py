"""Pictures, previews and the report of a result on the desk: they show the recovered site, and reach nothing else."""

from __future__ import annotations

import json
import re
import struct
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from desk_world import Job, RunningDesk, running_desk, until
from fake_archive import served, site
from recollect.desk.pictures import chromium, thumbnails

pytestmark = pytest.mark.xdist_group("desk-pictures")
needs_chromium = pytest.mark.skipif(chromium() is None, reason="Chromium is missing")
RED = (200, 30, 30)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningDesk, Job]]:
    folder = tmp_path_factory.mktemp("pictures")
    fake = site("/a.html")
    fake.add("/", "<title>Home</title><link rel=stylesheet href=/s.css><p>Hello.</p><a href=/a.html>a</a>")
    fake.add("/a.html", "<title>A</title><p>Page A.</p>")
    fake.add("/s.css", "body { background: rgb(200, 30, 30) }", media_type="text/css")
    with served(fake) as archive:
        path = folder / "archives.json"
        path.write_text(json.dumps([{"id": "one", "cdx": archive.cdx, "raw": archive.raw}]))
        with running_desk(folder / "desk", path, RECOLLECT_DESK_PICTURES="1") as desk:
            job = desk.queue("http://lost.example/")
            desk.wait(job, "ready")
            yield desk, job


def pixel(png: bytes, x: int, y: int) -> tuple[int, ...]:
    """The colour of one place of a picture, as PNG keeps it (RFC 2083): 8 bits, RGB or RGBA."""
    width, _, depth, kind = struct.unpack(">IIBB", png[16:26])
    size = {2: 3, 6: 4}[kind]
    assert depth == 8
    data = b"".join(
        png[at + 8 : at + 8 + struct.unpack(">I", png[at : at + 4])[0]]
        for at in (match.start() - 4 for match in re.finditer(b"IDAT", png))
    )
    raw, above, row = zlib.decompress(data), bytearray(width * size), bytearray()
    for line in range(y + 1):
        begin = line * (width * size + 1)
        filtered, row = raw[begin], bytearray(raw[begin + 1 : begin + 1 + width * size])
        for i in range(width * size):
            left, up, corner = (row[i - size] if i >= size else 0), above[i], (above[i - size] if i >= size else 0)
            guess = left + up - corner
            near = min((left, up, corner), key=lambda value, guess=guess: abs(guess - value))  # type: ignore[misc]
            row[i] = (row[i] + (0, left, up, (left + up) // 2, near)[filtered]) % 256
        above = row
    return tuple(row[x * size : x * size + 3])


@needs_chromium
def test_a_picture_shows_the_page_with_its_styles(ready: tuple[RunningDesk, Job]) -> None:
    desk, job = ready
    picture = desk.ask("GET", f"/api/jobs/{job.id}/thumb-0.png?token={job.token}")
    assert picture.status == 200 and pixel(picture.body, 900, 5) == RED


def test_links_of_the_report_lead_to_the_recovered_pages(ready: tuple[RunningDesk, Job]) -> None:
    desk, job = ready
    report = desk.ask("GET", f"/api/jobs/{job.id}/report.html?token={job.token}")
    [base] = re.findall(r'<base href="([^"]+)"', report.text)
    assert not base.startswith(desk.base), "an origin of its own"
    links = [link for link in re.findall(r"<a[^>]* href=[\"']([^\"'#]+)", report.text) if "://" not in link]
    assert links
    for link in links:
        assert desk.ask("GET", base + link).status == 200, link
    assert "no-store" in report.headers["Cache-Control"] and "sandbox" in report.headers["Content-Security-Policy"]


@needs_chromium
def test_a_page_that_is_drawn_reaches_nothing_but_its_own_files(tmp_path: Path) -> None:
    seen: list[str] = []

    class Spy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    spy = ThreadingHTTPServer(("127.0.0.1", 0), Spy)
    threading.Thread(target=spy.serve_forever, daemon=True).start()
    out = f"http://127.0.0.1:{spy.server_port}"
    host = tmp_path / "site" / "lost.example"
    host.mkdir(parents=True)
    (tmp_path / "secret.css").write_text("body { background: rgb(0, 0, 255) }")
    (host / "index.html").write_text(
        f"""<meta http-equiv=refresh content="0; url={out}/refresh"><link rel=stylesheet href="{out}/style.css">
        <link rel=stylesheet href="file://{tmp_path}/secret.css"><link rel=stylesheet href="../../secret.css">
        <img src="{out}/picture.png"><iframe src="{out}/frame"></iframe><script src="{out}/script.js"></script>
        <script>location = "{out}/location"; fetch("{out}/fetch")</script><object data="{out}/object"></object>
        <style>body {{ background: rgb(200, 30, 30); background-image: url({out}/css.png) }}</style>Hello"""
    )
    [picture] = thumbnails(tmp_path / "site", "lost.example/index.html", tmp_path, 1)
    spy.shutdown()
    assert seen == []
    assert pixel(picture.read_bytes(), 900, 5) == RED


@needs_chromium
def test_pages_that_came_are_shown_as_pictures_while_others_are_collected(tmp_path: Path) -> None:
    paths = [f"/{number}.html" for number in range(60)]
    fake = site(*paths)
    fake.add(
        "/", f"<title>Home</title><link rel=stylesheet href=/s.css>{''.join(f'<a href={one}>x</a>' for one in paths)}"
    )
    fake.add("/s.css", "body { background: rgb(200, 30, 30) }", media_type="text/css")
    for one in paths:
        fake.add(one, f"<title>{one}</title><p>The page {one}, with words of its own.</p>")
    with served(fake) as archive:
        path = tmp_path / "archives.json"
        entry = {"id": "one", "cdx": archive.cdx, "raw": archive.raw, "rate": "2/s"}
        path.write_text(json.dumps([entry]))
        with running_desk(tmp_path / "desk", path, RECOLLECT_DESK_PICTURES="2", RECOLLECT_DESK_HEARTBEAT="1") as desk:
            job = desk.submit("http://lost.example/")
            assert desk.show(job)["thumbs"] == []
            desk.confirm(job)
            until(lambda: bool(desk.show(job)["thumbs"]), 60)
            reply = desk.show(job)
            assert reply["state"] == "running" and reply["counts"]["queued"], reply
            picture = desk.ask("GET", f"/api/jobs/{job.id}/thumb-0.png?token={job.token}")
            assert picture.status == 200 and pixel(picture.body, 900, 5) == RED, "the front page with its styles"
            page = desk.ask("GET", f"/jobs/{job.id}?token={job.token}").text
            assert "Already there" in page and f"/api/jobs/{job.id}/thumb-0.png" in page
            other = desk.submit("http://lost.example/", "other@mail.example")
            assert other.id == job.id and desk.show(other)["thumbs"] == [], "who has not confirmed sees nothing of it"
            assert desk.ask("GET", f"/api/jobs/{job.id}/thumb-0.png?token={other.token}").status == 404
            assert desk.ask("POST", f"/jobs/{job.id}/cancel?token={job.token}", form={}).status == 303
