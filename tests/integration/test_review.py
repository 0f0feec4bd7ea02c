"""Doubtful pages where the person is: in the terminal, in a local page, in a folder that was downloaded."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from fake_archive import START, Fake, served, site
from recollect.desk.delivery import write_zip
from recollect.errors import UsageError
from recollect.recovery.options import Options
from recollect.recovery.recover import recover
from recollect.recovery.review import Decision, decide, doubtful_pages, page_for_review
from recollect.recovery.scope import Scope
from recollect.recovery.store import Store
from recollect.recovery.verdicts import Verdict

LOGIN = "<title>{0}</title><p>Please log in to read {0}.<form><input type=password></form>"


def archive_of(*pages: str) -> Fake:
    """Three forum pages behind one login, one page with an error's title, one good page."""
    fake = site("/f/1", "/f/2", "/f/3", "/memoir", "/good", *pages)
    for number in (1, 2, 3):
        text = LOGIN.format("the letters of the harbour society and all that was written there")
        fake.add(f"/f/{number}", f"{text}<i>{number}</i><script>alert(1)</script>", "20090101000000")
    fake.add("/memoir", "<title>Not found</title><p>A memoir.", "20090101000000")
    fake.add("/good", "<p>good")
    return fake


def recovered(folder: Path, *pages: str) -> Path:
    with served(archive_of(*pages)) as archive:
        recover(START, folder, archives=[archive], options=Options(Scope((START,))))
    return folder


def by_path(folder: Path) -> dict[str, object]:
    return {page.uri.removeprefix(START): page for page in doubtful_pages(folder)}


def test_a_doubtful_page_comes_with_all_that_a_person_needs_to_decide(tmp_path: Path) -> None:
    pages = doubtful_pages(recovered(tmp_path))
    assert [page.uri.removeprefix(START) for page in pages] == ["f/1", "f/2", "f/3", "memoir"]
    first, last = pages[0], pages[-1]
    assert (first.verdict, first.captured_at.year, first.similar) == (Verdict.LOGIN, 2009, (2, 3))
    assert last.verdict == Verdict.SOFT_404 and last.similar == () and last.title == "Not found"
    assert all(page.confidence is not None and 0.5 <= page.confidence < 1 for page in pages)
    assert first.file is not None and (tmp_path / first.file).is_file()
    assert b"harbour society" in page_for_review(tmp_path, 1)
    with pytest.raises(UsageError):
        page_for_review(tmp_path, 9)


def test_a_decision_holds_for_similar_pages_and_the_outputs_are_made_again(tmp_path: Path) -> None:
    recovered(tmp_path)
    report = decide(tmp_path, {f"{START}f/2": Decision.NOT_MINE, f"{START}memoir": Decision.MINE})
    assert report.suspects == () and doubtful_pages(tmp_path) == ()
    assert sorted(m.uri.removeprefix(START) for m in report.missing) == ["f/1", "f/2", "f/3"]
    assert (tmp_path / "lost.example/memoir.html").is_file() and not (tmp_path / "lost.example/f/1.html").exists()
    with pytest.raises(UsageError, match="no such page"):
        decide(tmp_path, {f"{START}good": Decision.MINE})


def test_a_page_with_a_decision_of_its_own_does_not_follow_another(tmp_path: Path) -> None:
    recovered(tmp_path)
    report = decide(tmp_path, {f"{START}f/1": Decision.NOT_MINE, f"{START}f/3": Decision.MINE})
    assert sorted(m.uri.removeprefix(START) for m in report.missing) == ["f/1", "f/2"]
    only = decide(tmp_path, {f"{START}memoir": Decision.MINE}, similar=False)
    assert only.suspects == ()


@pytest.mark.parametrize(("decision", "doubtful"), [(Decision.MINE, None), (Decision.NOT_MINE, "missing")])
def test_a_later_run_decides_about_similar_captures_by_itself(
    tmp_path: Path, decision: Decision, doubtful: str | None
) -> None:
    """A page that the archives list only later, with other bytes, is decided as the pages like it were."""
    recovered(tmp_path)
    decide(tmp_path, {f"{START}f/1": decision})
    fake = archive_of("/f/4")
    text = LOGIN.format("the letters of the harbour society and all that was written there")
    fake.add("/f/4", f"{text}<b>4</b>", "20091212000000")
    with served(fake) as archive:
        options = Options(Scope((START,)), policy="exhaustive")
        report = recover(START, tmp_path, archives=[archive], options=options).report
    assert report is not None and [r.uri.removeprefix(START) for r in report.suspects] == ["memoir"]
    assert (f"{START}f/4" in {m.uri for m in report.missing}) == (doubtful == "missing")


