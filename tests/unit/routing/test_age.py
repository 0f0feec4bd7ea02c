"""Routing by maps of some age and scope."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recollect.aggregator.explain import decision_json, reason_words
from recollect.aggregator.referer import page_holders, with_page
from recollect.archives.registry import Archive
from recollect.formats.frequency import Frequency
from recollect.formats.ukvs import Header, Record, Writer
from recollect.maps.growth import USUAL, Depth, Growth, depth_of, growth_between, growth_since
from recollect.maps.maptext import open_text
from recollect.model import Answer
from recollect.routing.choice import Candidate, Reason, chance_since, route
from recollect.routing.maps import Maps

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def _map(folder: Path, name: str, keys: list[bytes], **meta: object) -> Path:
    path = folder / name
    with Writer(path, Header(meta={"type": "MementoMap", **meta})) as writer:
        for key in sorted(keys):
            writer.write(Record(key, (), Frequency.exact(1, 1), ""))
    return path


def _decide(folder: Path, uri: str, *, loss: float | None = 0.01, target: float | None = None, **known: object):  # type: ignore[no-untyped-def]
    archives = [Archive(id="web.archive", name="A", timemap="http://a.example/")]
    maps = Maps.open(folder, archives, clock=lambda: NOW)
    assert not maps.problems
    evidence = maps.evidence(uri, **known)  # type: ignore[arg-type]
    (decision,) = route([Candidate("web.archive")], evidence, max_stale_loss=loss, target_recall=target)
    return decision


def test_a_fresh_no_skips_and_an_old_one_asks(tmp_path: Path) -> None:
    for day, ask in ((NOW - timedelta(days=2), False), (datetime(2009, 3, 1, tzinfo=UTC), True)):
        _map(tmp_path, "web.archive.ukvs", [b"com,example)/"], updated_at=f"{day:%Y-%m-%dT00:00:00Z}")
        decision = _decide(tmp_path, "http://example.com/a")
        assert decision.ask is ask
        assert f"no on {day:%Y-%m-%d}; " in reason_words(decision)
        assert "chance since" in reason_words(decision)
        assert decision_json(decision)["as_of"] == f"{day:%Y-%m-%d}"
        assert decision.answer == (Answer.UNKNOWN if ask else Answer.NO)
        assert not _decide(tmp_path, "http://example.com/a", loss=None).ask
        assert not _decide(tmp_path, "http://example.com/a", loss=0.5).ask
        assert _decide(tmp_path, "http://example.com/a", target=0.999).ask is (decision.chance > 0.001)


def test_an_unknown_host_is_less_likely_to_be_new_than_a_page(tmp_path: Path) -> None:
    _map(tmp_path, "web.archive.ukvs", [b"com,example)/", b"com,example)/a/b"], updated_at="2025-11-01T00:00:00Z")
    chances = [
        _decide(tmp_path, f"http://{rest}").chance for rest in ("other.org/", "example.com/x", "example.com/a/c")
    ]
    assert chances == sorted(chances) and len(set(chances)) == 3


def test_the_growth_of_the_archive_counts(tmp_path: Path) -> None:
    said = {"updated_at": "2024-11-01T00:00:00Z", "growth": {"days": 365.25, "host": 0.0, "path": 0.0, "key": 0.0}}
    _map(tmp_path, "web.archive.ukvs", [b"com,example)/"], **said)
    assert not _decide(tmp_path, "http://example.com/a").ask
    said["growth"] = {"days": 2, "host": 0.0, "path": 0.0, "key": 0.0}  # too short to mean anything
    _map(tmp_path, "web.archive.ukvs", [b"com,example)/"], **said)
    assert _decide(tmp_path, "http://example.com/a").ask


def test_growth_between_two_maps(tmp_path: Path) -> None:
    old = _map(tmp_path, "old.ukvs", [b"com,a)/", b"com,a)/x/1"], updated_at="2025-01-01T00:00:00Z")
    keys = [b"com,a)/", b"com,a)/x/1", b"com,a)/x/2", b"com,a)/y", b"com,b)/"]
    new = _map(tmp_path, "new.ukvs", keys, updated_at="2026-01-01T00:00:00Z")
    since, until = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    grown = growth_between(str(old), str(new), since, until)
    assert grown is not None
    assert (grown.days, grown.host, grown.path, grown.key) == (365.0, 0.2, 0.4, pytest.approx(0.6))
    added = _map(tmp_path, "added.ukvs", [b"com,a)/x/2", b"com,a)/y", b"com,b)/"])
    assert growth_between(str(old), str(added), since, until, adds=True) == grown
    assert growth_between(str(old), str(new), until, until) is None
    recorded = growth_since(str(old), str(new), until)
    assert recorded is not None and Growth.from_meta(recorded.as_meta()) is not None


def test_shares_grow_with_days_and_add_up() -> None:
    assert USUAL.share(Depth.KEY, 0) == 0
    assert USUAL.share(Depth.KEY, 365.25) == pytest.approx(USUAL.key)
    twice = USUAL.then(USUAL)
    assert twice.share(Depth.KEY, 365.25) == pytest.approx(USUAL.key)
    assert chance_since(0.0, 0.5) == 0
    assert chance_since(1.0, 0.5) == 0.5
    for broken in (None, {}, {"days": 0, "host": 0, "path": 0, "key": 0}, {"days": 1, "host": 2, "path": 0, "key": 0}):
        assert Growth.from_meta(broken) is None


def test_the_depth_of_an_absence(tmp_path: Path) -> None:
    text = open_text(str(_map(tmp_path, "m.ukvs", [b"com,a)/", b"com,a)/x-y", b"com,a)/x/1"])))
    found = [depth_of(text, key) for key in (b"com,b)/", b"com,a)/y", b"com,a)/x/2", b"com,a)/x")]
    assert found == [Depth.HOST, Depth.PATH, Depth.KEY, Depth.KEY]
    text.close()


def test_outside_of_the_scope_the_archive_is_asked_with_the_reason(tmp_path: Path) -> None:
    pages = {"filters": {"media_type": ["text/html"], "status": ["200"]}, "updated_at": "2026-10-31T00:00:00Z"}
    _map(tmp_path, "web.archive.ukvs", [b"com,example)/"], **pages)
    logo = _decide(tmp_path, "http://example.com/logo.png")
    assert logo.ask and logo.answer == Answer.UNKNOWN and "text/html" in reason_words(logo)
    page = _decide(tmp_path, "http://example.com/other")
    assert not page.ask and "status 200 only" in reason_words(page)
    assert _decide(tmp_path, "http://example.com/other", any_status=True).ask
    assert _decide(tmp_path, "http://example.com/other", at=datetime(2027, 1, 1, tzinfo=UTC)).ask


def test_a_no_within_dates_gets_a_second_chance(tmp_path: Path) -> None:
    years = {"filters": {"from": "2010", "to": "2012"}, "updated_at": "2026-10-31T00:00:00Z"}
    _map(tmp_path, "web.archive.ukvs", [b"com,example)/"], **years)
    assert _decide(tmp_path, "http://example.com/a").ask
    inside = _decide(tmp_path, "http://example.com/a", at=datetime(2011, 1, 1, tzinfo=UTC))
    assert not inside.ask and inside.reason is Reason.NONE_IN_PERIOD


def test_the_answer_for_a_page_decides_for_its_parts(tmp_path: Path) -> None:
    pages = {"filters": {"media_type": ["text/html"]}, "updated_at": "2026-10-31T00:00:00Z"}
    _map(tmp_path, "web.archive.ukvs", [b"com,example)/"], **pages)
    archives = [Archive(id="web.archive", name="A", timemap="http://a.example/")]
    maps = Maps.open(tmp_path, archives, clock=lambda: NOW)
    for page, reason in (("http://example.com/", Reason.NONE), ("http://example.com/b", Reason.PAGE_NOT_HELD)):
        evidence = with_page(maps.evidence("http://example.com/logo.png"), page_holders(maps.evidence(page)))
        (decision,) = route([Candidate("web.archive")], evidence)
        assert decision.reason is reason


def test_ages_by_archive(tmp_path: Path) -> None:
    _map(tmp_path, "web.archive.ukvs", [b"com,example)/"], updated_at="2026-10-31T00:00:00Z")
    archives = [Archive(id="web.archive", name="A", timemap="http://a.example/")]
    assert Maps.open(tmp_path, archives, clock=lambda: NOW).ages() == {"web.archive": 86400.0}
