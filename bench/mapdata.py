"""Synthetic maps for the benchmarks: hosts and paths grow by preferential attachment, so few hosts hold most keys.

Shaped after Tables 7 and 8 of the MementoMap paper: hosts of 2 to 5 segments, most keys at path depths 1 to 4, a few
children for most directories and very many for some. The same seed gives the same map.
"""

from __future__ import annotations

import random
from pathlib import Path

SYLLABLES = [a + b for a in "bcdfgklmnpr" for b in "aeio"]
COMMON = [*"abcdefgh", *map(str, range(2005, 2016)), "index", "images", "news", "wp-content", "static", "docs"]
ENDINGS = [".html", ".htm", ".php", ".jpg", ".gif", ".pdf", ".css", ".js", "", ""]
PATH_DEPTHS = [4, 113, 225, 334, 174, 127, 68, 45, 22, 15]


def map_keys(count: int, seed: int = 1) -> list[bytes]:
    """`count` different keys, sorted."""
    rng = random.Random(seed)
    hosts = _hosts(rng, max(50, count // 200))
    keys: set[str] = set()
    while len(keys) < count:
        host = hosts[min(int(rng.paretovariate(0.9)) - 1, len(hosts) - 1)] if rng.random() < 0.7 else rng.choice(hosts)
        _add_directory(rng, keys, host, count)
    return sorted(key.encode() for key in keys)


def _hosts(rng: random.Random, count: int) -> list[str]:
    hosts: list[str] = []
    seen: set[str] = set()
    while len(hosts) < count:
        if hosts and rng.random() < 0.6:
            parent = rng.choice(hosts)
            name = f"{parent},{_word(rng)}" if parent.count(",") < 5 else f"{parent}-{rng.randrange(100)}"
        else:
            name = f"{rng.choice(['pt', 'com', 'com', 'net', 'org', 'eu', 'br'])},{_word(rng)}"
        if rng.random() < 0.12:
            name += f"-{_word(rng)}"
        if name not in seen:
            seen.add(name)
            hosts.append(name)
    return hosts


def _add_directory(rng: random.Random, keys: set[str], host: str, limit: int) -> None:
    """Some pages in one directory of a host."""
    depth = rng.choices(range(len(PATH_DEPTHS)), PATH_DEPTHS)[0]
    place = f"{host})" + "".join(
        f"/{rng.choice(COMMON) if rng.random() < 0.7 else _word(rng)}" for _ in range(max(0, depth - 1))
    )
    if depth == 0:
        keys.add(place + "/")
        return
    for _ in range(min(int(rng.paretovariate(0.8)), 3000)):
        if len(keys) >= limit:
            return
        keys.add(
            f"{place}/{_word(rng)}{rng.choice(ENDINGS)}" if rng.random() < 0.6 else f"{place}/{rng.randrange(10**6)}"
        )


def _word(rng: random.Random) -> str:
    word = "".join(rng.choices(SYLLABLES, k=rng.randint(2, 4)))
    return f"{word}-{rng.choice(SYLLABLES)}" if rng.random() < 0.15 else word


def write_map(path: Path, keys: list[bytes]) -> None:
    """A map of these keys, one or a few captures each."""
    rng = random.Random(7)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        for start in range(0, len(keys), 100_000):
            out.write(b"".join(b"%b %d\n" % (key, rng.randint(1, 5)) for key in keys[start : start + 100_000]))


def lookups(keys: list[bytes], count: int, seed: int = 2) -> list[bytes]:
    """SURTs to look up, half of them held, in random order."""
    rng = random.Random(seed)
    found = [rng.choice(keys) for _ in range(count // 2)]
    for _ in range(count - len(found)):
        host, _, path = rng.choice(keys).decode().partition(")")
        kind = rng.random()
        if kind < 0.5:
            found.append(f"{host}){path.rpartition('/')[0]}/{_word(rng)}{_word(rng)}.html".encode())
        elif kind < 0.7:
            found.append(f"{host})/{_word(rng)}/{_word(rng)}".encode())
        else:
            found.append(f"com,{_word(rng)}{_word(rng)})/{_word(rng)}".encode())
    rng.shuffle(found)
    return found
