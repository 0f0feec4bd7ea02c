"""Learning from answers: savings without losing recall, kept on disk, shared, aged."""

from __future__ import annotations

import random
from pathlib import Path

from recollect.aggregator.ask import Outcome
from recollect.aggregator.learn import _WARM, HALF_LIFE, Learned

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


def test_it_asks_everybody_until_it_has_seen_enough() -> None:
    model = Learned(ARCHIVES, slots=1 << 12)
    requests, recall = play(model, lookups(_WARM - 1))
    assert (requests, recall) == (3, 1.0)


def test_it_saves_requests_and_keeps_recall() -> None:
    model = Learned(ARCHIVES, slots=1 << 14, explore=0.05, chance=random.Random(2).random)
    play(model, lookups(1000))
    requests, recall = play(model, lookups(2000, seed=7))
    assert requests < 1.8
    assert recall > 0.98


def test_exploration_notices_new_holdings() -> None:
    model = Learned(("a",), slots=1 << 12, explore=0.1, chance=random.Random(3).random)
    for number in range(500):
        model.count(f"http://x.example/{number}", {"a": False})
    asked = 0
    for number in range(1500):
        uri = f"http://x.example/{number}"
        said = model.evidence(uri)["a"]
        if said.answer != "no":
            asked += 1
            model.count(uri, {"a": True})  # the archive holds everything now
    assert asked > 1000


def test_errors_teach_nothing() -> None:
    model = Learned(("a",), slots=1 << 12)
    for number in range(1000):
        model.learn(f"http://x.example/{number}", [Outcome("a", "error", error="timeout")])
    assert model.evidence("http://x.example/") == {}


def test_it_survives_a_restart_and_a_change_of_archives(tmp_path: Path) -> None:
    path = tmp_path / "state" / "learned"
    model = Learned(("a", "b"), path=path, slots=1 << 12, explore=0.0)
    for number in range(500):
        model.count(f"http://x.example/{number}", {"a": False, "b": True})
    model.close()
    again = Learned(("a", "b"), path=path, slots=1 << 12, explore=0.0)
    assert again.evidence("http://x.example/1")["a"].answer == "no"
    assert again.evidence("http://x.example/1")["b"].answer == "unknown"
    again.close()
    changed = Learned(("c", "b", "a"), path=path, slots=1 << 12, explore=0.0)
    said = changed.evidence("http://x.example/1")
    assert said["a"].answer == "no"
    assert said["b"].expected > 0.9
    assert "c" not in said
    changed.close()
    assert [one.name for one in path.parent.iterdir()] == ["learned"]


def test_two_processes_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "learned"
    one = Learned(("a",), path=path, slots=1 << 12, explore=0.0)
    other = Learned(("a",), path=path, slots=1 << 12, explore=0.0)
    for number in range(500):
        one.count(f"http://x.example/{number}", {"a": False})
    assert other.evidence("http://x.example/3")["a"].answer == "no"
    one.close()
    other.close()


def test_a_damaged_file_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "learned"
    for damage in (
        b"",
        b"garbage" * 1000,
        b'{"format": "recollect learned 1", "archives": ["a"], "slots": 99, "aged_at": 0}',
    ):
        path.write_bytes(damage)
        model = Learned(("a",), path=path, slots=1 << 12)
        model.count("http://x.example/", {"a": True})
        model.close()


def test_old_news_fades() -> None:
    now = [1e9]
    model = Learned(("a",), slots=1 << 12, explore=0.0, clock=lambda: now[0])
    for number in range(500):
        model.count(f"http://x.example/{number}", {"a": False})
    assert model.evidence("http://x.example/1")["a"].answer == "no"
    now[0] += HALF_LIFE * 4
    model.age()
    assert model.evidence("http://x.example/1") == {}, "too little is left to conclude from"


def test_crowded_slots_forget_but_never_fail() -> None:
    model = Learned(("a",), slots=64, explore=0.0)
    for number in range(2000):
        model.count(f"http://h{number}.example/{number}", {"a": number % 2 == 0})
    assert model.evidence("http://h1.example/1")["a"].answer == "unknown"
    model.count("not a uri at all", {"a": True})
    assert model.evidence("dns:x")["a"].answer == "unknown"
