"""See Recollect work, offline, in three minutes: make demo (or make demo-serve, to click around until Ctrl-C).

Builds a small generated web, three real archives (pywb) that each saw a part of it, and then does the three jobs with the
very commands a user would type. Everything lands in demo/; no process is left behind.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from demo_page import Numbers, write_page  # noqa: E402 - found by the line above
from demo_world import World, make_world  # noqa: E402
from pywb_archive import PYWB_PYTHON, PywbArchive, pywb_archives  # noqa: E402
from websites import write_warc  # noqa: E402

MARK = ".made-by-demo"
"""A file that says that the folder may be removed."""
ASKED = 150
"""Lookups sent through the aggregator, once with and once without maps."""


class Story:
    """Prints what happens, runs commands in the folder of the demo, and records all of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.started = time.monotonic()
        self.width = min(shutil.get_terminal_size((100, 24)).columns, 100)
        self._bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self._step = 0

    def say(self, text: str = "") -> None:
        self.lines.append(text)
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def step(self, title: str, why: str) -> None:
        self._step += 1
        seconds = time.monotonic() - self.started
        headline = f"{self._step}. {title}"
        self.lines += ["", headline]
        mark, end = ("\033[1m", "\033[0m") if self._bold else ("", "")
        sys.stdout.write(f"\n{mark}{headline}{end}   [{seconds:.0f} s]\n")
        for line in textwrap.wrap(why, self.width - 3):
            self.say(f"   {line}")

    def command(self, *args: str) -> None:
        """Show a command as one would type it, in lines that fit."""
        lines = ["$ recollect"]
        for words in _with_values(args):
            if len(lines[-1]) + len(words) + 6 > self.width:
                lines.append("  ")
            lines[-1] += f" {words}"
        self.say("\n   " + " \\\n   ".join(lines))

    def run(self, *args: str, show: int = 40) -> None:
        """Run a command, and show the first lines of what it says."""
        self.command(*args)
        done = subprocess.run(
            [sys.executable, "-m", "recollect", *args],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(self.folder),
            timeout=170,
        )
        said = [line.rstrip() for line in done.stdout.splitlines() if line.strip()]
        for line in said[:show]:
            self.say(f"   {line}")
        if len(said) > show > 1:
            self.say(f"   … {len(said) - show} more lines")
        if done.returncode:
            raise SystemExit(f"\nThe demo failed: this command ended with {done.returncode}.\n{done.stdout[-2000:]}")


def _with_values(args: Sequence[str]) -> list[str]:
    """Words as a shell wants them, each option together with its value."""
    together: list[str] = []
    for word in args:
        if together and together[-1].startswith("-") and " " not in together[-1] and not word.startswith("-"):
            together[-1] += f" {shlex.quote(word)}"
        else:
            together.append(shlex.quote(word))
    return together


