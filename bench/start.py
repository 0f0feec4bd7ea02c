"""What starting costs: CPU seconds of every command on a tiny input in a fresh environment, at first and later.

    make bench-start                      in a new environment with the package alone, as users have it
    make bench-start ARGS='--here'        in this environment
    make bench-start ARGS='profile stats' these commands only

Columns: the first run after `pip install`, which compiles bytecode; the median of nine more runs; and a run after the
bytecode of Recollect was deleted, as in an installation without any (`pip install --no-compile`), for information.
Wanted: at most 0.35 s for each command, 0.7 s for a server until it listens, 0.1 s for `recollect --help`. No command
here asks an archive: those that would are given a server on this machine that answers 404.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
MOST, MOST_SERVER, MOST_HELP = 0.35, 0.7, 0.1
ROUNDS = 10
# Commands that wait between their requests, for politeness, run three times.
POLITE = ("recover", "survey")
# Commands that do not end, and what they print when they are ready.
READY = {
    "serve": b"http://",
    "desk": b"listens on",
    "preview": b"http://",
    "worker": b"waits for jobs",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", help="these only")
    parser.add_argument("--here", action="store_true", help="in this environment instead of a new one")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recollect-start-") as temporary, nothing_but_404() as port:
        folder, work = Path(temporary), Path(temporary) / "work"
        program = [str(Path(sys.executable).parent / "recollect")] if chosen.here else fresh(folder / "environment")
        make_inputs(work, program, port)
        with desk(program, work) as address:
            print(f"\n{'command':24}{'first':>8}{'tenth':>8}{'wanted':>8}{'no bytecode':>14}   CPU seconds")
            good = True
            for name, arguments in commands(address, port).items():
                if not chosen.commands or name.split()[0] in chosen.commands:
                    good &= measure(name, [*program, *arguments], work, None if chosen.here else folder / "environment")
    return 0 if good else 1


def fresh(folder: Path) -> list[str]:
    """The command of a new environment with the package and what it needs, compiled to bytecode by pip as ever."""
    print("making an environment ...", flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), str(ROOT)], check=True, stderr=subprocess.DEVNULL)
    packages = [
        path for path in (folder / "lib").rglob("site-packages/*") if not path.name.startswith(("pip", "setuptools"))
    ]
    size = sum(file.stat().st_size for path in packages for file in files_of(path))
    print(f"installed: {size / 1e6:.0f} MB with all dependencies (at most 230)")
    return [str(folder / "bin/recollect")]


def files_of(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif path.is_dir():
        yield from (file for file in path.rglob("*") if file.is_file())


def make_inputs(work: Path, program: list[str], port: int) -> None:
    """An index of 120 captures, maps of it, a log of lookups, a list of archives with one that holds nothing."""
    work.mkdir()
    keys = sorted({f"com,example)/{name}/{n}" for name in "abc" for n in range(40)})
    (work / "index.cdxj").write_text(
        "".join(
            f'{key} 2015010100{n % 60:02d}00 {{"url": "http://example.com/", "mime": "text/html", "status": "200"}}\n'
            for n, key in enumerate(keys)
        )
    )
    (work / "urls.txt").write_text("".join(f"http://example.com/a/{n}\n" for n in range(60)))
    base = f"http://127.0.0.1:{port}"
    archive = {"id": "none", "name": "None", "timemap": f"{base}/timemap/link/", "timegate": f"{base}/timegate/"}
    (work / "archives.json").write_text(json.dumps([archive]))
    (work / "app").mkdir()
    (work / "app/code.py").write_text("print()\n")
    (work / "pages").mkdir()
    for number in range(12):
        (work / f"pages/{number}.html").write_text("<html><body>A page</body></html>\n")
    (work / "run").mkdir()
    for arguments in (
        ["profile", "index.cdxj", "-o", "none.ukvs", "--quiet"],
        ["profile", "urls.txt", "-o", "other.ukvs", "--quiet"],
        ["watch", "add", f"{base}/watched/", "--data", "watch", "--allow-private"],
        ["sample", "uris", "none", "--archives", "archives.json", "--list", "urls.txt", "--probes", "3", "-o", "run"],
    ):
        subprocess.run([*program, *arguments], cwd=work, check=True, env=clean(work), stderr=subprocess.DEVNULL)
    python = Path(program[0]).with_name("python")
    paths = clean(work) | {"PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])}
    subprocess.run([str(python), "-c", RECOVERED], cwd=work, check=True, env=paths)
    (work / "maps").mkdir()
    shutil.copy(work / "none.ukvs", work / "maps/none.ukvs")


# A recovered site of one page, made by the store that tests fill.
RECOVERED = """
from pathlib import Path
from stores import fill
with fill(Path("recovered"), [("http://x.com/", "text/html", b"<html><body>A page</body></html>")]) as store:
    from recollect.recovery.outputs import Outputs, write_outputs
    write_outputs(store, Outputs(), lambda _progress: None)
