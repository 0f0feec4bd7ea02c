"""The server as an operator knows it: routing by maps, reload, stop, workers, counters, events, cache, hostility."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from recollect.aggregator.learn import WARM
from recollect.cli.main import run
from recollect.formats.logs import read_lookups
from recollect.formats.timemap import parse_link_header
from servers import redis_server
from small_archives import SmallArchives, server_process, serving, small_archives

PAGE = "http://lost.example/"
OTHER = "http://other.example/a"
HEAD = '!context ["https://git.io/mementomap"]\n!fields {"keys": ["surt"], "values": ["frequency"]}\n'
QUICK = ("--no-learn", "--no-cache")


class Reply:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self) -> dict:
        return json.loads(self.body)


def ask(base: str, path: str, method: str = "GET", **headers: str) -> Reply:
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=30)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        return Reply(connection.getresponse())
    finally:
        connection.close()


@pytest.fixture
def archives() -> Iterator[SmallArchives]:
    with small_archives() as archives:
        archives.add("one", {PAGE: ["20100101000000"], OTHER: ["20120101000000", "20130101000000"]})
        archives.add("two", {PAGE: ["20150101000000"]})
        archives.add("three", {})
        yield archives


def write_map(folder: Path, name: str, *lines: str) -> None:
    folder.mkdir(exist_ok=True)
    beside = folder / f".{name}"
    beside.write_text(HEAD + "".join(f"{line}\n" for line in lines))
    beside.rename(folder / name)


def timemaps(archives: SmallArchives) -> list[str]:
    """The archives that were asked for a TimeMap, in order."""
    return [path.split("/")[1] for _, path in archives.requests if "/timemap/" in path]


# Routing


def test_maps_voids_and_rules_decide_which_archives_are_asked(archives: SmallArchives, tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    write_map(maps, "one.ukvs", "example,lost)/ 1/1", "example,other)/* 2/1")
    write_map(maps, "two.voids.ukvs", '!meta {"scope": "voids"}', "example,other,* 0")
    archives.archives["three"].keys["never"] = ["lost.example"]
    with serving(archives.write(tmp_path), *QUICK, "--maps", str(maps)) as base:
        reply = ask(base, f"/timemap/link/{PAGE}")
        assert reply.headers["x-memento-count"] == "2"
        assert sorted(timemaps(archives)) == ["one", "two"]
        route = reply.headers["x-recollect-route"]
        assert "one=ask (map example,lost)/ 1/1)" in route
        assert "three=skip (rule never lost.example: not to be asked)" in route
        archives.requests.clear()
        reply = ask(base, f"/timemap/json/{OTHER}")
        assert sorted(timemaps(archives)) == ["one", "three"]
        report = {one["id"]: one for one in reply.json["archives"]}
        assert (report["one"]["key"], report["one"]["frequency"]) == ("example,other)/*", "2/1")
        assert (report["two"]["decision"], report["two"]["source"], report["two"]["key"]) == (
            "skip",
            "voids",
            "example,other,*",
        )
        archives.requests.clear()
        explained = ask(base, f"/route/{OTHER}").json
        assert (explained["ask"], explained["skip"]) == (2, 1)
        assert archives.requests == []
        assert [one["map"] for one in ask(base, "/archives").json] == ["map", "voids", ""]


def test_it_serves_without_uvloop(archives: SmallArchives, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "uvloop.py").write_text("raise ImportError('the extra `speed` is not installed')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(hidden), os.environ.get("PYTHONPATH", "")]))
    with serving(archives.write(tmp_path), *QUICK) as base:
        reply = ask(base, f"/timemap/link/{PAGE}")
        assert reply.status == 200
        assert sorted(timemaps(archives)) == ["one", "three", "two"]


def test_top_k_asks_the_most_promising(archives: SmallArchives, tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    write_map(maps, "two.ukvs", "example,lost)/ 50/1")
    with serving(archives.write(tmp_path), *QUICK, "--maps", str(maps), "--top-k", "1") as base:
        reply = ask(base, f"/timemap/link/{PAGE}")
        assert timemaps(archives) == ["two"]
        assert "one=skipped" in reply.headers["x-recollect-partial"]


def test_a_broken_map_affects_only_its_archive(archives: SmallArchives, tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    write_map(maps, "one.ukvs", "example,lost)/ 1/1")
    (maps / "two.ukvs.gz").write_bytes(b"\x1f\x8b garbage")
    (maps / "notes.txt").write_text("not a map")
    with server_process(archives.write(tmp_path), *QUICK, "--maps", str(maps)) as server:
        assert ask(server.base, f"/timemap/link/{PAGE}").headers["x-memento-count"] == "2"
        assert "two.ukvs.gz" in server.log.read_text()


def test_maps_that_archives_publish_are_fetched_and_used(archives: SmallArchives, tmp_path: Path) -> None:
    # The archive is an aggregator of ours that publishes a map: it announces it, and answers TimeMaps.
    write_map(tmp_path / "made", "map.ukvs", "example,lost)/ 2/1")
    public = tmp_path / "public"
    assert run(["publish", str(tmp_path / "made" / "map.ukvs"), "--to", str(public)]) == 0
    (tmp_path / "front").mkdir()
    maps = tmp_path / "front" / "maps"
    maps.mkdir()
    with serving(archives.write(tmp_path), *QUICK, "--publish", str(public)) as archive:
        registry = tmp_path / "front" / "archives.json"
        registry.write_text(json.dumps([{"id": "upstream", "timemap": f"{archive}/timemap/link/"}]))
        with serving(registry, *QUICK, "--maps", str(maps), "--discover", "1h") as base:
            eventually(lambda: ask(base, "/archives").json[0]["map"] == "map", 30)
            assert ask(base, f"/timemap/link/{PAGE}").headers["x-memento-count"] == "2"
            archives.requests.clear()
            assert ask(base, f"/timemap/link/{OTHER}").status == 404
            assert archives.requests == [], "the map says that it holds none"


def test_an_archive_may_name_its_map_itself(archives: SmallArchives, tmp_path: Path) -> None:
    write_map(tmp_path, "holdings.ukvs", "example,other)/* 2/1")
    archives.archives["two"].keys["map"] = "holdings.ukvs"
    with serving(archives.write(tmp_path), *QUICK) as base:
        ask(base, f"/timemap/link/{PAGE}")
        assert sorted(timemaps(archives)) == ["one", "three"]


# Reload and stop


@contextmanager
def steady_load(base: str, path: str) -> Iterator[list[int]]:
    """Four clients that ask without a pause; the statuses they got."""
    statuses: list[int] = []
    stop = threading.Event()

    def client() -> None:
        while not stop.is_set():
            try:
                statuses.append(ask(base, path).status)
            except OSError:
                statuses.append(0)

    threads = [threading.Thread(target=client) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_reload_swaps_archives_and_maps_and_drops_no_one(
    archives: SmallArchives, tmp_path: Path, workers: str
) -> None:
    maps = tmp_path / "maps"
    write_map(maps, "two.ukvs", "example,elsewhere)/ 1/1")
    registry = archives.write(tmp_path)
    flags = (*QUICK, "--maps", str(maps), "--workers", workers)
    with server_process(registry, *flags) as server, steady_load(server.base, f"/timemap/link/{PAGE}") as statuses:
        assert ask(server.base, f"/timemap/link/{PAGE}").headers["x-memento-count"] == "1"
        write_map(maps, "two.ukvs", "example,lost)/ 1/1")
        archives.add("four", {PAGE: ["20200101000000"]})
        archives.write(tmp_path)
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: all(ask(server.base, "/health").json["archives"] == 4 for _ in range(8)))
        assert ask(server.base, f"/timemap/link/{PAGE}").headers["x-memento-count"] == "3"
        registry.write_text("this is not a list")
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: "nothing was changed" in server.log.read_text())
        assert ask(server.base, f"/timemap/link/{PAGE}").headers["x-memento-count"] == "3"
    assert len(statuses) > 10
    assert set(statuses) == {200}


def eventually(check: object, seconds: float = 10.0) -> None:
    give_up = time.monotonic() + seconds
    while not check():  # type: ignore[operator]
        assert time.monotonic() < give_up, "it never came true"
        time.sleep(0.05)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_stop_lets_requests_end(archives: SmallArchives, tmp_path: Path, workers: str) -> None:
    archives.archives["two"].delay = 1.0
    with server_process(archives.write(tmp_path), *QUICK, "--workers", workers) as server:
        got: list[Reply] = []
        client = threading.Thread(target=lambda: got.append(ask(server.base, f"/timemap/link/{PAGE}")))
        client.start()
        eventually(lambda: "two" in timemaps(archives))
        server.process.send_signal(signal.SIGTERM)
        client.join()
        assert (got[0].status, got[0].headers["x-memento-count"]) == (200, "2")
        assert server.process.wait(10) == 0
        with pytest.raises(OSError):
            ask(server.base, "/health")


def test_a_worker_that_dies_is_replaced(archives: SmallArchives, tmp_path: Path) -> None:
    with server_process(archives.write(tmp_path), *QUICK, "--workers", "2") as server:
        pid = server.process.pid

        def workers() -> list[int]:
            return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

        before = workers()
        assert len(before) == 2
        os.kill(before[0], signal.SIGKILL)
        eventually(lambda: len(workers()) == 2 and before[0] not in workers())
        assert ask(server.base, f"/timemap/link/{PAGE}").status == 200


# The operator


def test_operators_need_a_token(archives: SmallArchives, tmp_path: Path) -> None:
    with serving(archives.write(tmp_path), "--no-learn", "--admin-token", "s3cret", "--workers", "2") as base:
        for path, method in (("/metrics", "GET"), ("/reload", "POST")):
            assert ask(base, path, method).status == 401
            assert ask(base, path, method, Authorization="Bearer wrong").status == 401
        for _ in range(5):
            ask(base, f"/timemap/link/{PAGE}")
        key = {"Authorization": "Bearer s3cret"}

        def counted() -> float:
            lines = ask(base, "/metrics", **key).body.decode().splitlines()
            return sum(float(line.rsplit(" ", 1)[1]) for line in lines if 'endpoint="timemap",status="200"' in line)

        eventually(lambda: counted() == 5)  # workers leave their counters every second
        text = ask(base, "/metrics", **key).body.decode()
        assert text.count("# TYPE recollect_requests_total counter") == 1
        assert 'recollect_archive_state{archive="one"' in text
        assert ask(base, "/reload", "POST", **key).json == {"reloaded": "3 archives, 0 maps"}
        assert ask(base, "/reload", **key).status == 405
        assert "failures" in ask(base, "/archives", **key).json[0]["detail"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_operator_may_have_a_port_of_its_own(archives: SmallArchives, tmp_path: Path, workers: str) -> None:
    flags = ("--admin-port", "0", "--workers", workers)
    with server_process(archives.write(tmp_path), *QUICK, *flags) as server:
        base, own = server.base, ""
        while not own:  # it is printed after the address of the server
            own = server.log.read_text().partition("The operator's port is ")[2].partition("/\n")[0]
        assert ask(own, "/metrics").status == 200
        assert ask(base, "/metrics").status == 401
        assert "failures" in ask(own, "/archives").json[0]["detail"]
        assert "detail" not in ask(base, "/archives").json[0]


def test_the_port_of_the_operator_serves_no_page_of_another_site(archives: SmallArchives, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with serving(archives.write(tmp_path), *QUICK, "--admin-port", str(port)):
        own = f"http://127.0.0.1:{port}"
        plain = ask(own, "/metrics")
        assert plain.status == 200
        assert not [name for name in plain.headers if name.startswith("access-control-")]
        assert ask(own, "/archives", Origin=own).status == 200
        assert ask(own, "/metrics", Origin="http://evil.example").status == 403
        assert ask(own, "/reload", "POST", Origin="null").status == 403
        assert ask(own, "/metrics", Host="rebound.evil.example").status == 403
        for path in (f"/stream/{PAGE}", f"/memento/proxy/2010/{PAGE}", f"/timemap/link/{PAGE}", "/nothing", "/"):
            for method in ("GET", "HEAD", "OPTIONS"):
                headers = ask(own, path, method).headers
                assert not [name for name in headers if name.startswith("access-control-")], (method, path)
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            client.sendall(b"GET / HT\x00TP/1.1\r\n\r\n")
            assert b"access-control" not in client.recv(65536).lower()


def test_the_access_log_is_read_by_everything_that_reads_logs(archives: SmallArchives, tmp_path: Path) -> None:
    log = tmp_path / "access.jsonl"
    with server_process(archives.write(tmp_path), *QUICK, "--access-log", str(log)) as server:
        ask(server.base, f"/timemap/link/{PAGE}")
        ask(server.base, "/timegate/http://nothing.example/")
        ask(server.base, "/health")
        log.rename(tmp_path / "old.jsonl")
        server.process.send_signal(signal.SIGHUP)  # as log rotation does
        eventually(log.exists)
        ask(server.base, f"/memento/2010/{PAGE}")
    entries = [entry for name in ("old.jsonl", "access.jsonl") for entry in read_lookups(tmp_path / name)]
    assert [(entry.uri, entry.status) for entry in entries] == [
        (PAGE, 200),
        ("http://nothing.example/", 404),
        (PAGE, 302),
    ]
    first = json.loads((tmp_path / "old.jsonl").read_text().splitlines()[0])
    assert first["archives"] == {"one": 1, "two": 1, "three": 0}
    assert set(first["times"]) == {"one", "two", "three"}


def test_no_one_who_watches_can_hold_up_a_lookup(archives: SmallArchives, tmp_path: Path) -> None:
    archives.add("large", {PAGE: [f"{year}0101{second:06d}" for year in range(1990, 2020) for second in range(9)]})
    with serving(archives.write(tmp_path), *QUICK) as base:
        host, port = urlsplit(base).netloc.split(":")
        asleep = []
        for _ in range(3):
            watcher = socket.create_connection((host, int(port)))
            watcher.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            watcher.sendall(b"GET /monitor HTTP/1.1\r\nHost: x\r\n\r\n")
            asleep.append(watcher)  # never reads
        awake = socket.create_connection((host, int(port)))
        awake.sendall(b"GET /monitor HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"text/event-stream" in awake.recv(65536)
        started = time.monotonic()
        for _ in range(150):
            assert ask(base, f"/timemap/link/{PAGE}").status == 200
        assert time.monotonic() - started < 20
        awake.settimeout(5)
        data = b""
        while b"event: lookup" not in data:
            data += awake.recv(65536)
        event = json.loads(data.split(b"data: ")[1].split(b"\n")[0])
        assert event["uri"] == PAGE
        for one in (*asleep, awake):
            one.close()


# The cache


def test_the_cache_survives_a_restart_and_obeys_the_client(archives: SmallArchives, tmp_path: Path) -> None:
    registry = archives.write(tmp_path)
    flags = ("--no-learn", "--state", str(tmp_path / "state"))
    with serving(registry, *flags) as base:
        assert ask(base, f"/timemap/link/{PAGE}").headers["x-recollect-cache"] == "miss"
        body = ask(base, f"/timemap/link/{PAGE}").body
    count = len(archives.requests)
    with serving(registry, *flags) as base:
        again = ask(base, f"/timemap/link/{PAGE}", Host=urlsplit(base).netloc)
        assert again.headers["x-recollect-cache"] == "hit"
        assert len(again.body) == len(body)
        assert len(archives.requests) == count
        only = ask(base, "/timemap/link/http://unseen.example/", Cache_Control="only-if-cached")
        assert (only.status, only.json["error"]["kind"]) == (504, "not-cached")
        assert len(archives.requests) == count
        ask(base, f"/timemap/link/{PAGE}", Cache_Control="no-cache")
        assert len(archives.requests) == count + 3
        ask(base, f"/timemap/link/{PAGE}", Cache_Control="max-age=1000")
        assert len(archives.requests) == count + 3


def test_what_is_cached_does_not_bring_back_an_archive_that_was_taken_out(
    archives: SmallArchives, tmp_path: Path
) -> None:
    with serving(archives.write(tmp_path), "--no-learn", "--admin-token", "s3cret") as base:
        for _ in range(4):
            assert ask(base, f"/timemap/link/{PAGE}").headers["x-memento-count"] == "2"
        del archives.archives["two"]
        archives.write(tmp_path)
        assert ask(base, "/reload", "POST", Authorization="Bearer s3cret").status == 200
        for _ in range(4):
            reply = ask(base, f"/timemap/link/{PAGE}")
            assert reply.headers["x-memento-count"] == "1"
            assert b"/two/" not in reply.body


def test_two_servers_share_a_cache_on_redis(archives: SmallArchives, tmp_path: Path) -> None:
    with redis_server(tmp_path) as url:
        registry = archives.write(tmp_path)
        flags = ("--no-learn", "--cache", url)
        with serving(registry, *flags) as base:
            ask(base, f"/timemap/link/{PAGE}")
            count = len(archives.requests)
        with serving(registry, *flags) as base:
            reply = ask(base, f"/timemap/link/{PAGE}")
            assert (reply.headers["x-recollect-cache"], reply.headers["x-memento-count"]) == ("hit", "2")
            assert len(archives.requests) == count
    with server_process(registry, *flags) as server:  # and without Redis it still answers
        assert ask(server.base, f"/timemap/link/{PAGE}").headers["x-memento-count"] == "2"
        assert "the cache cannot be read" in server.log.read_text()


# Learning


def test_what_is_learned_survives_a_restart(archives: SmallArchives, tmp_path: Path) -> None:
    lost = [f"http://lost.example/{n}" for n in range(WARM // 2)]
    national = [f"http://h{n}.pt/" for n in range(WARM // 2)]
    archives.archives["one"].holdings = {uri: ["20100101000000"] for uri in lost}
    archives.archives["three"].holdings = {uri: ["20100101000000"] for uri in national}
    registry = archives.write(tmp_path)
    flags = ("--no-cache", "--state", str(tmp_path / "state"))
    with serving(registry, *flags) as base:
        for uri in (*lost, *national):
            assert ask(base, f"/timemap/link/{uri}").status == 200
    archives.requests.clear()
    with serving(registry, *flags) as base:
        for number in range(30):
            assert ask(base, f"/timemap/link/http://lost.example/{number}").status == 200
        route = ask(base, f"/route/{PAGE}").json["archives"]
        assert {one["source"] for one in route} == {"learned"}
        partial = [ask(base, f"/timemap/link/{uri}").headers.get("x-recollect-partial", "") for uri in lost[:30]]
        assert sum("three=skipped" in one for one in partial) > 15, "those that were not asked are named"
        named = ask(base, "/timemap/json/http://lost.example/3?archives=three").json["error"]["archives"]
        assert [one["id"] for one in named if one["decision"] == "ask"] == ["three"]
        archives.requests.clear()
        assert ask(base, "/timemap/link/http://lost.example/never-seen").status == 404
        assert sorted(timemaps(archives)) == ["one", "three", "two"], "before a 404 all are asked"


def test_a_damaged_model_and_a_damaged_cache_are_set_aside(archives: SmallArchives, tmp_path: Path) -> None:
    registry = archives.write(tmp_path)
    state = tmp_path / "state"
    with serving(registry, "--state", str(state)) as base:
        assert ask(base, f"/timemap/link/{PAGE}").status == 200
    for name in ("learned", "cache.sqlite"):
        (state / name).write_bytes(b"garbage" * 999)
    (state / "cache.sqlite-wal").unlink(missing_ok=True)
    with serving(registry, "--state", str(state)) as base:
        assert ask(base, f"/timemap/link/{PAGE}").status == 200
    assert {one.name for one in state.iterdir()} >= {"learned", "learned.damaged", "cache.sqlite.damaged"}


# Hostility


def test_a_lookup_that_comes_round_again_is_stopped(tmp_path: Path) -> None:
    with small_archives() as archives:
        registry = archives.write(tmp_path)
        registry.write_text(json.dumps([{"id": "x", "timemap": "http://127.0.0.1:9/"}]))
        with server_process(registry, *QUICK) as server:
            ours = [{"id": "ourselves", "timemap": f"{server.base}/timemap/link/"}]
            registry.write_text(json.dumps(ours))
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: ask(server.base, "/archives").json[0]["id"] == "ourselves")
            reply = ask(server.base, f"/timemap/link/{PAGE}")
            assert reply.status == 502
            assert reply.json["error"]["archives"][0]["error"] == "status 508"


def test_redirects_and_hosts_cannot_lead_us_elsewhere(archives: SmallArchives, tmp_path: Path) -> None:
    with small_archives() as inside:
        inside.add("secret", {PAGE: ["20150101000000"]})
        archives.redirects["one", PAGE] = f"{inside.base}/secret/web/20150101000000/{PAGE}"
        with serving(archives.write(tmp_path), *QUICK) as base:
            reply = ask(base, f"/memento/proxy/2010/{PAGE}")
            assert reply.headers.get("location", "").startswith(base)
            evil = ask(base, f"/timemap/json/{PAGE}", Host="evil.example\r\nX: y".replace("\r\n", ""))
            assert "evil" not in evil.json["self"]
            ask(base, f"/timemap/link/{quote(inside.base, safe='')}%2Fadmin")
        assert inside.requests == []


@contextmanager
def replaying(capture: bytes) -> Iterator[str]:
    """An archive that lists one memento of everything, and replays it with exactly these bytes."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            path = self.rfile.readline().split(b" ")[1]
            while self.rfile.readline().strip():
                pass
            if not path.startswith(b"/timemap/"):
                self.wfile.write(capture.replace(b"BASE", base.encode()))
                return
            link = f'<{base}/web/20150101000000/{PAGE}>; rel="memento"; datetime="Thu, 01 Jan 2015 00:00:00 GMT"'
            self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + link.encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        base = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield base
        server.shutdown()


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        (b"X-A: a\rX-Evil: 1\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
        (b"X(A: 1\r\nContent-Length: 5, 5\r\n\r\nhello", b"hello"),
        (b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b"Content-Length: 20\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b"WWW-Authenticate: Basic\r\nX-Recollect-Partial: x\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
    ],
)
def test_a_hostile_capture_passes_as_what_it_is_and_no_more(tmp_path: Path, fields: bytes, body: bytes) -> None:
    capture = b"HTTP/1.1 200 OK\r\nMemento-Datetime: nonsense\r\nX-Good: yes\r\n" + fields
    with replaying(capture) as archive:
        registry = tmp_path / "archives.json"
        registry.write_text(json.dumps([{"id": "a", "timemap": f"{archive}/timemap/"}]))
        with serving(registry, *QUICK) as base:
            reply = ask(base, f"/memento/proxy/2015/{PAGE}")
            assert (reply.status, reply.body, reply.headers["x-good"]) == (200, body, "yes")
            assert reply.headers["memento-datetime"] == "Thu, 01 Jan 2015 00:00:00 GMT"
            assert not {"x-evil", "x-a", "x(a", "www-authenticate", "x-recollect-partial"} & set(reply.headers)


