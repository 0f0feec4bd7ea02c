"""A watch among hostile and broken things: robots.txt, slow and huge sites, kills, races, a hundred sites at once."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from desk_world import running_desk, running_worker, until
from pywb_archive import Capture, pywb_archive
from recollect.archives.client import ArchiveClient
from recollect.archives.live import LiveClient
from recollect.archives.names import NameServer
from recollect.archives.registry import load_archives
from recollect.cli import main
from recollect.watch.records import OnLoss, Site
from recollect.watch.run import Round, Tools, run_round
from recollect.watch.states import Held, Live, ResourceState, SiteState, SiteStatus
from recollect.watch.store import Store
from small_archives import small_archives
from small_dns import dns_server, reply
from watch_sites import PAGE, Web, sites

T0 = datetime(2026, 1, 1, tzinfo=UTC)
OTHER = (
    "<title>Garden chairs</title><p>"
    + "Tables, chairs and umbrellas for terraces, delivered within days to homes. " * 6
    + "<a href=/tables>t</a><a href=/chairs>c</a><a href=/sale>s</a>"
)


@pytest.fixture
def web() -> Iterator[Web]:
    with sites() as made:
        yield made


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause between requests to a host."""
    patched = {**(LiveClient.__init__.__kwdefaults__ or {}), "pace": 0.0}
    monkeypatch.setattr(LiveClient.__init__, "__kwdefaults__", patched)


def put(data: Path, *uris: str, sample: int = 10, archives: str = "") -> None:
    with Store(data) as store, store.transaction():
        for uri in uris:
            store.put_site(Site(uri, T0, T0, sample, OnLoss.NOTIFY, archives, allow_private=True))


def rounds(data: Path, *days: float, pace: float = 0.0, timeout: float = 5.0, archives: str = "", **tools) -> Round:
    """Rounds on these days; the last one."""

    async def run() -> Round:
        async with ArchiveClient() as client:
            made = Tools(
                live=lambda allowed: LiveClient(user_agent="t", allow_private=allowed, pace=pace, timeout=timeout),
                archives=lambda path: load_archives(path) if path else (),
                client=client,
                **tools,
            )
            with Store(data) as store:
                for number in days:
                    done = await run_round(store, made, T0 + timedelta(days=number))
            return done

    return asyncio.run(run())


def status(data: Path) -> list[dict]:
    with Store(data) as store:
        from recollect.watch.board import lines_of

        return [line.to_json() for line in lines_of(store)]


@pytest.mark.parametrize("robots", [(200, "User-agent: *\nDisallow: /"), (503, ""), (403, "")])
def test_where_robots_are_not_wanted_only_the_front_page_is_asked(web: Web, tmp_path: Path, robots: tuple) -> None:
    put(tmp_path, web.uri(0))
    web.at(0).robots = robots
    rounds(tmp_path, 0, 1)
    assert set(web.at(0).paths) == {"/", "/robots.txt"}
    assert status(tmp_path)[0]["state"] == "fine"


def test_a_site_removed_during_a_visit_stays_removed(web: Web, tmp_path: Path) -> None:
    put(tmp_path, web.uri(0), web.uri(1))

    def remove(path: str) -> None:
        if path == "/boats":
            with Store(tmp_path) as store:
                store.remove(web.uri(0))

    web.at(0).hook = remove
    rounds(tmp_path, 0)
    assert [one["site"] for one in status(tmp_path)] == [web.uri(1)]


def test_a_hundred_sites_at_once_each_at_its_own_pace(web: Web, tmp_path: Path) -> None:
    put(tmp_path, *(web.uri(number) for number in range(100)), sample=3)
    started = time.monotonic()
    done = rounds(tmp_path, 0, pace=0.2)
    took = time.monotonic() - started
    assert len(done.visited) == 100 and not done.failures
    gaps = [
        later - earlier
        for site in web.sites.values()
        for (earlier, _), (later, _) in zip(site.asked, site.asked[1:], strict=False)
    ]
    assert len(gaps) == 500, "front page, robots.txt, sitemap, an address that cannot exist, two more"
    assert min(gaps) >= 0.19
    assert took < 100 * 6 * 0.2 / 4, "many sites in parallel"
    assert took > 6 * 0.2 * 100 / 16 * 0.7, "and no more than sixteen"


