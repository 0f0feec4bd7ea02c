"""Notices of a watch through real servers: mail, webhook, feed, a desk; killed in between, none is lost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest

from desk_world import running_desk
from recollect.archives.client import ArchiveClient
from recollect.archives.live import LiveClient
from recollect.cli import main
from recollect.watch.records import OnLoss, Resource, Site
from recollect.watch.run import Tools, run_round
from recollect.watch.states import Held, Live, SiteState, SiteStatus
from recollect.watch.store import Store
from servers import Mailbox

T0 = datetime(2026, 1, 1, tzinfo=UTC)
TEXT = "The rowing club meets every morning at the river and trains its members in boats for the races of spring. " * 4
PAGE = f"<title>River Rowing Club</title><p>{TEXT}<a href=/races>r</a><a href=/boats>b</a><a href=/new>n</a>"


OTHER = (
    "<title>Casino bonus deluxe</title><p>"
    + "Spin the wheel, win jackpots, claim free chips, play poker tables online tonight with bonus codes. " * 4
    + "<a href=/poker>p</a><a href=/slots>s</a><a href=/bonus>b</a>"
)


class Web:
    """A site that fails on demand, an RDAP server, a webhook and a save endpoint, all at one address."""

    def __init__(self) -> None:
        self.base = ""
        self.mood = "fine"
        self.hooked: list[dict] = []
        self.saved: list[tuple[str, str]] = []
        self.hook_status = 204
        self.registrar = "R1"
        self.asked: list[str] = []
        self.followed: list[tuple[str, str]] = []
        self.job: dict = {"status": "pending"}


@contextmanager
def web_server() -> Iterator[Web]:
    web = Web()

    class Handler(BaseHTTPRequestHandler):
        def reply(self, status: int, body: bytes = b"", kind: str = "text/html", **headers: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            if web.mood == "failing":
                self.reply(503)
            elif web.mood == "loop":
                self.reply(302, Location=self.path)
            elif web.mood == "everything":
                self.reply(200, PAGE.encode() if self.path == "/" else b"<title>Oops</title><p>There is nothing here.")
            elif self.path.startswith("/rdap/domain/"):
                web.asked.append(self.path)
                registrar = {"objectClassName": "entity", "handle": web.registrar, "roles": ["registrar"]}
                servers = [{"objectClassName": "nameserver", "ldhName": "NS1.EXAMPLE.NET"}]
                domain = {"objectClassName": "domain", "entities": [registrar], "nameservers": servers}
                self.reply(200, json.dumps(domain).encode(), "application/rdap+json")
            elif self.path.startswith("/save/status/"):
                web.followed.append((self.path, self.headers.get("Authorization", "")))
                self.reply(200, json.dumps(web.job).encode(), "application/json")
            elif web.mood == "foreign" and self.path == "/":
                self.reply(200, OTHER.encode())
            elif self.path.partition("?")[0] in ("/", "/races", "/boats"):
                self.reply(200, PAGE.replace("River", f"River {self.path[1:]}").encode())
            else:
                self.reply(404)

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/save":
                web.saved.append((content.decode(), self.headers.get("Authorization", "")))
                self.reply(200, b'{"job_id": "spn2 1/x"}', "application/json")
                return
            if web.hook_status < 300:
                web.hooked.append(json.loads(content))
            self.reply(web.hook_status)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    web.base = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    quick = {**(LiveClient.__init__.__kwdefaults__ or {}), "pace": 0.0}
    monkeypatch.setattr(LiveClient.__init__, "__kwdefaults__", quick)
    with web_server() as made:
        yield made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "archives.json").write_text("[]")
    return tmp_path / "watch"


def add(web: Web, data: Path, *options: str) -> None:
    archives = str(data.parent / "archives.json")
    given = ["watch", "add", web.base, "--data", str(data), "--allow-private", "--archives", archives]
    assert main.run([*given, "--on-loss", "notify", "--now", T0.isoformat(), *options]) == 0


def day(data: Path, number: float, *options: str) -> int:
    at = (T0 + timedelta(days=number)).isoformat()
    return main.run(["watch", "run", "--data", str(data), "--now", at, "--json", *options])


def smtp(mailbox: Mailbox) -> tuple[str, ...]:
    return ("--smtp", f"{mailbox.host}:{mailbox.port}", "--from-address", "watch@desk.example")


def life(web: Web, data: Path, *options: str) -> None:
    """A site that is lost on day 1, for two months, and comes back."""
    day(data, 0, *options)
    web.mood = "failing"
    for number in (*range(1, 10), 20, 33, 34, 45, 63):
        day(data, number, *options)
    web.mood = "fine"
    for number in (64, 65):
        day(data, number, *options)


def test_one_mail_for_each_change_a_reminder_a_month_and_one_on_return(web: Web, data: Path, mailbox: Mailbox) -> None:
    add(web, data, "--email", "anna@mail.example")
    life(web, data, *smtp(mailbox))
    subjects = [message["Subject"].replace(web.base, "SITE") for message in mailbox.messages]
    assert subjects == ["SITE is lost", "SITE is still lost", "SITE is still lost", "SITE is back"]
    assert {message["To"] for message in mailbox.messages} == {"anna@mail.example"}
    assert len({message["Message-ID"] for message in mailbox.messages}) == 4
    assert "status 503" in mailbox.messages[0].get_content()
    since = [message.get_content().partition("Since: ")[2][:10] for message in mailbox.messages]
    assert since == ["2026-01-02"] * 3 + ["2026-03-06"], "a reminder names the beginning of the loss"


def test_without_a_mail_server_mails_are_files(web: Web, data: Path) -> None:
    add(web, data, "--email", "anna@mail.example")
    life(web, data)
    mails = [message_from_bytes(file.read_bytes(), policy=policy.default) for file in (data / "outbox").glob("*.eml")]
    assert sorted(mail["Subject"].rpartition(" is ")[2] for mail in mails) == [
        "back",
        "lost",
        "still lost",
        "still lost",
    ]


def test_a_webhook_is_posted_until_it_takes_the_notice(web: Web, data: Path) -> None:
    add(web, data, "--webhook", web.base + "hook")
    web.hook_status = 500
    day(data, 0)
    web.mood = "failing"
    for number in range(1, 10):
        day(data, number)
    assert web.hooked == []
    web.hook_status = 204
    day(data, 11)
    day(data, 12)
    [hook] = web.hooked
    assert (hook["site"], hook["notice"], hook["state"]) == (web.base, "lost", "lost")
    assert hook["since"] == "2026-01-02T00:00:00Z"


def test_a_webhook_on_a_private_address_is_refused(data: Path) -> None:
    given = ["watch", "add", "http://site.example/", "--data", str(data), "--webhook", "http://127.0.0.1:9/"]
    assert main.run(given) == 2


def test_the_feed_is_atom_with_every_notice_once(web: Web, data: Path, tmp_path: Path) -> None:
    add(web, data)
    life(web, data)
    out = tmp_path / "atom.xml"
    assert main.run(["watch", "feed", "--data", str(data), "-o", str(out)]) == 0
    ns = {"a": "http://www.w3.org/2005/Atom"}
    feed = ElementTree.fromstring(out.read_bytes())
    for parent in (feed, *feed.findall("a:entry", ns)):  # what RFC 4287 requires of both
        assert all(len(parent.findall(f"a:{name}", ns)) == 1 for name in ("id", "title", "updated"))
    assert feed.find("a:author/a:name", ns) is not None
    entries = feed.findall("a:entry", ns)
    kinds = [entry.find("a:category", ns).attrib["term"] for entry in entries]  # type: ignore[union-attr]
    assert kinds == ["back", "reminder", "reminder", "lost"]
    assert len({entry.findtext("a:id", "", ns) for entry in entries}) == 4


def test_killed_while_it_sends_no_mail_is_lost_and_none_is_doubled(web: Web, data: Path, mailbox: Mailbox) -> None:
    add(web, data, "--email", "anna@mail.example")
    day(data, 0)
    web.mood = "failing"
    for number in range(1, 8):
        day(data, number)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # a mail server that accepts and says nothing
        port = silent.getsockname()[1]
        at = (T0 + timedelta(days=8)).isoformat()
        command = ["watch", "run", "--data", str(data), "--now", at, "--smtp", f"127.0.0.1:{port}"]
        process = subprocess.Popen(
            [sys.executable, "-m", "recollect", *command, "--from-address", "watch@desk.example"],
            env={**os.environ},
            stdout=subprocess.DEVNULL,
        )
        try:
            silent.settimeout(60)
            taken, _ = silent.accept()  # the mail is under way now
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(30)
        taken.close()
    assert mailbox.messages == []
    for number in (9, 10, 11):
        day(data, number, *smtp(mailbox))
    assert [message["Subject"] for message in mailbox.messages] == [f"{web.base} is lost"]


def test_two_runs_at_once_are_one_too_many(web: Web, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(web, data)
    with Store(data) as store, store.alone():
        assert day(data, 0) == 1
        assert "another `watch run`" in capsys.readouterr().err
    assert day(data, 0) == 0


def state(data: Path, capsys: pytest.CaptureFixture[str]) -> dict:
    capsys.readouterr()
    main.run(["watch", "status", "--data", str(data), "--json"])
    return json.loads(capsys.readouterr().out)[0]


def test_a_redirect_loop_is_a_failure_and_a_page_for_everything_is_not(
    web: Web, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(web, data)
    day(data, 0)
    web.mood = "everything"
    for number in range(1, 12):
        day(data, number)
    report = state(data, capsys)
    assert report["state"] == "pages-lost", "the site lives; the pages it had are one page for everything"
    web.mood = "loop"
    for number in range(12, 21):
        day(data, number)
    assert state(data, capsys)["state"] == "lost"


def test_a_clock_that_was_ahead_does_not_blind_the_watch(
    web: Web, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(web, data)
    day(data, 400)
    web.mood = "failing"
    for number in range(1, 11):
        day(data, number)
    assert state(data, capsys)["state"] == "lost"


def test_a_lost_site_becomes_a_job_of_a_desk_once_and_is_followed_to_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archives = tmp_path / "archives.json"
    archives.write_text("[]")
    uri = "http://lost.example/"
    site = Site(
        uri, T0, T0 + timedelta(days=9), email="anna@mail.example", status=SiteStatus(SiteState.LOST, T0), last_visit=T0
    )
    data = tmp_path / "watch"
    with Store(data) as store, store.transaction():
        store.put_site(site)
    with running_desk(tmp_path / "desk", archives, "--workers", "0") as desk:
        desk_options = ("--desk", desk.base, "--desk-token-file", str(desk.folder / "operator.token"))

        def run(hours: float) -> dict:
            day(data, 8.5 + hours / 24, *desk_options)
            return state(data, capsys)

        report = run(0)
        assert (report["recovery_state"], report["job"]) == ("queued", run(0.1)["job"])
        [job] = desk.operator("GET", "/api/jobs").json["jobs"]
        assert job["id"] == report["job"]
        assert json.loads((data / report["recovery"] / "job.json").read_text())["job"] == report["job"]
        assert run(1)["recovery_state"] == "queued"
        assert desk.operator("POST", f"/api/jobs/{report['job']}/cancel").status == 200
        ended = run(2)
        assert (ended["recovery_state"], ended["recovery_detail"]) == ("failed", "cancelled")
        run(30)
        assert len(desk.operator("GET", "/api/jobs").json["jobs"]) == 1
    mails = [message_from_bytes(file.read_bytes(), policy=policy.default) for file in (data / "outbox").glob("*.eml")]
    assert [mail["Subject"] for mail in mails] == [f"{uri} could not be recovered"]


def test_the_refusal_of_a_desk_is_told_in_its_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archives = tmp_path / "archives.json"
    archives.write_text("[]")
    site = Site(
        *("http://127.0.0.9/", T0, T0 + timedelta(days=9)),
        email="anna@mail.example",
        status=SiteStatus(SiteState.LOST, T0),
        last_visit=T0,
    )
    data = tmp_path / "watch"
    with Store(data) as store, store.transaction():
        store.put_site(site)
    with running_desk(tmp_path / "desk", archives, "--workers", "0") as desk:
        day(data, 8.5, "--desk", desk.base, "--desk-token-file", str(desk.folder / "operator.token"))
    told = state(data, capsys)
    assert told["recovery_state"] == "failed"
    assert told["recovery_detail"].endswith("status 400: an IP address is not taken; give the name the site had")


@pytest.mark.parametrize(("registrar", "expected"), [("R1", "suspect"), ("R2", "taken-over")])
def test_a_new_registrar_confirms_a_takeover(web: Web, data: Path, registrar: str, expected: str) -> None:
    add(web, data)

    async def visits() -> str:
        async with ArchiveClient() as client:
            tools = Tools(
                live=lambda allowed: LiveClient(user_agent="test", allow_private=allowed, pace=0.0),
                archives=lambda _: (),
                client=client,
                rdap=web.base + "rdap/",
                domain=lambda _: "rowers.example",
                own_services=True,
            )
            with Store(data) as store:
                await run_round(store, tools, T0)
                web.mood, web.registrar = "foreign", registrar
                for number in (1, 2, 3, 4, 5):
                    await run_round(store, tools, T0 + timedelta(days=number))
                return store.sites()[0].status.state.value

    assert asyncio.run(visits()) == expected
    assert set(web.asked) == {"/rdap/domain/rowers.example"}


def test_vulnerable_resources_are_asked_to_be_saved_once_a_month(web: Web, data: Path, tmp_path: Path) -> None:
    add(web, data)
    with Store(data) as store:
        site = store.sites()[0]
        for path, held in (("races", Held.NOT_HELD), ("boats", Held.HELD), ("", Held.UNKNOWN)):
            resource = Resource(site.uri, web.base + path, "text/html", Live.LIVE, T0, held, T0)
            store.put_resource(resource)
    key = tmp_path / "key"
    key.write_text("abc:def\n")
    save = ("--save", web.base + "save", "--save-key-file", str(key))
    assert day(data, 0, *save) == 0
    assert web.saved == [], "a private address is not called"
    for number in (40, 41, 42):
        day(data, number, *save, "--allow-private")
    assert web.saved == [(urlencode({"url": web.base + "races"}), "LOW abc:def")]
    for number in (43, 44):
        day(data, number)
    assert len(web.saved) == 1, "off unless it is configured"


@pytest.mark.parametrize(
    ("job", "days", "expected"),
    [
        ({"status": "success", "timestamp": "20260210"}, 0.1, "saved"),
        ({"status": "error", "message": "blocked"}, 0.1, "failed"),
        ({"status": "pending"}, 0.1, "pending"),
        ({"status": "pending"}, 3.0, "failed"),
        ({"unexpected": []}, 0.1, "pending"),
    ],
)
def test_a_request_to_save_is_followed_to_its_end(
    web: Web, data: Path, capsys: pytest.CaptureFixture[str], job: dict, days: float, expected: str
) -> None:
    add(web, data, "--sample", "2")
    day(data, 0)
    with Store(data) as store:
        site = store.sites()[0]
        store.put_resource(Resource(site.uri, web.base + "gone", "text/html", Live.LIVE, T0, Held.NOT_HELD, T0))
    save = ("--save", web.base + "save", "--allow-private")
    day(data, 0.2, *save)
    assert state(data, capsys)["saves"] == {"asked": 0, "pending": 1, "saved": 0, "failed": 0}
    web.job = job
    day(data, 0.2 + days, *save)
    assert web.followed[0] == ("/save/status/spn2%201%2Fx", "")
    assert state(data, capsys)["saves"][expected] == 1
    with Store(data) as store:
        [one] = [r for r in store.resources(web.base) if r.uri.endswith("gone")]
    assert (one.held_at is None) == (expected == "saved"), "the archives are asked again for what was saved"
    before = len(web.followed)
    day(data, 0.4 + days, *save)
    assert (len(web.followed) > before) == (expected == "pending")
    assert len(web.saved) == 1


def test_a_hundred_sites_of_which_some_fail(web: Web, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archives = str(data.parent / "archives.json")
    with Store(data) as store, store.transaction():
        for number in range(100):
            name = f"{web.base}{'races' if number % 10 else 'gone'}?{number}"
            store.put_site(Site(name, T0, T0, 3, OnLoss.NOTIFY, archives, allow_private=True))
    for number in (0, 3, 6, 8):
        assert day(data, number) == 0
    capsys.readouterr()
    assert main.run(["watch", "status", "--data", str(data), "--json", "--fail-on", "lost"]) == 1
    states = [one["state"] for one in json.loads(capsys.readouterr().out)]
    assert (states.count("fine"), states.count("lost")) == (90, 10)


def test_a_folder_that_cannot_be_written_can_be_read(
    web: Web, data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add(web, data)
    day(data, 0)
    with Store(data) as store:
        store.remove("nothing")  # the last connection leaves one file
    before = (data / "watch.sqlite3").read_bytes()
    monkeypatch.setattr("os.access", lambda _, mode, **__: mode != os.W_OK)  # root may write everywhere
    assert state(data, capsys)["state"] == "fine"
    assert (data / "watch.sqlite3").read_bytes() == before
    file = data / "file"
    file.touch()
    assert main.run(["watch", "add", "http://a.example/", "--data", str(file / "below")]) == 1
    assert "cannot make the folder" in capsys.readouterr().err