def test_a_captured_redirect_leads_to_the_memento_of_its_target(tmp_path: Path) -> None:
    capture = (
        b"HTTP/1.1 302 Found\r\nMemento-Datetime: Thu, 01 Jan 2015 00:00:00 GMT\r\nContent-Length: 0\r\n"
        b"Location: BASE/web/20150101000000id_/http://new.example/x\r\n\r\n"
    )
    with replaying(capture) as archive:
        registry = tmp_path / "archives.json"
        registry.write_text(json.dumps([{"id": "a", "timemap": f"{archive}/timemap/"}]))
        with serving(registry, *QUICK) as base:
            reply = ask(base, f"/memento/proxy/2015/{PAGE}")
            assert reply.headers["location"] == f"{base}/memento/proxy/20150101000000/http://new.example/x"


def test_unusual_requests_are_answered(archives: SmallArchives, tmp_path: Path) -> None:
    with serving(archives.write(tmp_path), *QUICK) as base:
        host, port = urlsplit(base).netloc.split(":")
        for sent in (
            b"\x00\xff\r\n\r\n",
            b"GET /timemap/link/" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /timemap/link/http://x/ HTTP/1.1\r\n" + b"X: y\r\n" * 100_000 + b"\r\n",
            b"GET /timemap/link/http://\xff\xfe/ HTTP/1.1\r\nHost: x\r\n\r\n",
            b"POST /timemap/link/http://x/ HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n",
        ):
            with socket.create_connection((host, int(port)), timeout=10) as client:
                try:
                    client.sendall(sent)
                    answer = client.recv(65536)
                except ConnectionError:
                    continue
                assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), answer[:100]
        with socket.create_connection((host, int(port)), timeout=10) as client:
            client.sendall(b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert client.recv(65536).startswith(b"HTTP/1.1 204")
        with socket.create_connection((host, int(port)), timeout=10) as client:
            client.sendall(f"HEAD /stream/{PAGE} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            received = b"".join(iter(lambda: client.recv(65536), b""))
            assert received.startswith(b"HTTP/1.1 200")
            assert received.endswith(b"\r\n\r\n"), "a body after HEAD would be taken for the next answer"
        assert ask(base, f"/timemap/link/{PAGE}").status == 200


def test_a_client_that_leaves_cancels_upstream_work(archives: SmallArchives, tmp_path: Path) -> None:
    archives.archives["one"].delay = 30.0
    with serving(archives.write(tmp_path), *QUICK, "--admin-token", "t", "--deadline", "60") as base:
        host, port = urlsplit(base).netloc.split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(f"GET /timemap/link/{PAGE} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            eventually(lambda: "one" in timemaps(archives))

        def busy() -> str:
            text = ask(base, "/metrics", Authorization="Bearer t").body.decode()
            return next(line for line in text.splitlines() if line.startswith('recollect_archive_in_use{archive="one"'))

        eventually(lambda: busy().endswith(" 0"))


# Settings that cannot work


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--archives", "/nowhere.json"), "cannot read the list of archives"),
        (("--maps", "/nowhere"), "no directory of maps"),
        (("--publish", "/nowhere"), "no folder of published maps"),
        (("--deadline", "soon"), "not a duration"),
        (("--host", "203.0.113.1"), "cannot listen"),
    ],
)
def test_a_server_that_cannot_work_says_why_and_ends(tmp_path: Path, flags: tuple[str, ...], words: str) -> None:
    command = [sys.executable, "-m", "recollect", "serve", "--port", "0", *flags]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=30, env={**os.environ, "HOME": str(tmp_path)}
    )
    assert ended.returncode in (1, 2)
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr


# Caching by clients, small print of HTTP


def test_conditional_requests_compression_and_small_print(archives: SmallArchives, tmp_path: Path) -> None:
    many = [f"{2000 + n // 12}{n % 12 + 1:02d}01000000" for n in range(200)]
    archives.archives["one"].holdings[OTHER] = many
    with serving(archives.write(tmp_path), *QUICK) as base:
        first = ask(base, f"/timemap/link/{OTHER}")
        assert first.headers["cache-control"].startswith("public, max-age=")
        etag = first.headers["etag"]
        again = ask(base, f"/timemap/link/{OTHER}", If_None_Match=f'"x", {etag}')
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)
        assert ask(base, f"/timemap/cdxj/{OTHER}", If_None_Match=etag).status == 200
        packed = ask(base, f"/timemap/link/{OTHER}", Accept_Encoding="gzip")
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(packed.body) == first.body
        assert "accept-encoding" in packed.headers["vary"].lower()
        archives.archives["one"].holdings[OTHER] = many[:-1]
        assert ask(base, f"/timemap/link/{OTHER}", If_None_Match=etag).status == 200
        assert ask(base, f"//timemap/link/{OTHER}").status == 200
        assert ask(base, f"/memento/2010/{OTHER}").headers["vary"] == "prefer"
        assert ask(base, f"/timemap/link/http://x.example/{'a' * 8100}").status == 414
        for path in (f"/timemap/json/{OTHER}", f"/timegate/{OTHER}", f"/summary/{OTHER}", "/archives", "/nothing"):
            assert "prefer" in ask(base, path).headers["vary"].split(", "), path
        wrong = ask(base, "/timemap/link/http%3A%2F%2Fx.example%2F?from=2015&to=2014")
        assert (wrong.status, wrong.json["error"]["kind"]) == (400, "bad-request")


