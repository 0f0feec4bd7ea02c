"""What the tests of both engines work on: small, unsorted, skewed and nasty indexes. Skips where Spark cannot run."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

from click.testing import CliRunner

import needs
from recollect.cli.main import cli

needs.wheel("Spark")
needs.program("Java")

from recollect.engines.spark.exchange import Sizes  # noqa: E402

# So small that some ten kilobytes are cut into several splits, blocks and ranges.
SMALL = Sizes(split=30_000, smallest_split=30_000, block=1 << 12, range=25_000, smallest_range=25_000)
HOSTS = [
    "com,a",
    "com,a-b",
    "com,a:8080",
    "com,a,www",
    "com,a1",
    "com,ab",
    "org,x",
    "net,y,z",
    "4,3,2,1",
    "de,xn--bcher-kva",
]
NASTY = (
    b"not a line at all\n"
    b'com,a)/\xff\xfe/\xe9 20100101000000 {"mime": "text/html", "status": "200"}\r\n'
    b"\n"
    b'dns:example.com 20100101000000 {"mime": "text/dns", "status": "-"}\n'
    b'com,a)/tab\there 20100101000000 {"mime": "text/html"\n'
    b'com,a)/cr\rhere 20100101000000 {"mime": "text/html", "status": "200"}\n'
    b'com,a)/nul\x00 20100101000000 {"mime": "image/png", "status": "404"}\n'
    b'com,a)/?%E2%82%AC=\xe2\x82\xac 20111231235959 {"mime": "warc/revisit", "status": "-"}'
)


def lines(seed: int, count: int) -> list[str]:
    """Captures, more than a third of them of one host, in no order."""
    dice = random.Random(seed)
    made = []
    for _ in range(count):
        host = "com,skewed" if dice.random() < 0.4 else dice.choice(HOSTS)
        path = "/".join(
            dice.choice(["a", "a-b", "b", "img", "robots.txt", "0", "%20"]) for _ in range(dice.randint(0, 4))
        )
        query = f"?q={dice.randint(0, 30)}" if dice.random() < 0.5 else ""
        time = f"{dice.randint(1996, 2024)}0{dice.randint(1, 9)}10120000"
        fields = {"mime": dice.choice(["text/html", "image/png", "-"]), "status": dice.choice(["200", "404", "-"])}
        made.append(f"{host})/{path}{query} {time} {json.dumps(fields)}")
    return made


def as_cdx(made: list[str]) -> str:
    """The same captures as a CDX with a header."""
    rows = [(*line.split(" ", 2)[:2], json.loads(line.split(" ", 2)[2])) for line in made]
    text = [f"{surt} {time} http://x/ {block['mime']} {block['status']} D - - 1 2 w" for surt, time, block in rows]
    return "\n".join([" CDX N b a m s k r M S V g", *text]) + "\n"


def write_indexes(folder: Path) -> list[str]:
    """An unsorted index, a nasty one, and a compressed CDX."""
    (folder / "one.cdxj").write_text("\n".join(lines(1, 600)) + "\n")
    (folder / "nasty.cdxj").write_bytes("\n".join(sorted(lines(2, 60))).encode() + b"\n" + NASTY)
    (folder / "two.cdx.gz").write_bytes(gzip.compress(as_cdx(sorted(lines(3, 200))).encode()))
    return [str(folder / name) for name in ("one.cdxj", "nasty.cdxj", "two.cdx.gz")]


def said_by(*arguments: str) -> tuple[int, dict[str, Any]]:
    """What a command says for programs, and its exit code."""
    done = CliRunner().invoke(cli, arguments, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value or 0, json.loads(done.stdout)