def test_a_slow_site_does_not_hold_up_the_others(web: Web, tmp_path: Path) -> None:
    put(tmp_path, web.uri(0), web.uri(1))

    def slow(path: str) -> None:
        time.sleep(0 if path in ("/", "/robots.txt") else 3)

    web.at(0).pages |= {f"/{number}": PAGE for number in range(20)}
    web.at(0).pages["/"] += "".join(f"<a href=/{number}>n</a>" for number in range(20))
    web.at(0).hook = slow
    started = time.monotonic()
    done = rounds(tmp_path, 0, timeout=1.0)
    assert time.monotonic() - started < 15, "a site that stops answering is left after five tries"
    assert sorted(status.state.value for _, _, status in done.visited) == ["fine", "fine"]


def test_huge_pages_are_cut_and_nothing_of_them_is_kept(web: Web, tmp_path: Path) -> None:
    import resource

    put(tmp_path, web.uri(0), sample=12)
    huge = PAGE + "x" * (9 << 20)
    web.at(0).pages = {f"/{number}": huge for number in range(12)} | {"/": PAGE}
    web.at(0).pages["/"] += "".join(f"<a href=/{number}>n</a>" for number in range(12))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rounds(tmp_path, 0)
    assert status(tmp_path)[0]["resources"]["unknown"] == 12
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 250_000  # kilobytes; all bodies are 100 MB


def test_all_sites_failing_at_once_is_the_local_network_for_weeks(web: Web, tmp_path: Path) -> None:
    put(tmp_path, *(web.uri(number) for number in range(4)))
    rounds(tmp_path, 0)
    with Store(tmp_path) as store, store.transaction():  # the same sites on a port that is closed
        for site in store.sites():
            store.put_site(replace(site, uri=site.uri.replace(str(web.port), "1")))
        for number in range(4):
            store._db.execute("DELETE FROM site WHERE uri = ?", (web.uri(number),))
    done = rounds(tmp_path, *range(1, 12))
    assert {visit.seen.value for _, visit, _ in done.visited} == {"offline"}
    assert {one["state"] for one in status(tmp_path)} == {"fine"}
    with Store(tmp_path) as store:
        assert all(site.next_visit == T0 + timedelta(days=11, hours=1) for site in store.sites()), "tried again soon"


def test_a_site_that_fails_alone_is_lost_though_visits_are_spread(web: Web, tmp_path: Path) -> None:
    put(tmp_path, *(web.uri(number) for number in range(4)))
    rounds(tmp_path, 0)
    with Store(tmp_path) as store, store.transaction():
        [site] = [one for one in store.sites() if one.uri == web.uri(0)]
        store._db.execute("DELETE FROM site WHERE uri = ?", (site.uri,))
        store.put_site(replace(site, uri="http://127.0.1.77:1/", next_visit=T0 + timedelta(hours=30)))
    rounds(tmp_path, *(1.25 + number for number in range(9)))
    assert Counter(one["state"] for one in status(tmp_path)) == {"fine": 3, "lost": 1}


