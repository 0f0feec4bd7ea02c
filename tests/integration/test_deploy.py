"""What deploy/ offers works: units that systemd accepts, options that exist, proxies that keep addresses."""

from __future__ import annotations

import configparser
import http.client
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest

from recollect.cli.main import cli

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))


def read(unit: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(unit)
    return parser


def test_there_is_a_unit_for_each_service() -> None:
    assert {unit.stem for unit in UNITS} == {
        f"recollect-{name}" for name in ("serve", "keep", "desk", "worker", "watch")
    }


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_the_command_of_a_unit_has_these_options(unit: Path) -> None:
    words = shlex.split(read(unit)["Service"]["ExecStart"])[1:]
    context = click.Context(cli)
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words.pop(0))
        assert found is not None
        command = found
    known = {name for parameter in command.params for name in parameter.opts}
    assert [word for word in words if word.startswith("-") and word not in known] == []


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_accepts_a_unit(unit: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    here = tmp_path / unit.name
    here.write_text(unit.read_text().replace("/opt/recollect/bin/recollect", "/bin/true").replace("User=recollect", ""))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(here)], capture_output=True, text=True, timeout=60
    )
    said = [line for line in done.stderr.splitlines() if unit.name in line]
    assert said == []


@pytest.mark.parametrize("unit", [one for one in UNITS if "desk" not in one.stem], ids=lambda unit: unit.stem)
def test_a_unit_is_confined(unit: Path) -> None:
    service = read(unit)["Service"]
    assert service["ProtectSystem"] == "strict" and service["NoNewPrivileges"] == "yes"
    assert service["User"] == "recollect" and service["CapabilityBoundingSet"] == ""
    if "keep" in unit.stem:
        assert service["PrivateNetwork"] == "yes"


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that answers with the path it was asked for, as it came."""

    class Echo(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.path.encode())

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("server", ["nginx", "apache"])
def test_proxies_keep_the_address_in_a_path_as_it_came(
    server: str, echo: int, served_folder: Path, request: pytest.FixtureRequest
) -> None:
    text = (DEPLOY / f"{server}-serve.conf").read_text()
    inner = re.search(r"# begin\n(.*?)# end", text, re.DOTALL)
    assert inner is not None
    base = request.getfixturevalue(server)(served_folder, inner[1].replace("127.0.0.1:1208", f"127.0.0.1:{echo}"))
    for path in ("/timemap/link/http://a.example//b/../c%2Fd?x=1&y=%20", "/timegate/https%3A%2F%2Fa.example%2F"):
        connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=20)
        connection.request("GET", path)
        assert connection.getresponse().read().decode() == path
        connection.close()
