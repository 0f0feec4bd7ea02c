"""The commands of the desk's units and of the compose file run, against real servers."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path

import yaml

from desk_world import RunningDesk, start, until
from smtp_server import answering

DEPLOY = Path(__file__).parents[2] / "deploy"


def read(unit: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit)
    return parser


def _in(folder: Path, words: list[str], changes: dict[str, str]) -> list[str]:
    """A command of deploy/ as it can run here: other folders, a free port, servers of the test."""
    text = shlex.join(words)
    for old, new in changes.items():
        assert old in text, f"{old} in {text}"
        text = text.replace(old, new)
    return shlex.split(text.replace("/var/lib/", f"{folder}/"))


def test_the_commands_of_the_desks_units_run_and_end(tmp_path: Path) -> None:
    commands = {name: shlex.split(read(DEPLOY / f"recollect-{name}.service")["Service"]["ExecStart"])[1:]
                for name in ("desk", "worker")}  # fmt: skip
    environment = {"RECOLLECT_DESK_PORT": "0", "RECOLLECT_DESK_WORKERS": "0", "XDG_STATE_HOME": str(tmp_path / "state")}
    desk, said, line = start(_in(tmp_path, commands["desk"], {}), "Recollect desk listens on", **environment)
    [base] = re.findall(r"(http://\S+)/", line)
    token = tmp_path / "recollect-desk" / "worker.token"
    changes = {"https://desk.example.org": base, "/etc/recollect-worker.token": str(token)}
    worker, heard, _ = start(_in(tmp_path, commands["worker"], changes), "waits for jobs")
    for process in (worker, desk):
        process.terminate()
        assert process.wait(20) == 0, said + heard


def test_the_commands_of_the_compose_file_run_together(tmp_path: Path, postgres_url: str) -> None:
    """Desk, worker, PostgreSQL and a mail server, by the commands of the file."""
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert set(services) == {"database", "mails", "desk", "worker"}
    with answering("250 OK") as (port, got):
        changes = {
            "--host=0.0.0.0": "--host=127.0.0.1",
            "--port=1209": "--port=0",
            "postgresql://desk@database/desk": postgres_url,
            "mails:1025": f"127.0.0.1:{port}",
            " --base-url=http://127.0.0.1:1209": "",
        }
        state = {"XDG_STATE_HOME": str(tmp_path / "state")}
        desk, said, line = start(
            _in(tmp_path, services["desk"]["command"], changes), "Recollect desk listens on", **state
        )
        [base] = re.findall(r"(http://\S+)/", line)
        changes = {"http://desk:1209": base, "/shared/": f"{tmp_path}/recollect/"}
        worker, heard, _ = start(_in(tmp_path, services["worker"]["command"], changes), "waits for jobs")
        running = RunningDesk(base, tmp_path / "recollect" / "desk", desk, said)
        assert running.ask("GET", "/ready").status == 200
        [row] = running.operator("GET", "/api/workers").json["workers"]
        assert row["egress"] == "desk"
        job = running.submit("http://lost.example/", "anna@mail.example")
        until(lambda: bool(got), 20, lambda: "".join(said))
        assert got[0].rcpt_tos == ["anna@mail.example"] and running.show(job)["state"] == "pending"
        for process in (worker, desk):
            process.terminate()
            assert process.wait(20) == 0, said + heard
