"""make bench-sites: twelve lost sites back from local archives, beside two peers in the same run.

Six sites are made (one with every trouble, and five lives of sites of `experiments/site_stories.py`), six are real
documentation from this machine (`--docs`, by default folders of /usr/share/doc with an index page): scattered over two
pywb archives, one in twenty files never captured, a third captured twice, and taken over afterwards by another of them.

Recollect asks the two pywb archives. waybackpack and pywaybackup know the Internet Archive only: they ask a stand-in of
its interface that holds the captures of both, so that they lack nothing. waybackpack fetches single addresses: it gets
the list of addresses and takes the newest capture with status 200 of each; pywaybackup takes the last of each file.

Counted for each: addresses whose bytes are those of a capture of the owner, of all that any archive holds; addresses
with bytes of another owner (offered for review in brackets); links inside pages to addresses that archives hold and
that do not lead to a file of the copy; requests for each address that came back. Files are known by their
bytes, whatever their names.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urljoin, urlsplit

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from experiments.site_stories import OWNER, make_story

from pywb_archive import Capture, pywb_archives
from recollect.recovery.links import read_document
from websites import website

STORIES = ("taken", "figure34", "copied", "returned", "newcomer")
DOCS = Path("/usr/share/doc")
_TYPES = {"html": "text/html", "htm": "text/html", "css": "text/css", "js": "text/javascript", "png": "image/png"}
_TYPES |= {"gif": "image/gif", "jpg": "image/jpeg", "svg": "image/svg+xml", "txt": "text/plain"}
_DISK = "http://disk.invalid"  # paths of files as addresses, as a browser joins them
_MOST_FILES, _MOST_BYTES = 150, 300_000


@dataclass
class Site:
    """A lost site: captures by archive, and whose bytes are whose."""

    name: str
    start: str
    archives: list[list[Capture]]
    own: dict[str, set[str]] = field(default_factory=dict)  # address -> digests of the owner's captures
    foreign: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for uri, some in self.foreign.items():
            self.foreign[uri] = some - self.own.get(uri, set())

    @property
    def captures(self) -> list[Capture]:
        return sorted((c for some in self.archives for c in some), key=lambda c: (c.uri, c.timestamp))


@dataclass
class Result:
    """What one tool gave of one site."""

    back: int = 0
    foreign: int = 0
    offered: int = 0
    links: int = 0
    broken: int = 0
    requests: int = 0


def digest(body: bytes) -> str:
    """Of the bytes without the packing for the way, which tools take off or not."""
    if body.startswith(b"\x1f\x8b"):
        with contextlib.suppress(OSError, EOFError, zlib.error):
            body = gzip.decompress(body)
    return hashlib.sha256(body).hexdigest()


# Sites ---------------------------------------------------------------------------------------------------------------


def made_sites() -> Iterator[Site]:
    site = website(seed=11, pages=40)
    shots = site.scattered(2)
    archives = [
        [
            Capture(s.uri, s.timestamp, s.version.body, s.version.media_type, s.version.status, s.version.headers)
            for s in a
        ]
        for a in shots
    ]
    own: dict[str, set[str]] = {}
    for shot in (s for a in shots for s in a if s.timestamp <= site.end and s.version.status.startswith("200")):
        own.setdefault(shot.uri, set()).add(digest(shot.version.body))
    foreign = {uri: {digest(v.body) for v in versions} for uri, versions in site.afterwards.items()}
    yield Site("every trouble", site.start, archives, own, foreign)
    for kind in STORIES:
        story = make_story(kind, 77)
        rng = random.Random(kind)
        halves: list[list[Capture]] = [[], []]
        labelled: dict[bool, dict[str, set[str]]] = {True: {}, False: {}}
        for c in story.captures:
            status = "200 OK" if c.status == 200 else f"{c.status} Gone"
            halves[rng.random() < 0.4].append(Capture(c.uri, c.stamp, c.body, status=status))
            if c.status == 200:
                labelled[c.owner == OWNER].setdefault(c.uri, set()).add(digest(c.body))
        yield Site(kind, story.start, halves, labelled[True], labelled[False])


def real_sites(folders: Sequence[Path]) -> Iterator[Site]:
    for number, folder in enumerate(folders):
        yield _scattered(folder, folders[(number + 1) % len(folders)], random.Random(number))


def _scattered(folder: Path, taker: Path, rng: random.Random) -> Site:
    parts = folder.relative_to(DOCS).parts if folder.is_relative_to(DOCS) else (folder.name,)
    name = re.sub(r"[^a-z0-9]", "", "".join(part for part in (parts[0], *parts[1:][-1:]) if part != "html").lower())
    start = f"http://{name}.example/"
    site = Site(name, start, [[], []])
    for path, body, kind in _files(folder):
        if path != "index.html" and rng.random() < 0.05:
            continue
        times = [f"{rng.randint(2009, 2012)}{rng.randint(1, 12):02d}{rng.randint(10, 28)}120000"]
        times += [f"2008{rng.randint(1, 12):02d}15120000"] if rng.random() < 0.33 else []
        for at in times:
            for archive in rng.sample((0, 1), 1 if rng.random() < 0.7 else 2):
                uri = start if path == "index.html" else start + path
                site.archives[archive].append(Capture(uri, at, body, kind))
                site.own.setdefault(uri, set()).add(digest(body))
    later = [(path, body, kind) for path, body, kind in _files(taker) if kind == "text/html"][:12]
    names = ["", *(urlsplit(uri).path[1:] for uri in sorted(site.own)[1:7])]
    for (path, body, kind), instead in zip(later, [*names, *[""] * 12], strict=False):
        uri = start + (instead or (path if path != "index.html" else ""))
        site.archives[1].append(Capture(uri, "20190601120000", body, kind))
        if digest(body) not in site.own.get(uri, ()):
            site.foreign.setdefault(uri, set()).add(digest(body))
    return site


def _files(folder: Path) -> list[tuple[str, bytes, str]]:
    found = []
    for path in sorted(folder.rglob("*"), key=lambda p: (p.name != "index.html", str(p))):
        kind = _TYPES.get(path.suffix.lower().lstrip("."))
        if kind and path.is_file() and 0 < path.stat().st_size <= _MOST_BYTES and len(found) < _MOST_FILES:
            found.append((str(path.relative_to(folder)), path.read_bytes(), kind))
    return found


def docs_folders() -> list[Path]:
    """The six largest folders of documentation with an index page."""
    found = {path.parent for path in DOCS.glob("*/**/index.html") if "examples" not in str(path)}
    outer = [one for one in found if not any(other in one.parents for other in found)]
    distinct = {frozenset(path for path, _, _ in _files(one)): one for one in sorted(outer)}  # not two versions of one
    return [one for _, one in sorted(distinct.items(), key=lambda pair: (-len(pair[0]), pair[1]))][:6]


# The stand-in of the Internet Archive --------------------------------------------------------------------------------


@contextmanager
def stand_in(site: Site) -> Iterator[tuple[str, list[str]]]:
    """Its base address and the requests it got."""
    captures = site.captures
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.path = self.path.removeprefix("https://web.archive.org")
            requests.append(self.path)
            split = urlsplit(self.path)
            if split.path == "/cdx/search/cdx":
                self._cdx({name: values[0] for name, values in parse_qs(split.query).items()})
            else:
                self._capture(self.path)

        def _cdx(self, asked: dict[str, str]) -> None:
            wanted = asked["url"].partition("://")[2] or asked["url"]
            whole = wanted.endswith("*")
            wanted = wanted.rstrip("*").removeprefix("www.")
            names = asked.get("fl", "urlkey,timestamp,original,mimetype,statuscode,digest,length").split(",")
            rows: list[list[str]] = [names]
            for c in captures:
                own = c.uri.partition("://")[2].removeprefix("www.")
                if own.startswith(wanted.rstrip("/")) if whole else own.rstrip("/") == wanted.rstrip("/"):
                    row = {"urlkey": own, "timestamp": c.timestamp, "original": c.uri, "statuscode": c.status[:3]}
                    row |= {"mimetype": c.media_type.partition(";")[0], "digest": digest(c.body)[:32].upper()}
                    row |= {"length": str(len(c.body)), "dupecount": "0"}
                    rows.append([row[name] for name in names])
            text = "[" + ",\n".join(json.dumps(row) for row in rows) + "]\n"
            self._answer(200, text.encode(), [("Content-Type", "application/json")])

        def _capture(self, path: str) -> None:
            match = re.match(r"/web/(\d+)(?:id_)?/(.*)", path, re.S)
            here = [c for c in captures if match and unquote(c.uri) == unquote(match[2])]
            if match is None or not here:
                self._answer(404, b"not here", [])
                return
            best = min(here, key=lambda c: abs(int(c.timestamp) - int(match[1].ljust(14, "0"))))
            headers = [("Content-Type", best.media_type), *best.headers]
            headers.append(("Memento-Datetime", best.timestamp))
            self._answer(int(best.status[:3]), best.body, headers)

        def _answer(self, status: int, body: bytes, headers: Sequence[tuple[str, str]]) -> None:
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()


# Tools ---------------------------------------------------------------------------------------------------------------


def recollect(site: Site, folder: Path) -> tuple[Result, Path]:
    from warcio.archiveiterator import ArchiveIterator

    out = folder / "recollect"
    result = Result()
    with pywb_archives([(folder / "one", site.archives[0], ()), (folder / "two", site.archives[1], ())]) as running:
        entries = [{"id": f"a{n}", "cdx": a.cdx, "raw": a.raw, "timemap": a.timemap} for n, a in enumerate(running)]
        (folder / "archives.json").write_text(json.dumps(entries))
        command = [sys.executable, "-m", "recollect", "recover", site.start, "-o", str(out), "--yes", "--quiet"]
        command += ["--archives", str(folder / "archives.json"), "--outputs", "site,warc", "--outside-links", "keep"]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    report = json.loads((out / "report.json").read_text())
    doubtful = {one["uri"] for one in report["suspects"]}
    with (out / "recovered.warc.gz").open("rb") as file:
        for record in ArchiveIterator(file):
            if record.rec_type == "response":
                uri = record.rec_headers.get_header("WARC-Target-URI")
                _count(site, uri, digest(record.raw_stream.read()), result, doubtful=uri in doubtful)
    result.requests = report["totals"]["requests"]
    pages = {out / one["file"]: one["uri"] for one in report["resources"] if one["file"]}
    _count_links(site, pages, result)
    return result, out


def _count(site: Site, uri: str, content: str, result: Result, *, doubtful: bool = False) -> None:
    if content in site.own.get(uri, ()):
        result.back += 1
    elif content in site.foreign.get(uri, ()):
        result.foreign += not doubtful
        result.offered += doubtful


def peer(site: Site, folder: Path, command: Sequence[str], name: str) -> tuple[Result, Path]:
    """A peer in its own process, with the stand-in in the place of the Internet Archive."""
    out = folder / name
    out.mkdir()
    result = Result()
    with stand_in(site) as (base, requests):
        listed = folder / "addresses.txt"
        listed.write_text("\n".join(sorted({c.uri for c in site.captures})))
        environment = {**os.environ, "STAND_IN": base, "OUT": str(out), "ADDRESSES": str(listed), "START": site.start}
        subprocess.run(command, env=environment, cwd=out, timeout=1800, stdin=subprocess.DEVNULL, capture_output=True)
        result.requests = len(requests)
    digests = {digest(path.read_bytes()): path for path in sorted(out.rglob("*")) if path.is_file()}
    pages = {}
    for uri in sorted({*site.own, *site.foreign}):
        own = next((one for one in site.own.get(uri, ()) if one in digests), None)
        other = next((one for one in site.foreign.get(uri, ()) if one in digests), None)
        result.back += own is not None
        result.foreign += own is None and other is not None
        if own or other:
            pages[digests[own or other or ""]] = uri
    _count_links(site, pages, result)
    return result, out


def _count_links(site: Site, pages: dict[Path, str], result: Result) -> None:
    """Links of pages to what archives hold of the owner, as a browser follows them in the copy."""
    held = {uri.rstrip("/").removesuffix("/index.html") for uri in site.own}
    host = urlsplit(site.start).netloc
    for path, uri in pages.items():
        if path.suffix.lower() not in (".html", ".htm", "") or not path.is_file():
            continue
        document = read_document(path.read_bytes(), _DISK + quote(str(path)), "text/html")
        for link in document.links if document is not None else ():
            if link.guess:
                continue
            split = urlsplit(link.uri)
            if link.uri.startswith(_DISK):
                inside = Path(unquote(split.path))
                file = inside / "index.html" if inside.is_dir() else inside
                original = urljoin(uri, os.path.relpath(inside, path.parent))
                if file.is_file() or original.partition("?")[0].rstrip("/") in held:
                    result.links += 1
                    result.broken += not file.is_file()
            elif split.netloc == host and link.uri.rstrip("/") in held:
                result.links += 1
                result.broken += 1  # it leads to the live web


_WAYBACKPACK = """
import os, requests
from waybackpack import asset, cdx
from waybackpack.pack import Pack
from waybackpack.session import Session
base = os.environ["STAND_IN"]
cdx.SEARCH_URL = base + "/cdx/search/cdx"
asset.ARCHIVE_TEMPLATE = base + "/web/{timestamp}{flag}/{url}"
session = Session(max_retries=1, delay_retry=0)
for url in open(os.environ["ADDRESSES"]).read().split():
    try:
        found = [s for s in cdx.search(url, session=session) if s["statuscode"] == "200"]
        if found:
            pack = Pack(url, timestamps=[found[-1]["timestamp"]], session=session)
            pack.download_to(os.environ["OUT"], raw=True, ignore_errors=True)
    except Exception as error:
        print(url, error)
