"""Random trees of keys with nasty segments, and slow, obvious versions of lookup and compaction to compare with."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from hypothesis import strategies as st

from recollect.formats.frequency import VOID, Count, Frequency
from recollect.profiles.compaction.weights import Weights
from recollect.uris import lookup_keys, segments, uri_key

SEGMENTS = [
    "a",
    "a-b",
    "a.b",
    "a!",
    "b",
    "0",
    "",
    "ab",
    "a,b",
    ")",
    "%20",
    "~",
    ":x",
    "!",
    "(z",
    "*",
    " ",
    "ü",
    "a\tb",
    "%2A",
]
HOSTS = ["x", "x-y", "x0", "a", "1", "xy", "x!", "xn--a"]
ADDRESSES = ["4,3,2,1", "4,3,2,10:80", "1,2,3,4", "[::1]:80", "[::1]"]
NUMBERS = [
    "4,3,2,999",
    "4,3,2,1,x",
    "4,3,2",
    "4,3,2,1-x",
    "4,3,2,1:80",
    "4,3,2,100,y",
    "4,3,2,2",
]  # names and addresses
FREQUENCIES = ["1", "2/1", "3+/2", "/", "/4", "5~", "7-/2", "4/1", "9/9", "1/1", "1/1"]
VOIDS = ["0", "0/3"]


def _host(parts: list[str], port: str) -> str:
    return ",".join(parts) + port


hosts = st.one_of(
    st.builds(
        _host,
        st.builds(
            lambda tld, rest: [tld, *rest],
            st.sampled_from(["com", "net", "co"]),
            st.lists(st.sampled_from(HOSTS), max_size=3),
        ),
        st.sampled_from(["", "", "", ":80", ":8080"]),
    ),
    st.sampled_from(ADDRESSES),
    st.sampled_from(NUMBERS),
)
surts = st.builds(
    lambda host, path: f"{host})/{'/'.join(path)}".encode(),
    hosts,
    st.lists(st.sampled_from(SEGMENTS), max_size=5) | st.lists(st.just("d"), min_size=12, max_size=14),
)
keys = surts.map(uri_key)


@st.composite
def holdings(
    draw: st.DrawFn, *, max_size: int = 60, voids: bool = True, wildcards: bool = True
) -> dict[bytes, Frequency]:
    """A map: exact keys, some wildcards with totals that include what is below, some voids."""
    found = draw(
        st.dictionaries(keys, st.sampled_from(FREQUENCIES + (VOIDS if voids else [])), min_size=1, max_size=max_size)
    )
    # Wide nodes, so that something rolls up at all.
    base = draw(st.sampled_from(sorted(found))).rstrip(b"/")
    for number in range(draw(st.integers(0, 12))):
        found[base + b"/n%d" % number] = draw(st.sampled_from(FREQUENCIES))
    wide = draw(st.sampled_from([b"com,x", b"com,x,a", b"net"]))
    for number in range(draw(st.integers(0, 12))):
        found[wide + b",h%d)/" % number] = "2/1"
    result = {key: Frequency.parse(value) for key, value in found.items()}
    for key in draw(st.lists(st.sampled_from(sorted(result)), max_size=6)) if wildcards else []:
        wildcard = draw(st.sampled_from(above(key)))
        result[wildcard] = Frequency.parse(draw(st.sampled_from(["100000/100000", *(VOIDS if voids else [])])))
    return result


def write_map(path: Path, records: Mapping[bytes, Frequency], *, header: bytes = b"", end: bytes = b"\n") -> Path:
    """A map file of these records."""
    lines = [key + b" " + str(records[key]).encode() for key in sorted(records)]
    path.write_bytes(header + b"\n".join(lines) + (end if lines else b""))
    return path


def read_map(path: Path) -> dict[bytes, Frequency]:
    """The records of a plain map file."""
    lines = [line for line in path.read_bytes().splitlines() if line[:1] != b"!"]
    return {line.split()[0]: Frequency.parse(line.split()[1]) for line in lines}


def above(key: bytes) -> list[bytes]:
    """The wildcards of a key's node and of all nodes above it, the nearest first; for a wildcard itself first."""
    if not key.endswith(b"*"):
        return lookup_keys(key)[1:]
    if key == b"*":
        return [b"*"]
    below = key[:-2] + (b"/q" if b")" in key else b")/q")
    chain = lookup_keys(below)
    return chain[chain.index(key) :]


