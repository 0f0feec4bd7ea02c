"""Commands on maps with hashed sets, as people call them: nothing held is missed by any of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect.cli.main import run
from recollect.maps.lookup import open_map

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


def test_wildcards_over_paths_of_addresses_have_the_right_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uris = [f"http://{octet}.2.3.4/x/{number}" for octet in (1, 10) for number in range(40)]
    (tmp_path / "urls.txt").write_text("\n".join(uris) + "\n")
    full, small = str(tmp_path / "full.ukvs"), tmp_path / "small.ukvs"
    assert run(["profile", str(tmp_path / "urls.txt"), "-o", full, "-q"]) == 0
    for sets in ([], ["--sets"]):
        assert run(["compact", full, "-o", str(small), "--max-bytes", "700", *sets, "-q"]) == 0
        assert ")/x/* 40/40" in small.read_text() or ")/* 40/40" in small.read_text()
        assert run(["verify", str(small), str(tmp_path / "urls.txt")]) == 0
        assert "WRONG" not in capsys.readouterr().err


def test_a_budget_that_domains_do_not_fit_is_met_over_top_level_domains(tmp_path: Path) -> None:
    hosts = sorted(f"{tld},h{number})/" for tld in ("com", "org") for number in range(900))
    full, small = tmp_path / "full.ukvs", tmp_path / "small.ukvs.zst"
    full.write_text("".join(f"{key} 1\n" for key in hosts))
    fitted = []
    for size in range(300, 6_000, 300):
        assert run(["compact", str(full), "-o", str(small), "--sets", "--max-bytes", str(size), "-q"]) == 0, size
        assert small.stat().st_size <= size
        fitted.append(size)
    assert len(fitted) == 19


def test_a_map_compacted_again_says_what_its_forecast_leaves_out(
    full: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small, again = full.with_name("small.ukvs"), full.with_name("again.ukvs")
    assert run(["compact", str(full), "-o", str(small), "--sets", "--max-bytes", "4kB", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["input_wildcards"] == 0
    assert run(["compact", str(small), "-o", str(again), "--sets", "--max-bytes", "3kB"]) == 0
    assert "what is absent below them is unknown" in capsys.readouterr().err


def test_a_tradeoff_with_a_log_shows_sets_over_top_level_domains(tmp_path: Path) -> None:
    hosts = sorted(f"com,h{number * 7919 % 100_003})/" for number in range(3_000))
    (tmp_path / "full.ukvs").write_text("".join(f"{key} 1\n" for key in hosts))
    asked = hosts[::10] + [f"com,absent{number})/" for number in range(300)]
    (tmp_path / "log.txt").write_text("\n".join(asked) + "\n")
    target = tmp_path / "t.json"
    log = str(tmp_path / "log.txt")
    assert run(["tradeoff", str(tmp_path / "full.ukvs"), "--lookups", log, "-o", str(target)]) == 0
    numbers = json.loads(target.read_text())
    good = [point["bytes"] for point in numbers["sets"] if point["accuracy"] > 0.9]
    in_clear = [point["bytes"] for point in numbers["budget"] if point["accuracy"] > 0.9]
    assert min(good) < 0.7 * min(in_clear)
