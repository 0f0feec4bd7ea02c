"""Write the packages that an installation gets, each with the hash of its file, as pip's `--require-hashes` takes them.

    python scripts/hashes.py dist/requirements.txt

Versions are those of constraints.txt; hashes are those of the files that fit this machine. Nothing is installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(target: str) -> None:
    wheel = sorted((ROOT / "dist").glob("*.whl"))[-1]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    report = subprocess.run(
        [*command, "-c", str(ROOT / "constraints.txt"), str(wheel)], check=True, capture_output=True, text=True
    ).stdout
    lines = []
    for item in json.loads(report)["install"]:
        metadata, archive = item["metadata"], item["download_info"].get("archive_info", {})
        if metadata["name"] == wheel.name.partition("-")[0]:
            continue
        lines.append(f"{metadata['name']}=={metadata['version']} --hash=sha256:{archive['hashes']['sha256']}\n")
    Path(target).write_text("".join(sorted(lines, key=str.lower)))


if __name__ == "__main__":
    main(*sys.argv[1:])
