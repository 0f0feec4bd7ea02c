"""What is kept, for how long, and in how much room."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from recollect.aggregator.cache import MOST_STORED, Cache, Entry, Kept, Lifetimes, _decode, _encode
from recollect.aggregator.outcomes import Outcome, OutcomeKind
from recollect.aggregator.stores import FileStore, open_store
from recollect.errors import ResourceError
from recollect.formats.timemap import TimeMap, merge

LIFETIMES = Lifetimes(fresh=100, stale=50, negative=10)


def held(count: int = 1, archive: str = "a") -> Outcome:
    moments = [f"2015010100:00:{n % 60:02d}" for n in range(count)]
    return Outcome(
        archive, OutcomeKind.MEMENTOS, TimeMap(moments=moments, uris=[f"http://a.example/{n}" for n in range(count)])
    )


def test_mementos_outlive_their_freshness_and_none_does_not() -> None:
    assert LIFETIMES.of(held()) == (100, 150)
    assert LIFETIMES.of(Outcome("a", OutcomeKind.NONE)) == (10, 10)


def test_an_entry_survives_being_stored() -> None:
    entry = Entry({"a#1": Kept(held(3), 5.0), "b#2": Kept(Outcome("b", OutcomeKind.NONE), 6.0)})
    again = _decode(_encode(entry.kept))
    assert again is not None
    assert again.kept["a#1"].outcome.timemap.uris == held(3).timemap.uris
    assert again.kept["a#1"].outcome.archive == "a"
    assert (again.kept["b#2"].outcome.kind, again.kept["b#2"].at) == ("none", 6.0)
    assert len(_encode({"a#1": Kept(held(500), 5.0)})) < 5000, "large entries are compressed"


@pytest.mark.parametrize(
    "data", [b"", b"x", b"{}", b"null", b'{"v":1}', b'{"v":1,"outcomes":{"a":{}}}', b"\x78\x9c\x00"]
)
def test_damaged_entries_are_not_entries(data: bytes) -> None:
    assert _decode(data) is None


def test_merged_mementos_count_until_the_entry_changes() -> None:
    async def main() -> None:
        cache = Cache(lifetimes=LIFETIMES, max_bytes=10**6)
        entry = cache.update("http://x.example/", {"a#1": Kept(held(100), 0.0)})
        alone = cache.bytes
        mementos = merge([("a", held(100).timemap)])
        for _ in range(2):
            cache.remember_merged("http://x.example/", entry, (held(100),), mementos)
            assert cache.bytes > alone + 100 * 100
        twice = cache.bytes
        cache.remember_merged("http://x.example/", entry, (held(100),), mementos)
        assert cache.bytes == twice
        cache.update("http://x.example/", {"a#1": Kept(held(100), 1.0)})
        assert (cache.bytes, entry.merged) == (alone, None)

    asyncio.run(main())


def test_memory_is_bounded_and_the_least_used_goes_first() -> None:
    async def main() -> None:
        cache = Cache(lifetimes=LIFETIMES, max_bytes=20_000)
        for number in range(100):
            cache.update(f"http://x.example/{number}", {"a#1": Kept(held(10), 0.0)})
            cache.peek("http://x.example/0")
        assert cache.bytes <= 20_000
        assert 1 < len(cache) < 100
        assert cache.peek("http://x.example/0") is not None
        assert cache.peek("http://x.example/99") is not None
        assert cache.peek("http://x.example/50") is None
        entry = cache.peek("http://x.example/99")
        assert entry is not None
        before = cache.bytes
        for number in range(50):
            cache.remember("http://x.example/99", entry, number, b"x" * 100, 100)
            cache.remember_answer("http://x.example/99", entry, number)
        assert 0 < cache.bytes - before < 5_000, "what was replaced does not count"
        cache.remember("http://x.example/99", entry, "link", b"x" * 30_000, 30_000)
        assert cache.bytes <= 20_000

    asyncio.run(main())


def test_a_file_survives_a_restart_and_stays_bounded(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"

    async def write() -> None:
        cache = Cache(lifetimes=LIFETIMES, max_bytes=10**6, store=FileStore(path, 50_000))
        for number in range(400):
            cache.update(f"http://x.example/{number}", {"a#1": Kept(held(5), 0.0)})
            if number % 100 == 99:
                await cache._flush()
        await cache.close()

    async def read() -> list[bool]:
        cache = Cache(lifetimes=LIFETIMES, max_bytes=10**6, store=FileStore(path, 50_000))
        found = [await cache.get(f"http://x.example/{number}") is not None for number in range(400)]
        await cache.close()
        return found

    asyncio.run(write())
    found = asyncio.run(read())
    assert found[399], "the latest is there"
    assert 20 < sum(found) < 150, "and the rest is bounded"
    assert path.stat().st_size < 400_000


def test_a_store_that_fails_is_a_missing_cache_and_is_named() -> None:
    class Broken:
        async def get(self, key: str) -> bytes | None:
            raise ResourceError("disk on fire")

        async def put(self, entries: Sequence[tuple[str, bytes, float]]) -> None:
            raise ResourceError("disk on fire")

        async def close(self) -> None: ...

    problems: list[str] = []

    async def main() -> None:
        cache = Cache(lifetimes=LIFETIMES, max_bytes=10**6, store=Broken(), on_problem=problems.append)
        assert await cache.get("http://x.example/") is None
        cache.update("http://x.example/", {"a#1": Kept(held(), 0.0)})
        assert await cache.get("http://x.example/") is not None
        await cache.close()

    asyncio.run(main())
    assert len(problems) == 2 and all("disk on fire" in problem for problem in problems)


def test_an_entry_that_takes_long_to_read_is_kept_in_memory_only(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"

    async def main() -> None:
        cache = Cache(lifetimes=LIFETIMES, max_bytes=10**9, store=open_store(str(path), 10**9))
        cache.update("http://large.example/", {"a#1": Kept(held(MOST_STORED + 1), 0.0)})
        cache.update("http://small.example/", {"a#1": Kept(held(), 0.0)})
        assert await cache.get("http://large.example/") is not None
        await cache.close()
        again = Cache(lifetimes=LIFETIMES, max_bytes=10**9, store=open_store(str(path), 10**9))
        assert await again.get("http://large.example/") is None
        assert await again.get("http://small.example/") is not None
        await again.close()

    asyncio.run(main())


def test_a_file_that_is_not_a_cache_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, and they are longer than a database header would be\n" * 20)
    with pytest.raises(ResourceError):
        open_store(str(path), 1000)
    assert path.read_text().startswith("these are my notes")
