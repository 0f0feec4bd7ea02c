"""The story of the Monarch library (McCown 2007, section VIII.4), simulated: a digital library that makes its pages
from a database is protected, archived week by week, changed, lost, and reclaimed.

    for week in story(folder): ...      24 weeks; `week.captures` is what archives took in it
    python tests/monarch.py             the tables of docs/protect.md

The library is a WSGI application of 123 pages over SQLite, behind the middleware. Its files are two classes: `code`
(application, templates, configuration) and `data` (the dump of its database). How many pages are archived in which week
follows Table 27, what happens follows Table 26. Deterministic.
"""

from __future__ import annotations

import random
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from protected_sites import CODES, KEY
from pywb_archive import Capture
from recollect.datetimes import format_timestamp
from recollect.protection import bundle
from recollect.protection.age import Opener, unseal
from recollect.protection.code import Code, decode, encode
from recollect.protection.collect import Collector
from recollect.protection.middleware import ProtectWSGI
from recollect.protection.odds import chance_at_share
from recollect.protection.pack import gather, unpack
from recollect.protection.sealing import Options

BASE = "http://monarch.example"
START = datetime(2007, 5, 19, 12, 0, 0, tzinfo=UTC)
PAGES = 123
UNLINKED = "/paper/100"  # until week 10
NEED = 25  # blocks of 123: a fifth of the pages
# Table 27: recovered HTML, recovered server files (percent), by week.
PAPER_HTML = [
    23.6, 60.2, 65.0, 80.5, 85.4, 95.9, 100.0, 100.0, 98.4, 92.7, 92.7, 91.1,
    98.4, 82.1, 98.4, 97.6, 98.4, 91.1, 91.1, 83.7, 83.7, 96.7, 94.3, 96.7,
]  # fmt: skip
PAPER_FILES = [
    59.4, 99.6, 94.6, 99.7, 99.7, 99.7, 99.7, 99.7, 99.7, 100, 100, 100,
    92.1, 92.1, 100, 0, 100, 100, 100, 100, 100, 100, 100, 100,
]  # fmt: skip
EVENTS = {
    10: "single link is added to unlinked page",
    13: "the database changes",
    16: "all server files change",
    19: "the site is taken off-line",
}
# Pages captured again in a week in which archives crawl; in weeks 13, 14 and 16 they did not (VIII.4.2).
_AGAIN = {15: 0.4, 17: 0.984, 18: 0.5}

APPLICATION = '''"""The library: pages from a database."""
import sqlite3
from pathlib import Path
from string import Template

HERE = Path(__file__).parent
HIDDEN = []  # papers that no page links to
PAGE = Template((HERE / "templates" / "page.html").read_text())

database = sqlite3.connect(":memory:", check_same_thread=False)
database.executescript((HERE / "library.sql").read_text())


def links():
    papers = [f"/paper/{n}" for (n,) in database.execute("SELECT number FROM paper ORDER BY number")]
    papers = [path for path in papers if path not in HIDDEN]
    return ["/", "/about", *(f"/author/{n}" for n in range(1, 22)), *papers]


def render(path):
    kind, _, number = path.strip("/").partition("/")
    if path == "/":
        return PAGE.substitute(title="Monarch", body="".join(f'<a href="{link}">{link}</a> ' for link in links()))
    if kind == "paper":
        row = database.execute("SELECT title, abstract FROM paper WHERE number = ?", (number,)).fetchone()
        return PAGE.substitute(title=row[0], body=row[1]) if row else None
    if kind == "author" or path == "/about":
        return PAGE.substitute(title=path, body="A page of the library.")
    return None


def application(environ, start_response):
    page = render(environ["PATH_INFO"])
    if page is None:
        start_response("404 Not Found", [("Content-Type", "text/html")])
        return [b"<html><body>Not found</body></html>"]
    body = page.encode()
    start_response("200 OK", [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body)))])
    return [body]
'''
TEMPLATE = """<!DOCTYPE html>
<html lang="en"><head><title>$title</title></head>
<body><h1>$title</h1><p>$body</p></body></html>
"""


