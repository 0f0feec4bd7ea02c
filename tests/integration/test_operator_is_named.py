"""Every command that calls archives or sites names its operator: `--contact`, or RECOLLECT_CONTACT."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from recollect.archives.opening import operator_agent
from recollect.cli.main import cli
from recollect.errors import UsageError


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[tuple[Path, list[str]]]:
    """A list with one archive that holds nothing, and the User-Agent headers that it has seen."""
    agents: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            agents.append(self.headers.get("User-Agent", ""))
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    registry = tmp_path / "archives.toml"
    registry.write_text(
        f'[[archives]]\nid = "a"\nname = "A"\ntimemap = "{base}/timemap/link/"\n'
        f'timegate = "{base}/"\ncdx = "{base}/cdx"\nraw = "{base}/{{timestamp}}id_/{{uri}}"\n'
        f'map = "{base}/.well-known/mementomap"\n'
    )
    yield registry, agents
    server.shutdown()
    server.server_close()


COMMANDS = {
    "timemap": ["timemap", "http://lost.example/"],
    "timegate": ["timegate", "http://lost.example/"],
    "memento": ["memento", "http://lost.example/", "2012"],
    "archives check": ["archives", "check", "--uri", "http://lost.example/"],
    "survey": ["survey", "http://lost.example/"],
    "recover": ["recover", "http://lost.example/", "-o", "site"],
    "discover": ["discover", "a", "--maps", "maps"],
    "sample uris": ["sample", "uris", "a", "--list", "uris.txt", "-o", "run"],
    "reclaim": ["reclaim", "http://lost.example/", "-o", "app"],
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("by", ["option", "environment"])
def test_each_request_names_the_operator(
    name: str, by: str, archive: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, agents = archive
    monkeypatch.chdir(tmp_path)
    Path("uris.txt").write_text("http://lost.example/\n")
    monkeypatch.setenv("RECOLLECT_CONTACT", "" if by == "option" else "ops@library.example")
    arguments = [*COMMANDS[name], "--archives", str(registry)]
    if by == "option":
        arguments += ["--contact", "ops@library.example"]
    result = CliRunner().invoke(cli, arguments)
    assert agents, result.output
    assert all(agent.endswith(" <ops@library.example>") for agent in agents)


def test_a_contact_cannot_add_a_header() -> None:
    with pytest.raises(UsageError, match="header"):
        operator_agent(contact="me@example.org\r\nX-Other: 1")
