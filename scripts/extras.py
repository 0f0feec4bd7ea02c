"""Print what the named extras of pyproject.toml need, as a requirements file."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def main() -> int:
    project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]
    for extra in sys.argv[1:]:
        print(*project["optional-dependencies"][extra], sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
