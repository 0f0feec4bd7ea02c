"""A target recall for all archives together leaves every archive its floor."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.aggregator.learn import Learned
from recollect.archives.registry import Archive
from recollect.cli.main import run
from recollect.maps.samples import Probe, finds_of, rank_of, sample_of
from recollect.model import Answer
from recollect.routing.choice import Candidate, Evidence, Rank, Reason, Source, drawn, route
from recollect.routing.maps import Maps
from recollect.sampling.journal import Journal, Kind, Outcome
from recollect.uris import key_of_uri


def _world(seed: int) -> dict[str, set[str]]:
    """By URI, the archives that hold it: one holds all, one a third, one 3% (more of .pt)."""
    chance = random.Random(seed)
    world: dict[str, set[str]] = {}
    for number in range(2600):
        tld = chance.choice(["com", "org", "net", "pt"])
        uri = f"http://{tld}{number}.{tld}/{'a/b' if number % 3 else ''}"
        held = {"all"} | ({"third"} if chance.random() < 0.33 else set())
        world[uri] = held | ({"small"} if chance.random() < (0.06 if tld == "pt" else 0.02) else set())
    return world


@pytest.fixture(scope="module")
def maps(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, set[str]]]:
    """Maps of samples of 600 URIs each, and the URIs that were not asked about."""
    folder = tmp_path_factory.mktemp("floor")
    world = _world(5)
    asked, unseen = list(world)[:600], list(world)[600:]
    for archive in ("all", "third", "small"):
        with Journal(folder / f"run-{archive}", archive) as journal:
            for uri in asked:
                outcome = Outcome.HELD if archive in world[uri] else Outcome.ABSENT
                journal.write(Kind.URI, outcome, uri=uri, key=key_of_uri(uri).decode())
        (folder / "maps").mkdir(exist_ok=True)
        assert run(["sample", "map", str(folder / f"run-{archive}"), "-o", str(folder / f"maps/{archive}.ukvs")]) == 0
    return folder, {uri: world[uri] for uri in unseen}


def _recall(maps: Maps, world: dict[str, set[str]], floor: float) -> tuple[dict[str, float], float, float]:
    """By archive the share of its holdings that is asked for; the same of all; the share of requests saved."""
    candidates = [Candidate(name) for name in ("all", "third", "small")]
    found, there, requests = dict.fromkeys(("all", "third", "small"), 0), dict.fromkeys(("all", "third", "small"), 0), 0
    for uri, held in world.items():
        for decision in route(candidates, maps.evidence(uri), target_recall=0.95, floor=floor, uri_r=uri):
            requests += decision.ask
            there[decision.archive] += decision.archive in held
            found[decision.archive] += decision.ask and decision.archive in held
    saved = 1 - requests / (3 * len(world))
    return {name: found[name] / there[name] for name in found}, sum(found.values()) / sum(there.values()), saved


def test_a_small_archive_keeps_its_floor_and_the_target_stays(maps: tuple[Path, dict[str, set[str]]]) -> None:
    folder, world = maps
    archives = [Archive(id=name, name=name, timemap="http://a.example/") for name in ("all", "third", "small")]
    opened = Maps.open(folder / "maps", archives)
    starved, _, _ = _recall(opened, world, 0.0)
    by_archive, pooled, saved = _recall(opened, world, 0.3)
    assert starved["small"] < 0.1
    assert min(by_archive.values()) >= 0.3
    assert pooled >= 0.95 and saved >= 0.15
    opened.close()


def test_route_and_sample_map_print_the_promise_of_each_archive(
    maps: tuple[Path, dict[str, set[str]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, world = maps
    listed = tmp_path / "archives.json"
    listed.write_text(
        json.dumps([{"id": name, "timemap": "http://127.0.0.1:9/"} for name in ("all", "third", "small")])
    )
    asking = ["route", next(iter(world)), "--archives", str(listed), "--maps", str(folder / "maps")]
    promises = {}
    for options in ([], ["--target-recall", "95%"], ["--target-recall", "95%", "--floor", "50%"]):
        assert run([*asking, *options, "--json"]) == 0
        decisions = json.loads(capsys.readouterr().out)["archives"]
        promises[tuple(options)] = {one["id"]: one["promised_recall"] for one in decisions}
    assert list(promises.values()) == [
        {"all": 0.95, "third": 0.95, "small": 1.0 if promises[()]["small"] == 1.0 else 0.95},
        {"all": 0.3, "third": 0.3, "small": 0.3},
        {"all": 0.5, "third": 0.5, "small": 0.5},
    ]
    assert run([*asking, "--target-recall", "95%"]) == 0
    assert "promised" in capsys.readouterr().out
    making = ["sample", "map", str(folder / "run-small"), "-o", str(tmp_path / "small.ukvs"), "--floor", "40%"]
    assert run(making) == 0
    assert "at least 40% of what small holds" in capsys.readouterr().err
    assert run([*making, "--json"]) == 0
    floor = json.loads(capsys.readouterr().out)["floor"]
    assert floor["promised_recall"] == 0.4 and floor["recall"] == pytest.approx(0.4, abs=0.05)


def test_archives_of_which_nothing_is_known_are_asked_at_random() -> None:
    candidates = [Candidate("large", 0.9), Candidate("rare", 0.01), Candidate("rarer", 0.001)]
    uris = [f"http://site{number}.example/" for number in range(600)]
    asked = {
        floor: [
            sum(
                one.ask
                for uri in uris
                for one in route(candidates, {}, target_recall=0.95, floor=floor, uri_r=uri)
                if one.archive == name
            )
            for name in ("large", "rare", "rarer")
        ]
        for floor in (0.0, 0.3)
    }
    assert asked[0.0] == [600, 0, 0]
    assert asked[0.3][0] == 600 and all(180 <= number <= 360 for number in asked[0.3][1:])
    again = route(candidates, {}, target_recall=0.95, floor=0.3, uri_r=uris[0])
    assert again == route(candidates, {}, target_recall=0.95, floor=0.3, uri_r=uris[0])


def test_a_no_is_never_asked_for_the_floor() -> None:
    said = {"a": Evidence(Answer.NO, Source.MAP), "b": Evidence(Answer.NO, Source.RULE, reason=Reason.RULE)}
    decisions = route([Candidate("a"), Candidate("b")], said, target_recall=0.95, floor=1.0, uri_r="http://a.example/")
    assert not any(one.ask for one in decisions) and all(one.promised is None for one in decisions)


@given(st.lists(st.floats(0.001, 0.999), max_size=20), st.floats(0.001, 0.999), st.floats(0, 1))
def test_a_rank_is_a_part_of_the_holdings_and_likelier_uris_are_asked_first(
    chances: list[float], chance: float, floor: float
) -> None:
    finds = sorted(chances)
    ranks = [Rank(*rank_of(finds, one, one)) for one in sorted({*finds, chance}, reverse=True)]
    assert all(0 <= rank.above < rank.at <= 1 for rank in ranks)
    shares = [rank.share(floor) for rank in ranks]
    assert all(0 <= share <= 1 for share in shares)
    assert shares == sorted(shares, reverse=True)
    if not finds:
        assert shares == [pytest.approx(floor)]


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["com", "pt"]), st.booleans()), min_size=1, max_size=40))
def test_a_find_is_as_likely_as_an_unseen_uri_of_its_levels(probes: list[tuple[int, str, bool]]) -> None:
    made = [
        Probe(f"{tld},site{number})/".encode(), held)
        for number, tld, held in {(n, t): (n, t, h) for n, t, h in probes}.values()
    ]
    sample = sample_of(made)
    finds = finds_of(sample, made)
    for probe in made:
        if probe.held:
            alone = probe.key.replace(b"site", b"other")  # the same levels down to the top-level domain
            assert sample.chance_as_find(alone) <= sample.chance(alone)
            rank = rank_of(finds, sample.chance(alone), sample.chance_as_find(alone))
            assert rank[1] - rank[0] > 1 / (len(finds) + 1), "the find itself is as likely"


def test_what_was_learned_ranks_too() -> None:
    learned = Learned(["a"], ranks=True, chance=lambda: 1.0)
    for number in range(3000):
        held = number % 50 == 0
        learned.count(f"http://{'pt' if held else 'com'}{number % 7}.{'pt' if held else 'com'}/{number}", {"a": held})
    high = learned.evidence("http://pt1.pt/x")["a"].rank
    low = learned.evidence("http://com1.com/x")["a"].rank
    assert high is not None and low is not None
    assert high.above < low.above and high.share(0.3) > low.share(0.3)


def test_draws_depend_on_the_uri_and_the_archive_alone() -> None:
    numbers = {drawn(f"http://{number}.example/", name) for number in range(50) for name in "ab"}
    assert len(numbers) == 100 and all(0 <= number < 1 for number in numbers)
    assert drawn("http://\udcff.example/", "a") == drawn("http://\udcff.example/", "a")
