"""How much the package and everything it needs take on disk, from the files that installed distributions record.

    python scripts/size.py            a table, and exit code 1 if it is more than 230 MB

Extras are not counted. Run by `make size` and by a test, so that the installation cannot grow unseen.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LIMIT = 230_000_000
ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    sizes = installed_sizes()
    for name, size in sorted(sizes.items(), key=lambda item: -item[1]):
        print(f"{size / 1e6:8.1f} MB  {name}")
    total = sum(sizes.values())
    print(f"{total / 1e6:8.1f} MB  in all (at most {LIMIT / 1e6:.0f})")
    return 0 if total <= LIMIT else 1


def installed_sizes() -> dict[str, int]:
    """Bytes by distribution: the package and, transitively, what pyproject.toml requires without extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    sizes = {"recollect": _bytes_of(path for path in (ROOT / "src").rglob("*") if _is_installed(path))}
    waiting = list(project["dependencies"])
    while waiting:
        need = Requirement(waiting.pop())
        name = canonicalize_name(need.name)
        if name not in sizes and (need.marker is None or need.marker.evaluate({"extra": ""})):
            found = distribution(name)
            sizes[name] = _bytes_of(Path(str(file.locate())) for file in found.files or [])
            waiting += found.requires or []
    return sizes


def _is_installed(path: Path) -> bool:
    """Is a file of the source tree part of the package? Not those that only make kernels, nor of earlier builds."""
    if path.suffix == ".pyc":
        return path.name.endswith(f".{sys.implementation.cache_tag}.pyc")
    return path.suffix not in (".pyx", ".pxd", ".c") and (path.suffix != ".so" or path.name.startswith("_"))


def _bytes_of(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths if path.is_file())


if __name__ == "__main__":
    sys.exit(main())