def environment(folder: Path) -> dict[str, str]:
    """Ours, without settings of the user's own that would change the demo."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    return {**kept, "XDG_CONFIG_HOME": str(folder), "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--serve", action="store_true", help="keep the servers up until Ctrl-C")
    options.add_argument("--into", default="demo", help="folder to write (replaced if it exists)")
    given = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that every server is ended
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell started us in the background
    folder = Path(given.into).resolve()
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise SystemExit(f"{folder} is there and was not made by this demo; --into another folder")
    if not PYWB_PYTHON.exists():
        raise SystemExit(f"{PYWB_PYTHON} is missing: make demo installs it")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    story = Story(folder)
    try:
        with ExitStack() as servers:
            run_demo(story, servers, given.serve)
    except KeyboardInterrupt:
        story.say("\nInterrupted; all servers are ended.")
        return 130
    return 0


def run_demo(story: Story, servers: ExitStack, stay: bool) -> None:
    """The whole demo, from an empty folder to a page."""
    numbers = Numbers()
    world, archives = build(story, servers, numbers)
    make_maps(story, world, archives, numbers)
    publish(story, servers, world)
    describe(story, world)
    aggregator = compare(story, servers, world, numbers)
    recover(story, world, numbers)
    save_timeline(story.folder, aggregator, world.lost.start)
    numbers.seconds = time.monotonic() - story.started
    (story.folder / "transcript.txt").write_text("\n".join(story.lines) + "\n", encoding="utf-8")
    page = write_page(story.folder, world, numbers)
    story.step("Look at it", "One page links everything that was made: the maps, the plots, the site that came back.")
    story.say(f"\n   {page.as_uri()}\n")
    if not stay:
        story.say(
            f"   {numbers.seconds:.0f} seconds; every server is ended. To click around in the archives: make demo-serve"
        )
        return
    live = servers.enter_context(static_files(story.folder))
    story.say(f"   demo page    {live}/index.html\n   aggregator   {aggregator}/")
    for holder, archive in zip(world.archives, archives, strict=True):
        story.say(f"   {holder.id:12} {archive.base}/{archive.collection}/")
    story.say("\n   Ctrl-C ends all of them.")
    threading.Event().wait()


def build(story: Story, servers: ExitStack, numbers: Numbers) -> tuple[World, list[PywbArchive]]:
    story.step(
        "A small web, and three archives",
        "Fifteen generated websites over ten years. Three archives (pywb, each a real server on loopback) crawled "
        "different parts of them, at different times.",
    )
    world, folder = make_world(), story.folder
    holdings = []
    for holder in world.archives:
        warc = folder / "world" / f"{holder.id}.warc.gz"
        write_warc(warc, holder.shots)
        holdings.append((folder / "archives" / holder.id, (), [warc]))
    final = world.lost.crawl([world.lost.end])
    write_warc(folder / "lost.warc.gz", [shot for shot in final if shot.version.status.startswith("200")])
    (folder / "lookups.txt").write_text("".join(f"{uri}\n" for uri in world.lookups))
    archives = servers.enter_context(pywb_archives(holdings))
    entries = [
        {
            "id": holder.id,
            "name": holder.name,
            "timemap": archive.timemap,
            "timegate": archive.timegate,
            "cdx": archive.cdx,
            "raw": archive.raw,
        }
        for holder, archive in zip(world.archives, archives, strict=True)
    ]
    (folder / "archives.json").write_text(json.dumps(entries, indent=2))
    for holder, archive in zip(world.archives, archives, strict=True):
        pages = len({shot.uri for shot in holder.shots})
        numbers.captures[holder.id] = len(holder.shots)
        story.say(f"   {holder.name:24} {len(holder.shots):>5,} captures of {pages:>4,} URIs   {archive.base}/")
    return world, archives


def make_maps(story: Story, world: World, archives: list[PywbArchive], numbers: Numbers) -> None:
    story.step(
        "Job one: say what an archive holds",
        "Each archive's own index becomes a map: sorted keys with counts. Then the map is proven: every URI of the "
        "index is looked up in it. Then it is made small; what is held is still found.",
    )
    for place, (holder, archive) in enumerate(zip(world.archives, archives, strict=True)):
        show = 1 if place else 6
        index = f"archives/{holder.id}/collections/web/indexes/index.cdxj"
        full, small = f"full/{holder.id}.ukvs", f"small/{holder.id}.ukvs"
        for path in (full, small):
            (story.folder / path).parent.mkdir(exist_ok=True)
        story.run("profile", index, "-o", full, "--name", holder.name, "--id", f"{archive.base}/web/", show=show)
        story.run("compact", full, "-o", small, "--max-cost", "10%", "--lookups", "lookups.txt", show=show)
        story.run("verify", small, index, show=show)
        numbers.keys[holder.id] = tuple(_keys(story.folder / path) for path in (full, small))
        numbers.bytes[holder.id] = tuple((story.folder / path).stat().st_size for path in (index, full, small))
    first = world.archives[0].id
    story.run("lookup", f"small/{first}.ukvs", "http://museum.example.org/", "http://absent.example/", world.lost.start)


def _keys(path: Path) -> int:
    return sum(not line.startswith(b"!") for line in path.read_bytes().splitlines())


def publish(story: Story, servers: ExitStack, world: World) -> None:
    story.step(
        "Publish the maps, and find them",
        "A published map is a folder of static files. An aggregator finds it by the archive's list entry, a Link header, "
        "or the well-known address, checks it to the last line, and installs it.",
    )
    for place, holder in enumerate(world.archives):
        story.run("publish", f"small/{holder.id}.ukvs", "--to", f"public/{holder.id}", show=20 if place == 0 else 1)
    site = servers.enter_context(static_files(story.folder / "public"))
    path = story.folder / "archives.json"
    entries = json.loads(path.read_text())
    for entry in entries:
        entry["map"] = f"{site}/{entry['id']}/.well-known/mementomap"
    path.write_text(json.dumps(entries, indent=2))
    story.run("discover", "--archives", "archives.json", "--maps", "maps")


def describe(story: Story, world: World) -> None:
    story.step(
        "Know the archive",
        "A report about the holdings, one page that needs neither scripts nor network, and the price of a smaller map.",
    )
    for holder in world.archives:
        index = f"archives/{holder.id}/collections/web/indexes/index.cdxj"
        story.run(
            "report",
            index,
            "-o",
            f"report-{holder.id}.html",
            "--name",
            holder.name,
            "--lookups",
            "lookups.txt",
            show=3,
        )
    first = world.archives[0].id
    story.run("tradeoff", f"full/{first}.ukvs", "--lookups", "lookups.txt", "-o", "tradeoff.html", show=6)


def compare(story: Story, servers: ExitStack, world: World, numbers: Numbers) -> str:
    story.step(
        "Job two: ask only the archives that can answer",
        f"The aggregator speaks Memento for all three. The same {ASKED} lookups, first to all archives, then by the maps.",
    )
    uris = list(dict.fromkeys(world.lookups))[:ASKED]
    common = ("serve", "--archives", "archives.json", "--port", "0", "--no-cache", "--no-learn")
    with aggregator(story, *common, "--access-log", "without.jsonl") as base:
        broadcast = ask_all(base, uris, story.folder / "without.jsonl")
    address = servers.enter_context(aggregator(story, *common, "--maps", "maps", "--access-log", "with.jsonl"))
    chosen = ask_all(address, uris, story.folder / "with.jsonl")
    numbers.lookups = len(uris)
    numbers.requests = (broadcast["requests"], chosen["requests"])
    numbers.found = (sum(broadcast["counts"]), sum(chosen["counts"]))
    numbers.missed = sum(a != b for a, b in zip(broadcast["counts"], chosen["counts"], strict=True))
    story.say("\n                  requests to archives   mementos found")
    story.say(f"   without maps   {numbers.requests[0]:>20,}   {numbers.found[0]:>14,}")
    story.say(f"   with maps      {numbers.requests[1]:>20,}   {numbers.found[1]:>14,}")
    story.say(f"\n   {numbers.saved:.0%} of the requests saved; lookups with another answer: {numbers.missed}")
    if numbers.missed:
        raise SystemExit("The demo failed: with maps some mementos were not found.")
    story.run("route", world.lost.start, "--archives", "archives.json", "--maps", "maps")
    story.run("route", "http://museum.example.org/nothing-here", "--archives", "archives.json", "--maps", "maps")
    return address


def ask_all(base: str, uris: Sequence[str], log: Path) -> dict[str, Any]:
    """Ask for the TimeMaps of URIs, a few at a time; requests as the access log counts them, mementos as they came."""
    with ThreadPoolExecutor(6) as pool:
        counts = list(pool.map(functools.partial(_mementos, base), uris))
    for _ in range(50):  # the log is written once a second
        lines = log.read_text().splitlines() if log.exists() else []
        if len(lines) >= len(uris):
            break
        time.sleep(0.1)
    return {"requests": sum(len(json.loads(line)["times"]) for line in lines), "counts": counts}


def _mementos(base: str, uri: str) -> int:
    try:
        with urllib.request.urlopen(f"{base}/timemap/json/{quote(uri, safe='')}", timeout=30) as response:
            return int(response.headers["X-Memento-Count"])
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return 0


def recover(story: Story, world: World, numbers: Numbers) -> None:
    start = world.lost.start
    story.step(
        "Job three: get a lost website back",
        f"{start} is gone: the domain is parked. Each archive has a part of it, one of them also the parked page. First a "
        "look at what there is (recollect survey shows only that), then the site itself, then an honest measurement "
        "against the site as it was.",
    )
    where = ("--archives", "archives.json", "--maps", "maps")
    story.run("recover", start, "-o", "site", *where, "--yes")
    story.run("measure", "lost.warc.gz", "site", "--diagram", "diagram.svg")
    numbers.measured = json.loads(
        subprocess.run(
            [sys.executable, "-m", "recollect", "measure", "lost.warc.gz", "site", "--json"],
            cwd=story.folder,
            capture_output=True,
            text=True,
            check=True,
            env=environment(story.folder),
        ).stdout
    )


@contextmanager
def aggregator(story: Story, *args: str) -> Iterator[str]:
    """A running `recollect serve`; gives its address, ends it by its process."""
    story.command(*args)
    process = subprocess.Popen(
        [sys.executable, "-m", "recollect", *args],
        cwd=story.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(story.folder),
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip().rstrip("/")
        if not address:
            raise SystemExit("The demo failed: recollect serve did not start.")
        story.say(f"   Recollect listens on {address}/")
        yield address
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(15)


@contextmanager
def static_files(folder: Path) -> Iterator[str]:
    """A folder served on loopback, as any web server would; gives its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_args: Any) -> None:
            """The demo talks enough."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def save_timeline(folder: Path, base: str, uri: str) -> None:
    """The aggregator's page about a URI, with its style inside, so that it can be looked at later."""

    def fetch(path: str) -> str:
        with urllib.request.urlopen(f"{base}{path}", timeout=30) as response:
            text: str = response.read().decode()
        return text

    html = fetch(f"/?uri={quote(uri, safe='')}")
    page = re.sub(r'<link rel="stylesheet" href="([^"]+)">', lambda link: f"<style>{fetch(link[1])}</style>", html)
    page = re.sub(r'<link rel="icon"[^>]*>|<script src="[^"]*" defer></script>', "", page)
    (folder / "timeline.html").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
