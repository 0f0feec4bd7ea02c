"""See that a C compiler and Python's headers are there to build `recollect.kernels`; as root on Debian, install them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path


def missing_packages() -> list[str]:
    """Debian's packages that building needs and that are not there."""
    command = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    packages = []
    if not shutil.which(command.split()[0]) or not Path("/usr/include/stdlib.h").exists():
        packages += ["gcc", "libc6-dev"]
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        packages.append("python3-dev")
    return packages


def main() -> int:
    if sys.platform != "linux" or not (packages := missing_packages()):
        return 0
    if hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"stdout": subprocess.DEVNULL, "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
        subprocess.run(["apt-get", "update"], check=False, **quiet)
        subprocess.run(["apt-get", "install", "--yes", "--no-install-recommends", *packages], check=False, **quiet)
        packages = missing_packages()
    if packages:
        names = " ".join(packages)
        print(
            f"recollect.kernels needs a C compiler: install {names} (Debian: apt-get install {names})", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
