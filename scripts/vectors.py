"""Write the test vectors of the map format, conformance/v1: make vectors.

Maps of every kind that docs/ukvs.md describes, and lookups with the answers that any reader must give. All is made of
one seed; `tests/conformance/test_vectors.py` runs every reader over them, and compares the files with what this makes.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import recollect
from recollect.cli.main import run
from recollect.errors import BadURI
from recollect.maps.lookup import open_map

FOLDER = Path(__file__).resolve().parents[1] / "conformance" / "v1"
UPDATED = "2026-01-31T00:00:00Z"
HEAD = '!context ["http://oduwsdl.github.io/contexts/ukvs"]\n!fields {"keys": ["surt"], "values": ["frequency"]}\n'
HOSTS = (
    "example.com", "www.example.com", "a.example.com", "example.com:8080", "b.a.example.com", "bücher.example", "news.co.uk",
    "blog.news.co.uk", "192.0.2.7", "[2001:db8::1]", "[2001:db8::1]:8080", "long-name.example.org", "x.example.net", "日本.example",
    "straße.example", "example.org",
)  # fmt: skip
WORDS = (
    "a",
    "b",
    "news",
    "Archive",
    "2009",
    "img",
    "straße",
    "a b",
    "%41",
    "index.html",
    "logo.png",
    "main.css",
    "app.js",
    "story",
    "x*y",
    "~u",
)


def uris(seed: random.Random, count: int) -> list[str]:
    made = []
    for _ in range(count):
        depth = seed.choice((0, 1, 1, 2, 2, 3, 4))
        path = "/".join(seed.choice(WORDS) for _ in range(depth))
        tail = seed.choice(("", "", "", "/", f"?id={seed.randrange(9)}", "#top"))
        made.append(f"http{seed.choice(('', 's'))}://{seed.choice(HOSTS)}/{path}{tail if path else ''}")
    return list(dict.fromkeys(made))


def others(seed: random.Random, known: list[str]) -> Iterator[str]:
    """Other spellings of held URIs, near ones, far ones, and texts that are not URIs."""
    for uri in seed.sample(known, min(24, len(known))):
        yield uri.replace("http://", "HTTP://").replace("https://", "http://")
        yield uri.rstrip("/") + "/"
        yield uri.replace("://", "://www.") if "[" not in uri else uri
        yield uri.upper() if uri.isascii() else uri
        yield uri + "/deeper/page.html"
        yield uri.rpartition("/")[0] + "//double//x"
        yield recollect.surt(uri)
    yield from (
        "http://absent.example/", "http://example.com/a/../b", "http://example.com/%2561", "example.com/a", "http://user@example.com/a",
        "http://3221225991/", "http://0300.0.2.7/", "http://xn--bcher-kva.example/", "dns:example.com", "ftp://example.com/a", "word",
        "http://", "http://example.com:99999/", "http://example.com/a;jsessionid=1", "com,example)/", "com,example,a)/b",
        "http://example.com/(S(0123456789abcdefghijklmn))/page.aspx", "http://www2.example.com/a", "http://com,example/", "http://example.com./a",
    )  # fmt: skip


def index_of(seed: random.Random, known: list[str], path: Path) -> None:
    types = {"png": "image/png", "css": "text/css", "js": "application/javascript"}
    lines = []
    for uri in known:
        ending = uri.partition("?")[0].rpartition(".")[2]
        for _ in range(seed.choice((1, 1, 2, 5))):
            stamp = f"20{seed.randrange(5, 26):02d}{seed.randrange(1, 13):02d}{seed.randrange(1, 28):02d}120000"
            status = seed.choice(("200", "200", "200", "301", "404"))
            fields = {"url": uri, "mime": types.get(ending, "text/html"), "status": status}
            lines.append(f"{recollect.surt(uri)} {stamp} {json.dumps(fields)}\n")
    path.write_text("".join(sorted(lines, key=str.encode)), encoding="utf-8")


def command(*args: object) -> None:
    code = run([str(arg) for arg in args])
    assert code == 0, (code, args)


def maps_of(seed: random.Random, known: list[str], folder: Path, work: Path) -> None:
    index = work / "index.cdxj"
    index_of(seed, known, index)
    made = ("--updated-at", UPDATED, "-q")
    command("profile", index, "-o", folder / "plain.ukvs", *made)
    command("profile", index, "-o", folder / "plain.ukvs.gz", *made)
    command("profile", index, "-o", folder / "plain.ukvs.zst", *made)
    command("profile", index, "-o", folder / "pages.ukvs", "--media-type", "text/html", "--status", "200", *made)
    command("profile", index, "-o", folder / "images.ukvs", "--media-type", "image/*", *made)
    command("profile", index, "-o", folder / "dates.ukvs", "--since", "2010", "--until", "2015", *made)
    command("profile", index, "-o", folder / "where.ukvs", "--where", "year > 2010", *made)
    command("profile", index, "-o", folder / "excluded.ukvs", "--exclude", "logo.png", *made)
    command("profile", index, "-o", folder / "years.ukvs", "--by", "year", "--by-columns", *made)
    command("profile", index, "-o", folder / "hosts.ukvs", "--policy", "H3P0", *made)
    command("profile", index, "-o", folder / "depth.ukvs", "--policy", "HxP1", *made)
    command("compact", folder / "plain.ukvs", "-o", folder / "small.ukvs", "--max-keys", 60, "-q")
    command("compact", folder / "plain.ukvs", "-o", folder / "sets.ukvs", "--max-bytes", "4kB", "--sets", "-q")
    command("merge", folder / "pages.ukvs", folder / "images.ukvs", "-o", folder / "merged.ukvs", "-q")
    keys = [line.split()[0] for line in (folder / "plain.ukvs").read_text().splitlines() if not line.startswith("!")]
    voids = sorted(set(seed.sample(keys, 40)) | {"com,example)/absent/*"}, key=str.encode)
    (folder / "voids.ukvs").write_text(HEAD + '!meta {"scope": "voids"}\n' + "".join(f"{key} 0\n" for key in voids))
    sampled = sorted(seed.sample(keys, 60), key=str.encode)
    lines = [f"{key} {seed.choice(('1+/1+', '3+/1', '0'))}\n" for key in sampled]
    (folder / "sample.ukvs").write_text(HEAD + '!meta {"scope": "sample"}\n' + "".join(lines))
    total = [
        "* 54321/20000\n",
        "com,* 10000+\n",
        "org,example)/ 100\n",
        "org,example)/* 2500~/900\n",
        "org,example)/news/* 0\n",
        "uk,co,news)/ /\n",
    ]
    (folder / "total.ukvs").write_text(HEAD + '!meta {"name": "Figure 2"}\n' + "".join(total))
    (folder / "foreign.ukvs").write_text(
        HEAD
        + '!meta {"filters": {"colour": ["blue"]}}\n'
        + "com,example)/a/ 3\ncom,example)/b 2\nexample,bücher)/ 4\n",
        encoding="utf-8",
    )


def vectors(folder: Path, asked: list[str]) -> Iterator[tuple[str, ...]]:
    """Map, URI, answer, deciding key, frequency; `-` where there is none."""
    for path in sorted(folder.glob("*.ukvs")):  # of a compressed map the answers are those of the plain one
        holdings = open_map(path)
        for uri in asked:
            try:
                found = holdings.lookup(uri)
            except BadURI:
                yield path.name, uri, "unknown", "-", "-"
                continue
            key = "-" if found.key is None else found.key.decode("utf-8", "surrogateescape")
            yield path.name, uri, found.answer.value, key, "-" if found.frequency is None else str(found.frequency)
        holdings.close()


def write(folder: Path, work: Path) -> int:
    seed = random.Random(7)
    known = uris(seed, 220)
    maps_of(seed, known, folder, work)
    asked = list(dict.fromkeys([*seed.sample(known, 90), *others(seed, known[:60])]))
    rows = list(vectors(folder, asked))
    text = "".join("\t".join(row) + "\n" for row in rows)
    (folder / "lookups.tsv").write_text(text, encoding="utf-8")
    return len(rows)


if __name__ == "__main__":
    import tempfile

    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        print(f"{write(FOLDER, Path(name)):,} lookups", file=sys.stderr)
