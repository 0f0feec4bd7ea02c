"""Which properties of a resource predict its recovery? The dissertation's section VII.5.3, in the form of Table 22.

    make experiment-factors
    make experiment-factors ARGS='--sites 20 --json'

Generated websites are in a real archive (pywb) that captured each resource with a chance that falls with hops from the
front page, depth of the path and query parameters; then every site is recovered by `recollect.recover`, which follows
links, so that hops count twice: for the archive and for the way to a resource over pages that are missing. A linear
regression says which properties go with a resource that came back. The archive's chances are known, so the signs of the
estimates can be checked; with real recoveries the same table says what mattered there.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

from recollect import recover
from recollect.cli.console import emit_table
from recollect.recovery.sources import Sources

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from pywb_archive import Capture, pywb_archive

NAMES = ("intercept", "hops", "path depth", "query params", "image", "size, log10", "age, years")


@dataclass(frozen=True, slots=True)
class Properties:
    """What is known of a resource before it is lost."""

    hops: int
    depth: int
    queries: int
    image: int
    size: float
    age: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A row of Table 22."""

    name: str
    value: float
    error: float
    p: float


def website(host: str, rng: random.Random) -> dict[str, tuple[Properties, Capture]]:
    """A tree of pages, each with links to the next ones and an image or two."""
    made: dict[str, tuple[Properties, Capture]] = {}

    def page(path: str, hops: int) -> None:
        depth = path.partition("?")[0].count("/") - 1
        below = []
        if hops < 4:
            for number in range(rng.randint(2, 3)):
                folder = path.partition("?")[0].rpartition("/")[0]
                deeper = f"{folder}/d{number}/p{rng.randrange(10**6)}.html" if rng.random() < 0.5 else ""
                below.append(deeper or f"{folder}/q{rng.randrange(10**6)}.php?id={number}")
        images = [f"/img/i{rng.randrange(10**6)}.png" for _ in range(rng.randint(0, 1))]
        words = " ".join(rng.choice(("river", "boat", "spring", "club", "race")) for _ in range(rng.randint(20, 2000)))
        links = "".join(f'<a href="{link}">{link}</a>' for link in below) + "".join(f'<img src="{i}">' for i in images)
        body = f"<title>{host} {path}</title><p>{links}</p><p>{words}</p>".encode()
        add(path, hops, depth, 0, body, "text/html")
        for image in images:
            add(image, hops + 1, 1, 1, b"\x89PNG\r\n\x1a\n" + rng.randbytes(rng.randint(50, 5000)), "image/png")
        for link in below:
            page(link, hops + 1)

    def add(path: str, hops: int, depth: int, image: int, body: bytes, kind: str) -> None:
        age = rng.uniform(0, 8)
        properties = Properties(hops, depth, path.count("="), image, math.log10(len(body)), age)
        made[path] = (properties, Capture(f"http://{host}{path}", f"{2019 - int(age)}0601000000", body, kind))

    page("/", 0)
    return made


def chance(one: Properties) -> float:
    """Whether the archive captured a resource."""
    return min(1.0, max(0.05, 1.0 - 0.10 * one.hops - 0.04 * one.depth - 0.10 * one.queries + 0.02 * one.age))


def regress(rows: Sequence[Properties], found: Sequence[bool]) -> tuple[list[Estimate], float]:
    """Ordinary least squares of `found` on the properties, and R squared; p from the normal distribution."""
    x = np.array([(1.0, *astuple(row)) for row in rows])
    y = np.array(found, dtype=float)
    inverse = np.linalg.pinv(x.T @ x)
    beta = inverse @ x.T @ y
    left = y - x @ beta
    spread = float(left @ left) / max(1, len(y) - x.shape[1])
    errors = np.sqrt(np.maximum(np.diag(inverse) * spread, 1e-300))
    scores = beta / errors
    whole = float(((y - y.mean()) ** 2).sum()) or 1.0
    p_values = [math.erfc(abs(float(score)) / math.sqrt(2)) for score in scores]
    rows_of = zip(NAMES, beta, errors, p_values, strict=True)
    return [Estimate(name, float(b), float(e), p) for name, b, e, p in rows_of], 1 - float(left @ left) / whole


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    rng = random.Random(given.seed)
    sites = {f"site{number}.example": website(f"site{number}.example", rng) for number in range(given.sites)}
    captures = [
        capture
        for site in sites.values()
        for path, (properties, capture) in site.items()
        if path == "/" or rng.random() < chance(properties)
    ]
    rows: list[Properties] = []
    found: list[bool] = []
    with tempfile.TemporaryDirectory() as name, pywb_archive(Path(name) / "pywb", captures) as pywb:
        registry = Path(name) / "archives.json"
        entry = {"id": "pywb", "timemap": pywb.timemap, "cdx": pywb.cdx, "raw": pywb.raw}
        registry.write_text(json.dumps([entry]))
        for host, site in sites.items():
            done = recover(f"http://{host}/", Path(name) / host, archives=Sources(str(registry)))
            assert done.report is not None
            back = {one.uri for one in done.report.resources}
            for properties, capture in site.values():
                rows.append(properties)
                found.append(capture.uri in back)
    estimates, fit = regress(rows, found)
    if given.json:
        told = [{"name": one.name, "estimate": one.value, "error": one.error, "p": one.p} for one in estimates]
        share = sum(found) / len(found)
        print(json.dumps({"resources": len(rows), "recovered": share, "r_squared": fit, "estimates": told}, indent=2))
        return 0
    shown = [(e.name, f"{e.value:.5f}", f"{e.error:.5f}", "< .0001" if e.p < 1e-4 else f"{e.p:.4f}") for e in estimates]
    title = f"{len(rows):,} resources, {sum(found) / len(found):.0%} recovered, R squared {fit:.3f} (Table 22's form)"
    emit_table(["variable", "estimate", "error", "p"], shown, title=title, right=[1, 2, 3])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