"""
_PYWAYBACKUP = """
import http.client, os, sys, requests
from urllib.parse import urlsplit
base = os.environ["STAND_IN"]
plain = http.client.HTTPConnection
http.client.HTTPSConnection = lambda *a, **k: plain(urlsplit(base).netloc)
get = requests.get
requests.get = lambda url, **k: get(url.replace("https://web.archive.org", base), **k)
from pywaybackup.main import cli
sys.argv = ["waybackup", "-u", os.environ["START"], "--last", "-o", os.environ["OUT"], "--wait", "0", "--workers", "2"]
cli()
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, nargs="*", help="folders of documentation, each one a real site")
    parser.add_argument("--peers", type=Path, help="Python with waybackpack and pywaybackup in it")
    parser.add_argument("--only", help="names of sites, with commas between them")
    chosen = parser.parse_args()
    peers = {"waybackpack": _WAYBACKPACK, "pywaybackup": _PYWAYBACKUP} if chosen.peers else {}
    sites = [*made_sites(), *real_sites(chosen.docs or docs_folders())]
    print("| site | tool | back of the union | foreign taken | broken links inside | requests per resource |")
    print("| --- | --- | --- | --- | --- | --- |")
    for site in sites:
        if chosen.only and site.name not in chosen.only.split(","):
            continue
        with tempfile.TemporaryDirectory(prefix="bench-sites-") as folder:
            _show(site, "Recollect", recollect(site, Path(folder))[0])
            for name, program in peers.items():
                _show(site, name, peer(site, Path(folder), [str(chosen.peers), "-c", program], name)[0])
    return 0


def _show(site: Site, tool: str, r: Result) -> None:
    union = len(site.own)
    offered = f" ({r.offered})" if r.offered else ""
    cells = [f"{r.back} of {union} ({r.back / union:.1%})", f"{r.foreign}{offered}", f"{r.broken} of {r.links}"]
    print(f"| {site.name} | {tool} | {' | '.join(cells)} | {r.requests / max(r.back, 1):.2f} |", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
