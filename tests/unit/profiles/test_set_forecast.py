"""The forecast of a map with hashed sets promises no more than it holds, for lookups that it has not seen."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from recollect.formats.logs import LogEntry
from recollect.maps.lookup import MementoMap
from recollect.profiles.compaction.budget import Budget, compact_by_budget


def _hosts(chance: random.Random, count: int) -> list[str]:
    return sorted({f"com,{''.join(chance.choices('abcdefghij', k=7))})/" for _ in range(count)})


def _pages(chance: random.Random, count: int) -> list[str]:
    return sorted({f"com,site{chance.randrange(40)})/d{chance.randrange(9)}/p{number}" for number in range(count)})


@pytest.mark.parametrize(("made", "size"), [(_hosts, 14_000), (_pages, 6_000)])
def test_a_forecast_with_sets_and_a_log_promises_at_most_half_a_point_too_much(tmp_path: Path, made, size: int) -> None:
    chance = random.Random(14)
    held = made(chance, 20_000)
    source, small = tmp_path / "map.ukvs", tmp_path / "small.ukvs.zst"
    source.write_text("".join(f"{key} 1\n" for key in held))
    holds = set(held)
    absent = [key for key in made(random.Random(41), 60_000) if key not in holds]
    lookups = chance.sample(held, 8_000) + chance.sample(absent, 8_000)
    chance.shuffle(lookups)
    seen, unseen = lookups[::2], lookups[1::2]
    log = [LogEntry(key, 1) for key in seen]
    done = compact_by_budget(source, small, Budget(max_bytes=size, sets=True), lookups=log, threads=1)
    assert done.sets
    with MementoMap.open(small) as opened:
        answers = [found.answer for found in opened.lookup_many(unseen)]
    assert not any(answer == "no" and key in holds for key, answer in zip(unseen, answers, strict=True))
    wrong = sum(answer == "yes" and key not in holds for key, answer in zip(unseen, answers, strict=True))
    true, noise = wrong / len(unseen), 2 * wrong**0.5 / len(unseen)
    # Maps that are judged learned from half of the log, so a forecast may be too careful.
    assert true - 0.005 - noise <= done.expected_wrong <= true + 0.03
