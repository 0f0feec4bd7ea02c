"""Which properties of a resource predict its recovery? McCown 2007, section VII.5.3, in the form of Table 22.

    make experiment-factors
    make experiment-factors ARGS='--sites 20 --json'
    make experiment-factors ARGS='--policy exhaustive'
    make experiment-factors ARGS='--table recoveries.csv'     your own recoveries

Generated websites are in a real archive (pywb) that captured each resource with a probability that falls with hops from
the front page, depth of the path and query parameters, and rises with size and age. Every site is recovered by
`recollect.recover`, with two policies. `exhaustive` fetches all that the archive lists: what came back is what was
captured, so each estimate can be compared with the true value, and the table says whether its 95% interval covers it.
`knowledgeable`, the default of a recovery, fetches what is linked from what came back: a resource below a page that is
missing stays missing. There hops carry the probabilities of all pages on the way, and the effect of every other
property is smaller than in the archive. This is confounding by the way of recovering, not a property of the archive.

Estimates are a linear regression's, with standard errors that allow for unequal variances (HC1) and p-values.
Properties are drawn independently, but for images, which are one hop further than their page and lie in `/img/`. Where
properties go together, as hops and depth do on real sites (0.388 in the dissertation), a regression can share their
effect out between them in many ways, and a sign may be wrong: the correlation is printed.

A table has the columns `recovered` (0 or 1), `hops`, `depth`, `queries`, `image`, `document`, `size` (bytes) and `age`
(years).
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from recollect import recover
from recollect.cli.console import emit_table
from recollect.recovery.options import Options
from recollect.recovery.plan import RecoveryPolicy
from recollect.recovery.scope import Scope
from recollect.recovery.sources import Sources

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from pywb_archive import Capture, pywb_archive

NAMES = ("intercept", "hops", "path depth", "query params", "image", "document", "size, log10", "age, years")
TRUE = (0.75, -0.06, -0.04, -0.07, -0.15, -0.10, 0.05, 0.02)
"""What the archive's probability of a capture is made of."""
TABLE_22 = (0.76071, -0.04184, -0.06044, -0.04342, None, None, 0.00248, 0.00014 * 365)
"""The dissertation's estimates; it has age in days, and no types."""
COLUMNS = ("hops", "depth", "queries", "image", "document", "size", "age")


