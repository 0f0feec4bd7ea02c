"""The published map beside an archive's own application: WSGI, ASGI, real pywb, nginx, Apache; the whole circle."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.validate import validator

import pytest
import zstandard

import needs
import pywb_archive
import web_servers
from pywb_archive import Capture, PywbArchive, write_warc
from recollect import asgi, wsgi
from recollect.formats.timemap import parse_link_header, parse_timemap
from recollect.formats.ukvs.header import MEDIA_TYPE
from recollect.maps.publish import WELL_KNOWN
from small_archives import serving

LINK = '</.well-known/mementomap>; rel="mementomap"; type="application/ukvs"'
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def ask(base: str, path: str, method: str = "GET", **headers: str) -> tuple[int, list[tuple[str, str]], bytes]:
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=30)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, [(name.lower(), value) for name, value in response.getheaders()], response.read()
    finally:
        connection.close()


def run_keep(folder: Path, index: str, public: Path) -> dict:
    options = ["--index", index, "--to", str(public), "--max-bytes", "100kB", "--data", str(folder / "keep")]
    command = [sys.executable, "-m", "recollect", "keep", *options, "--once", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def public(tmp_path: Path, served_folder: Path) -> Path:
    (tmp_path / "a.cdxj").write_text('com,x)/a 20200101000000 {"url": "http://x.com/a", "status": "200"}\n')
    run_keep(tmp_path, "a.cdxj", served_folder)
    (served_folder / "private.txt").write_text("not published")
    return served_folder


def plain_application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Link", '<http://a/>; rel="original"')])
    return [environ["PATH_INFO"].encode()]


@contextmanager
def over_wsgi(public: Path) -> Iterator[str]:
    class Quiet(WSGIRequestHandler):
        def log_message(self, *_: object) -> None: ...

    application = validator(wsgi.advertise(validator(plain_application), public))
    with make_server("127.0.0.1", 0, application, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def over_asgi(application, path: str, method: str = "GET", **headers: str):
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    fields = [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": fields}
    await application(scope, receive, send)
    said = [(name.decode(), value.decode()) for name, value in sent[0]["headers"]]
    return sent[0]["status"], said, b"".join(message.get("body", b"") for message in sent[1:])


@contextmanager
def over_asgi_like_http(public: Path) -> Iterator[object]:
    async def application(scope, receive, send):
        headers = [(b"content-type", b"text/plain"), (b"link", b'<http://a/>; rel="original"')]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": scope["path"].encode()})

    yield asgi.advertise(application, public)


def test_names_are_those_of_publishing() -> None:
    assert (f"/{WELL_KNOWN}", MEDIA_TYPE) == (wsgi.WELL_KNOWN, wsgi.MEDIA_TYPE)


@pytest.mark.parametrize("interface", ["wsgi", "asgi"])
def test_the_map_is_served_and_every_answer_names_it(public: Path, interface: str) -> None:
    text = (public / ".well-known" / "mementomap").read_bytes()
    with (over_wsgi if interface == "wsgi" else over_asgi_like_http)(public) as place:

        def get(path: str, method: str = "GET", **headers: str):
            if interface == "wsgi":
                return ask(place, path, method, **headers)
            return asyncio.run(over_asgi(place, path, method, **headers))

        status, headers, body = get("/.well-known/mementomap")
        found = dict(headers)
        assert (status, body) == (200, text)
        assert (found["content-type"], found["link"]) == ("application/ukvs", LINK)
        assert get("/.well-known/mementomap", If_None_Match=found["etag"])[0] == 304
        assert get("/.well-known/mementomap", If_Modified_Since=found["last-modified"])[0] == 304
        assert get("/.well-known/mementomap", "HEAD")[::2] == (200, b"")
        part = get("/.well-known/mementomap", Range="bytes=10-19", If_Range=found["etag"])
        assert part[0] == 206 and part[2] == text[10:20]
        assert dict(part[1])["content-range"] == f"bytes 10-19/{len(text)}"
        assert get("/.well-known/mementomap", Range="bytes=-5")[2] == text[-5:]
        assert get("/.well-known/mementomap", Range=f"bytes={len(text)}-")[0] == 416
        assert get("/.well-known/mementomap", Range="bytes=10-19", If_Range='"other"')[2] == text
        packed = get("/.well-known/mementomap", Accept_Encoding="gzip, br")
        assert dict(packed[1])["content-encoding"] == "gzip" and gzip.decompress(packed[2]) == text
        packed = get("/.well-known/mementomap", Accept_Encoding="gzip, zstd")
        assert dict(packed[1])["content-encoding"] == "zstd"
        assert zstandard.ZstdDecompressor().stream_reader(packed[2], read_across_frames=True).read() == text
        assert get("/.well-known/mementomap", Accept_Encoding="gzip;q=0")[2] == text
        assert json.loads(get("/mementomap/index.json")[2])["type"] == "MementoMap"
        assert b"up to date" in get("/status.html")[2] and get("/_/look.css")[0] == 200
        # Anything else is the application's, with its own links first.
        for path in (
            "/",
            "/private.txt",
            "/.mementomap/1/mementomap/index.json",
            "/mementomap/../private.txt",
            "/status",
        ):
            status, headers, body = get(path)
            assert (status, body) == (200, path.encode())
            assert [value for name, value in headers if name == "link"] == ['<http://a/>; rel="original"', LINK]
        assert get("/.well-known/mementomap", "POST")[2] == b"/.well-known/mementomap"


def snippet(name: str, public: Path) -> str:
    """The lines of a sample configuration between its marks, for this folder."""
    text = (DEPLOY / name).read_text()
    inner = re.search(r"# begin\n(.*?)# end", text, re.DOTALL)
    assert inner is not None
    return inner[1].replace("/srv/recollect/public", str(public))


def test_caddy_serves_the_map_by_the_documented_lines(public: Path, tmp_path: Path) -> None:
    program = needs.program("Caddy")
    (public / "index.html").write_text("<p>home")
    port = web_servers.free_port()
    site = f"http://127.0.0.1:{port} {{\n{snippet('caddy-map.conf', public)}\nroot * {public}\nfile_server\n}}\n"
    (tmp_path / "Caddyfile").write_text("{\n\tadmin off\n}\n" + site)
    command = [program, "run", "--config", str(tmp_path / "Caddyfile"), "--adapter", "caddyfile"]
    with web_servers._running(command, port, tmp_path / "caddy.log", HOME=str(tmp_path)):
        base = f"http://127.0.0.1:{port}"
        text = (public / ".well-known" / "mementomap").read_bytes()
        status, headers, body = ask(base, "/.well-known/mementomap")
        assert (status, body) == (200, text)
        assert dict(headers)["content-type"] == "application/ukvs"
        packed = ask(base, "/.well-known/mementomap", Accept_Encoding="gzip")
        assert dict(packed[1])["content-encoding"] == "gzip" and gzip.decompress(packed[2]) == text
        for path in ("/", "/.well-known/mementomap"):
            assert LINK in [value for name, value in ask(base, path)[1] if name == "link"]


@pytest.mark.parametrize("server", ["nginx", "apache"])
def test_real_web_servers_serve_the_map_by_the_documented_lines(
    public: Path, server: str, request: pytest.FixtureRequest, served_folder: Path
) -> None:
    start = request.getfixturevalue(server)
    (served_folder / "index.html").write_text("<p>home")
    base = start(served_folder, snippet(f"{server}-map.conf", public))
    text = (public / ".well-known" / "mementomap").read_bytes()
    status, headers, body = ask(base, "/.well-known/mementomap")
    assert (status, body) == (200, text)
    assert dict(headers)["content-type"].startswith("application/ukvs")
    packed = ask(base, "/.well-known/mementomap", Accept_Encoding="gzip")
    assert dict(packed[1])["content-encoding"] == "gzip" and gzip.decompress(packed[2]) == text
    assert dict(packed[1])["content-type"].startswith("application/ukvs")
    assert json.loads(ask(base, "/mementomap/index.json")[2])["type"] == "MementoMap"
    for path, status in (("/", 200), ("/.well-known/mementomap", 200), ("/absent", 404)):
        found = ask(base, path)
        assert found[0] == status
        links = parse_link_header([value for name, value in found[1] if name == "link"])
        assert [link.target for link in links if "mementomap" in link.rels] == ["/.well-known/mementomap"], path
    assert ask(base, "/.mementomap/current/mementomap/index.json")[0] in (403, 404)


# pywb ----------------------------------------------------------------------------------------------------------------


@contextmanager
def advertised_pywb(directory: Path, captures: list[Capture]) -> Iterator[PywbArchive]:
    """A real pywb whose application is wrapped as documented; nothing of recollect's dependencies is there."""
    script = pywb_archive._SERVER.replace("FrontEndApp(),", "advertise(FrontEndApp(), 'public/'),")
    script = script.replace("import os, sys", "from recollect.wsgi import advertise\nimport os, sys")
    if not pywb_archive.PYWB_PYTHON.exists():
        pytest.skip("pywb is not installed; `make test` installs it")
    (directory / "warcs").mkdir(parents=True)
    write_warc(directory / "warcs" / "first.warc.gz", captures)
    with (directory / "pywb.log").open("wb") as log:
        process = subprocess.Popen(
            [str(pywb_archive.PYWB_PYTHON), "-c", script, "web"],
            cwd=directory,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT / "src")},
        )
    try:
        port = pywb_archive._port(process, directory)
        yield PywbArchive(f"http://127.0.0.1:{port}", "web", process.pid)
    finally:
        process.terminate()
        process.wait(20)