def test_requests_are_conditional_by_date_where_there_is_no_tag(web: Web, tmp_path: Path) -> None:
    put(tmp_path, web.uri(0))
    web.at(0).headers = {"Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
    rounds(tmp_path, 0, 1)
    assert sorted(web.at(0).conditions) == ["/boats", "/oars", "/races"]
    assert status(tmp_path)[0]["resources"]["unknown"] == 4, "a page that did not change is live"


def test_new_pages_are_found_on_sites_larger_than_the_sample(web: Web, tmp_path: Path) -> None:
    put(tmp_path, web.uri(0), sample=10)
    site = web.at(0)
    site.pages |= {f"/{number}": PAGE for number in range(30)}
    site.pages["/"] += "".join(f"<a href=/{number}>n</a>" for number in range(9))
    rounds(tmp_path, 0)
    site.pages["/"] += "".join(f"<a href=/{number}>n</a>" for number in range(9, 30))
    site.asked.clear()
    for number in range(1, 5):
        rounds(tmp_path, number)
        assert len(site.asked) <= number * 13, "no more requests than the sample, robots.txt, a sitemap and one more"
    with Store(tmp_path) as store:
        known = store.resources(web.uri(0))
    assert len(known) == 14
    assert min(one.live_at or T0 for one in known) >= T0 + timedelta(days=2), "each is asked again in turn"


def test_archives_are_asked_while_a_site_is_gone(web: Web, tmp_path: Path) -> None:
    data = tmp_path / "watch"
    with small_archives() as archives:
        archives.add("one", {web.uri(0): ["20250101000000"], web.uri(0) + "boats": ["20250101000000"]})
        registry = str(archives.write(tmp_path))
        put(data, web.uri(0), archives=registry)
        rounds(data, 0)
        assert status(data)[0]["resources"] | {"unknown": 0} == dict.fromkeys(ResourceState, 0) | {
            "replicated": 2,
            "vulnerable": 2,
        }
        web.at(0).status = 503
        rounds(data, *range(1, 10))
        assert (status(data)[0]["resources"]["endangered"], status(data)[0]["state"]) == (2, "lost")
        del archives.archives["one"].holdings[web.uri(0) + "boats"]
        rounds(data, *range(10, 20))
        counts = status(data)[0]["resources"]
        assert (counts["endangered"], counts["unrecoverable"]) == (1, 3)
        archives.archives["one"].status = 503
        rounds(data, *range(20, 30))
        assert status(data)[0]["resources"] == counts, "an archive that fails changes nothing"
    with Store(data) as store:
        seen = [one for one in store.observations(web.uri(0)) if one.uri.endswith("boats")]
    assert (seen[0].live, seen[0].held, seen[-1].held) == (Live.LIVE, Held.HELD, Held.NOT_HELD)


@pytest.mark.parametrize(("servers", "expected"), [("ns1.old.example", "suspect"), ("ns1.new.example", "taken-over")])
def test_new_name_servers_confirm_a_takeover(web: Web, tmp_path: Path, servers: str, expected: str) -> None:
    put(tmp_path, web.uri(0))
    listed = ["ns1.old.example"]
    loop = asyncio.new_event_loop()
    started: list[NameServer] = []
    ready, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with dns_server(lambda question, _: reply(question, *listed)) as server:
            started.append(server)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(10)
        tools = {"resolver": started[0], "domain": lambda _: "rowers.example"}
        rounds(tmp_path, 0, **tools)
        listed[:] = [servers]
        web.at(0).pages["/"] = OTHER  # the other pages are still there
        rounds(tmp_path, 1, 2, 3, 4, 5, **tools)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
    assert status(tmp_path)[0]["state"] == expected


def test_killed_again_and_again_no_visit_is_lost_and_no_notice_is_sent_twice(
    web: Web, tmp_path: Path, quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    got: list[str] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["id"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever).start()
    data = tmp_path / "watch"
    (tmp_path / "none.json").write_text("[]")
    for number in range(4):
        given = ["watch", "add", web.uri(number), "--data", str(data), "--allow-private", "--on-loss", "notify"]
        given += ["--sample", "2", "--webhook", f"http://127.0.0.1:{server.server_port}/", "--email", "a@b.example"]
        assert main.run([*given, "--archives", str(tmp_path / "none.json"), "--now", T0.isoformat()]) == 0
        web.at(number).status = 503
    rng = random.Random(1)
    command = [sys.executable, "-m", "recollect", "watch", "run", "--data", str(data), "--json", "--now"]
    finished: set[str] = set()
    try:
        for day in (0, 1, 2, 7, 7.5, 8, 8.1):
            at = (T0 + timedelta(days=day)).isoformat()
            process = subprocess.Popen([*command, at], stdout=subprocess.DEVNULL, env={**os.environ})
            if day not in (0, 8.1):
                time.sleep(rng.uniform(0.3, 1.2))
                process.send_signal(signal.SIGKILL)
            process.wait(60)
            with Store(data) as store:
                visits = {f"{past.site} {past.at}" for past in store.visits()}
            assert finished <= visits, "what was written stays"
            finished = visits
        for day in range(9, 20):
            at = (T0 + timedelta(days=day)).isoformat()
            assert main.run(["watch", "run", "--data", str(data), "--json", "--now", at]) == 0
    finally:
        server.shutdown()
        server.server_close()
    assert {one["state"] for one in status(data)} == {"lost"}
    # Only a process killed between the answer of the server and its note of it repeats that message, with the same id.
    assert len(set(got)) == 4 and len(got) <= 5
    assert len(list((data / "outbox").glob("*.eml"))) == 4
    db = sqlite3.connect(data / "watch.sqlite3")
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


def test_a_lost_site_comes_back_from_a_desk_and_its_owner_is_notified(tmp_path: Path) -> None:
    uri = "http://lost.example/"
    page = f"<title>Lost</title><p>{'words of a lost page ' * 30}<a href=/a>a</a>".encode()
    captures = [Capture(uri + path, "20251201000000", page, "text/html") for path in ("", "a")]
    data = tmp_path / "watch"
    site = Site(uri, T0, T0 + timedelta(days=99), email="anna@mail.example", last_visit=T0)
    with Store(data) as store, store.transaction():
        store.put_site(replace(site, status=SiteStatus(SiteState.LOST, T0)))
    with pywb_archive(tmp_path / "pywb", captures) as pywb:
        registry = tmp_path / "archives.json"
        entry = {"id": "mine", "timemap": pywb.timemap, "cdx": pywb.cdx, "raw": pywb.raw}
        registry.write_text(json.dumps([entry]))
        with (
            running_desk(tmp_path / "desk", registry, "--workers", "0") as desk,
            running_worker(desk, tmp_path / "work"),
        ):
            options = ["--desk", desk.base, "--desk-token-file", str(desk.folder / "operator.token")]
            for number in range(240):
                at = (T0 + timedelta(days=98, minutes=11 * number)).isoformat()
                main.run(["watch", "run", "--data", str(data), "--now", at, "--json", *options])
                if status(data)[0]["recovery_state"] != "queued":
                    break
                time.sleep(0.5)
    report = status(data)[0]
    assert (report["recovery_state"], report["recovery"]) == ("done", "recovered/lost.example-20260101")
    mails = [path.read_text() for path in (data / "outbox").glob("*.eml")]
    assert sum("is recovered" in mail for mail in mails) == 1
    assert report["job"] and any(report["job"] in mail for mail in mails)


def test_a_webhook_that_redirects_is_not_followed(web: Web, tmp_path: Path) -> None:
    put(tmp_path, web.uri(0))
    posted: list[str] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(self.path)
            self.send_response(307)
            self.send_header("Location", "/inside")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever).start()
    try:
        with Store(tmp_path) as store, store.transaction():
            store.put_site(replace(store.sites()[0], webhook=f"http://127.0.0.1:{server.server_port}/hook"))
        rounds(tmp_path, 0)
        web.at(0).status = 500
        rounds(tmp_path, *range(1, 10))
    finally:
        server.shutdown()
        server.server_close()
    assert set(posted) == {"/hook"}
    with Store(tmp_path) as store:
        assert len(store.pending()) == 1, "the notice waits"


def test_a_check_counts_soft_404_pages_as_gone(
    web: Web, tmp_path: Path, quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    class Anything(dict):
        def get(self, path: str, _: object = None) -> str:  # type: ignore[override]
            return PAGE if path in ("/", "/races", "/boats") else "<title>Oops</title><p>Nothing here, really nothing."

    web.at(0).pages = Anything()
    with small_archives() as archives:
        archives.add("one", {web.uri(0): ["20250101000000"]})
        registry = str(archives.write(tmp_path))
        given = ["watch", "check", web.uri(0), "--archives", registry, "--allow-private", "--json"]
        assert main.run(given) == 0
        report = json.loads(capsys.readouterr().out)
        assert (report["resources"]["total"], report["states"]["unrecoverable"]) == (3, 1)
        web.at(0).status = 403
        assert main.run(given) == 2
        assert "status 403" in capsys.readouterr().err


def test_observations_of_resources_are_listed(web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, web.uri(0))
    rounds(tmp_path, 0, 1)
    assert main.run(["watch", "history", web.uri(0), "--resources", "--data", str(tmp_path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report) == 8
    assert report[0] == {
        "at": "2026-01-01T00:00:00Z",
        "uri": web.uri(0),
        "status": 200,
        "live": "live",
        "held": "unknown",
        "alike": None,
    }
    assert main.run(["watch", "history", "--resources", "--data", str(tmp_path)]) == 2


def test_an_error_in_the_program_is_reported_after_all_other_sites_were_visited(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recollect.watch import visits as run

    put(tmp_path, web.uri(0), web.uri(1))
    real = run.judge_visit

    def broken(front, *rest, **more):
        if "127.0.1.1:" in front.asked:
            raise KeyError("a fault")
        return real(front, *rest, **more)

    monkeypatch.setattr(run, "judge_visit", broken)
    with pytest.raises(KeyError, match="a fault"):
        rounds(tmp_path, 0)
    with Store(tmp_path) as store:
        states = {site.uri: site.status.state for site in store.sites()}
        assert states == {web.uri(0): SiteState.NEW, web.uri(1): SiteState.FINE}


def test_resources_of_a_blocked_site_keep_their_state(web: Web, tmp_path: Path) -> None:
    put(tmp_path, web.uri(0))
    rounds(tmp_path, 0)
    web.at(0).status = 429
    rounds(tmp_path, *range(1, 20))
    assert status(tmp_path)[0]["state"] == "fine"
    with Store(tmp_path) as store:
        assert {one.live for one in store.resources(web.uri(0))} == {Live.LIVE}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_goes_on_visits_recovers_beside_and_stops_at_once(
    web: Web, tmp_path: Path, number: signal.Signals
) -> None:
    data = tmp_path / "watch"
    now = datetime.now(UTC)
    with small_archives() as archives:
        archives.add("slow", {"http://lost.example/": ["20200101000000"]}, delay=5)
        registry = str(archives.write(tmp_path))
        (tmp_path / "none.json").write_text("[]")
        put(data, web.uri(0), sample=1, archives=str(tmp_path / "none.json"))
        with Store(data) as store, store.transaction():
            lost = SiteStatus(
                SiteState.LOST, now - timedelta(days=9), failing_since=now - timedelta(days=9), failures=9
            )
            site = Site("http://lost.example/", now, now + timedelta(hours=9), archives=registry, status=lost)
            store.put_site(replace(site, last_visit=now))
        command = [sys.executable, "-m", "recollect", "watch", "run", "--data", str(data)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ})
        try:

            def recovering() -> bool:
                return any(one["recovery_state"] == "running" for one in status(data))

            until(recovering, 60)
            process.send_signal(number)
            assert process.wait(30) in (130, 128 + signal.SIGTERM)
        finally:
            process.kill()
            process.wait()
    assert [one["recovery_state"] for one in status(data) if "lost" in one["site"]] == ["running"], "resumed later"
