"""How long a round of `recollect watch` takes over many sites, with the delays of politeness as they are.

    make bench-watch                                             100 sites, an archive without a limit
    make bench-watch ARGS='--rate 24/min'                        an archive that allows 24 requests a minute
    make bench-watch ARGS='--sites 10 --sample 20'

Sites are addresses 127.0.1.N of this machine, each a host of its own, with a front page that leads to 60 pages; the
archive, a CDX server, holds every second page. The second round is a day later by the watch's clock.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

PAGES = 60
ROUNDS = ("2026-03-02T00:00:00Z", "2026-03-03T00:10:00Z")
Answer = Callable[[str, str], tuple[int, str, bytes]]


def live_page(host: str, target: str) -> tuple[int, str, bytes]:
    path = urlsplit(target).path
    if path == "/robots.txt":
        return 200, "text/plain", b"User-agent: *\nAllow: /\n"
    number = path.strip("/").removeprefix("page")
    if path != "/" and not (number.isdigit() and int(number) < PAGES):
        return 404, "text/plain", b"not here"
    links = "".join(f'<a href="/page{one}">page {one}</a> ' for one in range(PAGES)) if path == "/" else ""
    text = f"<title>Club {host}</title><h1>Page {path}</h1><p>This is {path} of the club at {host}. {links}"
    return 200, "text/html", text.encode()


def cdx(_: str, target: str) -> tuple[int, str, bytes]:
    asked = parse_qs(urlsplit(target).query)
    uri, match = asked["url"][0], asked["matchType"][0]
    parts = urlsplit(uri if "://" in uri else f"http://{uri}")
    if match == "exact":
        number = parts.path.removeprefix("/page")
        paths = [parts.path] if not number.isdigit() or int(number) % 2 == 0 else []
    else:
        paths = ["/", *(f"/page{one}" for one in range(0, PAGES, 2))]
    rows = [
        {"url": f"http://{parts.netloc}{path}", "timestamp": "20250101000000", "status": "200", "mime": "text/html"}
        for path in paths
    ]
    return 200, "text/plain", "".join(json.dumps(row) + "\n" for row in rows).encode()


async def handle(
    counts: Counter[str], name: str, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        while line := await reader.readline():
            host = ""
            while (field := await reader.readline()).strip():
                if field.lower().startswith(b"host:"):
                    host = field.partition(b":")[2].strip().decode()
            counts[name] += 1
            status, kind, body = answer(host, line.split()[1].decode())
            head = f"HTTP/1.1 {status} OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
    except (ConnectionError, asyncio.CancelledError):
        pass
    finally:
        writer.close()


async def recollect(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "recollect", *arguments), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    out, _ = await process.communicate()
    return out.decode()


def serve(
    counts: Counter[str], name: str, answer: Answer
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    return lambda reader, writer: handle(counts, name, answer, reader, writer)


async def measure(sites: int, sample: int, rate: str) -> None:
    counts: Counter[str] = Counter()
    hosts = [f"127.0.1.{number}" for number in range(1, sites + 1)]
    first = await asyncio.start_server(serve(counts, "sites", live_page), hosts[0], 0)
    port = first.sockets[0].getsockname()[1]
    rest = [await asyncio.start_server(serve(counts, "sites", live_page), host, port) for host in hosts[1:]]
    archive = await asyncio.start_server(serve(counts, "archive", cdx), "127.0.0.1", 0)
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "archives.json"
        entry: dict[str, object] = {"id": "fake", "concurrency": 8}
        entry["cdx"] = f"http://127.0.0.1:{archive.sockets[0].getsockname()[1]}/cdx"
        listed.write_text(json.dumps([entry | ({"rates": {"index": rate}} if rate else {})]))
        data = str(Path(folder) / "watch")
        for host in hosts:
            await recollect(
                *("watch", "add", f"http://{host}:{port}/", "--data", data, "--sample", str(sample)),
                *("--archives", str(listed), "--allow-private", "--now", ROUNDS[0]),
            )
        for number, now in enumerate(ROUNDS, 1):
            counts.clear()
            started = time.perf_counter()
            done = json.loads(await recollect("watch", "run", "--data", data, "--now", now, "--json"))
            seconds = time.perf_counter() - started
            status = json.loads(await recollect("watch", "status", "--data", data, "--json"))
            resources = sum(sum(site["resources"].values()) for site in status)
            print(
                f"round {number}: {len(done['visited'])} sites in {seconds:.0f} s ({seconds / 60:.1f} min); "
                f"{counts['sites']:,} requests to sites, {counts['archive']:,} to the archive; "
                f"{resources / sites:.1f} resources known of each site, "
                f"{sum(site['resources'].get('unknown', 0) for site in status):,} unknown"
            )
    for server in (first, *rest, archive):
        server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=100)
    parser.add_argument("--sample", type=int, default=50)
    parser.add_argument("--rate", default="", help="requests that the archive allows, as in a list of archives")
    options = parser.parse_args()
    asyncio.run(measure(options.sites, options.sample, options.rate))


if __name__ == "__main__":
    main()
