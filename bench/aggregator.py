"""The aggregator under load: `make bench-aggregator` (ARGS="--soak 600" for the soak, "--seconds 20" for longer runs,
"--memgator PATH" for MemGator beside ours, "--large" for how long others wait beside large answers).

12 fake archives at 50 ms with the hit rates of real ones (MementoMap paper, Table 3), the server, and the load, all on
this machine. CPU is that of the server's processes (/proc/PID/stat), upstream requests are counted by the archives.
Uses ../shared/tools/fake_archive.py and wrk where they are, else bench/fakes.py and a load maker of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from large import run_large

ROOT = Path(__file__).parents[1]
TOOL = ROOT.parent / "shared" / "tools" / "fake_archive.py"
HITS = (0.3576, 0.0914, 0.0844, 0.0477, 0.0335, 0.0222, 0.0154, 0.0149, 0.0132, 0.0075, 0.0063, 0.0021)
URIS = 20_000
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Result:
    """One run of load."""

    requests: int
    per_second: float
    p50_ms: float
    p99_ms: float
    bad: int
    cpu_ms: float = 0.0
    upstream: int = 0
    hits: int = 0


def uri(number: int) -> str:
    return f"http://site{number % 997}.example.org/page/{number}"


def hit(archive: int, uri_r: str) -> bool:
    return zlib.crc32(f"{archive} {uri_r}".encode()) / 4294967296 < HITS[archive]


# Processes


def free_ports(count: int) -> int:
    """The first of `count` free ports in a row."""
    for base in range(21000, 60000, 37):
        try:
            for port in range(base, base + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return base
    raise SystemExit("no free ports")


@contextmanager
def archives(folder: Path, *flags: str, n: int = 12) -> Iterator[int]:
    """Running archives; gives their first port, and writes `archives.json`."""
    base = free_ports(n)
    script = TOOL if TOOL.exists() else ROOT / "bench" / "fakes.py"
    command = [sys.executable, str(script), "--base-port", str(base), "--n", str(n), *flags]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            wait_for(f"http://127.0.0.1:{base}/stats")
            listed = [
                {"id": f"fake{i}", "name": f"Fake {i}", "timemap": f"http://127.0.0.1:{base + i}/timemap/link/"}
                for i in range(n)
            ]
            (folder / "archives.json").write_text(json.dumps(listed))
            yield base
        finally:
            process.terminate()


@contextmanager
def memgator(program: str, folder: Path) -> Iterator[tuple[str, int]]:
    """A running MemGator over the same archives: its address and process id."""
    port = free_ports(1)
    command = [program, f"--arcs={folder / 'archives.json'}", f"--port={port}", "--host=127.0.0.1", "server"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(f"http://127.0.0.1:{port}/about")
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            process.terminate()
            process.wait(15)


@contextmanager
def server(folder: Path, *flags: str, **settings: str) -> Iterator[tuple[str, int]]:
    """A running aggregator, by flags and settings that have none: its address and process id."""
    command = [sys.executable, "-m", "recollect", "serve", "--archives", str(folder / "archives.json"), "--port", "0"]
    command += flags
    known = {**os.environ, **{f"RECOLLECT_{name.upper()}": value for name, value in settings.items()}}
    with subprocess.Popen(command, env=known, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip().rstrip("/")
            assert address, f"it does not start: {' '.join(command)}"
            yield address, process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(15)


def wait_for(url: str, seconds: float = 10.0) -> None:
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        try:
            urllib.request.urlopen(url, timeout=1).read()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"no server answers at {url}")


def family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in family(int(child)))]


def cpu_seconds(pid: int) -> float:
    total = 0.0
    for one in family(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / TICK
    return total


def memory_mb(pid: int) -> float:
    pages = sum(int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in family(pid))
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def stats(base: int) -> dict[str, int]:
    counted: dict[str, int] = json.loads(urllib.request.urlopen(f"http://127.0.0.1:{base}/stats").read())
    return counted


# Load


LUA = """
local n = 0
local step = tonumber(os.getenv("BENCH_STEP"))
local all = tonumber(os.getenv("BENCH_URIS"))
local path = os.getenv("BENCH_PATH")
request = function()
  n = (n + step) % all
  return wrk.format("GET", path .. "http://site" .. (n % 997) .. ".example.org/page/" .. n)
