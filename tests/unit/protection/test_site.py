"""A folder of pages: apply, again, changed, moved, verify, remove."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protected_sites import CODES, KEY, NOW, OTHER_KEY, contents, protect, write_app, write_site
from recollect.errors import UsageError
from recollect.protection import record
from recollect.protection import site as sites
from recollect.protection.age import Lock, Opener, unseal
from recollect.protection.block import MANIFEST, Block, Refusal, Version, read, write
from recollect.protection.code import Code
from recollect.protection.collect import Collector
from recollect.protection.keys import SigningKey, write_pair
from recollect.protection.pack import gather, unpack
from recollect.protection.place import give_numbers
from recollect.protection.sealing import Options, spread
from recollect.recovery.protected import ProtectedFiles, protected_files

SMALL = 2_000


def collected(folder: Path, names: list[str] | None = None) -> Collector:
    collector = Collector([KEY.public])
    for name, page in contents(folder).items():
        if names is None or name in names:
            collector.add(name, page)
    return collector


def numbers_in(page: bytes) -> list[int]:
    """The numbers of the blocks of class `files` in a page."""
    return [one.number for one in read(page) if isinstance(one, Block) and one.version.name == "files"]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(tmp_path / "site")


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return write_app(tmp_path / "app", SMALL)


@pytest.mark.parametrize("code", CODES)
def test_any_sufficient_part_of_the_pages_restores_the_files(site: Path, app: Path, tmp_path: Path, code: Code) -> None:
    before = contents(site)
    done = protect(site, [f"{app}/"], code=code)
    assert (done.spread.need, done.spread.pages, done.changed) == (5, 12, 12)
    after = contents(site)
    assert set(after) == set(before) and after["style.css"] == before["style.css"]
    pages = [name for name in after if name.endswith(".html")]
    for seed in range(10):
        found = collected(site, random.Random(seed).sample(pages, 7)).restore("files")
        assert found is not None
        unpack(unseal(found.sealed, Opener()), tmp_path / "out")
    assert contents(tmp_path / "out") == contents(app)
    assert sites.remove(site) == (12, 0)
    assert contents(site) == before


def test_applying_twice_changes_nothing_whatever_the_clock_says(site: Path, app: Path) -> None:
    protect(site, [f"{app}/"])
    before = contents(site)
    done = protect(site, [f"{app}/"], now=NOW + timedelta(days=400))
    assert done.changed == 0 and done.classes[0].kept
    assert contents(site) == before


def test_encrypted_files_keep_their_version_too(site: Path, app: Path, tmp_path: Path) -> None:
    pyrage = pytest.importorskip("pyrage")
    identity = pyrage.x25519.Identity.generate()
    lock = Lock((str(identity.to_public()),))
    protect(site, [f"{app}/"], lock=lock)
    assert protect(site, [f"{app}/"], lock=lock).changed == 0
    found = collected(site).restore("files")
    assert found is not None
    unpack(unseal(found.sealed, Opener((str(identity),))), tmp_path / "out")
    assert contents(tmp_path / "out") == contents(app)
    assert b"main.py" not in b"".join(contents(site).values())
    assert "files" not in collected(site).manifest()["classes"][0], "names of encrypted files are private"
    other = Lock((str(pyrage.x25519.Identity.generate().to_public()),))
    assert protect(site, [f"{app}/"], lock=other).changed == 12, "another lock is another version"


def test_a_change_of_one_class_leaves_the_others_blocks_alone(site: Path, app: Path, tmp_path: Path) -> None:
    dump = tmp_path / "dump.sql"
    dump.write_text("one")
    protect(site, [f"code={app}/", f"data={dump}"])
    before = {name: {b.version.name: b for b in read(page)} for name, page in contents(site).items()}
    dump.write_text("two")
    done = protect(site, [f"code={app}/", f"data={dump}"], now=NOW + timedelta(days=1))
    assert [one.kept for one in done.classes] == [True, False]
    for name, page in contents(site).items():
        for block in read(page):
            if block.version.name == "code":
                assert block == before[name]["code"]
    assert {v.version.at for v in collected(site).standings() if v.version.name == "data"} == {"20260302120000"}


def test_a_new_version_is_newer_even_if_the_clock_went_back(site: Path, app: Path) -> None:
    protect(site, [f"{app}/"])
    (app / "main.py").write_text("changed")
    done = protect(site, [f"{app}/"], now=NOW - timedelta(days=9))
    assert done.classes[0].version.at == "20260301120001"


def test_new_pages_get_new_blocks_and_old_ones_keep_theirs(site: Path, app: Path) -> None:
    protect(site, [f"{app}/"], need=5)
    before = contents(site)
    (site / "new.html").write_text("<p>new")
    (site / "articles" / "1.html").unlink()
    done = protect(site, [f"{app}/"], need=5)
    assert done.classes[0].kept
    numbers = [number for page in contents(site).values() for number in numbers_in(page)]
    assert len(set(numbers)) == len(numbers) == 12
    old = set(numbers_in(before["articles/5.html"]))
    assert old == set(numbers_in((site / "articles/5.html").read_bytes()))


def test_a_version_is_kept_while_any_of_its_blocks_is_left(site: Path, app: Path) -> None:
    protect(site, [f"{app}/"])
    before = contents(site)
    for n in range(1, 12):
        (site / "articles" / f"{n}.html").write_text(f"<html>\n<body><h1>Article {n}</h1></body>\n</html>\n")
    done = protect(site, [f"{app}/"], now=NOW + timedelta(days=9))
    assert done.classes[0].kept and contents(site) == before


@settings(max_examples=200)
@given(st.lists(st.text("abc", min_size=1, max_size=3), unique=True, min_size=1), st.data(), st.integers(0, 7))
def test_numbers_are_kept_unique_and_of_their_period(pages: list[str], data: st.DataObject, period: int) -> None:
    had = data.draw(st.dictionaries(st.sampled_from(pages), st.integers(0, 200)))
    numbers = give_numbers(pages, had, period)
    stride = 1 << max(0, len(pages) - 1).bit_length()
    assert set(numbers) == set(pages) and len(set(numbers.values())) == len(pages)
    assert all(period * stride <= number < (period + 1) * stride for number in numbers.values())
    kept = {had[name] for name in pages if name in had and period * stride <= had[name] < (period + 1) * stride}
    assert kept <= set(numbers.values())
    assert give_numbers(pages, numbers, period) == numbers


def test_rotation_gives_every_page_another_block_each_period(site: Path, app: Path) -> None:
    seen: set[int] = set()
    gathered = Collector()
    for period in range(3):
        protect(site, [f"{app}/"], rotate=90 * 86400.0, now=NOW + timedelta(days=91 * period))
        for name, page in contents(site).items():
            gathered.add(name, page)
        numbers = {number for page in contents(site).values() for number in numbers_in(page)}
        assert len(numbers) == 12 and not numbers & seen
        seen |= numbers
        assert protect(site, [f"{app}/"], rotate=90 * 86400.0, now=NOW + timedelta(days=91 * period + 50)).changed == 0
    (standing,) = gathered.standings()
    assert standing.found == 36, "captures of different periods add up"
    one_page = Collector()
    # Three captures of three pages are nine blocks of the same version.
    assert gathered.restore("files") is not None and one_page.restore("files") is None


def test_the_newest_complete_version_wins_and_an_older_one_steps_in(site: Path, app: Path, tmp_path: Path) -> None:
    (app / "main.py").write_text("old")
    protect(site, [f"{app}/"])
    old = contents(site)
    (app / "main.py").write_text("new")
    protect(site, [f"{app}/"], now=NOW + timedelta(days=7))
    new = contents(site)
    names = [name for name in old if name.endswith(".html")]
    both = Collector()
    for name in names[:4]:
        both.add(name, new[name])
    for name in names:
        both.add(name, old[name])
    found = both.restore("files")
    assert found is not None and found.version.at == "20260301120000", "four of the new are not enough"
    assert [(s.found, s.missing) for s in both.standings()] == [(4, 1), (12, 0)]
    for name in names[4:8]:
        both.add(name, new[name])
    found = both.restore("files")
    assert found is not None and found.version.at == "20260308120000"
    found = both.restore("files", until="20260303000000")
    assert found is not None and found.version.at == "20260301120000"


def test_the_manifest_is_in_the_root_and_near_pages(site: Path, app: Path) -> None:
    protect(site, [f"{app}/"])
    with_manifest = [
        name for name, page in contents(site).items() if any(b.version.name == MANIFEST for b in read(page))
    ]
    assert "index.html" in with_manifest and "articles/3.html" in with_manifest
    (entry,) = collected(site, ["index.html"]).manifest()["classes"]
    assert entry["class"] == "files" and ["main.py", 15] in entry["files"]
    assert collected(site, ["index.html"]).classes() == ["files"]


def test_too_few_pages_get_a_vault_that_is_linked_and_removed(site: Path, app: Path, tmp_path: Path) -> None:
    before = contents(site)
    done = protect(site, [f"{app}/"], growth=800)
    assert done.spread.vault > 0 and done.growth <= 800
    index = (site / "index.html").read_text()
    assert 'href="recollect-vault/index.html" hidden' in index
    assert len(list((site / "recollect-vault").iterdir())) == done.spread.vault
    assert protect(site, [f"{app}/"], growth=800).changed == 0
    assert sites.verify(site).is_sound
    fewer = protect(site, [f"{app}/"], growth=900)
    assert 0 < fewer.spread.vault < done.spread.vault
    assert len(list((site / "recollect-vault").iterdir())) == fewer.spread.vault
    assert sites.remove(site) == (12, fewer.spread.vault)
    assert contents(site) == before and not (site / "recollect-vault").exists()


def test_a_copy_is_updated_and_never_overwrites_what_others_changed(site: Path, app: Path, tmp_path: Path) -> None:
    out = tmp_path / "public"
    before = contents(site)

    def apply() -> sites.Applied:
        return sites.apply(site, gather([f"{app}/"]), Options(KEY, NOW, code=CODES[0]), out=out)

    apply()
    assert contents(site) == before and (out / "style.css").read_bytes() == before["style.css"]
    assert apply().changed == 0
    (site / "articles" / "3.html").unlink()
    (site / "articles" / "4.html").write_text("<p>rewritten")
    assert apply().changed >= 2
    assert not (out / "articles" / "3.html").exists() and b"rewritten" in (out / "articles" / "4.html").read_bytes()
    (out / "articles" / "5.html").write_text("edited there")
    (app / "main.py").write_text("changed")
    with pytest.raises(UsageError, match="changed since"):
        apply()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    with pytest.raises(UsageError, match="not empty"):
        sites.apply(site, gather([f"{app}/"]), Options(KEY, NOW, code=CODES[0]), out=tmp_path / "full")


def test_verify_names_what_is_wrong(site: Path, app: Path) -> None:
    protect(site, [f"{app}/"])
    assert sites.verify(site, [KEY.public]).is_sound
    old = (site / "articles" / "1.html").read_bytes()
    (app / "main.py").write_text("changed")
    protect(site, [f"{app}/"], now=NOW + timedelta(days=1))
    (site / "articles" / "1.html").write_bytes(old)
    (site / "articles" / "2.html").write_text("<p>fresh from the generator")
    page = (site / "articles" / "3.html").read_bytes()
    (site / "articles" / "3.html").write_bytes(page.replace(b"number=", b"number=1", 1))
    (site / "articles" / "4.html").write_bytes((site / "articles" / "4.html").read_bytes()[:500])
    found = sites.verify(site, [KEY.public])
    assert not found.is_sound and found.restored == ("files",)
    assert found.outdated == (("articles/1.html", "files"),)
    assert set(found.bare) == {"articles/2.html", "articles/3.html", "articles/4.html"}
    assert found.refusals == {Refusal.FORGED: 1, Refusal.TRUNCATED: 1}
    assert sites.verify(site, [OTHER_KEY.public]).refusals.keys() >= {Refusal.FOREIGN}


def test_files_of_the_site_itself_are_packed_without_their_blocks(site: Path) -> None:
    before = contents(site)
    protect(site, [f"{site}/"])
    assert protect(site, [f"{site}/"]).changed == 0
    found = collected(site).restore("files")
    assert found is not None
    out = site.parent / "out"
    unpack(found.sealed, out)
    assert contents(out) == before


def test_several_keys_need_a_choice(site: Path, app: Path, tmp_path: Path) -> None:
    other = write_site(tmp_path / "other")
    protect(site, [f"{app}/"])
    sites.apply(other, gather([f"{app}/"]), Options(OTHER_KEY, NOW, code=CODES[0]))
    collector = Collector()
    for folder in (site, other):
        for name, page in contents(folder).items():
            collector.add(name, page)
    with pytest.raises(UsageError, match="several keys"):
        collector.check_keys()
    (site / "foreign.html").write_bytes((other / "index.html").read_bytes())
    assert not sites.verify(site).is_sound
    assert sites.verify(site, [KEY.public]).refusals == {Refusal.FOREIGN: 2}
    collected(site).check_keys()


def test_pages_that_cannot_carry_are_named(site: Path, app: Path) -> None:
    (site / "broken.html").write_text("<script>var a = 1;")
    done = protect(site, [f"{app}/"])
    assert [name for name, _ in done.unfit] == ["broken.html"] and done.spread.pages == 12
    assert (site / "broken.html").read_text() == "<script>var a = 1;"


def test_no_pages_is_an_error(tmp_path: Path, app: Path) -> None:
    (tmp_path / "void").mkdir()
    with pytest.raises(UsageError, match="no pages"):
        protect(tmp_path / "void", [f"{app}/"])


def test_how_blocks_are_spread() -> None:
    assert spread([900_000], 123, None, None).need == 50
    assert spread([900_000], 123, 0.2, None).need == 25
    assert spread([900_000], 123, 49, None).need == 49
    few = spread([900_000], 123, None, 100_000)
    assert few.vault == 0 and few.need == 13, "as few as the growth allows"
    one = spread([900_000], 1, None, None)
    assert one.vault and one.pages >= one.need + 2
    assert spread([10], 1, None, None) == replace(spread([10], 1, None, None), need=1, vault=0)
    assert spread([900_000], 10, 30, None).pages == 32
    with pytest.raises(UsageError, match="more than allowed"):
        spread([900_000], 123, 5, 10_000)
    with pytest.raises(UsageError, match="so little"):
        spread([900_000], 123, None, 100)


def test_recover_notices_protected_pages(site: Path, app: Path) -> None:
    assert protected_files(contents(site).values()) is None
    protect(site, [f"{app}/"], every=86400.0)
    (app / "main.py").write_text("print('again')\n")
    protect(site, [f"{app}/"], every=86400.0)
    assert protected_files(contents(site).values()) == ProtectedFiles(12, ("files",))
    (site / "index.html").write_text((site / "index.html").read_text(), encoding="utf-16")
    assert protected_files(contents(site).values()) == ProtectedFiles(12, ("files",))


def test_keys_do_not_show_themselves(tmp_path: Path) -> None:
    assert "01" not in repr(KEY) and isinstance(KEY, SigningKey)


@pytest.mark.parametrize("lock", [Lock(), Lock(passphrase="correct horse")])
def test_an_interrupted_copy_is_finished_by_the_next_run(
    site: Path, app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock: Lock
) -> None:
    out = tmp_path / "public"
    options = Options(KEY, NOW, code=CODES[0], lock=lock)

    def apply(files_before_the_end: int) -> None:
        left = iter(range(files_before_the_end))

        def write(path: Path, content: bytes, like: Path) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt
            record.replace_file(path, content, like)

        monkeypatch.setattr(sites, "replace_file", write)
        sites.apply(site, gather([f"{app}/"]), options, out=out)

    with pytest.raises(KeyboardInterrupt):
        apply(3)
    apply(100)
    (app / "main.py").write_text("changed")
    with pytest.raises(KeyboardInterrupt):
        apply(7)
    (app / "main.py").write_text("changed again")
    apply(100)
    assert sites.verify(out, [KEY.public]).is_sound and not (tmp_path / ".public.protect.part").exists()
    assert not (out / ".recollect").exists(), "a server shows what is in the folder"
    (out / "articles" / "5.html").write_text("edited there")
    with pytest.raises(UsageError, match="changed since"):
        apply(100)


@pytest.mark.parametrize("out", ["site", "site/public", "."])
def test_a_copy_is_not_in_the_site_nor_the_site_in_it(site: Path, app: Path, out: str) -> None:
    with pytest.raises(UsageError, match=r"inside the other|the site itself"):
        sites.apply(site, gather([f"{app}/"]), Options(KEY, NOW, code=CODES[0]), out=site.parent / out)
    assert not (site / "public").exists()


def test_links_and_pipes_do_not_stop_a_site(site: Path, app: Path, tmp_path: Path) -> None:
    os.mkfifo(site / "pipe")
    (site / "dead.html").symlink_to("nothing")
    (site / "latest").symlink_to("articles")
    (site / "home.css").symlink_to("style.css")
    out = tmp_path / "public"
    done = sites.apply(site, gather([f"{app}/"]), Options(KEY, NOW, code=CODES[0]), out=out)
    assert [name for name, _ in done.not_copied] == ["dead.html", "latest", "pipe"]
    assert (out / "home.css").read_bytes() == (site / "style.css").read_bytes()
    assert protect(site, [f"{app}/"]).spread.pages == 12 and sites.verify(site).is_sound
    assert sites.remove(site) == (12, 0)


def test_a_page_that_is_excluded_later_loses_its_blocks(site: Path, app: Path) -> None:
    before = contents(site)
    protect(site, [f"{app}/"])
    (app / "main.py").write_text("changed")
    protect(site, [f"{app}/"], exclude=("articles/1.html",), now=NOW + timedelta(days=1))
    assert (site / "articles" / "1.html").read_bytes() == before["articles/1.html"]
    assert sites.verify(site).is_sound


def test_many_comments_before_the_first_tag_cost_no_time(site: Path) -> None:
    (site / "header.tpl").write_bytes(b"<!-- one of many -->\n" * 150 + b"<div>")
    (site / "page").write_bytes(b"<!-- one of many -->\n" * 150 + b"<!DOCTYPE html><p>x")
    names = sites.page_names(site)
    assert "page" in names and "header.tpl" not in names


def test_the_public_key_never_overwrites_the_secret_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="secret key"):
        write_pair(KEY, tmp_path / "site.pub")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [5, [], {"classes": 5}, {"classes": [5]}, {"classes": [{"class": "../x"}]}])
def test_a_signed_manifest_without_sense_is_ignored(value: object) -> None:
    payload = lzma.compress(json.dumps(value).encode())
    digest = hashlib.sha256(payload).hexdigest()
    version = Version(MANIFEST, "20260301120000", "0" * 16, digest, len(payload), Code.GF256, 1, OTHER_KEY.public)
    collector = Collector()
    assert collector.add("page", write(Block(version, 0, 1, payload), OTHER_KEY).encode())
    assert collector.classes() == [] and not collector.is_satisfied()


def test_a_small_share_does_not_make_a_vault_of_thousands() -> None:
    assert spread([20_000_000], 300, 0.01, None).vault < 300
    assert spread([20_000_000], 300, 0.1, 200_000).need * 10 <= spread([20_000_000], 300, 0.1, 200_000).pages
