"""Hashed sets that are damaged or forged: a plain wildcard or a clear error, never a crash or a false no."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from recollect.cli.main import run
from recollect.maps.bulk import bulk_lookup
from recollect.maps.lookup import MementoMap
from recollect.maps.merge import MergeOptions, merge_maps
from recollect.profiles.compaction.budget import Budget, compact_by_budget

GOOD = base64.b64encode(bytes([64, 0]) + bytes(8)).decode()


def _set(**changes: object) -> str:
    return json.dumps({"set": {"v": 1, "k": 3, "parts": 1, "bits": GOOD, **changes}})


BLOCKS = {
    "truncated bits": _set(bits=GOOD[:6]),
    "truncated JSON": _set()[:-4],
    "no bits per member": _set(k=0),
    "too many bits per member": _set(k=61),
    "k beyond any integer": _set(k=10**30),
    "k beyond any float": _set().replace('"k": 3', '"k": 1e400'),
    "k of a fraction": _set(k=2.5),
    "k of a text": _set(k="3"),
    "numbers of truth": _set(v=True, k=True, parts=True),
    "parts below zero": _set(parts=-1),
    "parts that overflow": _set(parts=2**62),
    "parts of the largest integer": _set(parts=2**63 - 1),
    "parts of thousands of digits": _set().replace('"parts": 1', '"parts": ' + "9" * 5000),
    "more bits than parts say": _set(bits=base64.b64encode(bytes([64, 0]) + bytes(80)).decode()),
    "wrong base64": _set(bits="!!!!"),
    "bits of a number": _set(bits=7),
    "bits beyond ASCII": _set(bits="\u00e9\u00e9"),
    "megabytes of bits": _set(bits="A" * 3_000_000),
    "another version": _set(v=2),
    "one of two of another version": '{"set": [' + _set()[8:-1] + ', {"v": 9}]}',
    "nested lists": '{"set": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "nested objects": '{"set": ' + '{"set": ' * 5000 + "1" + "}" * 5001,
    "no set in a list": '{"set": []}',
    "null": '{"set": null}',
    "half of a surrogate pair": '{"set": "\\ud800"}',
}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_a_set_that_cannot_be_read_acts_as_a_plain_wildcard(tmp_path: Path, block: str) -> None:
    source, other, made = (tmp_path / name for name in ("map.ukvs", "other.ukvs", "made.ukvs"))
    source.write_text(f"com,x)/* 5/3 {block}\ncom,y)/a 1\n")
    other.write_text("com,x)/b 1\ncom,z)/ 1\n")
    with MementoMap.open(source) as opened:
        assert opened.lookup("com,x)/a").answer == "yes"
        assert [found.answer for found in opened.lookup_many(["com,x)/a"])] == ["yes"]
        assert [answers.yes for answers in bulk_lookup(opened, [b"com,x)/a\n"], threads=1)] == [1]
    problems: list[object] = []
    merge_maps([source, other], made, MergeOptions(), on_problem=problems.append)
    with MementoMap.open(made) as opened:
        assert opened.lookup("com,x)/a").answer == "yes"
    for sets in (False, True):
        compact_by_budget(source, made, Budget(max_keys=5, sets=sets))
        with MementoMap.open(made) as opened:
            assert opened.lookup("com,x)/a").answer == "yes"


@pytest.mark.parametrize("name", sorted(set(BLOCKS) - {"another version", "one of two of another version"}))
def test_validate_names_the_line_of_a_damaged_set(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "map.ukvs").write_text(f"!fields {{}}\ncom,x)/* 5/3 {BLOCKS[name]}\n")
    assert run(["validate", str(tmp_path / "map.ukvs")]) == 1
    output = capsys.readouterr()
    assert "map.ukvs:2" in output.out + output.err
    assert "Traceback" not in output.err


def test_validate_mentions_a_set_of_another_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "map.ukvs").write_text(f"!fields {{}}\ncom,x)/* 5/3 {BLOCKS['another version']}\n")
    assert run(["validate", str(tmp_path / "map.ukvs")]) == 0
    printed = capsys.readouterr()
    assert "a set of version 2" in printed.out + printed.err
