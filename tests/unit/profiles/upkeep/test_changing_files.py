"""Index files that change while an update reads or verifies them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recollect.maps.lookup import open_map
from recollect.profiles.upkeep import update as module
from recollect.profiles.upkeep.update import KeepOptions, Update, Way, update

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def lines(*hosts: str) -> str:
    return "".join(
        sorted(f'example,{host})/{page} 20200101000000 {{"status": "200"}}\n' for host in hosts for page in "abc")
    )


class Archive:
    """An archive of two index files, whose map is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "idx").mkdir()
        self.write("old.cdxj", "x", *(f"x{number}" for number in range(50)))
        self.write("new.cdxj", "y")

    def write(self, name: str, *hosts: str) -> None:
        beside = self.folder / name
        beside.write_text(lines(*hosts))
        beside.replace(self.folder / "idx" / name)

    def keep(self) -> Update:
        options = KeepOptions(
            (f"{self.folder}/idx/",), self.folder / "public", self.folder / "data", 100_000, threads=1
        )
        return update(options, NOW)

    def answers(self, *hosts: str) -> list[str]:
        with open_map(self.folder / "public" / ".well-known" / "mementomap") as found:
            return [str(found.lookup(f"http://{host}.example/a").answer) for host in hosts]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path)


def once_after(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], object], *, before: bool = False) -> None:
    """Do something once, when a step of the update ends or begins."""
    step = getattr(module, name)

    def wrapped(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(module, name, step)
        if before:
            act()
            return step(*arguments, **options)
        done = step(*arguments, **options)
        act()
        return done

    monkeypatch.setattr(module, name, wrapped)


def append(archive: Archive, name: str, *hosts: str) -> None:
    with (archive.folder / "idx" / name).open("a") as file:
        file.write(lines(*hosts))


def test_a_file_that_is_replaced_while_it_is_read_is_read_again(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    once_after(monkeypatch, "profile", lambda: archive.write("new.cdxj", "z"))
    archive.keep()
    again = archive.keep()
    assert (again.changed_files, archive.answers("x", "y", "z")) == (1, ["yes", "no", "yes"])
    assert archive.keep().way is Way.UNCHANGED


def test_a_file_that_grows_while_it_is_read_is_counted_once(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.keep()
    append(archive, "new.cdxj", "z1")
    once_after(monkeypatch, "fingerprint_of", lambda: append(archive, "new.cdxj", "z2"))
    archive.keep()
    assert archive.keep().captures == 3 * 54
    archive.write("more.cdxj", "v1")
    once_after(monkeypatch, "profile", lambda: append(archive, "more.cdxj", "v2"))
    archive.keep()
    assert archive.keep().captures == 3 * 56
    assert archive.answers("x", "y", "z1", "z2", "v1", "v2") == ["yes"] * 6


def test_a_file_that_vanishes_before_it_is_read_is_a_problem_of_that_file(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    (archive.folder / "idx" / "later.cdxj").write_text(lines("z"))
    once_after(monkeypatch, "find_indexes", (archive.folder / "idx" / "new.cdxj").unlink)
    done = archive.keep()
    assert (done.partial_files, len(done.problems)) == (1, 1)
    assert archive.answers("x", "y", "z") == ["yes", "no", "yes"]
    assert archive.keep().partial_files == 0


@pytest.mark.parametrize("becomes", ["replaced", "gone"])
@pytest.mark.parametrize("before", [True, False])
def test_a_file_that_changes_while_the_map_is_verified_is_verified_by_its_profile(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, becomes: str, before: bool
) -> None:
    archive.keep()
    archive.write("third.cdxj", "z")
    path = archive.folder / "idx" / "third.cdxj"
    once_after(
        monkeypatch,
        "verify",
        lambda: archive.write("third.cdxj", "w") if becomes == "replaced" else path.unlink(),
        before=before,
    )
    done = archive.keep()
    assert (done.way, archive.answers("x", "y", "z")) == (Way.PATCHED, ["yes", "yes", "yes"])
    archive.keep()
    assert archive.answers("x", "y", "z", "w") == ["yes", "yes", "no", "yes" if becomes == "replaced" else "no"]


def test_a_map_that_misses_something_is_not_published(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.keep()
    archive.write("third.cdxj", "z")
    patch = module.patch

    def forgets(base: Path, new: Path, target: Path, meta: dict[str, str]) -> object:
        done = patch(base, new, target, meta)
        target.write_text("".join(line for line in target.read_text().splitlines(keepends=True) if "z)" not in line))
        return done

    monkeypatch.setattr(module, "patch", forgets)
    with pytest.raises(module.NotProven):
        archive.keep()
    assert archive.answers("x", "z") == ["yes", "no"]
    trees = archive.folder / "public" / ".mementomap"
    assert sorted(path.name for path in trees.iterdir()) == ["1", "current"]
    monkeypatch.setattr(module, "patch", patch)
    archive.keep()
    assert archive.answers("x", "z") == ["yes", "yes"]
