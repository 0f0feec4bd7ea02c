"""make bench-sources: a browser's cache of 300 MB surveyed, and a WARC of 1 GB with 50,000 captures made a site.

Makes its own files. Figures: wall time and peak memory of the whole command, of a WARC of a tenth and of the whole one,
so that growth shows. Targets: the cache in under 10 s; memory of the large WARC bounded (it does not grow with the
bytes of the file, only by what is kept of each address).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FIRST, FINAL = 0xFCFB6D1BA7725C30, 0xF4FA6F45970D41D8


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache-mb", type=int, default=300)
    parser.add_argument("--warc-mb", type=int, default=1000)
    parser.add_argument("--captures", type=int, default=50_000)
    parser.add_argument("--folder", help="where to make the files; a temporary folder otherwise")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-sources-", dir=chosen.folder) as folder:
        place = Path(folder)
        caches(place, chosen.cache_mb)
        for share in (10, 1):
            warc(place, chosen.warc_mb // share, chosen.captures // share)
    return 0


def caches(place: Path, megabytes: int) -> None:
    for kind, write in (("Chromium", chromium_entry), ("Firefox", firefox_entry)):
        folder = place / kind
        count = make_cache(folder, kind, write, megabytes << 20)
        seconds, memory, out = measured("survey", "http://lost.example/", "--only", str(folder), "--quiet")
        assert " complete" in out, out
        print(
            f"{kind:9} cache      {megabytes} MB, {count:,} entries: {seconds:.1f} s, {memory} MB  (target: under 10 s)"
        )


def make_cache(folder: Path, kind: str, write: object, size: int) -> int:
    chance = random.Random(32)
    entries = folder / ("cache2/entries" if kind == "Firefox" else "Cache_Data")
    entries.mkdir(parents=True)
    if kind == "Chromium":
        (entries / "index-dir").mkdir()
    made = count = 0
    while made < size:
        host = "lost.example" if count % 20 == 0 else f"host{count % 400}.example"
        body = chance.randbytes(int(min(chance.lognormvariate(9.6, 1.2), 3e6)))
        name, data = write(f"http://{host}/page/{count}", body)  # type: ignore[operator]
        (entries / name).write_bytes(data)
        made += len(data)
        count += 1
    return count


def chromium_entry(url: str, body: bytes) -> tuple[str, bytes]:
    key = f"1/0/_dk_http://h.example http://h.example {url}".encode()
    head = b"HTTP/1.1 200 OK\0Content-Type: text/html\0\0"
    now = (1_600_000_000 + 11_644_473_600) * 1_000_000
    pickle = struct.pack("<IIqqI", 24 + len(head), 3, now, now, len(head)) + head
    data = struct.pack("<QIIII", FIRST, 5, len(key), 0, 0) + key + body
    data += struct.pack("<QIIII", FINAL, 0, 0, 0, 0) + pickle
    data += struct.pack("<QIIII", FINAL, 0, 0, len(pickle), 0)
    return hashlib.sha1(key).hexdigest()[:16] + "_0", data


def firefox_entry(url: str, body: bytes) -> tuple[str, bytes]:
    key = f"O^partitionKey=%28http%2Ch.example%29,:{url}".encode()
    head = b"request-method\0GET\0response-head\0HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\0"
    header = struct.pack(">IIIIIIII", 3, 1, 1_600_000_000, 1_600_000_000, 0, 0, len(key), 0)
    hashes = b"\0\0" * -(-len(body) // (256 * 1024))
    data = body + b"\0\0\0\0" + hashes + header + key + b"\0" + head + struct.pack(">I", len(body))
    return hashlib.sha1(key).hexdigest().upper(), data


def warc(place: Path, megabytes: int, captures: int) -> None:
    path = place / f"crawl-{megabytes}.warc.gz"
    make_warc(path, megabytes << 20, captures)
    size = path.stat().st_size >> 20
    seconds, memory, out = measured(
        *("recover", "--only", str(path), "-o", str(place / f"site-{megabytes}"), "--yes", "--outputs", "site"),
    )
    del out
    found = sum(len(names) for _, _, names in os.walk(place / f"site-{megabytes}" / "lost.example"))
    print(f"WARC            {size} MB, {captures:,} captures: {found:,} files in {seconds:.0f} s, {memory} MB")


def make_warc(path: Path, size: int, captures: int) -> None:
    chance = random.Random(32)
    noise = chance.randbytes(4 << 20)
    with path.open("wb") as out:
        for number in range(captures):
            if number % 5:
                kind, name = "image/png", f"/i/{number}.png"
                length = size * 5 // 4 // captures
                start = chance.randrange(len(noise) - length)
                body = b"\x89PNG\r\n\x1a\n" + noise[start : start + length]
            else:
                kind, name = "text/html", f"/p/{number}.html" if number else "/"
                near = [number * 5 + n * 5 for n in range(1, 6) if number * 5 + n * 5 < captures]
                links = "".join(f'<a href="/p/{n}.html">{n}</a>' for n in near)
                images = "".join(f'<img src="/i/{number + n}.png">' for n in range(1, 5))
                words = " ".join(f"word{chance.randrange(5000)}" for _ in range(100))
                body = f"<html><title>Page {number}</title><body>{links}{images}<p>{words}".encode()
            block = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
            head = (
                f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://lost.example{name}\r\n"
                f"WARC-Date: 2015-01-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n"
                f"WARC-Record-ID: <urn:uuid:{number}>\r\nContent-Length: {len(block)}\r\n\r\n"
            )
            out.write(gzip.compress(head.encode() + block + b"\r\n\r\n", 1, mtime=0))


def measured(*arguments: str) -> tuple[float, int, str]:
    """Seconds, peak memory in MB and output of a command."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([sys.executable, "-m", "recollect", *arguments], stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        output.seek(0)
        text = output.read().decode()
    assert os.waitstatus_to_exitcode(status) == 0, text
    assert resource.getpagesize()
    return seconds, usage.ru_maxrss // 1024, text


if __name__ == "__main__":
    sys.exit(main())
