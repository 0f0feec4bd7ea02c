"""The library part of the demo, for a fresh installation: run by make dist in an environment without anything else."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import recollect

PAGES = [f"com,example)/{section}/{page}" for section in ("a", "b", "c") for page in range(40)] + ["org,example)/"]
ROOT = Path(__file__).parents[1]


def main() -> int:
    installed = Path(recollect.__file__)
    assert ROOT / "src" not in installed.parents, "this is the working tree, not the installed wheel"
    command = [str(Path(sys.executable).parent / "recollect")]
    with tempfile.TemporaryDirectory() as folder:
        index, full, small = (Path(folder, name) for name in ("index.cdxj", "map.ukvs", "small.ukvs"))
        lines = [
            f'{key} 2015010100{number % 60:02d}00 {{"status": "200"}}\n' for number, key in enumerate(sorted(PAGES))
        ]
        index.write_text("".join(lines))
        made = recollect.profile([index], full)
        kept = recollect.compact_by_budget(full, small, recollect.Budget(max_cost=0.1))
        assert recollect.verify(small, [index]).ok
        with recollect.open_map(small) as held:
            assert held.lookup("http://example.com/b/7").answer == "yes"
            assert held.lookup("http://elsewhere.example/").answer == "no"
        recollect.write_report([index], Path(folder, "report.html"))
        assert recollect.load_archives(), "the list of archives is missing in the wheel"
        for args in (
            ["--version"],
            ["lookup", str(small), "http://example.com/"],
            ["serve", "--help"],
            ["recover", "--help"],
        ):
            subprocess.run([*command, *args], check=True, stdout=subprocess.DEVNULL)
        print(f"{installed.parent}: {made.totals.keys} keys became {kept.keys_out}, everything held is found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
