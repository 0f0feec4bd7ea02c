"""Compiles `recollect.kernels`; everything else about the package is in pyproject.toml.

Each `.pyx` becomes one C file, and related C files become one extension module (`recollect/kernels/libraries.py`). What
all of them need of Cython (memoryviews, 0.2 MB) is compiled once, as `_cyutility`.

One binary of the limited API serves Python 3.11 and later. RECOLLECT_SANITIZE=1 builds with AddressSanitizer and UBSan
(`make sanitize`).
"""

import os
import runpy
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Distribution, Extension, setup

KERNELS = Path("src/recollect/kernels")
PACKAGE = "recollect.kernels"
SHARED = f"{PACKAGE}._cyutility"
LIBRARIES = runpy.run_path(str(KERNELS / "libraries.py"))["LIBRARIES"]
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


def extension(name: str, sources: list[str]) -> Extension:
    flags = ["-O3", "-g0", "-fno-strict-aliasing", "-Wno-unused-function"]
    checks = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
    return Extension(
        name,
        sources,
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if LIMITED else [],
        py_limited_api=LIMITED,
        extra_compile_args=flags + checks if SANITIZE else flags,
        extra_link_args=["-fsanitize=address,undefined"] if SANITIZE else STRIPPED,
    )


def libraries() -> list[Extension]:
    """The extension modules, of C files that Cython makes in build/kernels."""
    kernels = sorted(KERNELS.glob("*.pyx"))
    made = cythonize(
        [
            extension(SHARED, [f"{KERNELS}/_cyutility.c"]),
            *(extension(f"{PACKAGE}.{source.stem}", [str(source)]) for source in kernels),
        ],
        build_dir="build/kernels",
        include_path=["src"],
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=SHARED,
    )
    sources = {one.name.rpartition(".")[2]: one.sources for one in made}
    contents = {"_cyutility": ("_cyutility",), **LIBRARIES}
    unplaced = set(sources) - {name for names in contents.values() for name in names}
    if unplaced:
        raise SystemExit(f"{KERNELS}/libraries.py lacks {', '.join(sorted(unplaced))}")
    return [
        extension(f"{PACKAGE}.{library}", [source for name in names for source in sources[name]])
        for library, names in contents.items()
    ]


setup(
    distclass=KernelsOnly if "build_ext" in sys.argv else Distribution,
    package_dir={"": "src"},
    ext_modules=libraries(),
    options={
        "build_ext": {"parallel": os.cpu_count() or 1},
        **({"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED else {}),
    },
)
