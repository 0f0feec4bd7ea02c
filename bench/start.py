"""What starting costs: CPU seconds of every command on a tiny input in a fresh environment, at first and later.

    make bench-start                      in a new environment with the package alone, as users have it
    make bench-start ARGS='--here'        in this environment
    make bench-start ARGS='profile stats' these commands only

The second figure is the median of the runs after the first. Wanted: at most 0.35 s for each command, 0.7 s for `serve`
until it listens, 0.1 s for `recollect --help`. No command here asks an archive: those that would are given a server of
this machine that answers nothing but 404.
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

ROOT = Path(__file__).resolve().parents[1]
MOST, MOST_SERVE, MOST_HELP = 0.35, 0.7, 0.1
ROUNDS = 10
SERVE, RECOVER = "serve", "recover"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", help="these only")
    parser.add_argument("--here", action="store_true", help="in this environment instead of a new one")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recollect-start-") as temporary, nothing_but_404() as port:
        folder = Path(temporary)
        program = [str(Path(sys.executable).parent / "recollect")] if chosen.here else fresh(folder / "environment")
        work = folder / "work"
        make_inputs(work, program, port)
        print(f"\n{'command':36}{'first':>8}{'tenth':>8}{'wanted':>8}   CPU seconds")
        good = True
        for name, arguments in commands().items():
            if not chosen.commands or name.split()[0] in chosen.commands:
                good &= measure(name, [*program, *arguments], work)
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
    for arguments in (
        ["profile", "index.cdxj", "-o", "none.ukvs", "--quiet"],
        ["profile", "urls.txt", "-o", "other.ukvs", "--quiet"],
    ):
        subprocess.run([*program, *arguments], cwd=work, check=True)
    (work / "maps").mkdir()
    shutil.copy(work / "none.ukvs", work / "maps/none.ukvs")


def commands() -> dict[str, list[str]]:
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
        "overlap": ["overlap", "--holdings", "none.ukvs", "--accesses", "urls.txt"],
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
        RECOVER: ["recover", "http://example.com/", *network, "-o", "site"],
        SERVE: ["serve", *network, "--maps", "maps", "--port", "0"],
    }


def measure(name: str, command: list[str], work: Path) -> bool:
    most = MOST_SERVE if name == SERVE else MOST_HELP if name == "--help" else MOST
    run = until_it_listens if name == SERVE else to_its_end
    seconds = []
    for _ in range(3 if name == RECOVER else ROUNDS):  # which waits between its requests, for politeness
        seconds.append(run(command, work))
        shutil.rmtree(work / "site", ignore_errors=True)
    first, tenth = seconds[0], sorted(seconds[1:])[len(seconds) // 2]
    good = max(first, tenth) <= most
    print(f"{name:36}{first:8.2f}{tenth:8.2f}{most:8.2f}   {'' if good else 'too slow'}", flush=True)
    return good


def to_its_end(command: list[str], work: Path) -> float:
    """CPU seconds of a command; answers such as "not held" have exit codes of their own, faults do not count."""
    with (work / "stderr.txt").open("wb") as errors:
        process = subprocess.Popen(command, cwd=work, stdout=subprocess.DEVNULL, stderr=errors, env=environment(work))
        _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) in (1, 2) and b"rror" in (told := (work / "stderr.txt").read_bytes()):
        raise SystemExit(f"failed: {' '.join(command)}\n{told.decode()}")
    return usage.ru_utime + usage.ru_stime


def until_it_listens(command: list[str], work: Path) -> float:
    process = subprocess.Popen(
        command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment(work)
    )
    assert process.stdout is not None
    for line in process.stdout:
        if b"http://" in line:
            break
    else:
        raise SystemExit("serve ended before it listened")
    ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    process.terminate()
    process.communicate()
    return (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")


def environment(work: Path) -> dict[str, str]:
    """Nothing kept by earlier runs of the user, or of somebody else, is found."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONDONT", "RECOLLECT"))}
    return {**kept, "HOME": str(work), "XDG_CACHE_HOME": str(work / "cache"), "XDG_CONFIG_HOME": str(work / "config")}


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
