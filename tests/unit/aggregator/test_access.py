"""The access log: whole lines, rotation, and a full disk."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from recollect.aggregator.http.access import AccessLog
from recollect.aggregator.outcomes import Failure, Outcome, OutcomeKind
from recollect.aggregator.service import LookupResult
from recollect.formats.timemap import TimeMap
from recollect.routing.choice import Decision, Source

ANSWER = LookupResult(
    "http://a.example/",
    (
        Decision("one", True, Source.NOTHING),
        Decision("two", False, Source.MAP),
        Decision("three", True, Source.NOTHING),
    ),
    (
        Outcome("one", OutcomeKind.MEMENTOS, TimeMap(moments=["2015010100:00:00"], uris=["http://one/2015"]), 0.25),
        Outcome("three", OutcomeKind.ERROR, failure=Failure.TIMEOUT),
    ),
)


def test_a_line_tells_who_held_what_and_who_failed(tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    log = AccessLog(str(path))
    log.lookup("timemap", "http://a.example/", 200, 0.3, ANSWER)
    log.lookup("timegate", "http://b.example/\n", 400, 0.0, None)
    log.close()
    first, second = map(json.loads, path.read_text().splitlines())
    assert first["archives"] == {"one": 1}
    assert first["failed"] == {"three": "timeout"}
    assert first["skipped"] == ["two"]
    assert first["times"] == {"one": 250, "three": 0}
    assert second["uri"] == "http://b.example/\n" and "archives" not in second


def test_after_rotation_it_writes_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    log = AccessLog(str(path))
    log.lookup("timemap", "http://a.example/", 200, 0.3, None)
    path.rename(tmp_path / "old")
    log.reopen()
    log.lookup("timemap", "http://b.example/", 200, 0.3, None)
    log.close()
    assert "a.example" in (tmp_path / "old").read_text()
    assert "b.example" in path.read_text()


def test_a_full_disk_is_named_once_and_fails_nothing(caplog: pytest.LogCaptureFixture) -> None:
    log = AccessLog("/dev/full")
    with caplog.at_level(logging.ERROR, logger="recollect.web"):
        for _ in range(3):
            log.lookup("timemap", "http://a.example/", 200, 0.3, None)
            log.flush()
    assert [record.message for record in caplog.records] == [
        "the access log loses lines (1 so far): /dev/full: No space left on device"
    ]
    log.close()
