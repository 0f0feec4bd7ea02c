"""Learning from answers: savings without losing recall, kept on disk, shared, aged."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import time

import pytest

from recollect.aggregator.learn import HALF_LIFE, WARM, Learned, open_learned
from recollect.aggregator.outcomes import Failure, Outcome, OutcomeKind

ARCHIVES = ("national", "general", "tiny")


def truth(uri: str) -> set[str]:
    """The national archive holds .pt, the general one two thirds of everything, the tiny one nothing."""
    held = {"national"} if ".pt/" in uri else set()
    return held | ({"general"} if sum(map(ord, uri)) % 3 else set())


def lookups(count: int, seed: int = 1) -> list[str]:
    dice = random.Random(seed)
    return [
        f"http://h{dice.randrange(300)}.{dice.choice(('pt', 'com', 'org'))}/{dice.randrange(20)}" for _ in range(count)
    ]


def play(model: Learned, uris: list[str]) -> tuple[float, float]:
    """(requests a lookup, recall)."""
    requests = found = missed = 0
    for uri in uris:
        said = model.evidence(uri)
        asked = {a for a in model.archives if a not in said or said[a].answer != "no"}
        requests += len(asked)
        found += len(truth(uri) & asked)
        missed += len(truth(uri) - asked)
        model.count(uri, {archive: archive in truth(uri) for archive in asked})
    return requests / len(uris), found / (found + missed)


def test_every_archive_is_asked_until_enough_was_seen() -> None:
    model = Learned(ARCHIVES, slots=1 << 12)
    requests, recall = play(model, lookups(WARM - 1))
    assert (requests, recall) == (3, 1.0)


def test_it_saves_requests_and_keeps_recall() -> None:
    model = Learned(ARCHIVES, slots=1 << 14, explore=0.05, chance=random.Random(2).random)
    play(model, lookups(1200))
    requests, recall = play(model, lookups(2000, seed=7))
    assert requests < 2.5, "the national archive is asked for .pt alone; the others cannot be foreseen"
    assert recall > 0.99


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("target", [0.9, 0.95])
def test_the_promise_holds_for_each_archive_however_small(target: float, seed: int) -> None:
    """Archives that hold 0.1% to 60% of 6,000 lookups, most at random: pooled recall would hide the small ones."""
    dice = random.Random(seed)
    shares = {"big": 0.6, "ten": 0.1, "two": 0.02, "half": 0.005, "few": 0.001}
    uris = [f"http://h{dice.randrange(900)}.{dice.choice(('com', 'org', 'pt', 'is'))}/{n}" for n in range(6000)]
    held = {uri: {a for a, share in shares.items() if dice.random() < share} for uri in uris}
    for uri in uris:
        if ".is/" in uri:
            held[uri].add("national")
    archives = (*shares, "national")
    model = Learned(archives, slots=1 << 14, target_recall=target, chance=random.Random(seed).random)
    found, all_finds, requests = Counter[str](), Counter[str](), 0
    for number, uri in enumerate(uris):
        said = model.evidence(uri)
        asked = {a for a in archives if a not in said or said[a].answer != "no"}
        requests += len(asked)
        if number >= WARM:
            all_finds.update(held[uri])
            found.update(held[uri] & asked)
        model.count(uri, {a: a in held[uri] for a in asked})
    assert all(found[a] >= target * all_finds[a] for a in archives), (found, all_finds)
    assert requests < 0.95 * len(archives) * len(uris), "the national archive is not asked for the rest of the world"


def test_exploration_notices_new_holdings() -> None:
    model = Learned(("a",), slots=1 << 12, explore=0.1, chance=random.Random(3).random)
    for number in range(WARM):
        model.count(f"http://x{number}.pt/", {"a": True})
        model.count(f"http://x.example/{number}", {"a": False})
    assert any(model.evidence(f"http://x.example/{n}")["a"].answer == "no" for n in range(9))
    asked = 0
    for number in range(1500):
        uri = f"http://x.example/{number}"
        if model.evidence(uri)["a"].answer != "no":
            asked += 1
            model.count(uri, {"a": True})  # the archive holds everything now
    assert asked > 1000


def test_nothing_is_skipped_where_nothing_was_asked() -> None:
    model = taught()
    assert model.evidence("http://x.example/3")["a"].answer == "no"
    assert model.evidence("http://x.museum/")["a"].answer == "unknown", "no lookup of this top-level domain was seen"


def taught(archives: tuple[str, ...] = ("a", "b"), clock: Callable[[], float] = time) -> Learned:
    """`a` holds .pt and nothing else, `b` everything."""
    model = Learned(archives, slots=1 << 12, explore=0.0, clock=clock)
    for number in range(WARM):
        model.count(f"http://x{number}.pt/", {"a": True, "b": True})
        model.count(f"http://x.example/{number}", {"a": False, "b": True})
    return model


def test_errors_teach_nothing() -> None:
    model = Learned(("a",), slots=1 << 12)
    for number in range(WARM):
        error = Outcome("a", OutcomeKind.ERROR, failure=Failure.TIMEOUT)
        model.learn(f"http://x.example/{number}", [error])
    assert model.evidence("http://x.example/") == {}


def test_it_survives_a_restart_and_a_change_of_archives(tmp_path: Path) -> None:
    path = tmp_path / "state" / "learned"
    taught().save(path)
    again = Learned(("a", "b"), slots=1 << 12, explore=0.0)
    open_learned(again, path, pytest.fail)
    assert again.evidence("http://x.example/1")["a"].answer == "no"
    assert again.evidence("http://x.example/1")["b"].answer == "unknown"
    changed = Learned(("c", "b", "a"), slots=1 << 12, explore=0.0)
    open_learned(changed, path, pytest.fail)
    said = changed.evidence("http://x.example/1")
    assert said["a"].answer == "no"
    assert said["b"].expected > 0.9
    assert "c" not in said
    assert [one.name for one in path.parent.iterdir()] == ["learned"]


def test_archives_that_a_reload_adds_or_removes() -> None:
    model = taught()
    assert model.use(("c", "a"))
    assert model.archives == ("c", "a")
    assert set(model.evidence("http://x.example/1")) == {"a"}
    assert model.use(("a", "b", "c"))
    assert model.evidence("http://x.example/1")["b"].expected > 0.9, "what was learned of it is still there"
    assert not model.use([f"new{n}" for n in range(99)])


def test_forked_processes_share_what_is_learned() -> None:
    model = Learned(("a", "b"), slots=1 << 12, explore=0.0)
    child = os.fork()
    if not child:
        for number in range(WARM):
            model.count(f"http://x{number}.pt/", {"a": True})
            model.count(f"http://x.example/{number}", {"a": False})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert model.evidence("http://x.example/3")["a"].answer == "no"


def test_a_damaged_file_is_set_aside_and_named(tmp_path: Path) -> None:
    path = tmp_path / "learned"
    taught().save(path)
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0x40
    older = b'{"format": "recollect learned 2", "archives": ["a"], "slots": 99, "aged_at": 0}'
    for damage in (b"", b"garbage" * 1000, older, whole[: len(whole) // 2], bytes(flipped), whole[:-1]):
        path.write_bytes(damage)
        model = Learned(("a", "b"), slots=1 << 12)
        problems: list[str] = []
        open_learned(model, path, problems.append)
        assert len(problems) == 1 and str(path) in problems[0]
        assert not path.exists() and (tmp_path / "learned.damaged").read_bytes() == damage
        assert model.evidence("http://x.example/1") == {}
        model.count("http://x.example/", {"a": True})


def test_old_news_fades() -> None:
    now = [1e9]
    model = taught(clock=lambda: now[0])
    assert model.evidence("http://x.example/1")["a"].answer == "no"
    now[0] += HALF_LIFE * 4
    model.age()
    assert model.evidence("http://x.example/1") == {}, "too little is left to conclude from"


def test_full_slots_forget_but_never_fail() -> None:
    model = Learned(("a",), slots=64, explore=0.0)
    for number in range(2000):
        model.count(f"http://h{number}.example/{number}", {"a": number % 2 == 0})
    assert model.evidence("http://h1.example/1")["a"].answer == "unknown"
    model.count("not a uri at all", {"a": True})
    assert model.evidence("dns:x")["a"].answer == "unknown"


def test_a_sample_is_counted_once_and_as_lookups_of_the_same_uris() -> None:
    probes = [(b"com,site%d)/" % number, number % 3 == 0) for number in range(WARM)]
    begun = Learned(("a", "b"))
    assert begun.start_from("a", probes)
    asked = Learned(("a", "b"))
    for key, held in probes:
        asked.count(f"http://{key[4:-2].decode()}.com/", {"a": held})
    uri = "http://site5.com/"
    assert begun.evidence(uri)["a"].expected == asked.evidence(uri)["a"].expected
    assert "b" not in begun.evidence(uri)
    before = begun.evidence(uri)
    assert not begun.start_from("a", probes)
    assert not begun.start_from("stranger", probes)
    assert begun.evidence(uri) == before