end
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("RESULT %d %d %f %f %d\\n", summary.requests, summary.duration, latency:percentile(50) / 1000,
    latency:percentile(99) / 1000, e.connect + e.read + e.write + e.timeout))
end
"""


def load(address: str, seconds: float, connections: int, *, uris: int = URIS, path: str = "/timemap/link/") -> Result:
    if shutil.which("wrk") is None:
        return asyncio.run(own_load(address, seconds, connections, uris, path))
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(LUA)
        script.flush()
        length = f"-d{max(1, round(seconds))}s"  # wrk refuses 0 s
        done = subprocess.run(
            ["wrk", "-t1", f"-c{connections}", length, "--timeout", "10s", "-s", script.name, address],
            env={**os.environ, "BENCH_STEP": "7919", "BENCH_URIS": str(uris), "BENCH_PATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
    match = re.search(r"RESULT (\d+) (\d+) (\S+) (\S+) (\d+)", done.stdout)
    assert match is not None, done.stdout + done.stderr
    requests, duration = int(match[1]), int(match[2]) / 1e6
    return Result(requests, requests / duration, float(match[3]), float(match[4]), int(match[5]))


async def own_load(address: str, seconds: float, connections: int, uris: int, path: str) -> Result:
    """The same without wrk."""
    from recollect.archives.client import ArchiveClient
    from recollect.archives.registry import Archive
    from recollect.archives.transport import Request
    from recollect.errors import ArchiveError

    server = Archive("server", timemap=address + "/", concurrency=connections)
    until = time.monotonic() + seconds
    times: list[float] = []
    bad = number = 0

    async def client(asking: ArchiveClient) -> None:
        nonlocal bad, number
        while time.monotonic() < until:
            number = (number + 7919) % uris
            try:
                answer = await asking.send(Request(server, f"{address}{path}{uri(number)}", hops=0))
            except ArchiveError:
                bad += 1
                continue
            times.append(answer.elapsed)
            bad += answer.status not in (200, 404)

    started = time.monotonic()
    async with ArchiveClient(in_flight=connections) as asking:
        await asyncio.gather(*(client(asking) for _ in range(connections)))
    times.sort()
    took = time.monotonic() - started
    return Result(
        len(times), len(times) / took, times[len(times) // 2] * 1000, times[int(len(times) * 0.99)] * 1000, bad
    )


def measured(address: str, pid: int, base: int, seconds: float, connections: int = 64, **how: Any) -> Result:
    load(address, 2, connections, **how)  # connections are made, code is warm
    urllib.request.urlopen(f"http://127.0.0.1:{base}/reset").read()
    before = cpu_seconds(pid)
    result = load(address, seconds, connections, **how)
    used = cpu_seconds(pid) - before
    counted = stats(base)
    return replace(result, cpu_ms=used * 1000 / max(result.requests, 1), upstream=counted["n"], hits=counted["hits"])


# Cases


def write_maps(folder: Path) -> None:
    """A map per archive, of exactly what it holds."""
    from recollect.uris import key_of_uri

    folder.mkdir()
    head = '!context ["https://git.io/mementomap"]\n!fields {"keys": ["surt"], "values": ["frequency"]}\n'
    head += '!id {"uri": "http://127.0.0.1/"}\n!meta {"type": "MementoMap"}\n'
    for archive in range(len(HITS)):
        keys = sorted(key_of_uri(uri(n)) for n in range(URIS) if hit(archive, uri(n)))
        (folder / f"fake{archive}.ukvs").write_bytes(head.encode() + b"".join(key + b" 10/1\n" for key in keys))


def show(name: str, result: Result, *, target: str) -> None:
    upstream = f"{result.upstream / max(result.requests, 1):.2f}"
    print(
        f"{name:<22} {result.per_second:>9.0f} {result.p50_ms:>8.1f} {result.p99_ms:>8.1f} {result.cpu_ms:>8.3f}"
        f" {upstream:>9} {result.bad:>5}   {target}",
        flush=True,
    )


def head() -> None:
    print(f"{'case':<22} {'req/s':>9} {'p50 ms':>8} {'p99 ms':>8} {'CPU ms':>8} {'upstream':>9} {'bad':>5}   target")


def paper_archives(folder: Path, *flags: str) -> Any:
    return archives(folder, "--latency-ms", "50", "--hits", ",".join(map(str, HITS)), "--mementos", "10", *flags)


def run(folder: Path, seconds: float, workers: int) -> None:
    more = ["--workers", str(workers)]
    head()
    with paper_archives(folder) as base:
        with server(folder, "--no-cache", "--no-learn", *more) as (address, pid):
            broadcast = measured(address, pid, base, seconds)
            show("broadcast c=64", broadcast, target="CPU <= 3.5 (MemGator 2.55), p99 < 250")
            show("broadcast c=16", measured(address, pid, base, seconds, 16), target="")
            show("broadcast c=1", measured(address, pid, base, seconds, 1), target="")
        with server(folder, "--no-cache", "--no-learn", *more, in_flight="320") as (address, pid):
            show("  in_flight = 320", measured(address, pid, base, seconds), target="c=64; for comparison")
        write_maps(folder / "maps")
        with server(folder, "--no-cache", "--no-learn", "--maps", str(folder / "maps"), *more) as (address, pid):
            routed = measured(address, pid, base, seconds)
            show("routed c=64", routed, target="CPU <= 1, req/s >= 3x broadcast")
            print(
                f"{'':<22} {routed.per_second / broadcast.per_second:.1f}x the broadcast's requests/s;"
                f" {routed.upstream / max(routed.hits, 1):.3f} upstream requests per hit (<= 1.15)"
            )
            missed(address)
        with server(folder, "--no-learn", *more) as (address, pid):
            cached = measured(address, pid, base, seconds, uris=500)
            show("cached c=64", cached, target="CPU <= 0.3")
    with (
        archives(folder, "--latency-ms", "50", "--hit", "1.0", "--mementos", "1200") as base,
        server(folder, "--no-cache", "--no-learn", *more) as (address, pid),
    ):
        show("12 x 1,200 mementos c=4", measured(address, pid, base, seconds, 4, uris=50), target="CPU <= 30")
    with (
        archives(folder, "--latency-ms", "50", "--hit", "1.0", "--slow", "3:2000"),
        server(folder, "--no-cache", "--no-learn", "--deadline", "1") as (address, _),
    ):
        stalled(address)


def beside_memgator(folder: Path, seconds: float, program: str, rounds: int = 3) -> None:
    """Both aggregators alternately over the same archives, so that a busy machine is busy for both: medians."""
    head()
    with paper_archives(folder) as base:
        write_maps(folder / "maps")
        ours = server(folder, "--no-cache", "--no-learn")
        routed = server(folder, "--no-cache", "--no-learn", "--maps", str(folder / "maps"))
        with memgator(program, folder) as theirs, ours as broadcast, routed as by_maps:
            names = {"MemGator": theirs, "broadcast": broadcast, "routed": by_maps}
            results: dict[str, list[Result]] = {name: [] for name in names}
            for _ in range(rounds):
                for name, (address, pid) in names.items():
                    results[name].append(measured(address, pid, base, seconds))
                    show(name, results[name][-1], target="")
    rate = {name: median(one.per_second for one in several) for name, several in results.items()}
    cpu = {name: median(one.cpu_ms for one in several) for name, several in results.items()}
    for name, wanted in (("broadcast", "1.2x at 0.7 of its CPU"), ("routed", "3x")):
        print(
            f"{name}: {rate[name] / max(rate['MemGator'], 1e-9):.2f}x MemGator's requests/s at"
            f" {cpu[name] / max(cpu['MemGator'], 1e-9):.2f} of its CPU a request (wanted: {wanted})"
        )


def missed(address: str) -> None:
    """Whether routing lost anything: every URI of a sample against what the archives hold."""
    wrong = 0
    for number in range(0, URIS, 97):
        held = sum(10 for archive in range(len(HITS)) if hit(archive, uri(number)))
        try:
            with urllib.request.urlopen(f"{address}/timemap/link/{uri(number)}") as answer:
                found = int(answer.headers["X-Memento-Count"])
        except urllib.error.HTTPError as error:
            found = int(error.headers["X-Memento-Count"])
        wrong += found != held
    print(f"{'':<22} {wrong} of {len(range(0, URIS, 97))} sampled answers miss mementos (0)")


def stalled(address: str) -> None:
    started = time.monotonic()
    with urllib.request.urlopen(f"{address}/timemap/link/{uri(1)}") as answer:
        said = answer.headers.get("X-Recollect-Partial")
        count = answer.headers.get("X-Memento-Count")
    print(
        f"one archive at 2 s, deadline 1 s: {count} mementos after {time.monotonic() - started:.2f} s (<= 1.1),"
        f" partial: {said}"
    )


def soak(folder: Path, seconds: float, workers: int) -> bool:
    """80% of the load the server can take, archives failing at random: no error of ours, memory flat. Returns whether
    it was so."""
    log = folder / "access.jsonl"
    flags = ("--workers", str(workers), "--access-log", str(log))
    # A small cache is full early, and what grows then is a leak.
    with (
        paper_archives(folder, "--fail", "0.05", "--drop", "0.02") as base,
        server(folder, *flags, cache_size="20 MB") as (address, pid),
    ):
        full = load(address, 5, 64)
        connections = int(64 * 0.8)
        print(f"full load {full.per_second:.0f} req/s; soaking for {seconds:.0f} s with {connections} connections")
        samples: list[float] = []
        stop = threading.Event()

        def watch() -> None:
            while not stop.wait(max(1.0, seconds / 20)):
                samples.append(memory_mb(pid))
                print(f"  {len(samples):>3}: {samples[-1]:.0f} MB", flush=True)

        watcher = threading.Thread(target=watch)
        watcher.start()
        result = load(address, seconds, connections, uris=10**9)
        stop.set()
        watcher.join()
        counted = stats(base)
    print(f"{result.requests} requests, {result.per_second:.0f}/s, p99 {result.p99_ms:.0f} ms, {result.bad} broken")
    print(f"archives answered {counted['n']} requests and failed {counted['fail']} of them")
    ours = errors(log)
    quarter = max(1, len(samples) // 4)
    first, last = sum(samples[:quarter]) / quarter, sum(samples[-quarter:]) / quarter
    print(f"memory {first:.0f} MB in the first quarter, {last:.0f} MB in the last (at most 20% more)")
    print(f"errors of ours: {ours + result.bad} (0)")
    return not ours and not result.bad and last <= first * 1.2


# What an archive did to a request of ours: it answered with a failure, hung up, or sent nonsense.
BY_ARCHIVES = re.compile(r"status [45]\d\d|unreachable|bad answer|not a TimeMap")


def errors(log: Path) -> int:
    """Group the answers that are neither 200 nor 404 by cause; returns how many do not come from archives."""
    statuses: Counter[int] = Counter()
    causes: Counter[tuple[int, str, str]] = Counter()
    for line in log.read_text().splitlines():
        lookup = json.loads(line)
        status = lookup["status"]
        statuses[status] += 1
        if status in (200, 404):
            continue
        reasons = sorted(set(lookup.get("failed", {}).values()))
        if status == 499:
            whose, why = "the load's", "the load ended before the answer"
        elif status == 502 and reasons and not lookup["archives"] and all(map(BY_ARCHIVES.fullmatch, reasons)):
            whose, why = "the archives'", f"every archive asked failed: {', '.join(reasons)}"
        else:
            whose, why = "ours", ", ".join(reasons) or "no archive was asked"
        causes[status, whose, why] += 1
    print("answers: " + ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items())))
    for (status, whose, why), count in sorted(causes.items()):
        print(f"  {count} x {status}, {whose}: {why}")
    return sum(count for (_, whose, _), count in causes.items() if whose == "ours")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--memgator", metavar="PATH", help="measure this program alternately with ours")
    parser.add_argument("--large", action="store_true", help="waits beside a TimeMap of 64 MB and a gzip bomb")
    parser.add_argument("--soak", type=float, default=0.0, metavar="SECONDS")
    options = parser.parse_args()
    print(f"archives: {TOOL if TOOL.exists() else 'bench/fakes.py (the shared tool is not there)'}")
    print(
        f"load: {'wrk' if shutil.which('wrk') else 'built-in generator (wrk is not installed)'}; {os.cpu_count()} cores"
    )
    os.environ["RECOLLECT_ADMIN_TOKEN"] = "bench"
    with tempfile.TemporaryDirectory() as folder:
        if options.soak:
            sys.exit(not soak(Path(folder), options.soak, options.workers))
        elif options.large:
            run_large(Path(folder), server)
        elif options.memgator:
            beside_memgator(Path(folder), options.seconds, options.memgator)
        else:
            run(Path(folder), options.seconds, options.workers)


if __name__ == "__main__":
    main()
