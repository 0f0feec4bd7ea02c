"""Kernels of profiling without their compiler: compiled once, then loaded in a few milliseconds.

Hides that importing Numba and waking it up takes a third of a second, as long as profiling a million lines. The first
run compiles the functions of `kernels` and keeps their machine code beside Numba's own cache; later runs hand it to
LLVM alone and call it through ctypes, which lets go of the interpreter lock. If anything about that fails, Numba is
used as ever.

A kernel takes C-contiguous arrays and returns nothing. Numba's calling convention: pointers to a result and to an
error, then for each array owner, parent, number of items, size of an item, data, shape and strides; the result of the
call is 0 when all went well. Kernels count no references (`_nrt=False`), so owner and parent may be null, and they need
nothing of Numba at run time.

The name of the kept file is made from the processor, the kernels' sources and the version of LLVM's binding, so that a
change of any makes a new file; it takes the place of the older ones of its processor.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from recollect.errors import RecollectError
from recollect.formats.containers import atomic_output

_HERE = Path(__file__).parent
_SOURCES = (_HERE / "kernels.py", _HERE / "kernelfields.py", _HERE.parent / "words.py")
_lock = threading.Lock()
_loaded: dict[str, Callable[..., None]] = {}


def parse(*arrays: Any) -> None:
    """See `kernels.parse`."""
    _kernel("parse")(*arrays)


def block(*arrays: Any) -> None:
    """See `kernels.block`."""
    _kernel("block")(*arrays)


def ends_in(*arrays: Any) -> None:
    """See `kernels.ends_in`."""
    _kernel("ends_in")(*arrays)


def _kernel(name: str) -> Callable[..., None]:
    if name not in _loaded:
        with _lock:
            if not _loaded:
                _loaded.update(_load())
    return _loaded[name]


def _load() -> dict[str, Callable[..., None]]:
    # Whatever is wrong with the kept code or with LLVM, Numba is there.
    with suppress(Exception):
        kept = _kept_code()
        if kept is not None:
            return _linked(kept)
    with suppress(Exception):
        return _linked(_keep(_compiled()))
    return _by_numba()


def _compiled() -> dict[str, tuple[str, bytes]]:
    """Symbol and machine code of each kernel."""
    from numba import njit

    from recollect.profiles.indexes import kernels

    code = {}
    for name, signature in kernels.SIGNATURES.items():
        options: dict[str, Any] = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        function = njit(nogil=True, **options)(getattr(kernels, name))
        function.compile(signature)
        [made] = function.overloads.values()
        code[name] = (made.fndesc.mangled_name, made.library._get_compiled_object())
    return code


def _by_numba() -> dict[str, Callable[..., None]]:
    from numba import njit

    from recollect.profiles.indexes import kernels

    options: dict[str, Any] = {"nogil": True, "cache": True, "_nrt": False}
    return {name: njit(signature, **options)(getattr(kernels, name)) for name, signature in kernels.SIGNATURES.items()}


def _keep(code: dict[str, tuple[str, bytes]]) -> dict[str, tuple[str, bytes]]:
    for folder in _folders():
        # A folder that cannot be written to is no misfortune: the next one will do, or every run compiles.
        with suppress(OSError, RecollectError):
            folder.mkdir(parents=True, exist_ok=True)
            kept = folder / _file_name()
            with atomic_output(kept) as file:
                pickle.dump(code, file)
            for outdated in folder.glob(f"{kept.name.rpartition('-')[0]}-*.machine"):
                if outdated != kept:
                    outdated.unlink(missing_ok=True)
            break
    return code


def _kept_code() -> dict[str, tuple[str, bytes]] | None:
    for folder in _folders():
        with suppress(OSError):
            code: dict[str, tuple[str, bytes]] = pickle.loads((folder / _file_name()).read_bytes())
            return code
    return None


def _folders() -> list[Path]:
    """Where machine code is kept: where Numba keeps its own if told, or beside the sources, or in the user's cache."""
    told = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [Path(told)] if told else [_HERE / "__pycache__", home / "recollect"]


def _file_name() -> str:
    import llvmlite
    from llvmlite import binding

    made_of = hashlib.sha256(llvmlite.__version__.encode())
    for source in _SOURCES:
        made_of.update(source.read_bytes())
    processor = binding.get_host_cpu_name() + binding.get_host_cpu_features().flatten()
    return f"kernels-{hashlib.sha256(processor.encode()).hexdigest()[:12]}-{made_of.hexdigest()[:12]}.machine"


def _linked(code: dict[str, tuple[str, bytes]]) -> dict[str, Callable[..., None]]:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    for _, machine_code in code.values():
        engine.add_object_file(binding.object_file.ObjectFileRef.from_data(machine_code))
    engine.finalize_object()
    return {name: _callable(engine, engine.get_function_address(symbol)) for name, (symbol, _) in code.items()}


def _callable(engine: Any, address: int) -> Callable[..., None]:
    if not address:
        raise LookupError("no such kernel")
    function = ctypes.CFUNCTYPE(ctypes.c_int32)(address)
    result, error = ctypes.c_void_p(), ctypes.c_void_p()
    here = (ctypes.addressof(result), ctypes.addressof(error))

    def call(*arrays: Any) -> None:
        passed = [*here]
        for array in arrays:
            passed += (0, 0, array.size, array.itemsize, array.__array_interface__["data"][0])
            passed += (*array.shape, *array.strides)
        # Every argument is a pointer or a 64-bit number, which are passed alike.
        if not function.argtypes:
            function.argtypes = [ctypes.c_int64] * len(passed)
        if function(*passed) != 0:
            raise RuntimeError("a compiled kernel failed")

    # The code lives as long as the engine, and results and errors (of which there are none) need a place to go.
    call.__dict__["kept"] = (engine, result, error)
    return call
