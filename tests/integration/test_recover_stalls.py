"""Archives that fall silent, bodies cut short, full disks: given up in time, tried again, resumed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fake_archive import START, Fake, served, site
from loopback import Request
from recollect.errors import ResourceError
from recollect.recovery.options import Options
from recollect.recovery.recover import Recovery, Run, recover
from recollect.recovery.scope import Scope
from recollect.recovery.store import Store
from recollect.recovery.verdicts import Reason


class Stalling:
    """A fake archive that answers some requests with a head, half a body or nothing, and then stays silent."""

    def __init__(self, fake: Fake, stalls: Callable[[str, int], bytes | None]) -> None:
        self.fake = fake
        self.stalls = stalls
        self.seen: dict[str, int] = {}

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        count = self.seen[request.path] = self.seen.get(request.path, 0) + 1
        piece = self.stalls(request.path, count)
        if piece is None:
            await self.fake(request, writer)
            return
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(SILENCE)


SILENCE = 120.0  # seconds: far more than a run with a patience of some seconds takes on the busiest machine
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 500\r\n\r\n"


def run(folder: Path, server: Any, patience: float, **archive_fields: Any) -> tuple[Recovery, float]:
    started = time.monotonic()
    with served(server, **archive_fields) as archive:
        done = recover(START, folder, archives=[archive], options=Options(Scope((START,))), run=Run(patience=patience))
        return done, time.monotonic() - started


@pytest.mark.parametrize("piece", [b"", HEAD, HEAD + b"<p>half"])
def test_a_stalled_answer_is_tried_again_and_given_up_within_the_patience(tmp_path: Path, piece: bytes) -> None:
    fake = site("/a", "/b", "/stuck")
    for path in ("/a", "/b", "/stuck"):
        fake.add(path, f"<p>{path}")
    server = Stalling(fake, lambda path, _: piece if path.endswith("/stuck") else None)
    done, seconds = run(tmp_path, server, patience=4)
    assert done.report is not None and [m.reason for m in done.report.missing] == [Reason.FAILED]
    assert len(done.report.resources) == 3 and not done.finished.complete
    assert server.seen["/web/20100101000000id_/http://lost.example/stuck"] == 3
    assert seconds < SILENCE / 2


def test_a_body_that_comes_byte_by_byte_is_given_up_within_the_patience(tmp_path: Path) -> None:
    fake = site("/slow", "/trickle")
    fake.add("/slow", b"<p>slow " + b"x" * 9_000)

    async def drip(request: Request, writer: asyncio.StreamWriter) -> None:
        slow = request.path.endswith("/slow")
        if not slow and not request.path.endswith("/trickle"):
            await fake(request, writer)
            return
        whole = fake.reply(request)
        head, _, body = whole.partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n" if slow else HEAD.replace(b"500", b"50000"))
        for at in range(0, len(body) if slow else 400, 1_500 if slow else 1):
            writer.write(body[at : at + 1_500] if slow else b"x")
            await writer.drain()
            await asyncio.sleep(0.3)

    fake.add("/trickle", "<p>never")
    done, seconds = run(tmp_path, drip, patience=4)
    assert done.report is not None and [m.uri for m in done.report.missing] == ["http://lost.example/trickle"]
    assert len(done.report.resources) == 2, "what comes slowly, but comes, is not silence"
    assert seconds < SILENCE / 2


def test_an_archive_that_goes_silent_is_given_up_within_the_patience(tmp_path: Path) -> None:
    paths = [f"/{n}" for n in range(40)]
    fake = site(*paths)
    for path in paths:
        fake.add(path, f"<p>{path}")
    server = Stalling(fake, lambda path, _: b"" if "/web/" in path and not path.endswith("example/") else None)
    done, seconds = run(tmp_path, server, patience=4, concurrency=4)
    assert done.report is not None and len(done.report.resources) == 1 and len(done.report.missing) == 40
    # Every request holds one of the archive's four places for a quarter of the patience. Those that wait for a
    # place when the archive is given up are not sent.
    stalled = sum(count for path, count in server.seen.items() if "/web/" in path and not path.endswith("example/"))
    assert stalled <= 4 * 4, server.seen
    assert seconds < SILENCE / 2


def test_a_listing_that_never_comes_is_given_up_too(tmp_path: Path) -> None:
    server = Stalling(site(), lambda path, _: HEAD if path.startswith("/cdx") else None)
    done, seconds = run(tmp_path, server, patience=3)
    assert not done.finished.complete and seconds < SILENCE / 2


def test_what_stalled_once_comes_in_the_same_run(tmp_path: Path) -> None:
    fake = site("/a")
    fake.add("/a", "<p>a")
    server = Stalling(fake, lambda path, count: HEAD if path.endswith("/a") and count == 1 else None)
    done, _ = run(tmp_path, server, patience=4)
    assert done.finished.complete and done.report is not None and len(done.report.resources) == 2


@pytest.mark.parametrize("with_length", [True, False])
def test_a_body_cut_short_once_is_asked_for_again_in_the_same_run(tmp_path: Path, with_length: bool) -> None:
    """With a length the framing shows it, without one the digest of the index does."""
    fake = site("/a")
    fake.add("/a", "<p>" + "all of it " * 50)
    cut: list[str] = []
    moment = b"Memento-Datetime: Fri, 01 Jan 2010 00:00:00 GMT\r\nContent-Type: text/html\r\n"

    def misbehave(request: Request) -> bytes:
        if cut:
            return fake.reply(request)
        cut.append(request.path)
        length = b"Content-Length: 503\r\n" if with_length else b""
        return b"HTTP/1.1 200 OK\r\n" + length + moment + b"\r\n<p>all of"

    fake.overrides = {"id_/http://lost.example/a": misbehave}
    done, _ = run(tmp_path, fake, patience=10)
    assert cut and done.finished.complete and done.report is not None and not done.report.missing
    with Store.open(tmp_path) as store:
        page = store.find(START + "a")
        assert page is not None and not page.altered and store.content(page).endswith(b"all of it ")


def test_a_listing_cut_short_once_is_asked_for_again(tmp_path: Path) -> None:
    fake = site("/a")
    fake.add("/a", "<p>a")
    cut: list[str] = []

    def misbehave(request: Request) -> bytes:
        whole = fake.reply(request)
        if cut:
            return whole
        cut.append(request.path)
        return whole[: len(whole) // 2]

    fake.overrides = {"/cdx": misbehave}
    done, _ = run(tmp_path, fake, patience=10)
    assert done.finished.complete and done.report is not None and not done.report.listings
    assert len(fake.times) == 4


def test_a_full_disk_is_one_clear_error_and_the_run_resumes(tmp_path: Path) -> None:
    """The limit on the size of files fails writes as a full disk does, also for the journal."""
    fake = site(*(f"/{n}" for n in range(30)))
    for n in range(30):
        fake.add(f"/{n}", f"<p>{n} " + "x" * 400_000)
    with served(fake, id="one") as archive:
        listed = tmp_path / "archives.json"
        listed.write_text(f'[{{"id": "one", "cdx": "{archive.cdx}", "raw": "{archive.raw}"}}]')
        command = [sys.executable, "-m", "recollect", "recover", START, "-o", str(tmp_path / "site"), "-q"]
        code = (
            "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000));"
            "from recollect.cli.main import main; main(sys.argv[1:])"
        )
        limited = subprocess.run(
            [sys.executable, "-c", code, *command[3:], "--archives", str(listed)],
            capture_output=True, text=True, timeout=60, check=False, env={**os.environ},
        )  # fmt: skip
        assert limited.returncode == 1
        assert "Traceback" not in limited.stderr and limited.stderr.count("\n") == 2, limited.stderr
        assert "the disk is full" in limited.stderr and "--resume" in limited.stderr
        resumed = [sys.executable, "-m", "recollect", "recover", "--resume", str(tmp_path / "site"), "-q"]
        done = subprocess.run(resumed, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
    with Store.open(tmp_path / "site") as store:
        assert sum(1 for _ in store.recovered()) == 31


def test_other_faults_of_the_system_are_not_called_a_full_disk(tmp_path: Path) -> None:
    from recollect.recovery.disk import on_this_disk

    with pytest.raises(PermissionError), on_this_disk(tmp_path):
        raise PermissionError(13, "no")
    with pytest.raises(ResourceError, match="disk is full"), on_this_disk(tmp_path):
        raise OSError(28, "No space left on device")