def deciding(records: Mapping[bytes, Frequency], key: bytes) -> bytes | None:
    """Which record decides for a normal key."""
    return next((one for one in lookup_keys(key) if one in records), None)


def held_keys(records: Mapping[bytes, Frequency]) -> list[bytes]:
    """Exact keys that the map does not deny."""
    return [key for key, one in records.items() if not key.endswith(b"*") and not one.is_void]


def _place(wildcard: bytes) -> tuple[str, int]:
    if wildcard == b"*":
        return "root", 0
    names, path = segments(wildcard)
    return ("path", len(path)) if path else ("host", len(names) - 1)


def rolled_up(records: Mapping[bytes, Frequency], weights: Weights) -> set[bytes]:
    """The wildcards of nodes that have more children than allowed, outermost only."""
    children: dict[bytes, set[bytes]] = {}
    for key, frequency in records.items():
        chain = above(key)
        if not frequency.is_void:
            for child, parent in pairwise(chain):
                if _place(child) != ("path", 1):
                    children.setdefault(parent, set()).add(child)
    cutoffs = {"host": weights.host_cutoffs(), "path": weights.path_cutoffs()}
    chosen = set()
    for wildcard, below in children.items():
        kind, depth = _place(wildcard)
        if kind == "root" or depth >= len(cutoffs[kind]) or len(below) <= cutoffs[kind][depth]:
            continue
        name = wildcard[:-2]
        if kind == "host" and (name[:1].isdigit() or name[:1] == b"[" or b":" in name):
            continue
        # A host of which nothing but ports is known does not roll up.
        if kind == "host" and not any(key.startswith((name + b")", name + b",")) for key in records):
            continue
        chosen.add(wildcard)
    return {one for one in chosen if not any(wider in chosen for wider in above(one)[1:])}


def compacted(records: Mapping[bytes, Frequency], weights: Weights) -> dict[bytes, Frequency]:
    """Compaction by weights, written down as plainly as can be. Depth limits must lie below the keys' depths."""
    tops = rolled_up(records, weights)
    result: dict[bytes, Frequency] = {}
    below: dict[bytes, dict[bytes, Frequency]] = {}
    for key, frequency in records.items():
        top = next((one for one in above(key) if one in tops), None)
        if top is None:
            result[key] = frequency
            continue
        below.setdefault(top, {})[key] = frequency
        if frequency.is_void and key != top and not _hides(key, records):
            result[key] = frequency
    for top, inside in below.items():
        result[top] = total(top, inside)
    return result


def _hides(void: bytes, records: Mapping[bytes, Frequency]) -> bool:
    return void.endswith(b"*") and any(void in above(key) for key, one in records.items() if not one.is_void)


def total(wildcard: bytes, inside: Mapping[bytes, Frequency]) -> Frequency:
    """The inclusive total of a wildcard over the records below it."""
    result = VOID
    branches: dict[bytes, dict[bytes, Frequency]] = {}
    for key, frequency in inside.items():
        if frequency.is_void or key == wildcard:
            continue
        chain = above(key)
        level = chain.index(wildcard)
        if level == 0:
            result = result + frequency
        else:
            branches.setdefault(chain[level - 1], {})[key] = frequency
    for branch, records in branches.items():
        result = result + total(branch, records)
    own = inside.get(wildcard)
    if own is None or own.is_void:
        return result
    if result.is_void:
        return own
    return Frequency(_stated(own.uri_m, result.uri_m), _stated(own.uri_r, result.uri_r))


def _stated(own: Count, below: Count) -> Count:
    """A stated total stands unless what is below proves it too small."""
    if below.is_zero or below.value is None:
        return own
    if own.value is not None and (below.value <= own.value or below.bound in ("-", "~")):
        return own
    return Count(below.value, "~" if "~" in (own.bound, below.bound) or below.bound == "-" else "+")
