"""make bench-recover: a site of 2,000 resources back from local pywb archives without limits.

Makes its own site and archives. Figures: wall time and CPU of the whole command (survey, crawl, restore, WARC, WACZ,
report), requests per recovered resource, and for comparison how fast the same archives answer a client that does
nothing but fetch. Targets: under 60 s, at most 15 CPU ms per resource, at most 1.3 requests per resource.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pywb_archive import PywbArchive, pywb_archives
from recollect.archives.client import ArchiveClient
from recollect.archives.registry import Archive
from recollect.archives.transport import Request, RequestKind
from websites import Website, website, write_warc


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resources", type=int, default=2000)
    parser.add_argument("--archives", type=int, default=1, help="number of archives to spread the site over")
    chosen = parser.parse_args()
    site = website(pages=(chosen.resources - 10) // 2, troubles=False)
    with tempfile.TemporaryDirectory(prefix="bench-recover-") as folder:
        return run(site, Path(folder), chosen.archives)


def run(site: Website, folder: Path, count: int) -> int:
    holdings = []
    for number, shots in enumerate(site.scattered(count)):
        write_warc(folder / f"{number}.warc.gz", shots)
        holdings.append((folder / f"archive-{number}", (), [folder / f"{number}.warc.gz"]))
    with pywb_archives(holdings) as running:
        archives = [_archive(number, archive) for number, archive in enumerate(running)]
        names = ("id", "timemap", "cdx", "raw")
        (folder / "archives.json").write_text(json.dumps([{n: getattr(a, n) for n in names} for a in archives]))
        report, wall, cpu = recover(site, folder)
        bare = asyncio.run(fetch_all(archives, report))
    totals = report["totals"]
    resources, expected = totals["recovered"], len(site.final())
    print(f"site                {expected:,} resources in {count} pywb archive(s)")
    print(f"recovered           {resources:,} ({'all' if resources == expected else 'NOT ALL'})")
    print(f"wall time           {wall:.1f} s, {resources / wall:.0f} resources/s      (target: 2,000 in under 60 s)")
    print(f"CPU per resource    {1000 * cpu / resources:.1f} ms of {cpu:.1f} s                (target: at most 15 ms)")
    print(
        f"requests            {totals['requests']:,}, {totals['requests'] / resources:.3f} per resource (target: 1.3)"
    )
    print(f"efficiency          {totals['efficiency']:.2f}                             (target: 0.75; Warrick 0.41)")
    print(f"fetching alone      {bare:.1f} s, {resources / bare:.0f} resources/s: what these archives can give")
    print(f"of that we reach    {bare / wall:.0%}")
    good = resources == expected and cpu / resources < 0.015 and totals["requests"] <= 1.3 * resources
    return 0 if good and wall < 60 * max(1, resources / 2000) else 1


def _archive(number: int, archive: PywbArchive) -> Archive:
    return Archive(id=f"pywb{number}", timemap=archive.timemap, cdx=archive.cdx, raw=archive.raw)


def recover(site: Website, folder: Path) -> tuple[dict[str, dict[str, float]], float, float]:
    """The command as a user runs it; wall and CPU seconds of its process."""
    out = folder / "site"
    command = [sys.executable, "-m", "recollect", "recover", site.start, "-o", str(out), "--yes", "--quiet"]
    command += ["--archives", str(folder / "archives.json")]
    print("$", " ".join(command[2:]))
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    if process.returncode:
        raise SystemExit(f"recollect recover failed: exit {process.returncode}")
    return json.loads((out / "report.json").read_text()), wall, usage.ru_utime + usage.ru_stime


async def fetch_all(archives: list[Archive], report: dict[str, list[dict[str, str]]]) -> float:
    """Seconds to fetch the same captures with nothing done to them."""
    by_id = {archive.id: archive for archive in archives}
    waiting = [(by_id[entry["archive"]], entry["uri_m"]) for entry in report["resources"]]  # type: ignore[index]
    began = time.perf_counter()
    async with ArchiveClient() as client:

        async def work() -> None:
            while waiting:
                archive, address = waiting.pop()
                await client.send(Request(archive, address, kind=RequestKind.REPLAY))

        await asyncio.gather(*(work() for _ in range(8 * len(archives))))
    return time.perf_counter() - began


if __name__ == "__main__":
    raise SystemExit(main())