OLD, NEW = "http://old.example/page", "http://new.example/page"


def test_the_whole_circle_with_pywb(tmp_path: Path) -> None:
    """pywb gets new captures, keep updates, the aggregator discovers the map, and asks what it skipped before."""
    home = tmp_path / "pywb"
    with advertised_pywb(home, [Capture(OLD, "20150101000000", b"<p>old")]) as archive:
        plain = ask(archive.base, f"/web/timemap/link/{OLD}")
        assert [value for name, value in plain[1] if name == "link"][-1] == LINK
        assert len(parse_timemap(plain[2], "application/link-format", archive.base)) == 1
        replay = ask(archive.base, f"/web/20150101000000id_/{OLD}")
        links = [value for name, value in replay[1] if name == "link"]
        assert (replay[0], replay[2]) == (200, b"<p>old")
        assert 'rel="memento"' in links[0] or "memento" in links[0]
        assert links[-1] == LINK and ask(archive.base, "/.well-known/mementomap")[0] == 404
        run_keep(home, "collections/*/indexes/", home / "public")
        assert b"example,old)/page" in ask(archive.base, "/.well-known/mementomap")[2]
        entry = {"id": "one", "timemap": archive.timemap, "timegate": archive.timegate}
        (tmp_path / "archives.json").write_text(json.dumps([entry]))
        (tmp_path / "maps").mkdir()
        flags = ["--maps", str(tmp_path / "maps"), "--discover", "1s", "--refresh", "1s", "--no-learn", "--no-cache"]
        with serving(tmp_path / "archives.json", *flags) as base:
            _wait(lambda: (tmp_path / "maps" / "one.ukvs.zst").is_file())
            _wait(lambda: _skipped(base, NEW))
            assert ask(base, f"/timemap/link/{OLD}")[0] == 200
            assert ask(base, f"/timemap/link/{NEW}")[0] == 404
            write_warc(tmp_path / "second.warc.gz", [Capture(NEW, "20200101000000", b"<p>new")])
            add = "from pywb.manager.manager import main; import sys; main(['add', 'web', sys.argv[1]])"
            command = [str(pywb_archive.PYWB_PYTHON), "-c", add, str(tmp_path / "second.warc.gz")]
            subprocess.run(command, cwd=home, check=True, capture_output=True, timeout=60)
            done = run_keep(home, "collections/*/indexes/", home / "public")
            assert (done["captures"], done["verified"]) == (2, 2)
            _wait(lambda: ask(base, f"/timemap/link/{NEW}")[0] == 200)
            found = parse_timemap(ask(base, f"/timemap/link/{NEW}")[2], "application/link-format", base)
            assert [memento.uri.startswith(archive.base) for memento in found] == [True]


def _skipped(base: str, uri: str) -> bool:
    """Whether the aggregator would ask no archive for a URI."""
    said = json.loads(ask(base, f"/route/{uri}")[2])
    return said["ask"] == 0


def _wait(condition, seconds: float = 90.0) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.2)
