"""Which files of a source are packed: patterns of the user, folders of version control, and what is never packed.

Hides: ignore files. `.recollectignore`, in a source's folder or below it, has the syntax of `.gitignore`; patterns of
`--exclude-files` count as the first lines of such a file at the source's root. Never packed are the site, the copy that
`apply -o` writes, the signing key, and Recollect's own folders.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import FormatError
from recollect.formats.temporaries import is_temporary
from recollect.protection import vault

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE = ".recollectignore"
OWN_FOLDER = ".recollect"  # what Recollect keeps in a folder for itself: never packed, never unpacked
RECORD, RECORD_PART = ".protect.json", ".protect.part"  # behind the name of the folder that they belong to
_VERSION_CONTROL = frozenset(
    {".git", ".hg", ".svn", ".bzr", "_darcs", "CVS", ".jj", ".pijul", ".sl", "_FOSSIL_", ".fslckout", ".fossil", "RCS"}
)


@dataclass(frozen=True, slots=True)
class Selection:
    """What the user wants to leave out, and what must be left out."""

    exclude: tuple[str, ...] = ()
    leave_out: tuple[tuple[Path, str], ...] = ()
    """(path, why) of files and folders that are never packed."""
    version_control: bool = False
    """Whether folders of version control are packed; otherwise they are only reported."""

    def reason(self, path: Path) -> str:
        """Why a file or folder is never packed; empty if it may be."""
        if path.is_symlink():
            return ""
        return next((why for other, why in self.leave_out if other.exists() and path.samefile(other)), "")


def is_own_folder(folder: Path) -> bool:
    """Whether Recollect made this folder: its own notes, or vault pages."""
    return not folder.is_symlink() and (folder.name == OWN_FOLDER or vault.is_vault_folder(folder))


def is_record(name: str) -> bool:
    """Whether a file is the record of a folder that `apply -o` wrote, which lies beside that folder."""
    return name.startswith(".") and name.endswith((RECORD, RECORD_PART))


def is_version_control_name(name: str) -> bool:
    """Whether a file or folder belongs to version control by its name; `.Git` is `.git` on other systems."""
    return name in _VERSION_CONTROL or (name.startswith((".", "_")) and name.lower() in _VERSION_CONTROL)


def is_version_control(path: Path) -> bool:
    """Whether a file or folder belongs to version control: by its name, or as a bare repository of git."""
    if is_version_control_name(path.name):
        return True
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()


class IgnoreRules:
    """The ignore rules that hold in a folder: those of the folders above it, and then its own."""

    def __init__(self, root: Path, exclude: Sequence[str]) -> None:
        self._root = root
        self._specs: dict[Path, tuple[tuple[Path, GitIgnoreSpec], ...]] = {}
        self._first = ((root, _spec(exclude, "--exclude-files")),) if exclude else ()

    def ignores(self, path: Path, *, is_folder: bool) -> bool:
        """Whether a file or folder directly in a folder that is not ignored itself is ignored."""
        verdict: bool | None = None
        for base, spec in self._rules(path.parent):
            name = path.relative_to(base).as_posix() + ("/" if is_folder else "")
            decided = spec.check_file(name).include
            verdict = verdict if decided is None else decided
        return bool(verdict)

    def _rules(self, folder: Path) -> tuple[tuple[Path, GitIgnoreSpec], ...]:
        if folder not in self._specs:
            above = self._first if folder == self._root else self._rules(folder.parent)
            own = folder / IGNORE_FILE
            if own.is_file():
                lines = own.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
                above = (*above, (folder, _spec(lines, str(own))))
            self._specs[folder] = above
        return self._specs[folder]


def _spec(lines: Iterable[str], where: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise FormatError("not a pattern of an ignore file", where=where, why=str(error)) from error


@dataclass(frozen=True, slots=True)
class Walked:
    """A file or folder below a source, with the reason why it is not packed, if it is not."""

    path: Path
    is_folder: bool
    skipped: str = ""
    version_control: bool = False


def walk(root: Path, selection: Selection) -> Iterator[Walked]:
    """Everything below a folder, in order of name within each folder."""
    rules = IgnoreRules(root, selection.exclude)
    for folder, folders, files in os.walk(root, onerror=_raise):  # what cannot be read must not be left out silently
        base = Path(folder)
        entered = []
        for name in sorted([*folders, *files]):
            path = base / name
            is_folder = path.is_dir() and not path.is_symlink()
            if is_own_folder(path) if is_folder else (is_record(name) or is_temporary(name)):
                continue
            walked = _judged(path, is_folder, rules, selection)
            if walked is None:
                continue
            yield walked
            if is_folder and not walked.skipped and not walked.version_control:
                entered.append(name)
        folders[:] = entered


def _judged(path: Path, is_folder: bool, rules: IgnoreRules, selection: Selection) -> Walked | None:
    if rules.ignores(path, is_folder=is_folder):
        return None
    why = selection.reason(path)
    if why:
        return Walked(path, is_folder, why)
    if path.is_symlink():
        return Walked(path, False, "a symbolic link")
    if is_version_control(path) and not selection.version_control:
        return Walked(path, is_folder, version_control=True)
    if not is_folder and not path.is_file():
        return Walked(path, False, "not a regular file")
    return Walked(path, is_folder)


def _raise(error: OSError) -> None:
    raise error