"""


def commands(address: str, port: int) -> dict[str, list[str]]:
    """The arguments of each command, by what is shown of it."""
    page = "http://example.com/a/1"
    network = ["--archives", "archives.json"]
    return {
        "--help": ["--help"],
        "profile": ["profile", "index.cdxj", "-o", "p.ukvs", "--quiet"],
        "profile (URLs)": ["profile", "urls.txt", "-o", "p.ukvs", "--quiet"],
        "verify": ["verify", "none.ukvs", "index.cdxj"],
        "compact": ["compact", "none.ukvs", "-o", "c.ukvs", "--quiet"],
        "compact --max-keys": ["compact", "none.ukvs", "--max-keys", "20", "-o", "c.ukvs", "--quiet"],
        "merge": ["merge", "none.ukvs", "other.ukvs", "-o", "m.ukvs", "--quiet"],
        "diff": ["diff", "none.ukvs", "other.ukvs"],
        "validate": ["validate", "none.ukvs"],
        "lookup": ["lookup", "none.ukvs", page],
        "lookup (list)": ["lookup", "none.ukvs", "--from", "urls.txt"],
        "evaluate": ["evaluate", "none.ukvs", "--holdings", "index.cdxj", "--lookups", "urls.txt", "--quiet"],
        "filter": ["filter", "none.ukvs", "-o", "f.filter"],
        "voids": ["voids", "urls.txt", "--map", "none.ukvs", "-o", "v.ukvs", "--quiet"],
        "tradeoff": ["tradeoff", "none.ukvs", "-o", "t.html"],
        "overlap": ["overlap", "--holdings", "none.ukvs", "--lookups", "urls.txt"],
        "stats": ["stats", "index.cdxj"],
        "report": ["report", "index.cdxj", "-o", "r.html"],
        "publish": ["publish", "none.ukvs", "--to", "public"],
        "surt": ["surt", page],
        "completion": ["completion", "bash"],
        "config": ["config"],
        "archives": ["archives", "list", *network],
        "route": ["route", page, *network, "--maps", "maps"],
        "replay": ["replay", "urls.txt", *network, "--maps", "maps"],
        "timemap": ["timemap", page, *network],
        "timegate": ["timegate", page, *network],
        "memento": ["memento", page, "2015", *network],
        "survey": ["survey", "http://example.com/", *network],
        "recover": ["recover", "http://example.com/", *network, "-o", "site"],
        "review": ["review", "recovered"],
        "preview": ["preview", "recovered", "--port", "0"],
        "inspect": ["inspect", "index.cdxj"],
        "keep --once": [
            *("keep", "--index", "index.cdxj", "--to", "public-kept", "--max-bytes", "1MB", "--data", "kept"),
            *("--once", "--quiet"),
        ],
        "sample map": ["sample", "map", "run", "-o", "sampled.ukvs"],
        "protect plan": ["protect", "plan", "pages", "--files", "app", "--quiet"],
        "watch add": ["watch", "add", f"http://127.0.0.1:{port}/other/", "--data", "watch2", "--allow-private"],
        "watch status": ["watch", "status", "--data", "watch"],
        "doctor": ["doctor", "--maps", "maps", *network],
        "jobs list": ["jobs", "list", "--desk", address, "--data", "desk"],
        "worker": ["worker", "--desk", address, "--token-file", "desk/worker.token", "--work", "working"],
        "desk": ["desk", "--data", "desk2", *network, "--port", "0", "--workers", "0"],
        "serve": ["serve", *network, "--maps", "maps", "--port", "0"],
    }


def measure(name: str, command: list[str], work: Path, environment: Path | None) -> bool:
    most = MOST_SERVER if name in ("serve", "desk", "preview") else MOST_HELP if name == "--help" else MOST
    seconds = [run(name, command, work) for _ in range(3 if name in POLITE else ROUNDS)]
    first, tenth = seconds[0], median(seconds[1:])
    bare = "" if environment is None else f"{without_bytecode(name, command, work, environment):.2f}"
    good = max(first, tenth) <= most
    print(f"{name:24}{first:8.2f}{tenth:8.2f}{most:8.2f}{bare:>14}   {'' if good else 'too slow'}", flush=True)
    return good


def without_bytecode(name: str, command: list[str], work: Path, environment: Path) -> float:
    """CPU seconds of a run that compiles the modules of Recollect which it imports."""
    (package,) = environment.glob("lib/*/site-packages/recollect")
    for folder in package.rglob("__pycache__"):
        shutil.rmtree(folder)
    seconds = run(name, command, work)
    subprocess.run([str(environment / "bin/python"), "-m", "compileall", "-q", str(package)], check=True)
    return seconds


def run(name: str, command: list[str], work: Path) -> float:
    for made in ("site", "watch2", "desk2", "public-kept", "kept"):
        shutil.rmtree(work / made, ignore_errors=True)
    return until_ready(command, work, READY[name]) if name in READY else to_its_end(command, work)


def to_its_end(command: list[str], work: Path) -> float:
    """CPU seconds of a command; answers such as "not held" have exit codes of their own, faults do not count."""
    with (work / "stderr.txt").open("wb") as errors:
        process = subprocess.Popen(command, cwd=work, stdout=subprocess.DEVNULL, stderr=errors, env=clean(work))
        _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) in (1, 2) and b"rror" in (written := (work / "stderr.txt").read_bytes()):
        raise SystemExit(f"failed: {' '.join(command)}\n{written.decode()}")
    return usage.ru_utime + usage.ru_stime


def until_ready(command: list[str], work: Path, sign: bytes) -> float:
    """CPU seconds of a command until it prints a sign that it is ready."""
    process = subprocess.Popen(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=clean(work))
    _read_until(process, sign)
    ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    process.terminate()
    process.communicate()
    return (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")


def _read_until(process: subprocess.Popen[bytes], sign: bytes) -> str:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if sign in line:
            return line.decode()
    raise SystemExit(f"it ended before it was ready: {b''.join(lines).decode()}")


@contextmanager
def desk(program: list[str], work: Path) -> Iterator[str]:
    """A desk that `jobs` and `worker` can ask; gives its address."""
    command = [*program, "desk", "--data", "desk", "--archives", "archives.json", "--port", "0", "--workers", "0"]
    process = subprocess.Popen(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=clean(work))
    try:
        yield _read_until(process, READY["desk"]).split()[-1]
    finally:
        process.terminate()
        process.communicate()


def clean(work: Path) -> dict[str, str]:
    """An environment in which nothing is found that earlier runs of the user have kept."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONDONT", "RECOLLECT"))}
    folders = {
        "HOME": work,
        "XDG_CACHE_HOME": work / "cache",
        "XDG_CONFIG_HOME": work / "config",
        "XDG_STATE_HOME": work / "state",
    }
    return {**kept, "PYTHONUNBUFFERED": "1", **{name: str(folder) for name, folder in folders.items()}}


@contextmanager
def nothing_but_404() -> Iterator[int]:
    """A server that holds nothing."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        do_HEAD = do_GET  # noqa: N815 - named by http.server

        def log_message(self, *_: object) -> None:
            """Silence."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()


if __name__ == "__main__":
    sys.exit(main())
