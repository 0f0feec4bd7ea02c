"""What deploy/ offers works: units that systemd accepts, options that exist, proxies that keep addresses."""

from __future__ import annotations

import configparser
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest
import yaml
from tests import needs, web_servers

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
    check_options(shlex.split(read(unit)["Service"]["ExecStart"])[1:])


def check_options(words: list[str]) -> None:
    """Assert that there is a command with these options, and that all it needs is given."""
    context = click.Context(cli)
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        assert found is not None
        command, words = found, words[1:]
    given = {word.partition("=")[0] for word in words if word.startswith("-")}
    known = {name for parameter in command.params for name in parameter.opts}
    assert given <= known
    needed = [set(option.opts) for option in command.params if option.required and isinstance(option, click.Option)]
    assert all(names & given for names in needed)


def test_the_container_runs_commands_that_exist_and_not_as_root() -> None:
    text = (DEPLOY.parent / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    last = lines[[number for number, line in enumerate(lines) if line.startswith("FROM ")][-1] :]
    words = {line.split(None, 1)[0]: line.split(None, 1)[1] for line in last}
    assert words["USER"] == "recollect" and "useradd" in words["RUN"]
    assert json.loads(words["ENTRYPOINT"]) == ["recollect"]
    check_options(json.loads(words["CMD"]))
    assert "pip wheel" in text and "/wheels/recollect_web-*.whl" in text
    for line in lines:
        if line.startswith("COPY ") and "--from" not in line:
            assert all((DEPLOY.parent / name).exists() for name in line.split()[1:-1]), line
    extras = re.search(r"\$wheel\[([a-z,]+)\]", text)
    declared = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras is not None and set(extras[1].split(",")) <= declared.keys()


@pytest.mark.parametrize("status", [200, 503])
def test_the_health_check_of_the_container_tells_health(status: int) -> None:
    text = (DEPLOY.parent / "Containerfile").read_text()
    found = re.search(r'HEALTHCHECK .* CMD \["python", "-c", "(.*)"\]', text)
    assert found is not None

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Health) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        environment = {**os.environ, "HEALTH_URL": f"http://127.0.0.1:{server.server_port}/health"}
        done = subprocess.run([sys.executable, "-c", found[1]], env=environment, capture_output=True, timeout=30)
        server.shutdown()
    assert (done.returncode == 0) == (status == 200)
    assert subprocess.run([sys.executable, "-c", found[1]], env={**os.environ, "HEALTH_URL": ""}).returncode == 0


def test_the_services_of_the_compose_file_have_commands_that_exist() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    ours = {name: service for name, service in services.items() if "build" in service}
    assert set(ours) == {"desk", "worker"}
    for service in ours.values():
        check_options(service["command"])
        assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
        assert set(service["depends_on"]) <= services.keys()


def test_workflows_have_jobs_with_runners_and_steps() -> None:
    """What the schema of workflows asks for; `check-jsonschema --builtin-schema vendor.github-workflows` checks all."""
    workflows = sorted((DEPLOY.parent / ".github" / "workflows").glob("*.yml"))
    assert [path.stem for path in workflows] == ["release", "test"]
    for path in workflows:
        found = yaml.safe_load(path.read_text())
        assert found["name"] and found[True]  # YAML 1.1 reads the key `on` as true
        for job in found["jobs"].values():
            assert job["runs-on"] and all(("uses" in step) != ("run" in step) for step in job["steps"])
            needs = job.get("needs", [])
            assert set([needs] if isinstance(needs, str) else needs) <= found["jobs"].keys()


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


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
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
            if self.path == "/stream":
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                self.wfile.write(b"data: first\n\n")
                self.wfile.flush()
                GO_ON.wait(20)
                self.wfile.write(b"data: last\n\n")
                return
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


GO_ON = threading.Event()


@pytest.fixture(params=["nginx", "apache", "caddy"])
def proxy(request: pytest.FixtureRequest, echo: int, served_folder: Path, tmp_path: Path) -> Iterator[str]:
    """Each server with the lines of its sample, in front of the echo."""
    text = (DEPLOY / f"{request.param}-serve.conf").read_text()
    inner = re.search(r"# begin\n(.*?)# end", text, re.DOTALL)
    assert inner is not None
    lines = inner[1].replace("127.0.0.1:1208", f"127.0.0.1:{echo}")
    if request.param != "caddy":
        yield request.getfixturevalue(request.param)(served_folder, lines)
        return
    program = needs.program("Caddy")
    port = web_servers.free_port()
    (tmp_path / "Caddyfile").write_text(f"{{\n\tadmin off\n}}\nhttp://127.0.0.1:{port} {{\n{lines}\n}}\n")
    command = [program, "run", "--config", str(tmp_path / "Caddyfile"), "--adapter", "caddyfile"]
    with web_servers._running(command, port, tmp_path / "caddy.log", HOME=str(tmp_path)):
        yield f"http://127.0.0.1:{port}"


