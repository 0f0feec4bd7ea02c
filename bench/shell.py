"""The environment in which benchmarks start commands."""

from __future__ import annotations

import os


def environment(**more: str) -> dict[str, str]:
    """The user's, but Python keeps bytecode, as it does for users: pip compiles what it installs."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **more}
