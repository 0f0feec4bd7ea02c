"""Made indexes, and what profiles of them were before the loops were rebuilt (see `test_recorded_profiles`).

Run as a program it prints the digests of whatever `recollect` is imported.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import recollect

HERE = Path(__file__).parent
RECORDED = HERE / "recorded_profiles.json"

_MEDIA = ("text/html", "image/png", "warc/revisit", "-", "application/pdf;x=y", "text/dns", "TEXT/PLAIN")
_STATUSES = ("200", "301", "404", "-", "503", "abc")
_HOSTS = ("com,example", "com,example,www", "com,example:8080", "org,x", "4,3,2,1", "de,xn--mnchen-3ya", "uk,co,a-b")
_NAMES = ("", "a", "b/", "a/b/c", "robots.txt", "A/Upper", "caf%C3%A9", "x*y", "p.php", "é", "a//b/", "seg/robots.txt")
_QUERIES = ("", "", "", "?q=1", "?Q=2&b", "?")


def surts(made: random.Random, count: int) -> list[str]:
    """SURTs as indexes have them, regular and irregular ones, some many times."""
    found = []
    while len(found) < count:
        path = made.choice(_NAMES) + (str(made.randrange(40)) if made.random() < 0.5 else "")
        surt = f"{made.choice(_HOSTS)})/{path}{made.choice(_QUERIES)}"
        found += [surt] * made.choice((1, 1, 1, 2, 5))
    return found[:count]


def cdxj_lines(made: random.Random, count: int) -> list[str]:
    lines = []
    for number, surt in enumerate(surts(made, count)):
        time = (
            f"{made.randrange(1996, 2024)}{made.randrange(1, 13):02d}{made.randrange(1, 29):02d}{number % 24:02d}0112"
        )
        values: dict[str, Any] = {
            "url": f"http://host.example/{number % 91}",
            "mime": made.choice(_MEDIA),
            "status": made.choice(_STATUSES),
            "digest": f"D{number % 57}",
        }
        if number % 11 == 0:
            values = {"status_code": 200, "mime_type": "text/css", "original": 'http://a.example/"q"'}
        if number % 13 == 0:
            values["languages"] = "ces,deu"
        lines.append(f"{surt} {time} {json.dumps(values)}")
    return lines


def cdx_lines(made: random.Random, count: int) -> list[str]:
    lines = []
    for number, surt in enumerate(surts(made, count)):
        fields = (
            made.choice(_MEDIA),
            made.choice(_STATUSES),
            f"D{number % 57}",
            "-",
            "-",
            "12",
            str(number),
            "f.warc.gz",
        )
        lines.append(f"{surt} 2015{number % 12 + 1:02d}01000000 http://host.example/ {' '.join(fields)}")
    return lines


def urls(made: random.Random, count: int) -> list[str]:
    hosts = ("www.Example.com", "example.org:80", "1.2.3.4", "[::1]", "münchen.example", "a.b.c.example")
    schemes = ("http://", "https://", "HTTP://", "")
    return [
        f"{made.choice(schemes)}{made.choice(hosts)}/{made.choice(_NAMES)}{made.randrange(9)}{made.choice(_QUERIES)}"
        + made.choice(("", "#frag", ";jsessionid=0123456789ABCDEF0123456789ABCDEF", "&sid=1"))
        for _ in range(count)
    ]


def write_inputs(folder: Path) -> dict[str, Path]:
    """The made inputs by name."""
    made = random.Random(12)
    cdxj = sorted(cdxj_lines(made, 6000))
    mixed = cdxj.copy()
    made.shuffle(mixed)
    broken = [*cdxj[:400], "no key at all", "com,x)/ 2014 {broken", " CDX N b a", "!meta {}", "", *cdxj[400:600]]
    texts = {
        "plain.cdxj": cdxj,
        "unsorted.cdxj": mixed,
        "broken.cdxj": broken,
        "plain.cdx": [" CDX N b a m s k r M S V g", *sorted(cdx_lines(made, 3000))],
        "list.surts": sorted(surts(made, 2000)),
        "list.urls": urls(made, 3000),
    }
    inputs = {}
    for name, lines in texts.items():
        inputs[name] = folder / name
        inputs[name].write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    inputs["plain.cdxj.gz"] = folder / "plain.cdxj.gz"
    inputs["plain.cdxj.gz"].write_bytes(gzip.compress(inputs["plain.cdxj"].read_bytes(), mtime=0))
    inputs["crlf.cdxj"] = folder / "crlf.cdxj"
    inputs["crlf.cdxj"].write_bytes(inputs["plain.cdxj"].read_bytes().replace(b"\n", b"\r\n"))
    return inputs


# For each case the inputs and the options of `recollect.profile`.
CASES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    **{name: ((name,), {}) for name in ("plain.cdxj", "plain.cdxj.gz", "unsorted.cdxj", "broken.cdxj", "crlf.cdxj")},
    **{name: ((name,), {}) for name in ("plain.cdx", "list.surts", "list.urls")},
    "several": (("unsorted.cdxj", "plain.cdx", "list.urls"), {}),
    "spilled": (("unsorted.cdxj",), {"memory_limit": 1 << 16}),
    **{
        f"policy {name}": (("plain.cdxj",), {"policy": name})
        for name in ("H1P0", "H3P1", "HxP1", "DDom", "DSub", "URIR")
    },
    "unsorted policy": (("unsorted.cdxj",), {"policy": "H2P2"}),
    "status": (("plain.cdxj",), {"statuses": ["200", "3xx"]}),
    "no status": (("plain.cdx",), {"statuses": ["-"]}),
    "media types": (("plain.cdxj",), {"media_types": ["text/*", "image/png"]}),
    "times": (("plain.cdxj",), {"since": "2001", "until": "2010-06"}),
    "exclude": (("plain.cdxj",), {"exclude": ["robots.txt", "c"]}),
    "where": (("plain.cdxj",), {"where": "status == 200 and year > 2010"}),
    "all schemes": (("plain.cdx",), {"all_schemes": True}),
    "by year": (("plain.cdxj",), {"by": ["year"]}),
    "by status and type": (("unsorted.cdxj",), {"by": ["status", "media-type"]}),
    "by month in columns": (("plain.cdxj",), {"by": ["month"], "by_columns": True}),
    "by language": (("plain.cdxj",), {"by": ["language"]}),
}


def digests(folder: Path) -> Iterator[tuple[str, str]]:
    """For each case the digest of the records and totals of its profile; headers are left out."""
    inputs = write_inputs(folder)
    for name, (files, options) in CASES.items():
        made = recollect.profile([inputs[file] for file in files], **options)
        lines = [line for line in (made.text or b"").splitlines(keepends=True) if not line.startswith(b"!")]
        totals, tally = made.totals, made.tally
        dropped = [counts.total() for counts in (tally.filtered, tally.left_out, tally.skipped)]
        counts = f"{totals.keys} {totals.captures} {totals.uri_rs} {len(lines)} {tally.lines} {dropped}\n".encode()
        yield name, hashlib.sha256(counts + b"".join(lines)).hexdigest()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        json.dump(dict(digests(Path(temporary))), sys.stdout, indent=1)
