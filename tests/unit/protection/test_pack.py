"""Packing is deterministic, opens with ordinary tools, and unpacking is safe."""

from __future__ import annotations

import io
import lzma
import os
import shutil
import subprocess
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from protected_sites import contents, write_app, write_site
from recollect.errors import FormatError, UsageError
from recollect.protection import vault
from recollect.protection.age import Lock, Locked, Opener, check_lock, check_opener, is_locked, seal, unseal
from recollect.protection.pack import Compression, Limits, archive, compress, gather, save_sealed, suffix, unpack
from recollect.protection.selection import Selection

pyrage = pytest.importorskip("pyrage")


def packed(folder: Path) -> bytes:
    (packing,) = gather([f"{folder}/"])
    return compress(archive(packing), Compression.XZ)


def evil(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return lzma.compress(out.getvalue())


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    first = packed(write_app(tmp_path / "a"))
    os.utime(write_app(tmp_path / "b") / "main.py", (1, 1))
    (tmp_path / "b" / "main.py").chmod(0o600)
    assert packed(tmp_path / "b") == first
    (tmp_path / "b" / "main.py").chmod(0o755)
    assert packed(tmp_path / "b") != first, "the executable bit counts"


@pytest.mark.parametrize("compression", list(Compression))
def test_files_come_back_as_they_were(tmp_path: Path, compression: Compression) -> None:
    app = write_app(tmp_path / "app")
    (app / "empty").mkdir()
    (packing,) = gather([f"{app}/"])
    names = unpack(compress(archive(packing), compression), tmp_path / "out")
    assert contents(tmp_path / "out") == contents(app)
    assert sorted(names) == sorted(contents(app))
    assert (tmp_path / "out" / "run.sh").stat().st_mode & 0o111 and (tmp_path / "out" / "empty").is_dir()
    assert not (tmp_path / "out" / "main.py").stat().st_mode & 0o111


def test_a_sealed_object_opens_with_tar_alone(tmp_path: Path) -> None:
    data = packed(write_app(tmp_path / "app"))
    (tmp_path / f"code{suffix(data)}").write_bytes(data)
    (tmp_path / "out").mkdir()
    subprocess.run(["tar", "-xJf", "../code.tar.xz"], cwd=tmp_path / "out", check=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "app")


def test_a_slash_at_the_end_decides_about_the_folder_itself(tmp_path: Path) -> None:
    app = write_app(tmp_path / "app")
    (tmp_path / "dump.sql").write_text("SELECT 1;")
    (packing,) = gather([str(app), str(tmp_path / "dump.sql")])
    assert {m.name for m in packing.files} >= {"app/main.py", "dump.sql"}
    (packing,) = gather([f"{app}/"])
    assert {m.name for m in packing.files} >= {"main.py", "templates/page é.html.j2"}


def test_classes_are_packed_apart(tmp_path: Path) -> None:
    app = write_app(tmp_path / "app")
    (tmp_path / "dump.sql").write_text("SELECT 1;")
    packings = gather([f"code={app}/", f"data={tmp_path}/dump.sql"])
    assert [(p.name, len(p.files)) for p in packings] == [("code", 4), ("data", 1)]


@pytest.mark.parametrize("sources", [["{}/a/", "{}/b/"], ["code={}/a/", "data={}/b/"]])
def test_two_files_of_one_name_are_an_error(tmp_path: Path, sources: list[str]) -> None:
    write_app(tmp_path / "a")
    write_app(tmp_path / "b")
    with pytest.raises(UsageError, match=r"same file"):
        gather([source.format(tmp_path) for source in sources])


def test_what_cannot_be_packed_is_named(tmp_path: Path) -> None:
    app = write_app(tmp_path / "app")
    (app / "link").symlink_to("/etc/passwd")
    os.mkfifo(app / "pipe")
    (packing,) = gather([f"{app}/"])
    assert dict(packing.skipped) == {"link": "a symbolic link", "pipe": "not a regular file"}
    with pytest.raises(UsageError, match="no such file"):
        gather([str(tmp_path / "absent")])
    with pytest.raises(UsageError, match="not a name of a class"):
        gather([f"Ü={app}"])
    (tmp_path / "void").mkdir()
    with pytest.raises(UsageError, match="nothing to protect"):
        gather([f"{tmp_path}/void/"])


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../x", "a/../../x", "a\\..\\x", "C:/x", ".recollect/journal.db", ".", "a/../.."]
)
def test_names_that_lead_out_of_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match="outside"):
        unpack(evil((tarfile.TarInfo("good"), b"1"), (tarfile.TarInfo(name), b"2")), tmp_path / "out")
    assert not (tmp_path / "out").exists(), "nothing is written before everything is checked"


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.linkname = kind, "/etc/passwd"
    with pytest.raises(FormatError, match="neither a file nor a folder"):
        unpack(evil((info, b"")), tmp_path / "out")


