"""Temporary files: unique names, nothing of a person's lost, none left after a kill, and no moment without a umask."""

from __future__ import annotations

import io
import os
import signal
import stat
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pytest

from recollect.formats import temporaries
from recollect.formats.containers import atomic_output, check_output
from recollect.formats.temporaries import create_beside, is_temporary, name_beside, replacing
from recollect.protection.pack import unpack
from recollect.protection.record import replace_file

_WRITER = """
import sys, time
from pathlib import Path
from recollect.formats.containers import atomic_output
with atomic_output(sys.argv[1]) as out:
    out.write(b"half")
    out.flush()
    print("writing", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: no folder was swept yet."""
    monkeypatch.setattr(temporaries, "_swept", set())


def _left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if is_temporary(path.name))


def _writer(target: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", _WRITER, str(target)], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"writing\n"
    return process


def test_what_a_killed_process_left_is_swept_at_the_next_run_and_a_living_one_keeps_its_own(tmp_path: Path) -> None:
    target = tmp_path / "map.ukvs"
    target.write_text("old")
    dead, alive = _writer(target), _writer(tmp_path / "other.ukvs")
    try:
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert target.read_text() == "old" and len(_left(tmp_path)) == 2
        with atomic_output(target) as out:
            out.write(b"new")
        assert [name.startswith(".other.ukvs.") for name in _left(tmp_path)] == [True]
    finally:
        for process in (dead, alive):
            process.kill()
            process.communicate()
    temporaries._swept.clear()
    check_output(target)
    assert _left(tmp_path) == [] and target.read_text() == "new"


_OF_PEOPLE = (
    ".a.part",
    ".a.tmp",
    ".a.new",
    ".a.recollect",
    "a.part",
    "a.tmp",
    ".recollect-abc",
    ".a.0123.recollect.tmp",
)


def test_no_file_of_a_person_is_written_or_deleted(tmp_path: Path) -> None:
    target = tmp_path / "a"
    for name in _OF_PEOPLE:
        (tmp_path / name).write_text("mine")
    with replacing(target) as out:
        out.write(b"1")
    with atomic_output(target) as out:
        out.write(b"2")
    replace_file(target, b"3", target)
    assert target.read_bytes() == b"3"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a": "3",
        **dict.fromkeys(_OF_PEOPLE, "mine"),
    }


def test_reclaimed_files_whose_names_begin_alike_are_all_there(tmp_path: Path) -> None:
    long = "n" * 60
    files = {".a.part": b"own", "a": b"one", f"{long}1": b"two", f"{long}2": b"three", f".{long[:48]}.part": b"four"}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    unpack(packed.getvalue(), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_two_writers_of_one_target_do_not_meet(tmp_path: Path) -> None:
    target = tmp_path / "a"
    with replacing(target) as first, replacing(target) as second:
        first.write(b"first")
        second.write(b"second")
    assert target.read_bytes() == b"first" and _left(tmp_path) == []  # the last to end


def test_an_error_leaves_the_target_and_no_temporary_file(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("old")
    with pytest.raises(RuntimeError), replacing(target):
        raise RuntimeError
    assert target.read_text() == "old" and _left(tmp_path) == []


@pytest.mark.parametrize("name", ["ä" * 120, "é" * 127, "n" * 255, "日本" * 40])
def test_names_of_any_length_have_a_temporary_name(name: str, tmp_path: Path) -> None:
    target = tmp_path / name.encode()[:255].decode("utf-8", "ignore")
    with replacing(target) as out:
        out.write(b"x")
    assert target.read_bytes() == b"x"


def test_modes_follow_the_umask_the_target_and_the_wish(tmp_path: Path) -> None:
    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    plain = tmp_path / "plain"
    plain.touch()
    usual = mode(plain)
    for private, expected in ((False, usual), (True, 0o600)):
        with atomic_output(tmp_path / f"new{private}", private=private):
            pass
        assert mode(tmp_path / f"new{private}") == expected
    plain.chmod(0o640)
    with atomic_output(plain):
        assert [mode(path) for path in tmp_path.iterdir() if is_temporary(path.name)] == [0o640]
    assert mode(plain) == 0o640
    with replacing(plain, mode=0o755):
        pass
    assert mode(plain) == 0o755


def test_the_umask_of_the_process_is_never_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_mask: int) -> int:
        raise AssertionError("another thread would see this")

    monkeypatch.setattr(os, "umask", refuse)
    with atomic_output(tmp_path / "a") as out:
        out.write(b"x")
    with replacing(tmp_path / "b") as out:
        out.write(b"x")


def test_a_link_that_was_not_renamed_is_swept_when_it_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("x")
    for number in (1, 2):
        link = name_beside(tmp_path / "a")
        link.hardlink_to(tmp_path / "a") if number == 1 else link.symlink_to("a")
    temporaries._swept.clear()
    temporaries.sweep(tmp_path)
    assert len(_left(tmp_path)) == 2
    monkeypatch.setattr(temporaries, "_LINK_SECONDS", -1.0)
    temporaries._swept.clear()
    temporaries.sweep(tmp_path)
    assert _left(tmp_path) == [] and (tmp_path / "a").read_text() == "x"


def test_a_sweep_beside_writers_takes_none_of_their_files(tmp_path: Path) -> None:
    stop = threading.Event()

    def sweep() -> None:
        while not stop.is_set():
            temporaries._swept.clear()
            temporaries.sweep(tmp_path)

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        for number in range(200):
            handle, path = create_beside(tmp_path / "a")
            os.write(handle, b"%d" % number)
            path.replace(tmp_path / "a")
            os.close(handle)
            assert (tmp_path / "a").read_bytes() == b"%d" % number
    finally:
        stop.set()
        sweeper.join()
