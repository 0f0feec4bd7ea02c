"""The desk behind nginx, Apache and Caddy, by deploy/*-desk.conf: form, events, uploads, preview, client address."""

from __future__ import annotations

import http.client
import json
import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests import needs, web_servers

from desk_world import RunningDesk, running_desk, running_worker, until
from fake_archive import served, site
from servers import apache_server, nginx_server

DEPLOY = Path(__file__).parents[2] / "deploy"
pytestmark = pytest.mark.xdist_group("desk-proxies")


@contextmanager
def caddy_server(folder: Path, lines: str) -> Iterator[str]:
    program, port = needs.program("Caddy"), web_servers.free_port()
    place = folder / f"caddy-{port}"
    place.mkdir()
    (place / "Caddyfile").write_text(f"{{\n\tadmin off\n}}\nhttp://127.0.0.1:{port} {{\n{lines}\n}}\n")
    command = [program, "run", "--config", str(place / "Caddyfile"), "--adapter", "caddyfile"]
    with web_servers._running(command, port, place / "log", HOME=str(place)):
        yield f"http://127.0.0.1:{port}"


def lines_of(server: str, port: int) -> str:
    """The lines of a sample, for a desk or its previews at a port."""
    inner = re.search(r"# begin\n(.*?)# end", (DEPLOY / f"{server}-desk.conf").read_text(), re.DOTALL)
    assert inner is not None and inner[1].count("127.0.0.1:1209") == 1
    return inner[1].replace("127.0.0.1:1209", f"127.0.0.1:{port}")


@pytest.fixture(params=["nginx", "apache", "caddy"])
def behind(request: pytest.FixtureRequest, served_folder: Path, tmp_path: Path) -> Iterator[Callable[[int], str]]:
    """Starts the server in front of a port: its address."""
    with ExitStack() as stack:

        def start(port: int) -> str:
            lines = lines_of(request.param, port)
            if request.param == "caddy":
                return stack.enter_context(caddy_server(tmp_path, lines))
            server = nginx_server if request.param == "nginx" else apache_server
            return stack.enter_context(server(served_folder, lines))

        yield start


def first_event(base: str, path: str) -> dict[str, object]:
    """The first event of a stream that goes on."""
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=20)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        while not (line := answer.readline()).startswith(b"data:"):
            assert line
        found: dict[str, object] = json.loads(line[5:])
        return found
    finally:
        connection.close()


def test_a_desk_behind_a_web_server_works_as_alone(behind: Callable[[int], str], tmp_path: Path) -> None:
    port, preview_port = web_servers.free_port(), web_servers.free_port()
    base, preview = behind(port), behind(preview_port)
    fake = site("/big.bin")
    fake.add("/big.bin", random.Random(1).randbytes(3_000_000), media_type="application/octet-stream")
    flags = ["--base-url", base, "--preview-url", preview, "--preview-port", str(preview_port), "--workers", "0"]
    with served(fake) as archive, ExitStack() as stack:
        path = tmp_path / "archives.json"
        path.write_text(json.dumps([{"id": "one", "cdx": archive.cdx, "raw": archive.raw}]))
        environment = {"RECOLLECT_DESK_PICTURES": "0"}
        inside = stack.enter_context(running_desk(tmp_path / "desk", path, *flags, port=port, **environment))
        desk = replace(inside, base=base)
        _form(desk)
        job = desk.submit("http://lost.example/", "events@mail.example")
        assert first_event(base, f"/api/jobs/{job.id}/events?token={job.token}")["state"] == "pending"
        place = desk.confirm(job)
        # A worker on another machine comes by the public address, and its results are larger than a form.
        stack.enter_context(running_worker(desk, tmp_path / "work"))
        reply = desk.wait(job, "ready")
        assert reply["result"]["zip"].startswith(base) and len(desk.ask("GET", reply["result"]["zip"]).body) > 3_000_000
        [link] = re.findall(rf'href="({preview}[^"]+)"[^>]*>Look at it', desk.ask("GET", place).text)
        page = desk.ask("GET", link)
        assert page.status == 200 and "Hello" in page.text and "sandbox" in page.headers["Content-Security-Policy"]
        assert desk.ask("GET", f"{preview}/admin/login").status == 404, "another origin has no page of the desk"
        assert desk.ask("GET", "/takedown").status == 200


def _form(desk: RunningDesk) -> None:
    """The first forms, sent as a browser sends them: from this origin, and with a claim to be another client."""
    headers = {"Origin": desk.base, "X_Forwarded_For": "203.0.113.9"}
    until(lambda: "Get it back" in desk.ask("GET", "/survey?uri=lost.example", **headers).text, 30)
    fields = {"uri": "http://lost.example/", "email": "form@mail.example"}
    assert desk.ask("POST", "/jobs", form=fields, **headers).status == 303
    assert desk.ask("POST", "/jobs", form=fields, Origin="http://elsewhere.example").status == 403
    assert desk.mail("form@mail.example", "confirm").get_content().count(desk.base) == 1, (
        "links have the public address"
    )
    with sqlite3.connect(desk.folder / "desk.sqlite", timeout=30) as database:
        [[network]] = database.execute("SELECT network FROM recipient WHERE email = 'form@mail.example'").fetchall()
    assert not network, "the client is the one that the web server sees, whatever the client says"
