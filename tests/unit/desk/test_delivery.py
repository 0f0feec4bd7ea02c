"""Packing: the tree as it is, the same bytes every time, nothing from outside."""

from __future__ import annotations

import hashlib
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from recollect.desk.delivery import files_of, read_state, write_state, write_tar, write_zip
from recollect.errors import RecollectError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    for name, body in {
        "lost.example/index.html": b"<p>hi" * 1000,
        "lost.example/img/ü.png": os.urandom(3000),
        "report.html": b"<h1>report",
        ".recollect/journal.db": b"journal",
        ".recollect/payloads/ab/cd": b"payload",
        ".recollect/tmp/half": b"half",
        ".recollect/lock": b"",
        "lost.example/.recollect/page": b"a site's own folder of that name",
    }.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    (tmp_path / "secret").write_text("secret")
    (site / "lost.example/link").symlink_to(tmp_path / "secret")
    return site


def tree(folder: Path) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in files_of(folder)}


def test_what_is_unpacked_is_what_was_packed(folder: Path, tmp_path: Path) -> None:
    expected = tree(folder)
    assert "report.html" in expected and "lost.example/.recollect/page" in expected
    assert not any(name.startswith(".recollect") for name in expected) and "lost.example/link" not in expected
    packed = write_zip(folder, tmp_path / "result.zip")
    assert packed.sha256 == hashlib.sha256((tmp_path / "result.zip").read_bytes()).hexdigest()
    assert packed.size == (tmp_path / "result.zip").stat().st_size
    with zipfile.ZipFile(tmp_path / "result.zip") as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == expected
    write_tar(folder, tmp_path / "result.tar.gz")
    with tarfile.open(tmp_path / "result.tar.gz") as tar:
        assert {entry.name: tar.extractfile(entry).read() for entry in tar} == expected  # type: ignore[union-attr]


def test_packing_twice_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    for write in (write_zip, write_tar):
        first = write(folder, tmp_path / "a.tar.gz")
        for path in folder.rglob("*"):
            if not path.is_symlink():
                os.utime(path, (0, 0))
        assert write(folder, tmp_path / "a.tar.gz").sha256 == first.sha256


def test_an_unsafe_name_is_never_packed(tmp_path: Path) -> None:
    (tmp_path / "a\\..\\b").write_text("x")
    with pytest.raises(RecollectError, match="unsafe"):
        list(files_of(tmp_path))


def test_the_store_travels_to_another_worker_without_locks_and_halves(folder: Path, tmp_path: Path) -> None:
    write_state(folder, tmp_path / "state.tar")
    read_state(tmp_path / "state.tar", tmp_path / "there")
    found = sorted(p.relative_to(tmp_path / "there").as_posix() for p in (tmp_path / "there").rglob("*") if p.is_file())
    assert found == [".recollect/journal.db", ".recollect/payloads/ab/cd"]


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "other/evil", ".recollect/../../evil"])
def test_a_store_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo(name))
    with pytest.raises(RecollectError):
        read_state(tmp_path / "bad.tar", tmp_path / "there")
    assert not (tmp_path / "evil").exists()
