"""A recovery desk on a generated web, to click through: make demo-desk.

Three real archives (pywb) hold parts of a lost newspaper. The desk's mails are printed here with their links, so the
whole way can be gone in a browser without a mail server. Ctrl-C ends everything.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from demo_world import make_world  # noqa: E402 - found by the line above
from pywb_archive import PYWB_PYTHON, pywb_archives  # noqa: E402
from websites import write_warc  # noqa: E402

MARK = ".made-by-demo"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--into", default="demo-desk", help="folder to write (made again)")
    options.add_argument("--port", default="1209", help="port of the desk; 0 for a free one")
    options.add_argument("--check", action="store_true", help="go the whole way once without a person, then end")
    given = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(given.into).resolve()
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise SystemExit(f"{folder} is there and was not made by this demo; --into another folder")
    if not PYWB_PYTHON.exists():
        raise SystemExit(f"{PYWB_PYTHON} is missing: make demo-desk installs it")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    try:
        with ExitStack() as servers:
            return run(folder, given.port, given.check, servers)
    except KeyboardInterrupt:
        print("\nAll servers are ended.")
        return 130


def run(folder: Path, port: str, check: bool, servers: ExitStack) -> int:
    print("Building three archives of a generated web ...", flush=True)
    world = make_world()
    holdings = []
    for holder in world.archives:
        warc = folder / "archives" / f"{holder.id}.warc.gz"
        write_warc(warc, holder.shots)
        holdings.append((folder / "archives" / holder.id, (), [warc]))
    running = servers.enter_context(pywb_archives(holdings))
    entries = [
        {"id": holder.id, "name": holder.name, "timemap": one.timemap, "cdx": one.cdx, "raw": one.raw, "rate": "20/s"}
        for holder, one in zip(world.archives, running, strict=True)
    ]
    (folder / "archives.json").write_text(json.dumps(entries, indent=2))
    data = folder / "desk"
    command = ["desk", "--data", str(data), "--archives", str(folder / "archives.json"), "--port", port]
    desk = subprocess.Popen([sys.executable, "-m", "recollect", *command], stdout=subprocess.PIPE, text=True)
    servers.callback(end, desk)
    assert desk.stdout is not None
    base = re.findall(r"(http://\S+)/", desk.stdout.readline())[0]
    password = (data / "admin.password").read_text().strip()
    print(f"\n   Open {base}/ and ask for {world.lost.start}\n   Operator: {base}/admin with the password {password}")
    print("   Mails appear here; Ctrl-C ends.\n", flush=True)
    return go_alone(base, world.lost.start, data) if check else show_mails(data, desk)


def end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait(30)


def show_mails(data: Path, desk: subprocess.Popen[str]) -> int:
    """Print every mail as it is written, until the desk ends."""
    shown: set[Path] = set()
    while desk.poll() is None:
        for path in sorted(set((data / "outbox").glob("*.eml")) - shown):
            shown.add(path)
            print("\n".join(f"   | {line}" for line in path.read_text().splitlines()) + "\n", flush=True)
        time.sleep(0.3)
    return 1


def go_alone(base: str, uri: str, data: Path) -> int:
    """Submit, confirm, wait, download: what a person would do."""
    reply = ask("POST", f"{base}/api/jobs", {"uri": uri, "email": "anna@mail.example"})
    while not (mails := list((data / "outbox").glob("*.eml"))):
        time.sleep(0.2)
    link = re.findall(r"http://\S+", mails[0].read_text())[0]
    with urlopen(Request(link, b"", method="POST"), timeout=30):
        pass
    status = f"{base}/api/jobs/{reply['id']}?token={reply['token']}"
    began = time.monotonic()
    while (now := ask("GET", status))["state"] not in ("ready", "failed", "nothing-found", "cancelled"):
        print(f"   {now['state']:8} {now['progress']:4.0%}", flush=True)
        if time.monotonic() - began > 300:
            return 1
        time.sleep(1)
    if now["state"] != "ready":
        return 1
    with urlopen(now["result"]["zip"], timeout=60) as answer:
        size = len(answer.read())
    print(f"   {now['summary']['recovered']:,} files came back, {size / 1e6:.1f} MB as zip")
    return 0


def ask(method: str, address: str, body: object = None) -> dict[str, object]:
    data = json.dumps(body).encode() if body is not None else None
    with urlopen(Request(address, data, {"Content-Type": "application/json"}, method=method), timeout=30) as answer:
        return json.loads(answer.read())


if __name__ == "__main__":
    sys.exit(main())
