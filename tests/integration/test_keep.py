"""`recollect keep` as a command: updates from cron, killed at any moment, exclusions that cannot be read anywhere."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest

from recollect.formats.ukvs import MapFile
from recollect.maps.lookup import open_map

ROOM = "100kB"


def index(hosts: range, pages: int = 20) -> str:
    lines = []
    for host in hosts:
        for page in range(pages):
            uri = f"http://h{host}.example/p{page}"
            block = json.dumps({"url": uri, "mime": "text/html", "status": "200"})
            lines.append(f"example,h{host})/p{page} 20200101000000 {block}\n")
    return "".join(sorted(lines))


def command(folder: Path, *more: str) -> list[str]:
    parts = ["--index", "idx/*.cdxj", "--to", "public", "--max-bytes", ROOM, "--data", "data", *more]
    return [sys.executable, "-m", "recollect", "keep", *parts]


def keep(folder: Path, *more: str, code: int = 0) -> dict:
    done = subprocess.run(
        command(folder, "--once", "--json", *more), cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if done.stdout else {"stderr": done.stderr}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "idx").mkdir()
    (tmp_path / "idx" / "a.cdxj").write_text(index(range(100)))
    return tmp_path


def test_what_lies_beside_indexes_is_ignored_and_not_a_problem(archive: Path) -> None:
    (archive / "idx" / "README").write_text("What these files are.\n")
    (archive / "idx" / ".old").mkdir()
    (archive / "idx" / ".old" / "b.cdxj").write_text(index(range(100, 200)))
    status = keep(archive, "--index", "idx")
    assert (status["files"], status["captures"], status["problems"], status["ignored"]) == (1, 2000, 0, 1)


def check_tree(public: Path) -> None:
    """What is published belongs together: every file is as the index says."""
    said = json.loads((public / "mementomap" / "index.json").read_bytes())
    for entry in said["files"]:
        body = (public / entry["path"].lstrip("/")).read_bytes()
        assert hashlib.sha256(body).hexdigest() == entry["sha256"], entry["path"]


def answers(public: Path, *uris: str) -> list[str]:
    with open_map(public / ".well-known" / "mementomap") as found:
        return [str(found.lookup(uri).answer) for uri in uris]


def test_updates_add_change_and_remove_what_the_index_files_do(archive: Path) -> None:
    public = archive / "public"
    first = keep(archive, "--name", "Archive of tests")
    assert (first["way"], first["files"], first["captures"], first["verified"]) == ("built", 1, 2000, 2000)
    again = keep(archive, "--name", "Archive of tests")
    assert (again["way"], again["added_keys"]) == ("unchanged", first["added_keys"])
    (archive / "idx" / "b.cdxj").write_text(index(range(100, 105)))
    assert answers(public, "http://h101.example/p1") == ["no"]
    second = keep(archive, "--name", "Archive of tests")
    assert (second["way"], second["new_files"], second["captures"], second["verified"]) == ("patched", 1, 2100, 100)
    assert second["added_keys"] == 100
    assert answers(public, "http://h101.example/p1", "http://h5.example/p5") == ["yes", "yes"]
    with (archive / "idx" / "b.cdxj").open("a") as file:
        file.write(index(range(106, 107)))
    third = keep(archive, "--name", "Archive of tests")
    assert (third["way"], third["changed_files"], third["verified"]) == ("patched", 1, 20)
    (archive / "idx" / "b.cdxj").unlink()
    fourth = keep(archive, "--name", "Archive of tests")
    assert (fourth["way"], fourth["removed_files"], fourth["captures"]) == ("patched", 1, 2000)
    assert answers(public, "http://h101.example/p1", "http://h5.example/p5") == ["no", "yes"]
    (archive / "idx" / "a.cdxj").write_text(index(range(99)))
    fifth = keep(archive, "--name", "Archive of tests")
    assert (fifth["way"], fifth["changed_files"], fifth["removed_keys"]) == ("built", 1, 20)
    assert answers(public, "http://h99.example/p1", "http://h5.example/p5") == ["no", "yes"]
    check_tree(public)
    page = (public / "status.html").read_text()
    assert "Archive of tests" in page and "1,980" in page and "all found" in page
    assert "recollect_keep_captures 1980\n" in (public / "status.prom").read_text()
    assert json.loads((public / "status.json").read_bytes())["ok"] is True


@pytest.mark.parametrize("more", [(), ("--no-sets",)])
def test_small_maps_have_hashed_sets_and_what_is_added_to_them_is_found(archive: Path, more: tuple[str, ...]) -> None:
    public = archive / "public"
    keep(archive, "--max-bytes", "5kB", *more)
    (archive / "idx" / "b.cdxj").write_text(index(range(50, 52), pages=30))
    assert keep(archive, "--max-bytes", "5kB", *more)["way"] == "patched"
    text = (public / ".well-known" / "mementomap").read_bytes()
    assert len(text) <= 5000 and (b'"sets": true' in text) == (not more)
    uris = [f"http://h{host}.example/p{page}" for host in range(100) for page in range(20)]
    uris += [f"http://h{host}.example/p{page}" for host in (50, 51) for page in range(30)]
    assert set(answers(public, *uris)) == {"yes"}


def test_when_all_indexes_are_gone_the_map_stays_and_the_status_says_why(archive: Path) -> None:
    keep(archive)
    (archive / "idx" / "a.cdxj").rename(archive / "elsewhere")
    assert "no index files" in keep(archive, code=1)["stderr"]
    assert answers(archive / "public", "http://h5.example/p5") == ["yes"]
    assert "no index files" in (archive / "public" / "status.html").read_text()
    assert "recollect_keep_up 0\n" in (archive / "public" / "status.prom").read_text()


def test_nothing_excluded_is_in_what_is_published(archive: Path) -> None:
    secret = archive / "takedowns.aclj"
    secret.write_text('example,h7)/ - {"access": "exclude"}\nexample,h8)/p1### - {"access": "block"}\n')
    (archive / "log").write_text("http://h7.example/p3\nhttp://h1.example/p1\nhttp://absent.example/\n" * 50)
    done = keep(archive, "--exclude-keys", str(secret), "--lookups", "log")
    assert done["captures"] == 2000 - 21
    public = archive / "public"
    for path in public.rglob("*"):
        if path.is_file():
            assert b"h7)" not in path.read_bytes(), path
            assert b": 2000" not in path.read_bytes() and b"2,000" not in path.read_bytes(), path
    assert answers(public, "http://h8.example/p1", "http://h8.example/p2") == ["no", "yes"]
    (archive / "idx" / "b.cdxj").write_text(index(range(7, 8)) + index(range(200, 201)))
    assert keep(archive, "--exclude-keys", str(secret), "--lookups", "log")["captures"] == 2000 - 21 + 20
    assert answers(public, "http://h7.example/p3", "http://h200.example/p3") == ["no", "yes"]
    (archive / "idx" / "c.cdxj").write_text(index(range(7, 8), pages=40))
    hidden = keep(archive, "--exclude-keys", str(secret), "--lookups", "log")
    assert (hidden["new_files"], hidden["added_keys"], hidden["captures"]) == (1, 0, 2000 - 21 + 20)
    status = json.loads((public / "status.json").read_bytes())
    assert not {"files", "new_files", "changed_files", "removed_files", "problems"} & status.keys()
    assert "index_files" not in (public / "status.prom").read_text()
    assert "Index files" not in (public / "status.html").read_text()
    secret.write_text("example,h7)/secret word\n")
    assert "takedowns.aclj:1" in keep(archive, "--exclude-keys", str(secret), code=1)["stderr"]
    for name in ("status.html", "status.json"):
        text = (public / name).read_text()
        assert "not a rule" in text and "secret" not in text and "takedowns" not in text
    secret.write_text("")
    assert keep(archive, "--exclude-keys", str(secret), "--lookups", "log")["captures"] == 2040 + 40


@pytest.mark.parametrize("after", [0.25, 0.5, 0.75, 1.0])
def test_killed_at_any_moment_the_published_map_is_good(archive: Path, after: float) -> None:
    keep(archive)
    uris = ["http://h5.example/p5", "http://h99.example/p19"]
    started = time.monotonic()
    (archive / "idx" / "b.cdxj").write_text(index(range(100, 200)))
    keep(archive)
    took = time.monotonic() - started
    (archive / "idx" / "b.cdxj").unlink()
    process = subprocess.Popen(
        command(archive, "--once"), cwd=archive, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(took * after)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    assert answers(archive / "public", *uris) == ["yes", "yes"]
    check_tree(archive / "public")
    assert keep(archive)["captures"] == 2000
    assert answers(archive / "public", *uris, "http://h150.example/p5") == ["yes", "yes", "no"]
    assert len(list((archive / "data" / "maps").iterdir())) == 1


def test_it_runs_until_it_is_ended_and_sees_new_files(archive: Path) -> None:
    process = subprocess.Popen(
        command(archive, "--every", "300ms", "--quiet"), cwd=archive, stderr=subprocess.PIPE, text=True
    )
    try:
        _wait(lambda: (archive / "public" / "status.json").is_file())
        (archive / "idx" / "b.cdxj").write_text(index(range(100, 101)))
        _wait(lambda: json.loads((archive / "public" / "status.json").read_bytes())["captures"] == 2020)
        assert answers(archive / "public", "http://h100.example/p3") == ["yes"]
    finally:
        process.terminate()
        process.wait(30)
    assert process.returncode == 143


def test_data_inside_the_published_folder_is_refused(archive: Path) -> None:
    done = subprocess.run(command(archive, "--data", "public/data"), cwd=archive, capture_output=True, text=True)
    assert done.returncode == 2 and "inside the published folder" in done.stderr


def _wait(condition, seconds: float = 60.0) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.05)


def test_a_file_rewritten_in_place_with_its_size_and_time_is_noticed(archive: Path) -> None:
    path = archive / "idx" / "a.cdxj"
    keep(archive)
    before = path.stat()
    body = path.read_bytes()
    at = body.index(b"example,h50)/p7 ")
    with path.open("r+b") as file:
        file.seek(at)
        file.write(body[at : body.index(b"\n", at)].replace(b"h50", b"h5z"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert keep(archive)["changed_files"] == 1
    assert answers(archive / "public", "http://h5z.example/p7", "http://h50.example/p8") == ["yes", "yes"]
    path.touch()
    touched = keep(archive)
    assert (touched["changed_files"], touched["way"]) == (1, "unchanged")


def test_an_index_that_cannot_be_read_is_reported_and_the_others_are_published(archive: Path) -> None:
    keep(archive)
    (archive / "idx" / "gone.cdxj").write_text(index(range(100, 101)))
    whole = gzip.compress(index(range(200, 210)).encode())
    (archive / "idx" / "cut.cdxj.gz").write_bytes(whole[:-40])
    done = keep(archive, "--index", "idx/", code=3)
    assert (done["files"], done["partial_files"]) == (3, 1)
    uris = ("http://h100.example/p1", "http://h200.example/p1", "http://h5.example/p5")
    assert answers(archive / "public", *uris) == ["yes", "yes", "yes"]
    (archive / "idx" / "cut.cdxj.gz").write_bytes(whole)
    (archive / "idx" / "gone.cdxj").unlink()
    assert keep(archive, "--index", "idx/")["partial_files"] == 0
    assert answers(archive / "public", *uris) == ["no", "yes", "yes"]


def test_two_updates_at_once_do_not_mix(archive: Path) -> None:
    keep(archive)
    with (archive / "data" / "lock").open("a") as held:
        flock(held, LOCK_EX)
        assert "another update uses this data folder" in keep(archive, code=1)["stderr"]
    assert answers(archive / "public", "http://h5.example/p5") == ["yes"]
    assert keep(archive)["way"] == "unchanged"


def test_without_room_nothing_published_changes(archive: Path) -> None:
    keep(archive)
    (archive / "idx" / "b.cdxj").write_text(index(range(100, 105)))
    resource_limit = "import resource, runpy, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    resource_limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); "
    resource_limit += "sys.argv[0] = 'recollect'; runpy.run_module('recollect', run_name='__main__')"
    options = ["--index", "idx/", "--to", "public", "--data", "data", "--max-bytes", "100kB", "--once"]
    command = [sys.executable, "-c", resource_limit, "keep", *options]
    done = subprocess.run(command, cwd=archive, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "cannot write" in done.stderr, done.stderr
    assert answers(archive / "public", "http://h5.example/p5", "http://h101.example/p1") == ["yes", "no"]
    assert keep(archive, "--max-bytes", "100kB")["captures"] == 2100


def test_each_collection_of_a_host_keeps_a_map_of_its_own(archive: Path) -> None:
    (archive / "camp").mkdir()
    (archive / "camp" / "a.cdxj").write_text(index(range(200, 230)))

    def kept(name: str, *more: str, code: int = 0) -> dict:
        address = ("--collection", name, "--id", f"https://host.example/{name}/", "--data", f"data-{name}")
        return keep(archive, *address, *more, code=code)

    assert kept("nat")["way"] == "built"
    kept("camp", "--index", "camp/*.cdxj")
    public = archive / "public"
    listed = json.loads((public / "mementomap" / "index.json").read_text())["maps"]
    assert [one["id"] for one in listed] == ["https://host.example/camp/", "https://host.example/nat/"]
    assert kept("nat")["way"] == "unchanged"
    (archive / "idx" / "b.cdxj").write_text(index(range(300, 305)))
    assert kept("nat")["way"] == "patched"
    for one in listed:
        with MapFile(public / one["href"].lstrip("/")) as published:
            assert published.header.id["uri"] == one["id"]
    assert (public / "status" / "camp" / "status.html").is_file() and not (public / "status.html").exists()
    assert "maps of collections are published here" in keep(archive, code=2)["stderr"]
    assert "needs its address" in keep(archive, "--collection", "other", code=2)["stderr"]
    assert "not a name" in kept("../out", code=2)["stderr"]
    shutil.rmtree(public)
    keep(archive)
    assert "published here for the whole host" in kept("nat", code=2)["stderr"]
