"""Versions live while files change: only what changed is carried, encrypted or not, within the allowed growth."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from protected_sites import CODES, KEY, NOW, contents, write_app, write_site
from recollect.protection import bundle
from recollect.protection import site as sites
from recollect.protection.age import Lock, Opener
from recollect.protection.block import Version
from recollect.protection.chunks import chunks_class
from recollect.protection.collect import Collector
from recollect.protection.pack import Limits, gather, unpack
from recollect.protection.restoring import restore_class
from recollect.protection.sealing import Options

pyrage = pytest.importorskip("pyrage")
DAY = 86400.0
PAGES = 30
GROWTH = 24_576
ME, OTHER = pyrage.x25519.Identity.generate(), pyrage.x25519.Identity.generate()
RECIPIENT = Lock(recipients=(str(ME.to_public()),))
LOCKS = {
    "open": (Lock(), Opener(), 10),
    "recipient": (RECIPIENT, Opener(identities=(str(ME),)), 10),
    "passphrase": (Lock(passphrase="four words of a poem"), Opener(passphrase="four words of a poem"), 1),
}


class World:
    """A site, its files, and the days that pass."""

    def __init__(self, folder: Path, *, is_dynamic: bool = False) -> None:
        self.app = write_app(folder / "app", 60_000)
        self.site = write_site(folder / "site", PAGES)
        self.plain = contents(self.site)
        self.blocks = folder / "site.blocks"
        self.folder, self.is_dynamic = folder, is_dynamic

    def change(self, day: int) -> None:
        with (self.app / "main.py").open("a") as out:
            out.write(f"# day {day}: {random.Random(day).random()}\n")

    def apply(self, day: float, **how: object) -> sites.Applied:
        values = {"need": None, "growth": GROWTH, "every": 30 * DAY, **how}
        options = Options(key=KEY, now=NOW + timedelta(days=day), code=CODES[0], **values)  # type: ignore[arg-type]
        packings = gather([f"{self.app}/"])
        if self.is_dynamic:
            return bundle.write(self.blocks, [f"/{n}" for n in range(PAGES)], packings, options)
        return sites.apply(self.site, packings, options)

    def pages(self) -> dict[str, bytes]:
        if self.is_dynamic:
            return dict(bundle.texts(self.blocks))
        return {name: page for name, page in contents(self.site).items() if name.endswith(".html")}

    def growths(self) -> Iterator[int]:
        for name, page in self.pages().items():
            yield len(page) - len(self.plain.get(name, b""))

    def restored(self, pages: dict[str, bytes], opener: Opener) -> dict[str, bytes] | None:
        collector = Collector([KEY.public])
        for name, page in pages.items():
            collector.add(name, page)
        found = restore_class(collector, "files", opener, Limits())
        if found is None:
            return None
        back = self.folder / f"back{len(list(self.folder.iterdir()))}"
        unpack(found.archive, back)
        return contents(back)


def versions(done: sites.Applied) -> dict[str, Version]:
    return {one.version.name: one.version for one in done.classes}


@pytest.mark.parametrize(
    ("lock", "is_dynamic"),
    [("open", False), ("open", True), ("recipient", False), ("recipient", True), ("passphrase", True)],
)
def test_changed_lines_are_carried_alone_within_the_growth(tmp_path: Path, lock: str, is_dynamic: bool) -> None:
    locked, opener, days = LOCKS[lock]
    world = World(tmp_path, is_dynamic=is_dynamic)
    first = versions(world.apply(0, lock=locked))
    captured = {}
    for day in range(1, days + 1):
        world.change(day)
        done = versions(world.apply(day, lock=locked))
        assert done["files"] == first["files"], "unchanged parts keep their blocks"
        assert done["files-changes"].size < first["files"].size / 5
        assert max(world.growths()) <= GROWTH
        pages = world.pages()
        captured.update({f"{day} {name}": pages[name] for name in random.Random(day).sample(sorted(pages), 15)})
    assert world.restored(captured, opener) == contents(world.app), "from captures of different days"


def test_a_new_file_and_a_removed_one_come_back_encrypted(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.apply(0, lock=RECIPIENT)
    (world.app / "new.bin").write_bytes(random.Random(5).randbytes(3000))
    (world.app / "run.sh").unlink()
    assert versions(world.apply(1, lock=RECIPIENT))["files-changes"].size < 8000
    assert world.restored(world.pages(), Opener(identities=(str(ME),))) == contents(world.app)


def test_another_recipient_gets_a_version_of_its_own(tmp_path: Path) -> None:
    world = World(tmp_path)
    first = versions(world.apply(0, lock=RECIPIENT))
    world.change(1)
    done = versions(world.apply(1, lock=Lock(recipients=(str(OTHER.to_public()),))))
    assert done["files"] != first["files"] and "files-changes" not in done
    assert world.restored(world.pages(), Opener(identities=(str(OTHER),))) == contents(world.app)


def test_a_rotation_gives_other_blocks_of_the_same_version(tmp_path: Path) -> None:
    world = World(tmp_path)
    opener = Opener(identities=(str(ME),))
    first = versions(world.apply(0, lock=RECIPIENT, rotate=10 * DAY))
    names = sorted(world.pages())
    few = names[: first["files"].need // 2 + 1]
    captured = {f"0 {name}": world.pages()[name] for name in few}
    world.change(1)
    done = versions(world.apply(11, lock=RECIPIENT, rotate=10 * DAY))
    assert done["files"] == first["files"]
    captured.update({f"1 {name}": world.pages()[name] for name in few})
    assert world.restored(captured, opener) == contents(world.app)


def test_an_old_version_lives_on_while_its_changes_are_small(tmp_path: Path) -> None:
    world = World(tmp_path)
    first = versions(world.apply(0))
    world.change(1)
    assert versions(world.apply(45))["files"] == first["files"]
    (world.app / "more.bin").write_bytes(random.Random(5).randbytes(20_000))
    assert versions(world.apply(20, every=60 * DAY, need=8, growth=None))["files"] == first["files"]
    assert versions(world.apply(46))["files"] != first["files"]


def test_changes_that_no_longer_fit_make_a_new_version(tmp_path: Path) -> None:
    world = World(tmp_path)
    first = versions(world.apply(0, lock=RECIPIENT))
    (world.app / "more.bin").write_bytes(random.Random(5).randbytes(200_000))
    done = versions(world.apply(1, lock=RECIPIENT))
    assert done["files"] != first["files"] and "files-changes" not in done
    assert max(world.growths()) <= GROWTH
    assert world.restored(world.pages(), Opener(identities=(str(ME),))) == contents(world.app)


def test_the_list_of_chunks_shows_nothing_but_its_length(tmp_path: Path) -> None:
    """Of two sites with the same files, and of equal chunks of one site, no two lists share a piece."""
    world = World(tmp_path)
    (world.app / "data.bin").write_bytes(bytes(100_000))  # equal chunks
    (listed,) = [one for one in world.apply(0, lock=RECIPIENT).classes if one.version.name == chunks_class("files")]
    pieces = [listed.sealed[at : at + 8] for at in range(len(listed.sealed) - 8)]
    assert len(set(pieces)) == len(pieces)
    again = [one.sealed for one in world.apply(1, lock=RECIPIENT).classes if one.packing == listed.packing]
    assert again == [listed.sealed]