def test_bombs_are_refused(tmp_path: Path) -> None:
    bomb = evil((tarfile.TarInfo("zeros"), bytes(30 << 20)))
    assert len(bomb) < 20_000
    with pytest.raises(FormatError, match="more than allowed"):
        unpack(bomb, tmp_path / "out", Limits(total_bytes=1 << 20))
    many = evil(*((tarfile.TarInfo(f"f{n}"), b"") for n in range(50)))
    with pytest.raises(FormatError, match="too many files"):
        unpack(many, tmp_path / "out", Limits(files=10))
    with pytest.raises(FormatError, match="twice"):
        unpack(evil((tarfile.TarInfo("f"), b"1"), (tarfile.TarInfo("f"), b"2")), tmp_path / "out")
    with pytest.raises(FormatError, match="a file as a folder"):
        unpack(evil((tarfile.TarInfo("f"), b"1"), (tarfile.TarInfo("f/g"), b"2")), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_unpacking_keeps_nothing_in_memory(tmp_path: Path) -> None:
    large = evil((tarfile.TarInfo("zeros"), bytes(60 << 20)))
    tracemalloc.start()
    unpack(large, tmp_path / "out")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 << 20 and (tmp_path / "out/zeros").stat().st_size == 60 << 20


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    data = packed(write_app(tmp_path / "app"))
    out = tmp_path / "out"
    unpack(data, out)
    unpack(data, out)  # the same again
    (out / "main.py").write_text("mine")
    with pytest.raises(UsageError, match="is another one"):
        unpack(data, out)
    (out / "main.py").unlink()
    (out / "main.py").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="a link is in the way"):
        unpack(data, out)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", packed.__name__.encode(), lzma.compress(b"no tar")[:20]])
def test_what_is_not_an_object_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(FormatError):
        unpack(data, tmp_path / "out")


def test_age_opens_for_its_recipients_only() -> None:
    mine, other = pyrage.x25519.Identity.generate(), pyrage.x25519.Identity.generate()
    sealed = seal(b"secret", Lock((str(mine.to_public()),)))
    assert is_locked(sealed) and suffix(sealed) == ".tar.age"
    assert unseal(sealed, Opener((f"# created today\n{mine}\n",))) == b"secret"
    for opener in (Opener(), Opener((str(other),)), Opener((), "guess")):
        with pytest.raises(Locked):
            unseal(sealed, opener)
    assert unseal(b"open", Opener()) == b"open"


def test_an_ssh_key_opens_what_was_locked_for_it() -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    sealed = seal(b"secret", Lock((public.decode(),)))
    assert unseal(sealed, Opener((private.decode(),))) == b"secret"


def test_a_passphrase_opens_what_it_locked() -> None:
    sealed = seal(b"secret", Lock((), "correct horse"))
    assert unseal(sealed, Opener((), "correct horse")) == b"secret"


