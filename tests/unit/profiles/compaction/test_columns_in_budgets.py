"""A budget folds key columns first, and says so; nothing that was held is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.cli.main import run
from recollect.maps.lookup import MementoMap


def test_a_budget_folds_columns_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = []
    for number in range(40):
        key = f"pt,site)/p{number:02}"
        lines += [f"{key} : 3/1\n", f"{key} 2010 1/1\n", f"{key} 2011 2/1\n"]
    source, target = tmp_path / "m.ukvs", tmp_path / "small.ukvs"
    source.write_text('!fields {keys: ["surt", "datetime"], values: ["frequency"]}\n' + "".join(sorted(lines)))
    assert run(["compact", str(source), "-o", str(target), "--max-keys", "5"]) == 0
    assert "datetime" in capsys.readouterr().err
    with MementoMap.open(target) as opened:
        assert opened.header.keys == ("surt",) and opened.header.meta["folded_columns"] == ["datetime"]
        assert all(opened.lookup(f"http://site.pt/p{number:02}").answer == "yes" for number in range(40))
    rows = [line for line in target.read_text().splitlines() if not line.startswith("!")]
    assert rows == ["pt,site)/* 120/40"]
