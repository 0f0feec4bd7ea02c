"""`bench/aggregator.py --memgator PATH`: a stand-in that speaks MemGator's command line is measured beside us."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
STAND_IN = """#!{python}
import json, os, re, sys
from pathlib import Path
options = dict(one[2:].split("=", 1) for one in sys.argv[1:] if one.startswith("--"))
assert sys.argv[-1] == "server" and json.loads(Path(options["arcs"]).read_text())
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200 if self.path == "/about" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *args):
        pass
ThreadingHTTPServer.request_queue_size = 256
ThreadingHTTPServer((options["host"], int(options["port"])), Handler).serve_forever()
"""


def test_both_are_measured_alternately_and_compared(tmp_path: Path) -> None:
    program = tmp_path / "memgator"
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    command = [sys.executable, str(ROOT / "bench" / "aggregator.py"), "--seconds", "0.2", "--memgator", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    rows = [
        line.split()[0] for line in done.stdout.splitlines() if line.startswith(("MemGator", "broadcast ", "routed "))
    ]
    assert rows == ["MemGator", "broadcast", "routed"] * 3
    assert "broadcast:" in done.stdout and "x MemGator's requests/s at" in done.stdout
