"""An aggregator whose map has damaged hashed sets: it starts, asks the archive, and reports the line."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from recollect.cli.main import run
from small_archives import SmallArchives, server_process, small_archives

HEAD = '!context ["https://git.io/mementomap"]\n!fields {"keys": ["surt"], "values": ["frequency"]}\n'
GOOD = base64.b64encode(bytes([64, 0]) + bytes(8)).decode()
HELD = "http://held.example/a/page"


def _set(**changes: object) -> str:
    return json.dumps({"set": {"v": 1, "k": 3, "parts": 1, "bits": GOOD, **changes}})


DAMAGED = {
    "truncated base64": _set(bits=GOOD[:6]),
    "truncated JSON": _set()[:-4],
    "wrong version": _set(v=2),
    "giant bits": _set(bits="A" * 3_000_000),
    "giant k": _set(k=10**30),
    "too many parts": _set(parts=2**62),
    "parts below zero": _set(parts=-1),
    "a byte too many": _set(bits=base64.b64encode(bytes([64, 0]) + bytes(9)).decode()),
    "not a set": '{"set": null}',
    "one of two damaged": '{"set": [' + _set()[8:-1] + ", " + _set(parts=7)[8:-1] + "]}",
    "nested lists": '{"set": ' + "[" * 50_000 + "]" * 50_000 + "}",
}


@pytest.fixture
def archives() -> Iterator[SmallArchives]:
    with small_archives() as running:
        for number in range(len(DAMAGED)):
            running.add(f"a{number}", {HELD: ["20150101000000"]})
        running.add("sound", {HELD: ["20160101000000"]})
        yield running


def test_damaged_sets_are_plain_wildcards_to_a_server(tmp_path: Path, archives: SmallArchives) -> None:
    maps = tmp_path / "maps"
    maps.mkdir()
    for number, block in enumerate(DAMAGED.values()):
        (maps / f"a{number}.ukvs").write_text(f"{HEAD}example,held)/* 5/3 {block}\n")
    keys = sorted([f"example,held)/d{n % 7}/p{n}" for n in range(2000)] + ["example,held)/a/page"])
    full = tmp_path / "full.ukvs"
    full.write_text(HEAD + "".join(f"{key} 2/1\n" for key in keys))
    small = str(maps / "sound.ukvs")
    assert run(["compact", str(full), "-o", small, "--sets", "--max-bytes", "3kB", "-q"]) == 0
    registry = archives.write(tmp_path)
    with server_process(registry, "--maps", str(maps), "--no-learn", "--no-cache") as server:
        found = {one["id"]: one for one in json.loads(_get(server.base, f"/route/{HELD}"))["archives"]}
        assert {one["decision"] for one in found.values()} == {"ask"}
        timemap = _get(server.base, f"/timemap/link/{HELD}").decode()
        assert timemap.count('memento"') == len(DAMAGED) + 1, "every archive was asked and found"
        absent = json.loads(_get(server.base, "/route/http://held.example/nothing/here/at/all"))["archives"]
        by_id = {one["id"]: one for one in absent}
        assert {by_id[f"a{number}"]["decision"] for number in range(len(DAMAGED))} == {"ask"}
        assert by_id["sound"]["decision"] == "skip"
        assert by_id["sound"]["by"] == "set"
        report = server.log.read_text()
    for number, name in enumerate(DAMAGED):
        assert f"a{number}.ukvs:3: " in report, name
    assert "Traceback" not in report
    assert "sound.ukvs:" not in report


def _get(base: str, path: str) -> bytes:
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=30)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.status == 200
        return response.read()
    finally:
        connection.close()
