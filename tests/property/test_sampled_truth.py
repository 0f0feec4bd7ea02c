"""Sampling against an archive whose holdings are known.

Whatever is asked, fails, is cut off, merged or routed by: a certain "no" is never said of something that the archive
holds, nor of something that is not below a complete listing that was empty.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.aggregator.archiveset import ArchiveSet
from recollect.archives.http1 import Headers
from recollect.archives.registry import Archive
from recollect.archives.transport import Request, Response
from recollect.formats.frequency import Frequency
from recollect.formats.ukvs import Header, MapFile, Record, Writer
from recollect.maps.lookup import MementoMap
from recollect.maps.merge import merge_maps
from recollect.routing.choice import Reason, route
from recollect.routing.maps import Maps
from recollect.sampling.journal import Journal, read_journal
from recollect.sampling.prefixes import Prefix, prefix_of, sample_prefixes
from recollect.sampling.uris import draw, sample_uris
from recollect.sampling.worth import worth_of
from recollect.uris import covers, key_of_uri, surt

HOSTS = ["a.com", "www.a.com", "sub.a.com", "a.com:8080", "b.com", "c.co.uk", "1.2.3.4", "localhost"]
PATHS = ["/", "/x", "/X/", "/x?q=1", "/x/y", "/xy", "/z?b&a", "/%7Ez"]
URIS = [f"http://{host}{path}" for host in HOSTS for path in PATHS]
LINES = [
    *("a.com", "sub.a.com", "a.com:8080", "b.com", "COM,A,*", "com,b)/*", "com,a)/x/*", "http://b.com/x*"),
    *(
        "http://a.com/x",
        "http://a.com/z?b&a",
        "com,a:8080)/*",
        "uk,co,c,*",
        "4,3,2,1)/*",
        "1.2.3.4",
        "b.com/",
        "*.b.com",
    ),
]
FAULTS = ["", "", "", "error", "html", "cut", "foreign", "unreadable"]
ARCHIVE = Archive("a", timemap="http://archive.test/timemap/", cdx="http://archive.test/cdx")


@dataclass
class Oracle:
    """An archive as pywb answers: a domain listing has no ports, an exact one no other queries."""

    held: frozenset[str]
    faults: list[str]
    sent: int = 0

    async def send(self, request: Request) -> Response:
        fault = self.faults[self.sent % len(self.faults)]
        self.sent += 1
        status, body, truncated = 200, b"", ""
        if request.url.startswith(ARCHIVE.timemap):
            uri = request.url.removeprefix(ARCHIVE.timemap)
            there = [one for one in self.held if surt(one) == surt(uri)]
            lines = [
                f'<http://archive.test/2015/{one}>; rel="memento"; datetime="Thu, 01 Jan 2015 00:00:00 GMT"'
                for one in there
            ]
            status, body = (200, ",\n".join(lines).encode()) if lines else (404, b"")
        else:
            asked = parse_qs(urlsplit(request.url).query)
            rows = [one for one in sorted(self.held) if listed(one, asked["url"][0], asked["matchType"][0])]
            if fault == "foreign":
                rows = ["http://elsewhere.example/"]
            body = "".join(json.dumps({"url": one, "timestamp": "20150101000000"}) + "\n" for one in rows).encode()
        if fault == "error":
            status, body = 503, b""
        elif fault == "html":
            status, body = 200, b"<html>sorry</html>"
        elif fault == "cut":
            body, truncated = body[: len(body) // 2], "the connection broke"
        elif fault == "unreadable":
            status, body = 200, b'{"url": "http://a.com/", "timestamp": "soon"}\n'
        return Response(status, Headers(b""), body, request.url, 0.0, truncated)


def listed(uri: str, asked: str, match: str) -> bool:
    """Whether pywb's listing of a question has a URI: a range of SURTs."""
    mine, start = surt(uri), surt(asked if "://" in asked else f"http://{asked}")
    host = start.partition(")")[0]
    if match == "exact":
        return mine == start
    if match == "host":
        return mine.startswith(f"{host})/")
    if match == "domain":
        return mine.startswith((f"{host})/", f"{host},"))
    return mine.startswith(start)


def lines_of(path: Path) -> list[tuple[bytes, str]]:
    with MapFile(path) as file:
        return [(record.key, str(record.frequency)) for record in file.records()]


