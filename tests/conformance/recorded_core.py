"""Made holdings and lookups, and every command that the compiled core works for, run on them.

The digests of what the commands wrote with the core before it was rebuilt are in `recorded_core.json`; the test
`test_recorded_core.py` compares. `python tests/conformance/recorded_core.py FILE` writes such a file.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from recollect.cli.main import run

SEGMENTS = ("a", "a-b", "a.b", "ab", "0", "10", "news", "2014", "img", "index.html", "~joe", "%20x", "z" * 40, "b!c")
HOSTS = ("x", "x-y", "x0", "xy", "www", "blog", "a", "shop", "m", "cdn-1")
TLDS = ("com", "org", "pt", "co,uk", "net", "gov")
ADDRESSES = ("4,3,2,1", "4,3,2,10:80", "255,0,0,127", "[::1]", "[::1]:8080")
FREQUENCIES = ("1", "2/1", "3+/2", "/4", "5~", "7-/2", "4/1", "12/9", "1/1", "250/31", "1/1", "2/2")

_TIME = re.compile(rb'"updated_at": ?"[^"]*"')  # the only thing that differs from run to run


def keys(seed: int, count: int) -> list[str]:
    """Different keys in the order of bytes, with siblings that interrupt subtrees, ports, addresses and deep paths."""
    chance = random.Random(seed)
    found = set()
    while len(found) < count:
        if chance.random() < 0.02:
            host = chance.choice(ADDRESSES)
        else:
            parts = [chance.choice(TLDS), f"{chance.choice(HOSTS)}{chance.randrange(12)}"]
            parts += [chance.choice(HOSTS) for _ in range(chance.choice((0, 0, 0, 1, 1, 2)))]
            host = ",".join(parts) + chance.choice(("", "", "", "", "", "", "", "", ":8080", ":443"))
        depth = min(int(chance.expovariate(0.55)), 12)
        path = [chance.choice(SEGMENTS) + str(chance.randrange(3)) * chance.randrange(2) for _ in range(depth)]
        if depth > 2 and chance.random() < 0.03:
            path[1] = ""
        found.add(f"{host})/" + "/".join(path))
    return sorted(found, key=str.encode)


def plain_map(seed: int, count: int) -> str:
    """A map of exact keys alone."""
    chance = random.Random(seed + 1)
    return "".join(f"{key} {chance.choice(FREQUENCIES)}\n" for key in keys(seed, count))


def mixed_map(seed: int, count: int) -> str:
    """A map with wildcards, voids and JSON blocks among its keys."""
    chance = random.Random(seed + 2)
    lines = {}
    for key in keys(seed, count):
        lines[key] = chance.choice(FREQUENCIES)
        if chance.random() < 0.1:
            lines[key] += ' {"datetime": {"2014": "1/1"}}'
        host, _, path = key.partition(")")
        if chance.random() < 0.03:
            wide = f"{host})" + path.rstrip("/") + "/*"
            lines[wide] = chance.choice(("0", "0", "30/4", "90+/2"))
        if chance.random() < 0.005 and ":" not in host and host[0].isalpha():
            lines[f"{host},*"] = chance.choice(("0", "300/40"))
        if chance.random() < 0.03:
            lines[f"{host})" + path.rstrip("/") + "/gone"] = "0"
    ordered = sorted(lines.items(), key=lambda item: item[0].encode())
    return "".join(f"{key} {value}\n" for key, value in ordered)


def lookups(seed: int, held: list[str], count: int) -> str:
    """Lookups of what is held, of what is near it, and of what is not there at all, some of them often."""
    chance = random.Random(seed + 3)
    lines = []
    for _ in range(count):
        key = chance.choice(held)
        step = chance.random()
        if step < 0.3:
            key = key.rstrip("/") + "/" + chance.choice(SEGMENTS)
        elif step < 0.5:
            key = key.rpartition("/")[0] + "/" + f"absent{chance.randrange(60)}"
        elif step < 0.6:
            key = f"{chance.choice(TLDS)},unheard{chance.randrange(20)})/"
        lines += [key] * chance.choice((1, 1, 1, 2, 5))
    return "\n".join(lines) + "\n"


def captures(seed: int, held: list[str], count: int) -> str:
    """A CDXJ index with times, media types and statuses."""
    chance = random.Random(seed + 4)
    lines = []
    for _ in range(count):
        key = chance.choice(held)
        surt = key + chance.choice(("", "", "", "?a=1", "?q=2&b"))
        block = {
            "url": "http://x.example/",
            "mime": chance.choice(("text/html", "image/png", "warc/revisit")),
            "status": chance.choice(("200", "200", "200", "301", "404")),
        }
        when = f"{chance.randrange(1996, 2021)}{chance.randrange(1, 13):02}15120000"
        lines.append(f"{surt} {when} {json.dumps(block)}")
    return "\n".join(sorted(lines, key=str.encode)) + "\n"


def make_inputs(folder: Path) -> None:
    """Write all that the commands read."""
    held = keys(1, 6000)
    texts = {
        "plain.ukvs": plain_map(1, 6000),
        "mixed.ukvs": mixed_map(5, 4000),
        "second.ukvs": plain_map(9, 3000),
        "third.ukvs": plain_map(1, 2000),
        "log.txt": lookups(1, held, 3000),
        "index.cdxj": captures(1, held, 8000),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "asked.txt").write_text("".join(f"{key}\n" for key in dict.fromkeys(texts["log.txt"].split())))


COMPACTIONS = {
    "weights": [],
    "narrow": ["--host-weight", "0.5", "--path-weight", "0.25"],
    "one-thread": ["--path-weight", "1", "--threads", "1"],
    "tlds": ["--host-weight", "0.2", "--rollup-tlds"],
    "shallow": ["--max-host-depth", "3", "--max-path-depth", "4", "--path-weight", "0.5"],
    "fit": ["--fit"],
    "cost": ["--max-cost", "5%"],
    "keys": ["--max-keys", "150"],
    "bytes": ["--max-bytes", "8kB"],
    "cost-log": ["--max-cost", "5%", "--lookups", "log.txt"],
    "bytes-log": ["--max-bytes", "6kB", "--lookups", "log.txt"],
    "accuracy": ["--min-accuracy", "90%", "--lookups", "log.txt"],
}
COMMANDS = {
    "evaluate": ["evaluate", "plain-cost.ukvs", "plain-weights.ukvs", "--holdings", "plain.ukvs",
                 "--lookups", "log.txt", "--json"],
    "stats-index": ["stats", "index.cdxj", "--json"],
    "stats-map": ["stats", "plain.ukvs", "--json"],
    "lookup-plain": ["lookup", "plain-weights.ukvs", "--from", "asked.txt"],
    "lookup-mixed": ["lookup", "mixed.ukvs", "--from", "asked.txt"],
    "lookup-gzip": ["lookup", "packed.ukvs.gz", "--from", "asked.txt"],
    "tradeoff": ["tradeoff", "plain.ukvs", "--lookups", "log.txt", "--json", "--sizes", "5"],
}  # fmt: skip
WRITERS = {
    "merged.ukvs": ["merge", "plain.ukvs", "second.ukvs", "third.ukvs"],
    "disjoint.ukvs": ["merge", "plain.ukvs", "second.ukvs", "--disjoint"],
    "careful.ukvs": ["merge", "plain.ukvs", "mixed.ukvs", "--spread"],
    "packed.ukvs.gz": ["merge", "plain-weights.ukvs", "second.ukvs"],
    "voids.ukvs": ["voids", "log.txt", "--map", "plain.ukvs", "--updated-at", "2020"],
}


def outputs(folder: Path) -> Iterator[tuple[str, bytes]]:
    """What each command wrote, by name."""
    for source in ("plain", "mixed"):
        for name, options in COMPACTIONS.items():
            target = f"{source}-{name}.ukvs"
            _run("compact", f"{source}.ukvs", "-o", target, "-q", *options)
            yield target, (folder / target).read_bytes()
    for target, command in WRITERS.items():
        _run(*command, "-o", target, "-q")
        yield target, (folder / target).read_bytes() if target.endswith(".ukvs") else b""
    for name, command in COMMANDS.items():
        text = _run(*command)
        yield name, _RECORDED_PARTS.get(name, bytes)(text)


def _judgement(text: bytes) -> bytes:
    """The counts; other fields of an evaluation may be added."""
    counted = ("tp", "fp", "fn", "tn")
    maps = json.loads(text)["maps"]
    found = [[one["keys"], *(one[by][name] for by in ("weighted", "unweighted") for name in counted)] for one in maps]
    return json.dumps(found).encode()


def _curves(text: bytes) -> bytes:
    """The curves in keys; bytes depend on the version of zstd, and other fields of a tradeoff may be added."""
    found = json.loads(text)
    del found["sets"]
    for point in (*found["budget"], *found["weights"], *filter(None, [found["knee"]])):
        del point["bytes"]
    return json.dumps(found, indent=2).encode() + b"\n"


_RECORDED_PARTS = {"evaluate": _judgement, "tradeoff": _curves}


def _run(*command: str) -> bytes:
    written = io.BytesIO()
    text = io.TextIOWrapper(written, encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()) as errors:
        code = run(list(command))
    if code:
        raise AssertionError(f"{command} ended with {code}: {errors.getvalue()}")
    return written.getvalue()


def digests(folder: Path) -> dict[str, str]:
    """The digest of every output."""
    make_inputs(folder)
    with contextlib.chdir(folder):
        return {name: hashlib.sha256(_TIME.sub(b"", text)).hexdigest()[:16] for name, text in outputs(folder)}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        Path(sys.argv[1]).write_text(json.dumps(digests(Path(place)), indent=1) + "\n")
