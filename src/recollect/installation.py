"""How this installation was made, and the command that adds an extra to it.

The package index knows Recollect as `recollect-web`, because another project owns the name `recollect` there; the
command and the import name are `recollect`.
"""

from __future__ import annotations

import sys
from pathlib import Path

DISTRIBUTION = "recollect-web"


def install_command(extra: str, prefix: Path | None = None) -> str:
    """The command that installs an extra into this environment: with uv or pipx where one of them made it."""
    package = f"'{DISTRIBUTION}[{extra}]'"
    folder = prefix or Path(sys.prefix)
    if (folder / "uv-receipt.toml").exists():
        return f"uv tool install --force {package}"
    if (folder / "pipx_metadata.json").exists():
        return f"pipx install --force {package}"
    return f"python -m pip install {package}"
