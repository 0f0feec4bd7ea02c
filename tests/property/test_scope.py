"""No map says no about anything that is held, or outside of its scope: random archives, filters, spans and ages, random
requests, against plain sets of captures."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.aggregator.archiveset import ArchiveSet
from recollect.aggregator.explain import decision_json
from recollect.archives.registry import Archive
from recollect.maps.collections import publish_collection
from recollect.maps.filters import make_filter
from recollect.maps.lookup import period_of
from recollect.maps.map import Map
from recollect.maps.merge import merge_maps
from recollect.maps.publish import publish
from recollect.maps.scope import Query, Selection
from recollect.profiles.compaction.weights import Weights, compact_by_weights
from recollect.profiles.indexes.profile import profile
from recollect.routing.choice import route
from recollect.routing.maps import Maps

TYPES = {"": "text/html", ".html": "text/html", ".png": "image/png", ".css": "text/css", ".js": "text/javascript"}
TYPES[".thing"] = "application/x-thing"
YEARS = st.integers(2008, 2016)


@dataclass(frozen=True)
class Held:
    """One capture."""

    host: str
    path: str
    ending: str
    year: int
    status: str
    revisit: bool = False

    @property
    def uri(self) -> str:
        return f"http://{self.host}.org/{self.path}{self.ending}"

    @property
    def line(self) -> str:
        kind = "warc/revisit" if self.revisit else TYPES[self.ending]
        key = f"org,{self.host})/{self.path}{self.ending}"
        return f"{key} {self.year}0601000000 {self.uri} {kind} {self.status} A - - 1 0 a.warc"


hosts, paths = st.sampled_from("abc"), st.sampled_from(["x", "y/z", "robots", "y"])
endings = st.sampled_from(list(TYPES))
statuses = st.sampled_from(["200", "301", "404"])
captures = st.builds(Held, hosts, paths, endings, YEARS, statuses, st.booleans())
selections = st.builds(
    Selection,
    st.sampled_from([(), ("200",), ("2xx", "3xx")]),
    st.sampled_from([(), ("text/html",), ("image/*",), ("text/html", "text/css"), ("text/*",)]),
    st.sampled_from(["", "20100101000000"]),
    st.sampled_from(["", "20131231235959"]),
    st.sampled_from([(), ("robots",), ("x.png", "robots.html")]),
    st.sampled_from(["", "year > 2009", "status == 200"]),
)


@dataclass(frozen=True)
class Asked:
    """One request."""

    uri: str
    query: Query
    year: int | None


@st.composite
def requests(draw: st.DrawFn) -> Asked:
    uri = f"http://{draw(st.sampled_from('abcd'))}.org/{draw(paths)}{draw(endings)}"
    year = draw(st.none() | YEARS)
    status = draw(st.sampled_from(["", "", "200", "404"]))
    query = Query(None if year is None else period_of(str(year)), status, any_status=draw(st.booleans()))
    return Asked(uri, query, year)


def _wanted(capture: Held, asked: Asked, defined: tuple[str, ...]) -> bool:
    """Whether a capture is one that the request asks for; `defined` are the statuses that count as held."""
    if capture.uri != asked.uri or (asked.year is not None and capture.year != asked.year):
        return False
    if asked.query.status:
        return capture.status == asked.query.status
    if asked.query.any_status or not defined:
        return True
    return any(fnmatch.fnmatch(capture.status, pattern.replace("x", "?")) for pattern in defined)


def _forms(folder: Path, plain: Path) -> Iterator[Path]:
    """The same map in every form."""
    yield plain
    for name in ("m.ukvs.gz", "m.ukvs.zst"):
        merge_maps([plain], folder / name)
        yield folder / name
    compact_by_weights(plain, folder / "small.ukvs", Weights(host_weight=0.2, path_weight=0.1))
    yield folder / "small.ukvs"
    make_filter(plain, folder / "m.filter")
    yield folder / "m.filter"
    parts = folder / "parts"
    parts.mkdir()
    lines = plain.read_bytes().splitlines(keepends=True)
    head = b"".join(line for line in lines if line[:1] == b"!")
    rest = [line for line in lines if line[:1] != b"!"]
    for number, some in enumerate((rest[: len(rest) // 2], rest[len(rest) // 2 :])):
        (parts / f"part-{number:05d}.ukvs").write_bytes(head + b"".join(some))
    yield parts
    publish(str(plain), folder / "www", updated_at="", page_keys=3)
    yield folder / "www" / "mementomap" / "map.ukvs.zst"
    publish_collection(str(plain), folder / "several", "one", updated_at="", identity="http://host.example/one/")
    yield folder / "several" / "mementomap" / "one" / "map.ukvs.zst"


def _made(folder: Path, archive: list[Held], chosen: Selection, until: int) -> Path:
    """The map of an archive as it was at the end of a year."""
    known = sorted({capture.line for capture in archive if capture.year <= until})
    (folder / "a.cdx").write_text(" CDX N b a m s k r M S V g\n" + "".join(f"{line}\n" for line in known))
    target = folder / "m.ukvs"
    moment = datetime(until, 12, 31, 23, 59, 59, tzinfo=UTC)
    profile(
        [str(folder / "a.cdx")], target, allow_empty=True, statuses=chosen.statuses, media_types=chosen.media_types,
        since=chosen.since, until=chosen.until, exclude=chosen.exclude, where=chosen.where, updated_at=moment,
    )  # fmt: skip
    return target


@settings(max_examples=40)
@given(st.lists(captures, min_size=1, max_size=12), selections, YEARS, st.lists(requests(), min_size=5, max_size=25))
def test_no_lookup_denies_what_is_held(archive: list[Held], chosen: Selection, until: int, asked: list[Asked]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        plain = _made(folder, archive, chosen, until)
        for path in _forms(folder, plain):
            with Map.open(path) as opened:
                for request in asked:
                    found = opened.lookup(request.uri, request.query)
                    (many,) = opened.lookup_many([request.uri], request.query)
                    assert (many.answer, many.limit) == (found.answer, found.limit)
                    if found.answer != "no":
                        assert found.answer == "yes" or found.reason(opened.scope)
                        continue
                    known = [one for one in archive if one.year <= until or request.year is not None]
                    held = [one for one in known if _wanted(one, request, chosen.statuses)]
                    assert not held, (path.name, request, chosen, held)


@settings(max_examples=25)
@given(
    st.lists(captures, min_size=1, max_size=8),
    st.lists(captures, min_size=1, max_size=8),
    selections,
    selections,
    YEARS,
    st.lists(requests(), min_size=5, max_size=20),
)
def test_no_merged_map_denies_what_is_held(
    first: list[Held], second: list[Held], one: Selection, other: Selection, until: int, asked: list[Asked]
) -> None:
    """Each source answers only within its own scope, whether the maps are of one archive or of two."""
    with TemporaryDirectory() as name:
        folders = [Path(name) / part for part in ("one", "two")]
        for folder in folders:
            folder.mkdir()
        maps = [
            _made(folder, archive, chosen, until)
            for folder, archive, chosen in zip(folders, (first, second), (one, other), strict=True)
        ]
        both = Path(name) / "both.ukvs"
        merge_maps(maps, both)
        with Map.open(both) as opened:
            for request in asked:
                if opened.lookup(request.uri, request.query).answer != "no":
                    continue
                for archive, chosen in ((first, one), (second, other)):
                    known = [capture for capture in archive if capture.year <= until or request.year is not None]
                    held = [capture for capture in known if _wanted(capture, request, chosen.statuses)]
                    assert not held, (request, one, other, held)


@settings(max_examples=30)
@given(
    st.lists(captures, min_size=1, max_size=12),
    selections,
    YEARS,
    st.integers(0, 6000),
    st.lists(requests(), min_size=5, max_size=20),
)
def test_routing_skips_nothing_that_is_held(
    archive: list[Held], chosen: Selection, until: int, age: int, asked: list[Asked]
) -> None:
    """At every age: an archive is skipped only where its map, of that day, is certain; with no loss allowed, an old map
    skips nothing at all."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        plain = _made(folder, archive, chosen, until)
        (folder / "maps").mkdir()
        plain.rename(folder / "maps" / "an.archive.ukvs")
        archives = (Archive(id="an.archive", name="A", timemap="http://a.example/"),)
        now = datetime(until, 12, 31, 23, 59, 59, tzinfo=UTC) + timedelta(days=age)
        maps = Maps.open(folder / "maps", archives, clock=lambda: now)
        assert not maps.problems
        with closing(maps):
            world = ArchiveSet(archives, maps)
            for request in asked:
                at = None if request.year is None else datetime(request.year, 6, 1, tzinfo=UTC)
                if request.query.status:
                    continue  # a TimeGate or TimeMap names no status
                evidence = world.evidence(request.uri, at=at, any_status=request.query.any_status)
                for loss in (None, 0.0, 0.01):
                    (decision,) = route(world.usual_candidates, evidence, max_stale_loss=loss)
                    shown = decision_json(decision)
                    assert shown["answer"] in ("yes", "no", "unknown")
                    if decision.ask:
                        continue
                    assert shown["answer"] == "no" and shown["reason"]
                    known = [one for one in archive if one.year <= until or request.year is not None]
                    assert not [one for one in known if _wanted(one, request, chosen.statuses)], (request, chosen)
                    assert loss != 0.0 or not age
