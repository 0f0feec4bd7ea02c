"""The map commands against what nobody should give them: nothing good is lost, and the exit code says so."""

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