def test_a_long_timemap_has_an_etag_too(archives: SmallArchives, tmp_path: Path) -> None:
    archives.archives["one"].holdings[OTHER] = [
        f"{1996 + n // 500}0101{n % 500 // 60:02d}{n % 60:02d}00" for n in range(9000)
    ]
    with serving(archives.write(tmp_path), *QUICK) as base:
        first = ask(base, f"/timemap/link/{OTHER}")
        assert (first.status, first.headers["x-memento-count"]) == (200, "9000")
        again = ask(base, f"/timemap/link/{OTHER}", If_None_Match=first.headers["etag"])
        assert (again.status, again.body) == (304, b"")
        assert ask(base, f"/timemap/json/{OTHER}", If_None_Match=first.headers["etag"]).status == 200


def test_a_client_says_how_long_it_waits(archives: SmallArchives, tmp_path: Path) -> None:
    archives.archives["two"].delay = 20.0
    with serving(archives.write(tmp_path), *QUICK) as base:
        for wait in ("wait=1", 'wait="1"', 'respond-async, wait="1"; x'):
            began = time.monotonic()
            reply = ask(base, f"/timemap/link/{PAGE}", Prefer=wait)
            assert (reply.status, reply.headers["x-recollect-partial"]) == (200, "two=timeout"), wait
            assert time.monotonic() - began < 10