def test_proxies_keep_the_address_in_a_path_as_it_came(proxy: str) -> None:
    for path in ("/timemap/link/http://a.example//b/../c%2Fd?x=1&y=%20", "/timegate/https%3A%2F%2Fa.example%2F"):
        connection = http.client.HTTPConnection(urlsplit(proxy).netloc, timeout=20)
        connection.request("GET", path)
        assert connection.getresponse().read().decode() == path
        connection.close()


def test_proxies_pass_events_at_once(proxy: str) -> None:
    GO_ON.clear()
    connection = http.client.HTTPConnection(urlsplit(proxy).netloc, timeout=15)
    try:
        connection.request("GET", "/stream")
        response = connection.getresponse()
        assert response.readline() == b"data: first\n"  # while the other side waits
        assert not GO_ON.is_set()
        GO_ON.set()
        assert b"data: last" in response.read()
    finally:
        GO_ON.set()
        connection.close()


def started(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """`recollect serve` and its address."""
    command = [sys.executable, "-m", "recollect", "serve", "--port", "0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_the_access_log_is_reopened_by_sighup_and_messages_are_json(tmp_path: Path) -> None:
    log = tmp_path / "access.jsonl"
    (tmp_path / "archives.json").write_text("[]")
    archives = ("--archives", str(tmp_path / "archives.json"))
    process, base = started(*archives, "--access-log", str(log), "--log-format", "json", "-v")
    try:
        lookup(base)
        wait_for(lambda: log.exists() and log.read_text().count("\n") == 1)
        log.rename(tmp_path / "access.jsonl.1")
        process.send_signal(signal.SIGHUP)
        wait_for(log.exists)
        lookup(base)
        wait_for(lambda: log.read_text().count("\n") == 1)
        assert (tmp_path / "access.jsonl.1").read_text().count("\n") == 1
    finally:
        process.terminate()
        said = process.communicate(timeout=30)[1]
    lines = [json.loads(line) for line in said.splitlines()]
    assert any("listens on" in line["message"] for line in lines)
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)


def lookup(base: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=20)
    connection.request("GET", "/timemap/link/http://a.example/")
    connection.getresponse().read()
    connection.close()


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_logrotate_rotates_the_access_log(tmp_path: Path) -> None:
    if (logrotate := shutil.which("logrotate", path=f"{os.environ.get('PATH', '')}:/usr/sbin")) is None:
        pytest.skip("logrotate is not installed")
    log = tmp_path / "access.jsonl"
    log.write_text('{"status": 200}\n')
    owner = f"create 0640 {log.owner()} {log.group()}"
    text = (DEPLOY / "recollect.logrotate").read_text()
    assert "create 0640 recollect adm" in text and "systemctl kill --signal=HUP recollect-serve.service" in text
    text = text.replace("/var/log/recollect/", f"{tmp_path}/").replace("create 0640 recollect adm", owner)
    text = text.replace("systemctl kill --signal=HUP recollect-serve.service", f"touch {tmp_path}/reopened; false")
    (tmp_path / "conf").write_text(text)
    (tmp_path / "conf").chmod(0o644)
    command = [logrotate, "--force", "--verbose", "--state", str(tmp_path / "state"), str(tmp_path / "conf")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr.lower(), done.stderr
    assert (tmp_path / "access.jsonl.1").read_text() == '{"status": 200}\n'
    assert log.read_text() == "" and (tmp_path / "reopened").exists()


def test_tmpfiles_are_made(tmp_path: Path) -> None:
    if shutil.which("systemd-tmpfiles") is None:
        pytest.skip("systemd-tmpfiles is not installed")
    if os.geteuid() != 0:
        pytest.skip("only root gives folders to another user")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "passwd").write_text("root:x:0:0::/:/bin/sh\nrecollect:x:990:990::/:/bin/sh\n")
    (tmp_path / "etc" / "group").write_text("root:x:0:\nadm:x:4:\nrecollect:x:990:\n")
    command = ["systemd-tmpfiles", "--create", f"--root={tmp_path}", str(DEPLOY / "recollect.tmpfiles")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    public, logs = tmp_path / "srv" / "recollect" / "public", tmp_path / "var" / "log" / "recollect"
    assert (public.stat().st_uid, public.stat().st_mode & 0o777) == (990, 0o755)
    assert (logs.stat().st_uid, logs.stat().st_mode & 0o777) == (990, 0o750)
