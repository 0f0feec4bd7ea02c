"""A reader of hashed sets, written from docs/ukvs.md alone: plain Python, nothing of Recollect."""

from __future__ import annotations

import base64
import hashlib
import json
import re

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
BITS_BELOW = {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 8}
OCTET = r"(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])"
ADDRESS = re.compile(rf"\[[^\]]*\][^,:]*|{OCTET}(?:,{OCTET}){{3}}(?=[,:]|$)")


def read_map(text: bytes) -> dict[str, tuple[str, list[dict]]]:
    """Key to frequency and sets."""
    found = {}
    for line in text.decode().splitlines():
        if not line.startswith("!"):
            key, frequency, *block = line.split(" ", 2)
            sets = json.loads(block[0]).get("set", []) if block else []
            found[key] = frequency, sets if isinstance(sets, list) else [sets]
    return found


def nodes(key: str) -> list[str]:
    """The wildcards of all nodes above a key and of its own node, the widest first."""
    host, _, path = key.partition(")")
    address = ADDRESS.match(host)
    start = address.end() if address else 1
    ends = [at for at in range(start, len(host)) if host[at] in ",:"] + [len(host)]
    names = [host[:end] + ",*" for end in ends] + [host + ")/*"]
    segments = path[1:].split("/") if path not in ("", "/") else []
    return names + [host + ")/" + "/".join(segments[: n + 1]) + "/*" for n in range(len(segments))]


def mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


class Set:
    """One set of a line."""

    def __init__(self, item: dict) -> None:
        assert item["v"] == 1
        data, parts = base64.b64decode(item["bits"]), item["parts"]
        entries = [int.from_bytes(data[2 * n : 2 * n + 2], "little") for n in range(parts)]
        self.sizes, self.seeds = [entry & 4095 for entry in entries], [entry >> 12 for entry in entries]
        self.bits, self.below = int.from_bytes(data[2 * parts :], "little"), item["k"]

    def value(self, key: str, k: int) -> int | None:
        """None if a key is not in the set, else its value, which only gates have."""
        digest = hashlib.blake2b(key.encode(), digest_size=32).digest()
        first, rows = (int.from_bytes(digest[at : at + 8], "little") for at in (0, 8))
        part = (first >> 32) * len(self.sizes) >> 32
        begin, size, seed = sum(self.sizes[:part]), self.sizes[part], self.seeds[part]

        def differs(number: int) -> int:
            row = mix(rows + GOLDEN * (1024 * seed + number + 1) & MASK)
            other = mix(row + GOLDEN & MASK)
            start = (other >> 32) * (size - 63) >> 32 if size > 64 else 0
            row = row | 1 if size > 64 else row & (1 << size) - 1
            window = self.bits >> begin + start
            return (window & row).bit_count() + other & 1

        if any(differs(number) for number in range(k)):
            return None
        return sum(differs(64 + bit) << bit for bit in range(3))

    def holds(self, key: str, anchor: str) -> bool:
        below = nodes(key)
        below = below[below.index(anchor) + 1 :] if anchor != "*" else below
        k = self.below
        for gate in below[:-1]:
            value = self.value(gate, k)
            if value is None or value == 0:
                return value == 0
            k = BITS_BELOW[value]
        return self.value(key, k) is not None


def answer(found: dict[str, tuple[str, list[dict]]], key: str) -> str:
    """What a map says of a normal key."""
    for candidate in (key, *reversed(nodes(key)), "*"):
        if candidate in found:
            frequency, sets = found[candidate]
            if frequency.split("/")[0] == "0":
                return "no"
            return "yes" if not sets or any(Set(item).holds(key, candidate) for item in sets) else "no"
    return "no"
