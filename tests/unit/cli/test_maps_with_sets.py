"""Commands on maps with hashed sets, as people call them: nothing held is missed by any of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect.cli.main import run
from recollect.profiles.maps.lookup import open_map

KEYS = sorted(f"com,site{n % 7})/d{n % 11}/p{n}" for n in range(3000))


@pytest.fixture
def full(tmp_path: Path) -> Path:
    path = tmp_path / "map.ukvs"
    path.write_text('!id {"uri": "https://a.example/"}\n' + "".join(f"{key} 2/1\n" for key in KEYS))
    (tmp_path / "log.txt").write_text("".join(f"http://site{n % 9}.com/d{n % 11}/p{n * 3}\n" for n in range(900)))
    return path


def missed(path: Path) -> list[str]:
    opened = open_map(path)
    try:
        return [found.uri for found in opened.lookup_many(KEYS) if found.answer != "yes"]
    finally:
        opened.close()


@pytest.mark.parametrize("end", ["ukvs", "ukvs.gz", "ukvs.zst"])
@pytest.mark.parametrize("budget", [["--max-bytes", "4kB"], ["--max-cost", "1%"], ["--min-accuracy", "90%"]], ids=str)
@pytest.mark.parametrize("log", [False, True])
def test_every_budget_with_sets_misses_nothing(full: Path, end: str, budget: list[str], log: bool) -> None:
    small = full.with_name(f"small.{end}")
    lookups = ["--lookups", str(full.with_name("log.txt"))] if log else []
    code = run(["compact", str(full), "-o", str(small), *budget, "--sets", *lookups, "-q"])
    if budget[0] == "--min-accuracy" and not log:
        assert code == 2
        return
    assert code == 0
    assert missed(small) == []
    if budget[0] == "--max-bytes":
        assert small.stat().st_size <= 4000
    assert run(["validate", str(small)]) == 0


def test_sets_without_a_budget_and_budgets_below_one_line_are_refused(
    full: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = full.with_name("small.ukvs")
    assert run(["compact", str(full), "-o", str(small), "--sets"]) == 2
    assert "--max-bytes" in capsys.readouterr().err
    assert run(["compact", str(full), "-o", str(small), "--sets", "--max-bytes", "10"]) == 1
    assert "no map is that small" in capsys.readouterr().err
    assert not small.exists()


def test_publish_diff_stats_and_takedowns_of_a_map_with_sets(full: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, small = full.parent, full.with_name("small.ukvs")
    assert run(["compact", str(full), "-o", str(small), "--sets", "--max-bytes", "4kB", "-q"]) == 0
    assert run(["publish", str(small), "--to", str(folder / "public"), "--page-keys", "3"]) == 0
    assert run(["stats", str(small)]) in (0, 3)
    capsys.readouterr()
    (folder / "taken.ukvs").write_text(
        "".join(sorted([*small.read_text().splitlines(keepends=True), f"{KEYS[5]} 0\n"]))
    )
    assert run(["diff", str(small), str(folder / "taken.ukvs"), "--json"]) == 1
    changes = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [change["key"] for change in changes[:-1]] == [KEYS[5]]
    assert missed(folder / "taken.ukvs") == [KEYS[5]]


def test_merged_maps_with_sets_keep_both_sets_under_one_key(full: Path) -> None:
    small, both = full.with_name("small.ukvs"), full.with_name("both.ukvs")
    assert run(["compact", str(full), "-o", str(small), "--sets", "--max-bytes", "4kB", "-q"]) == 0
    assert run(["merge", str(small), str(small), "-o", str(both), "-q"]) == 0
    assert missed(both) == []
    assert '"set": [' in both.read_text()


def test_a_reader_that_ignores_sets_misses_nothing(full: Path) -> None:
    small, plain = full.with_name("small.ukvs"), full.with_name("plain.ukvs")
    assert run(["compact", str(full), "-o", str(small), "--sets", "--max-bytes", "4kB", "-q"]) == 0
    assert '"set"' in small.read_text()
    lines = [line if line.startswith("!") else " ".join(line.split()[:2]) for line in small.read_text().splitlines()]
    plain.write_text("\n".join(lines) + "\n")
    assert missed(plain) == []


def test_voids_beside_a_map_with_sets_hide_nothing(full: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, small, voids = full.parent, full.with_name("small.ukvs"), full.with_name("voids.ukvs")
    assert run(["compact", str(full), "-o", str(small), "--sets", "--max-bytes", "4kB", "-q"]) == 0
    requested = [f"http://site{n % 9}.com/d{n % 11}/p{n * 3}" for n in range(900)]
    (folder / "often.txt").write_text("".join(f"{uri}\n" * 3 for uri in requested))
    assert run(["voids", str(folder / "often.txt"), "--map", str(small), "-o", str(voids), "-q"]) == 0
    assert " 0" in voids.read_text()
    capsys.readouterr()
    assert run(["merge", str(small), str(voids), "-o", str(folder / "both.ukvs"), "-q"]) == 0
    assert missed(folder / "both.ukvs") == []


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_smallest_maps_miss_nothing_at_any_size(tmp_path: Path, count: int) -> None:
    full, small = tmp_path / "map.ukvs", tmp_path / "small.ukvs"
    keys = KEYS[:: len(KEYS) // count][:count]
    full.write_text("".join(f"{key} 1/1\n" for key in sorted(keys)))
    for size in range(10, 400, 15):
        code = run(["compact", str(full), "-o", str(small), "--sets", "--max-bytes", str(size), "-q"])
        assert code == (0 if small.exists() else 1)
        if code == 0:
            opened = open_map(small)
            assert [found.answer for found in opened.lookup_many(keys)] == ["yes"] * count
            opened.close()
            assert small.stat().st_size <= size
            small.unlink()