@dataclass(frozen=True)
class Week:
    """One week: what was archived in it and until its end, and the server's files at its end."""

    number: int
    captures: list[Capture]
    archived: float  # share of pages with a capture by now
    files: dict[str, bytes]  # as on the server; those of the last week when it is gone


def write_server(folder: Path) -> None:
    """The library's files: an application, its template, modules that do nothing, a dump."""
    words = random.Random(7)
    (folder / "templates").mkdir(parents=True)
    (folder / "library.py").write_text(APPLICATION)
    (folder / "templates" / "page.html").write_text(TEMPLATE)
    for number in range(20):
        lines = (f"my ${words.choice('abcdef')}{words.randrange(999)} = {words.random()};" for _ in range(100))
        (folder / f"module{number:02d}.pl").write_text("\n".join(lines))
    write_dump(folder, 1)


def write_dump(folder: Path, edition: int) -> None:
    words = random.Random(edition)
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE paper (number INTEGER PRIMARY KEY, title TEXT, abstract TEXT)")
    for number in range(1, 101):
        abstract = " ".join(f"{words.getrandbits(32):x}" for _ in range(30))
        database.execute("INSERT INTO paper VALUES (?, ?, ?)", (number, f"Paper {number}", abstract))
    (folder / "library.sql").write_text("\n".join(database.iterdump()))


def load(folder: Path, hidden: tuple[str, ...] = ()) -> dict[str, Any]:
    """The application of a folder, as a server would start it."""
    names: dict[str, Any] = {"__file__": str(folder / "library.py")}
    exec((folder / "library.py").read_text(), names)
    names["HIDDEN"].extend(hidden)
    return names


def story(folder: Path, need: int = NEED) -> Iterator[Week]:
    """24 weeks of the library in `folder`/server."""
    server, blocks = folder / "server", folder / "site.blocks"
    write_server(server)
    paths = load(server)["links"]()
    assert len(paths) == PAGES
    chance = random.Random(27)
    archived: set[str] = set()
    site: Callable[..., Iterable[bytes]] = _offline
    for number in range(1, 25):
        now = START + timedelta(weeks=number)
        if number in (1, 10, 13, 16):
            _change(server, number)
            sources = [f"code={server}/", f"data={folder}/dump/"]
            _split_dump(server, folder / "dump")
            bundle.write(blocks, paths, gather(sources), Options(KEY, now, need=need, code=CODES[0]))
            (folder / "dump" / "library.sql").rename(server / "library.sql")
            hidden = () if number >= 10 else (UNLINKED,)
            site = ProtectWSGI(load(server, hidden)["application"], blocks)
        if number >= 19:
            site = _offline
        known = [path for path in paths if number >= 10 or path != UNLINKED]
        taken = ["/"] if number >= 19 else _taken(number, known, archived, chance)
        captures = [_capture(site, path, format_timestamp(now)) for path in taken]
        archived |= set(taken)
        files = {p.relative_to(server).as_posix(): p.read_bytes() for p in sorted(server.rglob("*")) if p.is_file()}
        yield Week(number, captures, len(archived) / PAGES, files)


def _change(server: Path, week: int) -> None:
    if week == 13:
        write_dump(server, 13)
    elif week == 16:
        write_dump(server, 16)
        (server / "module00.pl").write_text("# the new release\n")


def _split_dump(server: Path, folder: Path) -> None:
    """The dump is a class of its own, so it is packed from a folder of its own."""
    folder.mkdir(exist_ok=True)
    (server / "library.sql").rename(folder / "library.sql")


