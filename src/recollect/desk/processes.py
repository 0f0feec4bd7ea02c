"""What the desk's processes ask of the system: to end with the process that started them, and private files, and
folders that one process uses.

Hides: how a system tells a process that its parent is gone. On Linux the kernel kills it, which also ends a process
that is deep in a loop of C code and runs no line of Python. Elsewhere it relies on the end of its standard input.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Let the kernel kill this process when the thread that started it ends; at once if it has ended already."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def private_folder(path: Path) -> None:
    """Make a folder that only its owner can enter, whatever the umask; one that is there becomes so."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)


def private_process() -> None:
    """Make what this process and those that it starts write readable by their user only."""
    os.umask(0o077)


def locked(folder: Path) -> int | None:
    """A lock on a folder that goes with the process; None when another process has it."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def remove_unused(folder: Path) -> None:
    """Remove a folder, unless another process has it locked."""
    lock = locked(folder)
    if lock is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