def test_wrong_recipients_are_named_before_any_work() -> None:
    with pytest.raises(UsageError, match="not an age recipient: age1nonsense"):
        check_lock(Lock(("age1nonsense",)))


def test_every_name_that_is_packed_is_unpacked(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    for name in ("notes: draft.txt", "back\\slash.txt", "x" * 250, "é 日.txt", ".env.local", "line\nfeed"):
        (folder / name).write_text(name)
    (folder / ".recollect").mkdir()
    (folder / ".recollect" / "journal.db").write_text("ours")
    unpack(packed(folder), tmp_path / "back")
    shutil.rmtree(folder / ".recollect")
    assert contents(tmp_path / "back") == contents(folder)


def test_a_name_that_could_not_be_unpacked_is_refused_before_packing(tmp_path: Path) -> None:
    (tmp_path / "a\\..\\b").write_text("x")
    with pytest.raises(UsageError, match="cannot be unpacked again"):
        gather([f"{tmp_path}/"])


def test_only_pages_are_packed_without_blocks(tmp_path: Path) -> None:
    carried = b"INSERT ('<script type=\"application/vnd.recollect\">recollect-block/1 x recollect-end</script>')"
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "dump.sql").write_bytes(carried)
    unpack(packed(tmp_path / "app"), tmp_path / "back")
    assert (tmp_path / "back" / "dump.sql").read_bytes() == carried


@pytest.mark.parametrize("source", ["", "code="])
def test_an_empty_path_is_not_the_current_folder(source: str) -> None:
    with pytest.raises(UsageError, match="no path"):
        gather([source])


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="not a regular file"):
        gather([str(tmp_path / "pipe")])


def test_the_copy_of_the_site_and_vault_pages_are_not_packed(tmp_path: Path) -> None:
    project = write_site(tmp_path / "project")
    before = [member.name for member in gather([f"{project}/"])[0].members]
    write_site(project / "deploy")
    (project / "recollect-vault").mkdir()
    (project / "recollect-vault" / "index.html").write_bytes(vault.page(0, 3))
    after = [
        member.name
        for member in gather([f"{project}/"], Selection(leave_out=((project / "deploy", "the output"),)))[0].members
    ]
    assert after == before


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_is_not_read_into_memory(tmp_path: Path, kind: bytes) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 1 << 30
    with pytest.raises(FormatError, match="too long"):
        unpack(lzma.compress(header.tobuf() + bytes(1 << 16)), tmp_path / "back")


def test_folders_are_not_made_through_links_or_over_files(tmp_path: Path) -> None:
    (tmp_path / "app" / "sub" / "inner").mkdir(parents=True)
    (tmp_path / "app" / "file").write_text("x")
    data = packed(tmp_path / "app")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "back").mkdir()
    (tmp_path / "back" / "sub").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="a link is in the way"):
        unpack(data, tmp_path / "back")
    assert not list((tmp_path / "elsewhere").iterdir())
    (tmp_path / "back" / "sub").unlink()
    (tmp_path / "back" / "sub").write_text("a file")
    with pytest.raises(UsageError, match="a file is in the way"):
        unpack(data, tmp_path / "back")


@pytest.mark.parametrize("text", ["garbage", "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n", "AGE-SECRET-KEY-1X"])
def test_wrong_identities_are_named_before_any_work(text: str) -> None:
    with pytest.raises(UsageError, match="identity"):
        check_opener(Opener((text,)))


def test_a_sealed_object_never_overwrites_another_file(tmp_path: Path) -> None:
    path = save_sealed(b"age-encryption.org/v1\nx", tmp_path, "data")
    assert path.name == "data.tar.age"
    assert save_sealed(b"age-encryption.org/v1\nx", tmp_path, "data") == path
    with pytest.raises(UsageError, match="exists and is another"):
        save_sealed(b"age-encryption.org/v1\ny", tmp_path, "data")
