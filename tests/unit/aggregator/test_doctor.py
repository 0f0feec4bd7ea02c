"""`recollect doctor` finds what would stop a server, and says what to do."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from recollect.aggregator.cli.doctor import doctor
from recollect.maps.publish import publish

MAP = '!context ["http://oduwsdl.github.io/contexts/ukvs"]\n!fields {"keys": ["surt"], "values": ["frequency"]}\n'


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    (tmp_path / "archives.json").write_text(json.dumps([{"id": "one", "timemap": "http://one.example/timemap/"}]))
    for name in ("maps", "state", "public"):
        (tmp_path / name).mkdir()
    (tmp_path / "maps" / "one.ukvs").write_text(MAP + "com,x)/ 1/1\n")
    publish(str(tmp_path / "maps" / "one.ukvs"), tmp_path / "public", updated_at="2026-01-01T00:00:00Z")
    lines = {"archives": "archives.json", "maps": "maps", "state": "state", "publish": "public"}
    text = "".join(f'{name} = "{tmp_path / value}"\n' for name, value in lines.items())
    (tmp_path / "recollect.toml").write_text(text + 'port = 0\ncontact = "me@example.org"\n')
    return tmp_path


def examined(settings: Path, *more: str, code: int = 0) -> dict[str, dict]:
    done = CliRunner().invoke(
        doctor, ["--config", str(settings / "recollect.toml"), "--json", *more], standalone_mode=False
    )
    assert done.exception is None, done.output
    assert done.return_value == code, done.output
    return {finding["subject"]: finding for finding in json.loads(done.output)["findings"]}


def test_when_all_is_well_nothing_is_to_do(settings: Path) -> None:
    found = examined(settings)
    assert {finding["level"] for finding in found.values()} == {"ok"}
    assert {"settings", "port 0", "archives", "map one.ukvs", f"published {settings / 'public'}", "clock"} <= set(found)


def test_a_token_is_a_secret_of_the_file_only_if_it_is_in_it(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = settings / "recollect.toml"
    file.chmod(0o644)
    monkeypatch.setenv("RECOLLECT_ADMIN_TOKEN", "from-the-environment-0123456789")
    assert "secrets" not in examined(settings), "the file has no token"
    monkeypatch.delenv("RECOLLECT_ADMIN_TOKEN")
    with file.open("a") as out:
        out.write('admin_token = "from-the-file-0123456789"\n')
    assert examined(settings)["secrets"]["words"] == f"{file} has a token and others may read it"
    file.chmod(0o600)
    assert "secrets" not in examined(settings)


def test_a_misspelt_setting_is_a_failure(settings: Path) -> None:
    with (settings / "recollect.toml").open("a") as file:
        file.write('prot = "1208"\n')
    assert "prot" in examined(settings, code=1)["settings"]["words"]


def test_a_port_that_another_program_uses_is_a_failure(settings: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (settings / "recollect.toml").open() as file:
            text = file.read().replace("port = 0", f"port = {port}")
        (settings / "recollect.toml").write_text(text)
        found = examined(settings, code=1)[f"port {port}"]
    assert found["level"] == "failure" and "another port" in found["todo"]


def test_damaged_foreign_and_missing_maps_are_named(settings: Path) -> None:
    (settings / "maps" / "two.ukvs").write_text(MAP)
    (settings / "maps" / "three.ukvs.gz").write_bytes(b"\x1f\x8b\x08\x00damaged")
    found = examined(settings, code=1)
    assert found["map two.ukvs"]["level"] == "warning" and "no archive" in found["map two.ukvs"]["words"]
    assert found["map three.ukvs.gz"]["level"] == "failure" and "validate" in found["map three.ukvs.gz"]["todo"]


def test_an_empty_map_is_a_warning(settings: Path) -> None:
    (settings / "maps" / "one.ukvs").write_text("".join(line for line in MAP.splitlines(True) if line[0] == "!"))
    found = examined(settings)["map one.ukvs"]
    assert found["level"] == "warning" and "says no to everything" in found["words"]


def test_a_published_file_that_was_changed_and_an_update_that_failed_are_failures(settings: Path) -> None:
    (settings / "public" / ".well-known" / "mementomap").write_text(MAP)
    (settings / "public" / "status.json").write_text(json.dumps({"error": "no index files"}))
    found = examined(settings, code=1)
    assert found[f"published {settings / 'public'}"]["level"] == "failure"
    assert found["keep"]["words"] == "no index files"


def test_a_list_of_archives_that_cannot_be_read_is_a_failure(settings: Path) -> None:
    (settings / "archives.json").write_text("[{]")
    assert examined(settings, code=1)["archives"]["level"] == "failure"


def test_a_folder_that_does_not_exist_yet_can_be_made(settings: Path) -> None:
    found = examined(settings, "--data", str(settings / "later"))
    assert found[f"data {settings / 'later'}"]["level"] == "ok"


def test_archives_are_asked_and_those_that_fail_are_named(settings: Path) -> None:
    class Archive(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404 if self.path.startswith("/good/") else 503)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Archive) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        archives = [{"id": name, "timemap": f"{base}/{name}/"} for name in ("good", "ill")]
        (settings / "archives.json").write_text(json.dumps(archives))
        found = examined(settings, "--ask")
        server.shutdown()
    assert found["archive good"]["level"] == "ok" and "answers" in found["archive good"]["words"]
    assert found["archive ill"]["level"] == "warning" and "archives check ill" in found["archive ill"]["todo"]
