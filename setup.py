"""Compiles `recollect.kernels`; everything else about the package is in pyproject.toml.

One binary of the limited API serves Python 3.11 and later. RECOLLECT_SANITIZE=1 builds with AddressSanitizer and UBSan
(`make sanitize`).
"""

import os
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Distribution, Extension, setup

KERNELS = Path("src/recollect/kernels")
SANITIZE = bool(os.environ.get("RECOLLECT_SANITIZE"))
# Free-threaded builds of Python have no limited API.
LIMITED = not sysconfig.get_config_var("Py_GIL_DISABLED")
# Symbol tables are a tenth of the binaries.
STRIPPED = ["-Wl,-s"] if sys.platform.startswith("linux") else []
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "embedsignature": True,
}


class KernelsOnly(Distribution):
    """`build_ext` alone needs no metadata, so that a setuptools too old to read ours (before 77) can do it, too."""

    def parse_config_files(self, filenames=None, ignore_option_errors=False):
        """Read nothing."""


def extension(source: Path) -> Extension:
    flags = ["-O3", "-g0", "-fno-strict-aliasing", "-Wno-unused-function"]
    checks = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
    return Extension(
        f"recollect.kernels.{source.stem}",
        [str(source)],
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if LIMITED else [],
        py_limited_api=LIMITED,
        extra_compile_args=flags + checks if SANITIZE else flags,
        extra_link_args=["-fsanitize=address,undefined"] if SANITIZE else STRIPPED,
    )


setup(
    distclass=KernelsOnly if "build_ext" in sys.argv else Distribution,
    package_dir={"": "src"},
    ext_modules=cythonize(
        [extension(source) for source in sorted(KERNELS.glob("*.pyx"))],
        build_dir="build/cython",
        include_path=["src"],
        compiler_directives=DIRECTIVES,
    ),
    options={
        "build_ext": {"parallel": os.cpu_count() or 1},
        **({"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED else {}),
    },
)
