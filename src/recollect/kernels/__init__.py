"""The compiled loops over bytes (Cython): lines of maps and indexes, keys, records, the tree of keys.

Hides the compiler. Public functions take buffers (bytes, memoryviews, NumPy arrays) and numbers; their types are in the
`.pyi` beside each module. What modules share is in `.pxd` files and found by `cimport`; nothing here imports NumPy or
another package. Loops run without the interpreter lock.

Each `.pyx` is one module, and related modules are in one extension file (`libraries`), which the finder below looks up.
With one file for each module binaries would take 3.3 MB instead of 1.0 and 55 s of CPU to build instead of 16.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from recollect.kernels.libraries import LIBRARIES

_LIBRARY_OF = {f"{__name__}.{kernel}": library for library, kernels in LIBRARIES.items() for kernel in kernels}


class _Finder:
    """Finds a kernel in the extension file that it is a part of; the rest of the import is Python's own."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        library = _LIBRARY_OF.get(name)
        for suffix in EXTENSION_SUFFIXES if library else ():
            file = Path(__file__).with_name(f"{library}{suffix}")
            if file.is_file():
                return spec_from_file_location(name, file, loader=ExtensionFileLoader(name, str(file)))
        return None


sys.meta_path.insert(0, _Finder())