def shows(prefix: Prefix, uri: str) -> bool:
    """Whether a listing has a URI that lies below its key."""
    return listed(uri, prefix.uri, prefix.match) and covers(prefix.key, key_of_uri(uri))


@dataclass(frozen=True)
class Scenario:
    held: frozenset[str]
    lines: list[str]
    probes: int
    faults: list[str]


scenarios = st.builds(
    Scenario,
    st.frozensets(st.sampled_from(URIS), max_size=6),
    st.lists(st.sampled_from(LINES), unique=True, max_size=8),
    st.integers(0, 12),
    st.lists(st.sampled_from(FAULTS), min_size=1, max_size=5),
)


def sampled(folder: Path, scenario: Scenario) -> tuple[str, set[str]]:
    """The map of a run, and the URIs below a listing that was complete and empty."""
    prefixes = [prefix_of(line) for line in scenario.lines]
    oracle = Oracle(scenario.held, scenario.faults)
    with Journal(folder, "a") as journal:
        asyncio.run(sample_prefixes(oracle, ARCHIVE, prefixes, journal))
        if scenario.probes:
            asyncio.run(sample_uris(oracle, ARCHIVE, draw(URIS, scenario.probes), journal))
    worth = worth_of(*read_journal(folder))
    path = folder / "a.ukvs"
    with Writer(path, worth.header(0.9)) as writer:
        for record in worth.records:
            writer.write(record)
    empty = [one for one in prefixes if not any(shows(one, uri) for uri in scenario.held)]
    return str(path), {uri for uri in URIS for one in empty if listed(uri, one.uri, one.match)}


def certain(path: str | Path) -> set[str]:
    """The URIs of which a map says no, one by one and in bulk."""
    with MementoMap.open(path) as holdings:
        single = {uri for uri in URIS if holdings.lookup(uri).answer == "no"}
        assert single == {found.uri for found in holdings.lookup_many(URIS) if found.answer == "no"}
    return single


def routed_away(folder: Path) -> set[str]:
    """The URIs for which routing is certain that the archive does not hold them."""
    maps = Maps.open(folder, [ARCHIVE])
    assert not maps.problems
    world = ArchiveSet((ARCHIVE,), maps)
    decided = {uri: route(world.usual_candidates, world.evidence(uri), target_recall=0.5)[0] for uri in URIS}
    maps.close()
    return {uri for uri, decision in decided.items() if decision.reason is Reason.HOLDS_NONE}


@settings(max_examples=60, deadline=None)
@given(scenarios)
def test_a_map_of_a_sample_never_says_no_of_what_was_not_shown_to_be_absent(scenario: Scenario) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, shown = sampled(Path(folder) / "run", scenario)
        for says_no in (certain(path), routed_away(Path(folder) / "run")):
            assert not says_no & scenario.held
            assert says_no <= shown


@settings(max_examples=25, deadline=None)
@given(st.lists(scenarios, min_size=2, max_size=3), st.frozensets(st.sampled_from(URIS), max_size=4), st.randoms())
def test_nothing_held_is_lost_when_samples_and_an_index_are_merged_in_any_order(
    several: list[Scenario], indexed: frozenset[str], chance: object
) -> None:
    held = frozenset().union(*(one.held for one in several))
    several = [Scenario(held, one.lines, one.probes, one.faults) for one in several]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = [sampled(folder / str(number), one) for number, one in enumerate(several)]
        paths, shown = [path for path, _ in made], set[str]().union(*(uris for _, uris in made))
        chance.shuffle(paths)  # type: ignore[attr-defined]
        merge_maps(paths, folder / "together.ukvs")
        merge_maps([folder / "together.ukvs", paths[0], folder / "together.ukvs"], folder / "again.ukvs")
        for path in (folder / "together.ukvs", folder / "again.ukvs"):
            says_no = certain(path)
            assert not says_no & held
            assert says_no <= shown
        index = folder / "index.ukvs"
        with Writer(index, Header()) as writer:
            for key in sorted({key_of_uri(uri) for uri in indexed & held}):
                writer.write(Record(key, (), Frequency.parse("3/1"), ""))
        orders = [[index, *paths], [*paths, index], [paths[0], index, *paths[1:]]]
        for number, order in enumerate(orders):
            merge_maps(order, folder / f"m{number}.ukvs")
        one, two, three = (lines_of(folder / f"m{number}.ukvs") for number in range(3))
        assert one == two == three
        for uri in indexed & held:
            assert (key_of_uri(uri), "3/1") in one, "the index wins"