def unzipped(folder: Path, target: Path) -> Path:
    """The folder as a person gets it."""
    with Store.open(folder) as store:
        store.write_portable()
    write_zip(folder, folder.with_name("result.zip"))
    with zipfile.ZipFile(folder.with_name("result.zip")) as file:
        file.extractall(target)
    shutil.rmtree(folder)
    return target


@pytest.mark.parametrize("package", ["recovered.warc.gz", "recovered.wacz"])
def test_a_downloaded_folder_is_reviewed_like_the_recovery_itself(tmp_path: Path, package: str) -> None:
    folder = unzipped(recovered(tmp_path / "recovery"), tmp_path / "download")
    for name in {"recovered.warc.gz", "recovered.wacz"} - {package}:
        (folder / name).unlink()
    command = [sys.executable, "-m", "recollect", "review", str(folder)]
    listed = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=60, check=True)
    assert [row["verdict"] for row in json.loads(listed.stdout)] == ["login", "login", "login", "soft-404"]
    done = subprocess.run(
        [*command, "--mine", "*/memoir", "--not-mine", "all"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "4 decided, 0 left to review" in done.stderr
    assert "A memoir." in (folder / "lost.example/memoir.html").read_text()
    assert not (folder / "lost.example/f/1.html").exists()
    assert not list(folder.rglob("*recollect-new*")), "every file of the download is known as written by the recovery"


def test_a_download_names_nothing_of_the_machine_that_recovered(tmp_path: Path) -> None:
    folder = unzipped(recovered(tmp_path / "recovery"), tmp_path / "download")
    assert str(tmp_path).encode() not in (folder / ".recollect/journal.db").read_bytes()


@contextmanager
def review_server(folder: Path) -> Iterator[tuple[HTTPConnection, str]]:
    command = [sys.executable, "-m", "recollect", "review", str(folder), "--page"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address is not None
        parts = urlsplit(address[0])
        yield HTTPConnection(parts.netloc, timeout=30), parts.path
    finally:
        process.terminate()
        process.wait(10)


def test_the_local_page_shows_pages_without_their_scripts_and_takes_decisions(tmp_path: Path) -> None:
    recovered(tmp_path)
    with review_server(tmp_path) as (connection, path):

        def ask(method: str, target: str, body: str | None = None, **headers: str) -> tuple[int, str, str]:
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
            policy = answer.getheader("Content-Security-Policy") or ""
            text = answer.read().decode()
            connection.close()
            return answer.status, policy, text

        status, _, page = ask("GET", path)
        assert status == 200 and page.count("<iframe sandbox") == 4 and "Not mine" in page and "2009" in page
        for target in (f"{path}/1", "/good"):
            status, policy, _ = ask("GET", target)
            assert status == 200 and policy.startswith("sandbox;") and "default-src 'none'" in policy
        assert ask("GET", path, Host="attacker.example:80")[0] == 403, "a name on the web that leads to this machine"
        token = re.search(r"name='token' value='([^']+)'", page)
        assert token is not None
        form = {"page-4": "mine", "uri-4": f"{START}memoir"}
        assert ask("POST", path, urlencode({**form, "token": "guess"}))[0] == 403 and len(doubtful_pages(tmp_path)) == 4
        assert ask("POST", path, urlencode({**form, "token": token[1]}))[0] == 303
        assert [one.verdict for one in doubtful_pages(tmp_path)] == [Verdict.LOGIN] * 3
        form = {f"page-{n}": "not-mine" for n in (1, 2, 3)} | {f"uri-{n}": f"{START}f/{n}" for n in (1, 2, 3)}
        ask("POST", path, urlencode({**form, "token": token[1]}))
        assert "Nothing to review" in ask("GET", path)[2]
