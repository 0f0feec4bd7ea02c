"""Build `recollect-middleware`: the WSGI and ASGI middleware of protection as a package of its own, without dependencies.

    python scripts/middleware_wheel.py dist

The modules are those of `recollect.protection`, under another import name (`recollect_middleware`), so that both
packages can be installed side by side. A web application installs this one; `recollect protect apply` makes the file of
blocks elsewhere.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "recollect"
NAME = "recollect_middleware"
MODULES = ("blocksfile", "inject", "marks", "markup", "middleware")
INIT = '''"""Middleware that puts the blocks of `recollect protect apply` into dynamic pages; see docs/protect.md of Recollect."""

from recollect_middleware.middleware import ProtectASGI, ProtectWSGI

__all__ = ["ProtectASGI", "ProtectWSGI"]
'''
PROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "recollect-middleware"
version = "{version}"
description = "Put the blocks of recollect protect into the pages of a WSGI or ASGI application."
license = "MIT"
requires-python = ">=3.11"

[tool.setuptools]
packages = ["recollect_middleware"]
"""


def write_sources(folder: Path) -> None:
    """The package's sources: copies with their imports renamed."""
    package = folder / NAME
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(INIT)
    for module in MODULES:
        text = (SOURCE / "protection" / f"{module}.py").read_text(encoding="utf-8")
        (package / f"{module}.py").write_text(_renamed(text), encoding="utf-8")
    (package / "errors.py").write_text((SOURCE / "errors.py").read_text(encoding="utf-8"), encoding="utf-8")
    version = re.search(r'__version__ = "([^"]+)"', (SOURCE / "__init__.py").read_text())
    assert version is not None
    (folder / "pyproject.toml").write_text(PROJECT.format(version=version[1]))
    shutil.copy(ROOT / "LICENSE", folder)


def _renamed(text: str) -> str:
    return text.replace("recollect.protection.", f"{NAME}.").replace("recollect.errors", f"{NAME}.errors")


def main(target: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sources(folder / "source")
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*pip, "--wheel-dir", str(Path(target).absolute()), str(folder / "source")], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