def test_link_and_content_location_agree_when_moments_are_equal(archives: SmallArchives, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        archives.archives[name].holdings[OTHER] = ["20120101000000"]
    with serving(archives.write(tmp_path), *QUICK) as base:
        for at in ("2011", "2012", "20120101000000", "2013"):
            reply = ask(base, f"/memento/proxy/{at}/{OTHER}")
            place = reply.headers["content-location"]
            chosen = ask(base, f"/memento/{at}/{OTHER}").headers["location"]
            assert place == chosen
            links = parse_link_header([reply.headers["link"]])
            assert place in {link.target for link in links if "memento" in link.rels}
            assert place.split("/")[3] in reply.body.decode()


@pytest.mark.parametrize(
    ("sent", "status", "kind"),
    [
        (b"GET /timemap/link/http://x.example/" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, "uri-too-long"),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", 431, "field-too-long"),
        (b"GET /timemap/link/http://x.example/\x01 HTTP/1.1\r\nHost: x\r\n\r\n", 400, "bad-request"),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n", 400, "bad-request"),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400, "bad-request"),
    ],
)
def test_errors_of_http_itself_have_the_shape_of_all_errors(
    http_server: str, sent: bytes, status: int, kind: str
) -> None:
    host, port = urlsplit(http_server).netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as client:
        client.sendall(sent)
        reply = Reply(_response(client))
    assert reply.status == status
    assert (reply.json["error"]["status"], reply.json["error"]["kind"]) == (status, kind)
    assert reply.headers["server"].startswith("recollect/")
    assert reply.headers["connection"] == "close"


def _response(client: socket.socket) -> http.client.HTTPResponse:
    response = http.client.HTTPResponse(client)
    response.begin()
    return response


@pytest.fixture(scope="module")
def http_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    registry = tmp_path_factory.mktemp("http") / "archives.json"
    registry.write_text(json.dumps([{"id": "a", "timemap": "http://127.0.0.1:1/timemap/"}]))
    with serving(registry, *QUICK) as base:
        yield base


def test_all_workers_know_which_archives_rest(archives: SmallArchives, tmp_path: Path) -> None:
    token = {"Authorization": "Bearer secret"}
    with serving(archives.write(tmp_path), *QUICK, "--admin-token", "secret", "--workers", "3") as base:
        for _ in range(3):
            assert ask(base, "/rest/one", "POST", **token).status == 200
            assert {ask(base, f"/timemap/link/{PAGE}").headers["x-memento-count"] for _ in range(20)} == {"1"}
            assert ask(base, "/wake/one", "POST", **token).status == 200
            assert {ask(base, f"/timemap/link/{PAGE}").headers["x-memento-count"] for _ in range(20)} == {"2"}


def test_an_operator_rests_and_wakes_an_archive(archives: SmallArchives, tmp_path: Path) -> None:
    token = {"Authorization": "Bearer secret"}
    with serving(archives.write(tmp_path), *QUICK, "--admin-token", "secret") as base:
        assert ask(base, "/ready").json["status"] == "ready"
        assert ask(base, "/rest/one", "POST").status == 401
        for name in ("one", "two", "three"):
            assert ask(base, f"/rest/{name}", "POST", **token).json == {"archive": name, "state": "resting"}
        assert ask(base, f"/timemap/link/{PAGE}").status == 503
        ready = ask(base, "/ready")
        assert (ready.status, ready.json["resting"]) == (503, ["one", "three", "two"])
        assert ask(base, "/health").status == 200
        assert ask(base, "/wake/one", "POST", **token).status == 200
        assert ask(base, f"/timemap/link/{PAGE}").status == 200
        assert ask(base, "/ready").status == 200
        assert ask(base, "/wake/unknown", "POST", **token).status == 404


def test_the_access_log_names_the_client(
    archives: SmallArchives, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_TRUSTED_PROXIES", "127.0.0.1")
    log = tmp_path / "access.jsonl"
    flags = ("--access-log", str(log))
    with serving(archives.write(tmp_path), *QUICK, *flags) as base:
        fields = {"User_Agent": "check/1", "Referer": "http://from.example/", "X_Forwarded_For": "6.6.6.6, 10.1.2.3"}
        ask(base, f"/timemap/link/{PAGE}", **fields)
    (line,) = map(json.loads, log.read_text().splitlines())
    assert (line["client"], line["agent"], line["referer"]) == ("10.1.2.3", "check/1", "http://from.example/")


def test_user_names_and_passwords_reach_neither_archives_nor_logs(archives: SmallArchives, tmp_path: Path) -> None:
    log = tmp_path / "access.jsonl"
    secret = PAGE.replace("://", "://me:s3cret@")
    encoded = quote(secret, safe="")
    with server_process(archives.write(tmp_path), *QUICK, "--access-log", str(log)) as server:
        paths = (f"/timemap/link/{secret}", f"/timemap/json/{encoded}", f"/memento/2015/{secret}", f"/?uri={encoded}")
        for path in paths:
            reply = ask(server.base, path, Referer=f"http://me:s3cret@from.example/timemap/link/{encoded}")
            assert reply.status in (200, 302), path
            assert b"s3cret" not in reply.body, path
            assert not [value for value in reply.headers.values() if "s3cret" in value], path
        server.process.terminate()
        assert server.process.wait(15) == 0
        assert "s3cret" not in server.log.read_text()
    assert archives.requests and not [path for _, path in archives.requests if "s3cret" in path]
    assert "s3cret" not in log.read_text()
    assert {json.loads(line)["uri"] for line in log.read_text().splitlines()} == {PAGE}


def test_sigterm_under_load_loses_no_request(archives: SmallArchives, tmp_path: Path) -> None:
    lost: list[str] = []
    served: list[int] = []
    closed: list[bool] = []

    def client(netloc: str) -> None:
        connection = http.client.HTTPConnection(netloc, timeout=30)
        try:
            while True:
                connection.request("GET", f"/timemap/link/{PAGE}")
                response = connection.getresponse()
                response.read()
                served.append(response.status)
                if response.getheader("Connection", "").lower() == "close":
                    closed.append(True)
                    return
        except OSError as error:
            lost.append(repr(error))
        finally:
            connection.close()

    with server_process(archives.write(tmp_path), *QUICK) as server:
        clients = [threading.Thread(target=client, args=(urlsplit(server.base).netloc,)) for _ in range(20)]
        for one in clients:
            one.start()
        _until(lambda: len(served) > 100)
        server.process.terminate()
        for one in clients:
            one.join(30)
        assert server.process.wait(15) == 0
    assert lost == []
    assert len(closed) == 20
    assert set(served) == {200}


def test_every_kind_of_answer_ends_its_connection_once_the_server_stops(
    archives: SmallArchives, tmp_path: Path
) -> None:
    many = [f"{2000 + n // 280}{1 + n % 280 // 28:02d}{1 + n % 28:02d}000000" for n in range(5600)]
    archives.add("many", {PAGE: many})
    paths = ("/timemap/link/", "/?uri=", "/stream/", "/memento/proxy/2010/", "/summary/", "/timegate/")
    with server_process(archives.write(tmp_path), *QUICK) as server:
        kept = [http.client.HTTPConnection(urlsplit(server.base).netloc, timeout=30) for _ in range(200)]

        def last_answer(path: str) -> str:
            connection = kept.pop()
            connection.request("GET", path)
            response = connection.getresponse()
            assert response.status in (200, 302)
            response.read()
            connection.close()
            return response.getheader("Connection", "")

        for connection in kept:
            connection.request("GET", "/health")
            connection.getresponse().read()
        server.process.terminate()
        while last_answer("/about") != "close":
            pass
        ended = {path: last_answer(f"{path}{PAGE}") for path in paths}
        assert ended == dict.fromkeys(paths, "close")
        assert server.process.wait(15) == 0


def test_workers_end_with_their_killed_parent_and_a_new_instance_starts(
    archives: SmallArchives, tmp_path: Path
) -> None:
    registry = archives.write(tmp_path)
    with server_process(registry, *QUICK, "--workers", "2") as server:
        port = urlsplit(server.base).port
        assert port is not None and ask(server.base, "/health").status == 200
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(5)
        killed = time.monotonic()
        _until(lambda: not _listens(port))
        assert time.monotonic() - killed < 2
    with server_process(registry, *QUICK, "--port", str(port)) as server:
        assert ask(server.base, f"/timemap/link/{PAGE}").status == 200


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _until(condition: Callable[[], bool], seconds: float = 30) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "it never came true"
        time.sleep(0.02)
