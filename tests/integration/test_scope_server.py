"""A running server loses nothing that an archive holds, whatever the scope, form and age of the archive's map:
TimeMaps, TimeGates, routing as JSON and the page, against plain sets of captures."""

from __future__ import annotations

import http.client
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import pytest

from recollect.cli.main import run
from recollect.uris import key_of_uri
from small_archives import SmallArchives, serving, small_archives

TYPES = {"": "text/html", ".html": "text/html", ".png": "image/png", ".css": "text/css", ".pdf": "application/pdf"}
URIS = [f"http://{host}.example/{path}{end}" for host in ("a", "b", "c") for path in ("x", "y/z") for end in TYPES]
# The options of each archive's map, the statuses that count as held, and how the map goes on.
SCOPES: dict[str, tuple[list[str], tuple[str, ...], list[str]]] = {
    "all": ([], (), []),
    "pages": (["--media-type", "text/html", "--status", "200"], ("200",), []),
    "years": (["--since", "2008", "--until", "2011"], (), []),
    "dot.ted.id": (["--exclude", "x.png", "--exclude", "z.css"], (), []),
    "chosen": (["--where", "year > 2009"], (), []),
    "hosts": (["--policy", "HxP0"], (), []),
    "images": (["--media-type", "image/*"], (), ["compact", "--host-weight", "0.3", "--path-weight", "0.3"]),
    "columns": (["--by", "year", "--by-columns"], (), []),
    "budget": (["--status", "2xx"], ("200",), ["compact", "--max-keys", "3"]),
    "converted": (["--media-type", "text/html"], (), ["convert", "--policy", "HxP1"]),
}


def ask(base: str, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=30)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


@dataclass(frozen=True)
class Capture:
    """One capture of one archive."""

    uri: str
    stamp: str
    status: str

    @property
    def line(self) -> str:
        ending = re.search(r"\.\w+$", self.uri.rsplit("/", 1)[1])
        fields = {"url": self.uri, "mime": TYPES[ending[0] if ending else ""], "status": self.status}
        return f"{key_of_uri(self.uri).decode()} {self.stamp} {json.dumps(fields)}\n"


@dataclass(frozen=True)
class World:
    """A running server, and what its archives hold."""

    base: str
    archives: SmallArchives
    held: dict[str, list[Capture]]

    def counted(self, uri: str) -> set[str]:
        """The URI-Ms of a URI that count as held, by the definition of each archive's map."""
        return {
            self.archives.uri_m(name, one.stamp, one.uri)
            for name, captures in self.held.items()
            for one in captures
            if one.uri == uri and (not SCOPES[name][1] or one.status in SCOPES[name][1])
        }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("scopes")
    chance = random.Random(35)
    (folder / "maps").mkdir()
    held: dict[str, list[Capture]] = {}
    with small_archives() as archives:
        for number, (name, (options, _, then)) in enumerate(SCOPES.items()):
            captures = {
                (uri, year): Capture(uri, f"{year}0601120000", chance.choice(["200", "200", "404"]))
                for uri, year in zip(chance.choices(URIS, k=16), chance.choices(range(2005, 2014), k=16), strict=True)
            }
            held[name] = list(captures.values())
            holdings: dict[str, list[str]] = {}
            for one in held[name]:
                holdings.setdefault(one.uri, []).append(one.stamp)
            archives.add(name, holdings)
            index, plain, final = (
                folder / f"{name}.cdxj",
                folder / f"{name}.plain.ukvs",
                folder / "maps" / f"{name}.ukvs",
            )
            index.write_text("".join(sorted(one.line for one in held[name])))
            made = final if not then else plain
            # Half of the maps are ten years old; no loss by age is allowed below, so that these deny nothing.
            age = ["--updated-at", "2015-01-01T00:00:00Z"] if number % 2 else []
            assert run(["profile", str(index), "-o", str(made), "-q", *options, *age]) == 0
            if then:
                assert run([then[0], str(plain), "-o", str(final), *then[1:]]) == 0
        asking = ("--maps", str(folder / "maps"), "--max-stale-loss", "0", "--no-learn", "--no-cache")
        with serving(archives.write(folder), *asking) as base:
            yield World(base, archives, held)


def test_a_timemap_has_every_capture_that_counts_as_held(world: World) -> None:
    skipped = 0
    for uri in URIS:
        status, _, body = ask(world.base, f"/timemap/link/{uri}")
        shown = set(re.findall(r"<(http[^>]*/web/\d{14}/[^>]*)>", body.decode())) if status == 200 else set()
        assert world.counted(uri) <= shown, uri
        assert status == (200 if shown else 404)
        decisions = json.loads(ask(world.base, f"/route/{uri}")[2])["archives"]
        skipped += sum(one["decision"] == "skip" for one in decisions)
    assert skipped > 10, "the maps do save requests"


def test_every_answer_of_routing_is_yes_no_or_unknown_with_its_reason(world: World) -> None:
    for uri in URIS:
        for one in json.loads(ask(world.base, f"/route/{uri}")[2])["archives"]:
            assert one["answer"] in ("yes", "no", "unknown")
            assert (one["answer"] == "no") == (one["decision"] == "skip")
            assert one["answer"] == "yes" or one["reason"], one
            mine = [capture for capture in world.held[one["id"]] if capture.uri == uri]
            if one["answer"] == "no":
                assert not [
                    capture for capture in mine if capture.status in (SCOPES[one["id"]][1] or (capture.status,))
                ]


def test_a_timegate_finds_the_year_that_only_one_archive_holds(world: World) -> None:
    for uri in URIS:
        for uri_m in sorted(world.counted(uri)):
            year = re.search(r"/web/(\d{4})", uri_m)
            assert year is not None
            when = f"Sun, 01 Jun {year[1]} 12:00:00 GMT"
            status, fields, _ = ask(world.base, f"/timegate/{uri}", Accept_Datetime=when)
            assert status == 302 and f"/web/{year[1]}" in fields["location"], (uri, year[1])


def test_the_page_shows_every_answer_and_its_reason(world: World) -> None:
    for uri in URIS[:6]:
        status, _, body = ask(world.base, f"/?url={quote(uri, '')}", Accept="text/html")
        page = body.decode()
        if not world.counted(uri):
            continue
        assert status == 200
        for one in json.loads(ask(world.base, f"/route/{uri}")[2])["archives"]:
            assert f"{one['source']} {one['answer']}" in page
            if one["answer"] == "no":
                assert one["reason"].split(",")[0].split(";")[0] in page