def _taken(week: int, known: list[str], archived: set[str], chance: random.Random) -> list[str]:
    """The pages archives take in a week: new ones up to the share of Table 27, and some again."""
    fresh = [path for path in known if path not in archived]
    wanted = max(0, round(PAPER_HTML[week - 1] / 100 * len(known)) - len(archived))
    taken = chance.sample(fresh, min(wanted, len(fresh)))
    if week == 10:
        taken = [*taken, *(path for path in ("/", UNLINKED) if path not in taken)]
    again = sorted(archived & set(known) - set(taken))
    return sorted({*taken, *chance.sample(again, round(_AGAIN.get(week, 0) * len(again)))})


def _capture(site: Callable[..., Iterable[bytes]], path: str, stamp: str) -> Capture:
    got: list[str] = []
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path, "QUERY_STRING": "", "SCRIPT_NAME": ""}
    body = b"".join(site(environ, lambda status, headers: got.append(status)))
    return Capture(BASE + path, stamp, body, status=got[0])


def _offline(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("200 OK" if environ["PATH_INFO"] == "/" else "404 Not Found", [("Content-Type", "text/html")])
    return [b"<html><body>This library has been taken off-line.</body></html>"]


@dataclass(frozen=True)
class Recovered:
    """What a collector gives back of a week's files, in percent of bytes: as they are, and of any version."""

    current: float
    any_version: float


def recovered(collector: Collector, files: dict[str, bytes], folder: Path) -> Recovered:
    total = sum(map(len, files.values()))
    current = any_version = 0
    for name in collector.classes():
        found = collector.restore(name)
        if found is None:
            continue
        target = folder / f"{name}-{found.version.at}"
        for file in unpack(unseal(found.sealed, Opener()), target):
            any_version += len(files[file])
            current += len(files[file]) if (target / file).read_bytes() == files[file] else 0
    return Recovered(100 * current / total, 100 * any_version / total)


def table(folder: Path, need: int = NEED) -> Iterator[tuple[int, float, Recovered]]:
    """(week, share of pages archived, what comes back) of every week."""
    collector = Collector([KEY.public])
    for week in story(folder, need):
        for capture in week.captures:
            collector.add(f"{capture.uri} {capture.timestamp}", capture.body)
        yield week.number, week.archived, recovered(collector, week.files, folder / f"week-{week.number}")


def markdown() -> Iterator[str]:
    """The table of the documentation, with needs of a fifth and of two fifths of the pages."""
    yield "| week | pages archived | server files, McCown | need 25 | of any version | need 49 | |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        for (week, archived, few), (_, _, many) in zip(table(Path(first), 25), table(Path(second), 49), strict=True):
            yield (
                f"| {week} | {archived:.1%} | {PAPER_FILES[week - 1]:g}% | {few.current:.1f}% | {few.any_version:.1f}% "
                f"| {many.current:.1f}% | {EVENTS.get(week, '')} |"
            )


SHARES = (0.10, 0.15, 0.18, 0.20, 0.22, 0.25, 0.30)
TRIALS = 6000


def measured(code: Code, shares: Iterable[float] = SHARES) -> Iterator[tuple[float, float]]:
    """(share of pages archived, share of trials in which everything came back), by decoding every time."""
    content = random.Random(8).randbytes(NEED * 8)
    blocks = encode(code, content, NEED, range(PAGES))
    numbers = random.Random(27)
    for share in shares:
        came = 0
        for _ in range(TRIALS):
            captured = {n: blocks[n] for n in range(PAGES) if numbers.random() < share}
            came += decode(code, len(content), NEED, captured) == content
        yield share, came / TRIALS


def curve() -> Iterator[str]:
    """The table of the documentation: theory, and both codes."""
    yield "| pages archived | theory | raptorq | gf256 |"
    yield "| ---: | ---: | ---: | ---: |"
    for (share, one), (_, other) in zip(measured(Code.RAPTORQ), measured(Code.GF256), strict=True):
        yield f"| {share:.0%} | {chance_at_share(PAGES, NEED, share):.1%} | {one:.1%} | {other:.1%} |"


if __name__ == "__main__":
    sys.stdout.write("\n".join([*markdown(), "", *curve()]) + "\n")
