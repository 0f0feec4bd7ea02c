"""Lives of jobs that do not end with a download: nothing found, silent archives, cancelled, expired; and more found."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from desk_world import Job, RunningDesk, running_desk, until
from fake_archive import served, site
from pywb_archive import pywb_archive
from websites import website, write_warc

pytestmark = pytest.mark.xdist_group("desk-lives")

QUICK = {"RECOLLECT_DESK_HEARTBEAT": "0.3", "RECOLLECT_DESK_PICTURES": "0"}


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("lives")
    lost = website(seed=4, pages=6, troubles=False)
    write_warc(folder / "site.warc.gz", lost.crawl([lost.end]))
    with pywb_archive(folder / "archive", warcs=[folder / "site.warc.gz"]) as archive:
        entry = {"id": "one", "timemap": archive.timemap, "cdx": archive.cdx, "raw": archive.raw}
        silent = {"id": "silent", "timemap": "http://127.0.0.1:9/tm/", "cdx": "http://127.0.0.1:9/cdx", "ignore": True}
        slow = {**entry, "id": "slow", "rate": "2/s", "ignore": True}
        path = folder / "archives.json"
        path.write_text(json.dumps([entry, silent, slow]))
        yield path


@pytest.fixture(scope="module")
def desk(archives: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDesk]:
    folder = tmp_path_factory.mktemp("lives-desk") / "desk"
    all_archives = folder.parent / "archives.json"
    entries = [{**one, "ignore": False} for one in json.loads(archives.read_text())]
    all_archives.write_text(json.dumps(entries))
    with running_desk(folder, all_archives, **QUICK) as running:
        yield running


def page_of(desk: RunningDesk, job: Job) -> str:
    return desk.ask("GET", f"/jobs/{job.id}?token={job.token}").text


def test_nothing_found_says_who_was_asked_and_what_to_try(desk: RunningDesk) -> None:
    job = desk.submit("http://never.example/", "never@mail.example", archives=["one"])
    desk.confirm(job)
    reply = desk.wait(job, "nothing-found")
    assert reply["summary"]["requests"]["one"] >= 1
    assert "/jobs/" in desk.mail("never@mail.example", "Nothing found").get_content()
    page = page_of(desk, job)
    assert "one" in page and "What you can still try" in page and "www.never.example" in page


def test_silent_archives_are_not_an_empty_answer(desk: RunningDesk) -> None:
    job = desk.queue("http://lost.example/", archives=["silent"])
    reply = desk.wait(job, "waiting", "failed", "nothing-found")
    assert reply["state"] == "waiting" and reply["resume_at"] > time.time() + 300
    assert reply["reason"] == "no archive answered"


def test_a_cancelled_job_ends_its_subprocess(desk: RunningDesk) -> None:
    job = desk.queue("http://lost.example/", archives=["slow"])
    until(lambda: sum(desk.show(job)["counts"]["recovered"].values()) >= 1, 60)
    assert desk.ask("POST", f"/api/jobs/{job.id}/cancel?token={job.token}", {}).json["state"] == "cancelled"
    following = desk.queue("http://lost.example/", "next@mail.example", archives=["one"])
    desk.wait(following, "ready", seconds=30)
    assert desk.show(job)["state"] == "cancelled" and desk.history(job)[-1] == "cancel"


def test_more_is_reported_only_to_who_asked_only_of_a_gain_and_also_after_expiry(tmp_path: Path) -> None:
    """An archive that goes on collecting; as by default, results expire before the archives are asked again."""
    fake = site("/a.html", "/lost.html")
    fake.add("/a.html", "<title>A</title><p>Page A.</p>")
    settings = {"RECOLLECT_DESK_RELIST_AFTER": "2", "RECOLLECT_DESK_KEEP_FOR": "1"}
    with served(fake) as archive:
        path = tmp_path / "archives.json"
        path.write_text(json.dumps([{"id": "fake", "cdx": archive.cdx, "raw": archive.raw}]))
        with running_desk(tmp_path / "desk", path, **QUICK, **settings) as desk:
            job = desk.submit("http://lost.example/", "more@mail.example")
            other = desk.submit("http://lost.example/", "quiet@mail.example")
            assert other.id == job.id, "one recovery, two recipients"
            assert desk.ask("POST", f"/api/jobs/{job.id}/tell?token={job.token}", {"more": True}).json["tell_more"]
            desk.confirm(job)
            desk.confirm(other)
            desk.wait(job, "expired")
            asked = len(fake.times)
            until(lambda: len(fake.times) >= asked + 2, 30)
            assert not [m for m in desk.mails() if "More has" in m["Subject"]], "what is missing is not a gain"
            fake.add("/lost.html", "<title>Lost</title><p>Found after all.</p>")
            mail = desk.mail("more@mail.example", "More has turned up", seconds=40)
            assert "1 more file " in mail.get_content()
            asked = len(fake.times)
            until(lambda: len(fake.times) >= asked + 2, 30)
            subjects = [(m["To"], m["Subject"]) for m in desk.mails() if "More has" in m["Subject"]]
            assert subjects == [("more@mail.example", "More has turned up of lost.example")], (
                "once, and not to the other"
            )


def test_an_expired_result_says_so_and_offers_to_make_it_again(archives: Path, tmp_path: Path) -> None:
    with running_desk(tmp_path / "desk", archives, **QUICK, RECOLLECT_DESK_KEEP_FOR="4") as desk:
        job = desk.submit("http://lost.example/", "late@mail.example")
        desk.confirm(job)
        url = desk.wait(job, "ready", "picked-up")["result"]["zip"]
        desk.wait(job, "expired", seconds=30)
        gone = desk.ask("GET", url)
        assert gone.status == 410 and "removed" in gone.json["error"]["message"]
        page = page_of(desk, job)
        assert "Make it again" in page and "uri=http%3A%2F%2Flost.example%2F" in page
        until(lambda: not (desk.folder / "results" / job.id).exists(), 10)
        assert desk.operator("POST", f"/api/jobs/{job.id}/retry").json["state"] == "queued"
        desk.wait(job, "ready")


def test_one_page_comes_with_its_pictures_and_nothing_else(archives: Path, tmp_path: Path) -> None:
    import io
    import zipfile

    with running_desk(tmp_path / "desk", archives, **QUICK) as desk:
        job = desk.queue("http://lost.example/articles/2.html", scope="page")
        reply = desk.wait(job, "ready")
        names = zipfile.ZipFile(io.BytesIO(desk.ask("GET", reply["result"]["zip"]).body)).namelist()
        pages = [name for name in names if name.startswith("lost.example/") and name.endswith(".html")]
        assert pages == ["lost.example/articles/2.html"]
        assert "lost.example/img/2.png" in names and "lost.example/css/main.css" in names


def test_windows_names_are_those_of_the_files_in_the_zip(tmp_path: Path) -> None:
    import io
    import subprocess
    import sys
    import zipfile
    from urllib.parse import quote, unquote, urljoin

    paths = ["/\u00e9t\u00e9/\u00fcber.html", "/CON.html", "/a.html", "/A.html", "/dot./x.html", f"/{'long' * 40}.html"]
    fake = site(*paths)
    for number, path in enumerate(paths):
        fake.add(quote(path), f"<title>Page {number}</title><p>This is page {number}.</p>")
    with served(fake) as archive:
        path = tmp_path / "archives.json"
        path.write_text(json.dumps([{"id": "fake", "cdx": archive.cdx, "raw": archive.raw}]))
        trees = {}
        with running_desk(tmp_path / "desk", path, **QUICK) as desk:
            for windows in (False, True):
                job = desk.queue("http://lost.example/", windows_names=windows)
                zipped = desk.ask("GET", desk.wait(job, "ready")["result"]["zip"]).body
                with zipfile.ZipFile(io.BytesIO(zipped)) as opened:
                    trees[windows] = {name: opened.read(name) for name in opened.namelist()}
                expected = tmp_path / f"expected-{windows}"
                command = ["recover", "http://lost.example/", "-o", str(expected), "--archives", str(path), "--quiet"]
                command += ["--yes", *(["--windows-names"] if windows else [])]
                subprocess.run([sys.executable, "-m", "recollect", *command], check=True, timeout=60)
                pages = sorted(p.relative_to(expected).as_posix() for p in expected.rglob("lost.example/**/*.html"))
                assert sorted(n for n in trees[windows] if n.startswith("lost.example/")) == pages, (
                    "as recover names them"
                )
    assert any(not name.isascii() for name in trees[False]) and max(map(len, trees[False])) > 80
    assert set(trees[False]) != set(trees[True])
    for name in trees[True]:
        assert name.isascii() and len(name) <= 130
        assert not re.search(r'[<>:"|?*\\]|(^|/)(con|aux|nul)[./]|[. ](/|$)', name, re.IGNORECASE)
    assert len({name.lower() for name in trees[True]}) == len(trees[True])
    links = re.findall(r"href=['\"]?([^'\"> ]+)", trees[True]["lost.example/index.html"].decode())
    assert len(links) == len(paths)
    assert {unquote(urljoin("lost.example/index.html", link)) for link in links} <= set(trees[True]), "links lead there"


def test_nothing_runs_in_the_download_unless_the_person_asks_for_scripts(tmp_path: Path) -> None:
    import io
    import zipfile

    fake = site("/a.html")
    fake.add("/", "<title>Home</title><p onclick='run()'>Hello.</p><script src=/m.js></script><script>run()</script>")
    fake.add("/m.js", "run()", media_type="text/javascript")

    def contents(desk: RunningDesk, job: Job) -> dict[str, str]:
        zipped = desk.ask("GET", desk.wait(job, "ready")["result"]["zip"]).body
        with zipfile.ZipFile(io.BytesIO(zipped)) as opened:
            return {name: opened.read(name).decode("latin-1") for name in opened.namelist()}

    with served(fake) as archive:
        path = tmp_path / "archives.json"
        path.write_text(json.dumps([{"id": "fake", "cdx": archive.cdx, "raw": archive.raw}]))
        with running_desk(tmp_path / "desk", path, **QUICK) as desk:
            form = desk.ask("GET", "/").text
            assert re.search(r'name="scripts" value="no" checked', form) and "nothing in your copy runs" in form
            job = desk.submit("http://lost.example/", "s@mail.example")
            place = desk.confirm(job)
            plain = contents(desk, job)
            pages = [name for name in plain if name.endswith("/index.html")]
            assert sorted(pages) == ["lost.example/index.html", "rehost/public/index.html"]
            for name in pages:
                assert "<script" not in plain[name] and "onclick" not in plain[name]
            assert not [name for name in plain if name.endswith(".js")]
            assert "Nothing runs in this copy" in plain["START-HERE.html"]
            words = desk.ask("GET", place).text
            assert "Nothing runs in your copy" in words and "Make the copy with scripts" in words

            answer = desk.ask("POST", place.replace("?", "/again?"), form={"scripts": "yes"})
            identifier, token = answer.headers["Location"].removeprefix("/jobs/").split("?token=")
            again = type(job)(identifier, token, "s@mail.example", "queued")
            whole = contents(desk, again)
            assert "<script>run()</script>" in whole["lost.example/index.html"] and "lost.example/m.js" in whole
            assert "keep their scripts" in whole["START-HERE.html"]
            assert "Make the copy without scripts" in desk.ask("GET", answer.headers["Location"]).text
