"""Keeping a map current against a brute force: exclusions, and any sequence of changes of index files."""

import json
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_merge import KEYS, written

from recollect.formats.frequency import Frequency
from recollect.formats.ukvs import read
from recollect.maps.lookup import open_map
from recollect.profiles.upkeep.exclusion import Exclusions, read_exclusions, remove_excluded
from recollect.profiles.upkeep.update import KeepOptions, update
from recollect.uris import covers

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def folder():
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


def records(path):
    _, found = read(path, ordered=True)
    return {record.key: record.frequency for record in found}


RULES = [b"com,x)/a", b"com,x)/a/*", b"com,x)/*", b"com,x,*", b"com,x,y)/a", b"4,3,2,1)/*", b"org)/", b"com,xy,*", b"*"]


@settings(max_examples=60)
@given(st.lists(st.sampled_from(RULES), max_size=3), st.sets(st.sampled_from(KEYS)))
def test_what_is_excluded_is_what_the_keys_cover(folder, rules, held):
    (folder / "rules.txt").write_bytes(b"# takedowns\n" + b"\n".join(rules) + b"\n")
    exclusions = read_exclusions(folder / "rules.txt")
    written(folder / "all.ukvs", {key: Frequency.exact(2, 1) for key in held}, {"counts": {"captures": 2 * len(held)}})
    removed = remove_excluded(folder / "all.ukvs", folder / "left.ukvs", exclusions)
    left = {key for key in held if not any(covers(rule, key) for rule in rules)}
    assert set(records(folder / "left.ukvs")) == left
    assert (removed.keys, removed.captures) == (len(held - left), 2 * len(held - left))
    header, _ = read(folder / "left.ukvs")
    assert header.meta["counts"] == {"captures": 2 * len(left)}


ACCESS = st.fixed_dictionaries({
    "key": st.sampled_from(["com,x)/a", "com,x)/a/", "com,x)/a###", "com,x,", "com,x)/", "com,x)/a/1", "com,", "*,"]),
    "access": st.sampled_from(["exclude", "block", "allow", "allow_ignore_embargo"]),
    "user": st.sampled_from(["", "", "staff"]),
})  # fmt: skip


@given(st.lists(ACCESS, max_size=4, unique_by=lambda rule: rule["key"]), st.sampled_from(KEYS))
def test_rules_of_pywb_are_decided_by_the_longest(folder, rules, key):
    lines = [f"{rule['key']} - {json.dumps({'access': rule['access'], 'user': rule['user']})}" for rule in rules]
    (folder / "rules.aclj").write_text("\n".join(lines))
    said = read_exclusions(folder / "rules.aclj").excludes(key)
    matching = []
    for rule in rules:
        if rule["user"]:
            continue
        prefix = rule["key"].encode()
        deny = rule["access"] in ("exclude", "block")
        if prefix == b"*,":
            matching.append((0, deny))
        elif prefix.endswith(b"###"):
            matching += [(len(key) + 1, deny)] if key == prefix[:-3] else []
        elif key.startswith(prefix):
            matching.append((len(prefix), deny))
        elif deny and key + b"/" == prefix:
            matching.append((len(key) + 1, deny))
    longest = max((length for length, _ in matching), default=None)
    assert said == any(deny for length, deny in matching if length == longest)


def line(host, page, number):
    uri = f"http://{host}.example/{page}"
    block = json.dumps({"url": uri, "mime": "text/html", "status": "200"})
    return f"example,{host})/{page} {20200101000000 + number} {block}\n"


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["write", "append", "remove", "touch"]),
        st.sampled_from(["a.cdxj", "b.cdxj", "c.cdxj"]),
        st.lists(
            st.tuples(st.sampled_from(["x", "y", "z"]), st.sampled_from(["", "a", "a/1", "a/2", "b"])), max_size=6
        ),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=10)
@given(CHANGES, st.sampled_from([200, 700, 100_000]), st.booleans(), st.booleans())
def test_after_any_changes_the_published_map_holds_what_the_indexes_hold(folder, changes, room, exclude, sets):
    shutil.rmtree(folder / "world", ignore_errors=True)
    world = folder / "world"
    (world / "idx").mkdir(parents=True)
    (world / "rules.txt").write_text("example,x)/a/*\n")
    held = {"base.cdxj": [("w", f"page-{number}") for number in range(40)]}
    (world / "idx" / "base.cdxj").write_text("".join(sorted(line(*one, 0) for one in held["base.cdxj"])))
    options = KeepOptions(
        (f"{world}/idx/*.cdxj",),
        world / "public",
        world / "data",
        500 + room,
        exclude_keys=str(world / "rules.txt") if exclude else "",
        sets=sets,
        threads=1,
    )
    update(options, NOW)
    for number, (what, name, captures) in enumerate(changes):
        path = world / "idx" / name
        if what == "remove":
            path.unlink(missing_ok=True)
            held.pop(name, None)
        elif what == "touch" and path.exists():
            path.touch()
        else:
            before = held.get(name, []) if what == "append" else []
            held[name] = before + captures
            with path.open("a" if what == "append" else "w") as file:
                file.writelines(sorted(line(*one, number) for one in captures))
        done = update(options, NOW)
        uris = {f"http://{host}.example/{page}" for some in held.values() for host, page in some}
        secret = {uri for uri in uris if exclude and uri.startswith("http://x.example/a")}
        with open_map(world / "public" / ".well-known" / "mementomap") as found:
            assert all(found.lookup(uri).answer == "yes" for uri in uris - secret)
            if room == 100_000:  # nothing had to be rolled up
                assert found.lookup("http://absent.example/").answer == "no"
                for uri in {f"http://{host}.example/a" for host in "xyz"} - (uris - secret):
                    assert found.lookup(uri).answer == "no"
        captures_left = sum(len(some) for some in held.values())
        captures_left -= sum(
            exclude and host == "x" and page[:1] == "a" for some in held.values() for host, page in some
        )
        assert done.captures == captures_left
        assert (world / "public" / ".well-known" / "mementomap").stat().st_size <= 500 + room


def test_no_rules_exclude_nothing():
    assert not Exclusions()
    assert not Exclusions().excludes(b"com,x)/")