@dataclass(frozen=True, slots=True)
class Properties:
    """What is known of a resource before it is lost."""

    hops: int
    depth: int
    queries: int
    image: int
    document: int
    size: float
    """Log10 of the bytes."""
    age: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A row of Table 22."""

    name: str
    value: float
    error: float
    p: float

    def covers(self, true: float) -> bool:
        return abs(self.value - true) <= 1.96 * self.error


def website(host: str, rng: random.Random) -> dict[str, tuple[Properties, Capture]]:
    """A tree of pages, each with links to the next ones, to a document now and then, and an image or none."""
    made: dict[str, tuple[Properties, Capture]] = {}

    def path(name: str) -> str:
        folders = "".join(f"/d{rng.randrange(9)}" for _ in range(rng.randint(0, 4)))
        query = "&".join(f"{letter}={rng.randrange(99)}" for letter in "abc"[: rng.choice((0, 0, 1, 2, 3))])
        return f"{folders}/{name}" + (f"?{query}" if query else "")

    def page(here: str, hops: int) -> None:
        number = len(made)
        below = [path(f"p{number}-{n}.html") for n in range(rng.randint(2, 3))] if hops < 4 else []
        documents = [path(f"f{number}.pdf")] if rng.random() < 0.4 else []
        images = [f"/img/i{number}.png"] if rng.random() < 0.5 else []
        words = " ".join(rng.choices(("river", "boat", "spring", "club", "race"), k=int(10 ** rng.uniform(1, 3.5))))
        links = "".join(f'<a href="{escape(link)}">{escape(link)}</a>' for link in (*below, *documents))
        links += "".join(f'<img src="{image}">' for image in images)
        add(here, hops, "page", f"<title>{host} {number}</title><p>{links}</p><p>{words}</p>".encode())
        for kind, head, listed in (("document", b"%PDF-1.4 ", documents), ("image", b"\x89PNG\r\n\x1a\n", images)):
            for one in listed:
                add(one, hops + 1, kind, head + rng.randbytes(int(10 ** rng.uniform(1.5, 4))))
        for link in below:
            page(link, hops + 1)

    def add(here: str, hops: int, kind: str, body: bytes) -> None:
        age = rng.uniform(0, 8)
        media = {"page": "text/html", "document": "application/pdf", "image": "image/png"}[kind]
        shape = (here.partition("?")[0].count("/") - 1, here.count("="), int(kind == "image"), int(kind == "document"))
        properties = Properties(hops, *shape, math.log10(len(body)), age)
        made[here] = (properties, Capture(f"http://{host}{here}", f"{2019 - int(age)}0601000000", body, media))

    page("/", 0)
    return made


def chance(one: Properties) -> float:
    """The probability that the archive captured a resource; from 0.05 to 1."""
    return min(1.0, max(0.05, TRUE[0] + sum(b * x for b, x in zip(TRUE[1:], astuple(one), strict=True))))


def regress(rows: Sequence[Properties], found: Sequence[bool]) -> tuple[list[Estimate], float]:
    """Ordinary least squares of `found` on the properties, and R squared.

    The variance of a yes or no depends on its probability, so the standard errors are White's, with the correction for
    few observations (HC1). p is from the normal distribution.
    """
    x = np.array([(1.0, *astuple(row)) for row in rows])
    y = np.array(found, dtype=float)
    inverse = np.linalg.pinv(x.T @ x)
    beta = inverse @ x.T @ y
    left = y - x @ beta
    count, width = x.shape
    meat = (x * (left**2)[:, None]).T @ x * count / max(1, count - width)
    errors = np.sqrt(np.maximum(np.diag(inverse @ meat @ inverse), 1e-300))
    whole = float(((y - y.mean()) ** 2).sum()) or 1.0
    p_values = [math.erfc(abs(float(score)) / math.sqrt(2)) for score in beta / errors]
    rows_of = zip(NAMES, beta, errors, p_values, strict=True)
    return [Estimate(name, float(b), float(e), p) for name, b, e, p in rows_of], 1 - float(left @ left) / whole


def read_table(path: str) -> tuple[list[Properties], list[bool]]:
    """Recoveries that were measured elsewhere."""
    rows, found = [], []
    with Path(path).open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            numbers = [float(row[name]) for name in COLUMNS]
            hops, depth, queries, image, document = (int(number) for number in numbers[:5])
            rows.append(Properties(hops, depth, queries, image, document, math.log10(max(1, numbers[5])), numbers[6]))
            found.append(float(row["recovered"]) > 0)
    return rows, found


def measured(count: int, seed: int, policy: RecoveryPolicy) -> tuple[list[Properties], list[bool]]:
    """Recover generated sites from pywb."""
    rng = random.Random(seed)
    sites = {f"site{number}.example": website(f"site{number}.example", rng) for number in range(count)}
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
        registry.write_text(json.dumps([{"id": "pywb", "timemap": pywb.timemap, "cdx": pywb.cdx, "raw": pywb.raw}]))
        for host, site in sites.items():
            uri = f"http://{host}/"
            options = Options(Scope((uri,)), policy=policy)
            done = recover(uri, Path(name) / host, archives=Sources(str(registry)), options=options)
            assert done.report is not None
            back = {one.uri for one in done.report.resources}
            # The front page was captured for certain: it says nothing about properties.
            for path, (properties, capture) in site.items():
                if path != "/":
                    rows.append(properties)
                    found.append(capture.uri in back)
    return rows, found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policy", action="append", choices=("exhaustive", "knowledgeable"), help="default: both")
    parser.add_argument("--table", help="CSV file of recoveries; none are made then")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    names = ["table"] if given.table else given.policy or ["exhaustive", "knowledgeable"]
    summary = []
    for name in names:
        rows, found = read_table(given.table) if given.table else measured(given.sites, given.seed, name)
        summary.append(report(name, rows, found))
        if not given.json:
            show(summary[-1])
    if given.json:
        print(json.dumps(summary, indent=2))
    return 0


def report(name: str, rows: Sequence[Properties], found: Sequence[bool]) -> dict[str, Any]:
    """The regression of one set of recoveries, for programs."""
    estimates, fit = regress(rows, found)
    together = float(np.corrcoef([one.hops for one in rows], [one.depth for one in rows])[0, 1])
    summary = []
    for one, true, paper in zip(estimates, TRUE, TABLE_22, strict=True):
        row = {"name": one.name, "estimate": one.value, "error": one.error, "p": one.p, "table_22": paper}
        summary.append(row | ({"true": true, "covered": one.covers(true)} if name == "exhaustive" else {}))
    counts = {"resources": len(rows), "recovered": sum(found) / len(found), "r_squared": fit}
    return {"policy": name, **counts, "hops_with_depth": together, "estimates": summary}


def show(summary: dict[str, Any]) -> None:
    """The regression as a table."""
    known = summary["policy"] == "exhaustive"
    shown = [
        (e["name"], f"{e['estimate']:.5f}", f"{e['error']:.5f}", "< .0001" if e["p"] < 1e-4 else f"{e['p']:.4f}")
        + ((f"{e['true']:.2f}", "yes" if e["covered"] else "no") if known else ())
        + ("" if e["table_22"] is None else f"{e['table_22']:.5f}",)
        for e in summary["estimates"]
    ]
    headers = ["variable", "estimate", "error", "p", *(["true", "covered"] if known else []), "Table 22"]
    title = (
        f"{summary['policy']}: {summary['resources']:,} resources, {summary['recovered']:.0%} recovered, "
        f"R squared {summary['r_squared']:.3f}, correlation of hops and depth {summary['hops_with_depth']:.3f}"
    )
    emit_table(headers, shown, title=title, right=[1, 2, 3, *([4] if known else []), len(headers) - 1])


if __name__ == "__main__":
    raise SystemExit(main())
