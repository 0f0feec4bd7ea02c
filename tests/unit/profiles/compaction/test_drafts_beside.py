"""A map within a budget takes its place in one step: never an over-budget one, and never by way of losing its input."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.errors import RecollectError
from recollect.formats.containers import OutputTooLarge, atomic_output
from recollect.profiles.compaction import budget as module
from recollect.profiles.compaction.budget import Budget, compact_by_budget


def _source(folder: Path) -> Path:
    path = folder / "map.ukvs"
    keys = sorted(f"com,site{n % 13})/d{n % 7}/p{n}" for n in range(4000))
    path.write_text("".join(f"{key} 2/1\n" for key in keys))
    return path


def test_an_output_over_its_limit_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "x.ukvs"
    target.write_bytes(b"old")
    with pytest.raises(OutputTooLarge), atomic_output(target, max_bytes=10) as out:
        out.write(b"x" * 11)
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["x.ukvs"]
    with atomic_output(target, max_bytes=10) as out:
        out.write(b"x" * 10)
    assert target.stat().st_size == 10


@pytest.mark.parametrize("suffix", ["", ".zst"])
def test_every_content_of_the_target_is_within_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """The size of a draft is only nearly that of the map: here the first two maps come out too large."""
    source, target, limit = _source(tmp_path), tmp_path / f"small.ukvs{suffix}", 3000
    target.write_bytes(b"before")
    seen: list[bytes] = []
    write = module._Job.write
    finals = 0

    def larger(*arguments, draft: bool = False, max_bytes: int | None = None):  # type: ignore[no-untyped-def]
        nonlocal finals
        if not draft:
            finals += 1
            if finals <= 2:
                max_bytes = 10
            seen.append(target.read_bytes())
        return write(*arguments, draft=draft, max_bytes=max_bytes)

    monkeypatch.setattr(module._Job, "write", larger)
    compact_by_budget(source, target, Budget(max_bytes=limit, sets=True))
    assert finals == 3 and seen == [b"before"] * 3
    assert target.stat().st_size <= limit


def test_compaction_in_place_that_fails_keeps_its_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = _source(tmp_path)
    before = source.read_bytes()
    write = module._Job.write

    def never(*arguments, draft: bool = False, max_bytes: int | None = None):  # type: ignore[no-untyped-def]
        return write(*arguments, draft=draft, max_bytes=max_bytes if draft else 10)

    monkeypatch.setattr(module._Job, "write", never)
    with pytest.raises(RecollectError):
        compact_by_budget(source, source, Budget(max_bytes=3000, sets=True))
    assert source.read_bytes() == before
