"""The map commands against invalid input: nothing good is lost, and the exit code says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.cli.main import run


def test_an_input_of_no_known_kind_does_not_replace_a_map_by_an_empty_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, old = tmp_path / "index.cdxj", tmp_path / "map.ukvs"
    page.write_text("<html><body>502 Bad Gateway</body></html>\n")
    old.write_text("com,x)/ 1/1\n")
    assert run(["profile", str(page), "-o", str(old)]) == 1
    assert old.read_text() == "com,x)/ 1/1\n"
    assert "nothing to profile: " in capsys.readouterr().err


@pytest.mark.parametrize(("name", "limit"), [("small.ukvs.gz", 4000), ("small.ukvs", 9000)])
def test_a_budget_of_bytes_is_kept_and_used_up(tmp_path: Path, name: str, limit: int) -> None:
    keys = sorted(f"com,h{i * 37 % 500:03})/p{i % 7}/q{i}" for i in range(3000))
    (tmp_path / "map.ukvs").write_text("".join(f"{key} 1/1\n" for key in keys))
    small = tmp_path / name
    assert run(["compact", str(tmp_path / "map.ukvs"), "-o", str(small), "--max-bytes", str(limit), "-q"]) == 0
    assert 0.95 * limit < small.stat().st_size <= limit


def test_a_budget_of_too_few_bytes_is_refused_in_the_words_of_the_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "map.ukvs").write_text("com,x)/ 1/1\n")
    assert run(["compact", str(tmp_path / "map.ukvs"), "-o", str(tmp_path / "small.ukvs"), "--max-bytes", "40"]) == 1
    assert "40 bytes are too few" in capsys.readouterr().err
    assert not (tmp_path / "small.ukvs").exists()
