"""`recollect protect` and `recollect protect reclaim` from the shell: exit codes, JSON, warnings, messages."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from protected_sites import contents, write_app, write_site
from pywb_archive import Capture, write_warc
from recollect.cli.main import run
from recollect.protection.blocksfile import Bundle
from recollect.protection.bundle import read_paths

SMALL = 3_000


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_site(tmp_path / "site", pages=20)
    write_app(tmp_path / "app", SMALL)
    (tmp_path / "dump.sql").write_text("CREATE TABLE pages (id INTEGER);\n")
    monkeypatch.chdir(tmp_path)
    assert run(["protect", "keygen", "-o", "site.key"]) == 0
    return tmp_path


def apply(*options: str) -> int:
    return run(["protect", "apply", "site/", "--files", "app/", "--key", "site.key", "--need", "40%", *options])


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return json.loads(capsys.readouterr().out)


def test_keygen_writes_a_pair_once(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (world / "site.key").stat().st_mode & 0o777 == 0o600
    assert (world / "site.pub").read_text().startswith("recollect-public-key-1 ")
    assert run(["protect", "keygen", "-o", "site.key"]) == 2
    assert "the file exists" in capsys.readouterr().err


def test_apply_verify_reclaim_remove(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(world / "site")
    assert apply("--files", "dump.sql", "--json") == 0
    done = said(capsys)
    assert done["pages"] == 20 and done["changed"] == 20 and done["classes"][0]["need"] == 8  # type: ignore[index]
    assert apply("--files", "dump.sql", "--json") == 0
    assert said(capsys)["changed"] == 0
    assert run(["protect", "verify", "site/", "--trust", "site.pub"]) == 0
    assert "20 of 20" in capsys.readouterr().out
    part = world / "part"
    part.mkdir()
    for page in random.Random(1).sample(sorted((world / "site/articles").iterdir()), 10):
        shutil.copy(page, part)
    assert run(["reclaim", "part", "-o", "back", "--trust", "site.pub"]) == 0
    out = capsys.readouterr()
    assert "10 of 20" in out.out and "5 files of version" in out.err
    back = contents(world / "back")
    assert back.pop("dump.sql") == (world / "dump.sql").read_bytes()
    assert back == contents(world / "app")
    assert run(["protect", "remove", "site/"]) == 0
    assert contents(world / "site") == before
    assert run(["protect", "verify", "site/"]) == 1


def test_reclaim_says_what_is_still_needed(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    apply()
    part = world / "part"
    part.mkdir()
    for n in range(1, 6):
        shutil.copy(world / f"site/articles/{n}.html", part)
    capsys.readouterr()
    assert run(["reclaim", "part", "-o", "back"]) == 1
    out = capsys.readouterr()
    assert "5 of 20" in out.out and "3 more needed" in out.out and "not enough blocks" in out.err
    assert not contents(world / "back") if (world / "back").exists() else True
    assert run(["reclaim", "part", "-o", "back", "--json"]) == 1
    (version,) = said(capsys)["versions"]  # type: ignore[misc]
    assert (version["found"], version["pages"], version["need"], version["missing"]) == (5, 20, 8, 3)


def test_reclaim_from_warc_and_wacz(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    apply()
    captures = [
        Capture(f"http://lost.example/{name}", "20260401000000", page)
        for name, page in contents(world / "site").items()
        if name.endswith(".html")
    ]
    write_warc(world / "first.warc.gz", captures[:6])
    write_warc(world / "second.warc.gz", captures[6:12])
    with zipfile.ZipFile(world / "second.wacz", "w") as package:
        package.write(world / "second.warc.gz", "archive/data.warc.gz")
    assert run(["reclaim", "first.warc.gz", "-o", "back"]) == 1
    assert run(["reclaim", "first.warc.gz", "second.wacz", "-o", "back"]) == 0
    assert contents(world / "back") == contents(world / "app")
    whole = (world / "first.warc.gz").read_bytes()
    (world / "cut.warc.gz").write_bytes(whole[:-400])
    (world / "damaged.warc.gz").write_bytes(whole + b"no record")
    capsys.readouterr()
    assert run(["reclaim", "cut.warc.gz", "second.wacz", "-o", "again"]) == 0
    assert "truncated" in capsys.readouterr().err
    assert run(["reclaim", "damaged.warc.gz", "second.wacz", "-o", "again"]) == 0
    assert "damaged.warc.gz" in capsys.readouterr().err


def test_an_older_version_comes_back_by_date(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    apply()
    shutil.copytree(world / "site", world / "old")
    (world / "app/main.py").write_text("newer\n")
    apply()
    assert run(["reclaim", "old", "site", "-o", "newest"]) == 0
    assert (world / "newest/main.py").read_text() == "newer\n"
    capsys.readouterr()
    assert run(["reclaim", "old", "site", "-o", "x", "--json"]) == 0
    versions = [one["version"] for one in said(capsys)["versions"]]  # type: ignore[union-attr]
    assert run(["reclaim", "old", "site", "-o", "older", "--version", min(versions)]) == 0
    assert (world / "older/main.py").read_text() == "print('hello')\n"


def test_forged_and_foreign_blocks_are_refused_by_name(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    apply()
    run(["protect", "keygen", "-o", "evil.key"])
    write_site(world / "evil", pages=20)
    write_app(world / "payload", SMALL, seed=9)
    run(["protect", "apply", "evil", "--files", "payload/", "--key", "evil.key", "-q"])
    page = world / "site/articles/1.html"
    page.write_bytes(page.read_bytes().replace(b" size=", b" size=1", 1))
    capsys.readouterr()
    assert run(["reclaim", "site", "evil", "-o", "back"]) == 2
    assert "several keys" in capsys.readouterr().err
    assert run(["reclaim", "site", "evil", "-o", "back", "--trust", "site.pub"]) == 0
    err = capsys.readouterr().err
    assert "foreign key" in err and "articles/1.html: " in err
    assert contents(world / "back") == contents(world / "app")


def test_encryption_from_the_shell(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pyrage = pytest.importorskip("pyrage")
    identity = pyrage.x25519.Identity.generate()
    (world / "age.key").write_text(f"{identity}\n")
    assert apply("--recipient", str(identity.to_public()), "--json") == 0
    assert said(capsys)["classes"][0]["encrypted"] is True  # type: ignore[index]
    assert run(["reclaim", "site", "-o", "locked"]) == 3
    assert "files.tar.age" in capsys.readouterr().err and (world / "locked/files.tar.age").exists()
    assert run(["reclaim", "site", "-o", "back", "--identity", "age.key"]) == 0
    assert contents(world / "back") == contents(world / "app")
    (world / "phrase").write_text("correct horse battery\n")
    assert apply("--passphrase-file", "phrase") == 0
    assert run(["reclaim", "site", "-o", "again", "--passphrase-file", "phrase"]) == 0
    assert contents(world / "again") == contents(world / "app")


def test_changes_of_files_encrypted_for_a_recipient_come_back(tmp_path: Path) -> None:
    import pyrage

    identity = pyrage.x25519.Identity.generate()
    (tmp_path / "id.txt").write_text(str(identity))
    site, app, back = tmp_path / "site", tmp_path / "app", tmp_path / "back"
    site.mkdir()
    app.mkdir()
    for number in range(12):
        (site / f"{number}.html").write_text(f"<html><body>{number}</body></html>")
    (app / "old.txt").write_text("first")
    assert run(["protect", "keygen", "-o", str(tmp_path / "site.key")]) == 0
    command = ["protect", "apply", str(site), "--files", f"code={app}/", "--key", str(tmp_path / "site.key")]
    command += ["--recipient", str(identity.to_public())]
    assert run(command) == 0
    (app / "old.txt").rename(app / "new.txt")
    (app / "new.txt").write_text("second")
    assert run(command) == 0
    pages = {path.name: path.read_bytes() for path in site.iterdir()}
    assert run(command) == 0
    assert {path.name: path.read_bytes() for path in site.iterdir()} == pages
    assert run(["reclaim", str(site), "-o", str(back), "--identity", str(tmp_path / "id.txt")]) == 0
    assert [(path.name, path.read_text()) for path in back.iterdir()] == [("new.txt", "second")]


def test_secrets_are_refused_unless_they_are_encrypted_or_included(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pyrage = pytest.importorskip("pyrage")
    (world / "app/.env").write_text("TOKEN=1\n")
    before = contents(world)
    command = ["protect", "apply", "site/", "--files", "app/", "--key", "site.key", "--json"]
    assert run(command) == 2
    err = capsys.readouterr().err
    assert ".env: credentials" in err and "--exclude-files" in err and "--include-secrets" in err
    assert contents(world) == before
    run(["protect", "plan", "site", "--files", "app/"])
    assert "WARNING" in capsys.readouterr().err
    assert run([*command, "--exclude-files", ".env", "-o", "without"]) == 0
    assert said(capsys)["classes"][0]["files"] == 4
    assert run([*command, "--include-secrets", "-o", "open"]) == 0
    out = capsys.readouterr()
    assert "WARNING" in out.err and json.loads(out.out)["classes"][0]["files"] == 5
    assert run([*command, "--recipient", str(pyrage.x25519.Identity.generate().to_public())]) == 0
    assert "WARNING" not in capsys.readouterr().err


def test_a_configured_recipient_encrypts(
    world: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pyrage = pytest.importorskip("pyrage")
    monkeypatch.setenv("RECOLLECT_PROTECT_RECIPIENT", str(pyrage.x25519.Identity.generate().to_public()))
    assert run(["protect", "apply", "site/", "--files", "app/", "--key", "site.key", "--json"]) == 0
    assert said(capsys)["classes"][0]["encrypted"] is True


def test_key_site_and_output_are_never_packed_and_version_control_is_refused(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (world / ".git/objects").mkdir(parents=True)
    (world / ".git/config").write_text("[remote]")
    (world / "drafts").mkdir()
    (world / "drafts/secret-plan.txt").write_text("not yet")
    command = ["protect", "apply", "site/", "--files", "code=.", "--key", "site.key", "-o", "deploy", "--json"]
    assert run(command) == 2
    assert ".git/: version control" in capsys.readouterr().err
    assert not (world / "deploy").exists()
    (world / ".recollectignore").write_text("# not for the public\n.git/\ndrafts/*\n!drafts/keep.txt\n")
    (world / "drafts/keep.txt").write_text("this one")
    assert run(command) == 0
    err = capsys.readouterr().err
    assert "not packed: site.key: the signing key" in err and "not packed: site: the site itself" in err
    assert run(command) == 0  # the output exists now
    assert "not packed: deploy: the output" in capsys.readouterr().err
    assert run(["reclaim", "deploy", "-o", "back"]) == 0
    names = set(contents(world / "back"))
    assert {"drafts/keep.txt", "app/main.py", ".recollectignore", "dump.sql"} <= names
    assert not any(name.startswith((".git", "site", "deploy", "drafts/secret")) for name in names - {"site.pub"})


@pytest.mark.parametrize("source", ["repo.git/", "work/.git"])
def test_version_control_as_a_source_is_refused(world: Path, source: str, capsys: pytest.CaptureFixture[str]) -> None:
    repository = world / source
    for folder in ("objects", "refs"):
        (repository / folder).mkdir(parents=True)
    (repository / "HEAD").write_text("ref: refs/heads/main")
    command = ["protect", "apply", str(world / "site"), "--key", str(world / "site.key")]
    assert run([*command, "--files", f"{world}/{source}"]) == 2
    assert "version control" in capsys.readouterr().err


def test_the_list_of_files_is_shown_before_the_first_write(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(world)
    (world / "deploy").mkdir()
    (world / "deploy/mine.txt").write_text("mine")  # a folder that is not ours is refused, after the list
    assert run(["protect", "apply", "site/", "--files", "app/", "--key", "site.key", "-o", "deploy"]) == 2
    err = capsys.readouterr().err
    assert "main.py (15" in err and ", public:" in err
    assert contents(world) == {**before, "deploy/mine.txt": b"mine"}


def test_plan_shows_costs_and_odds_and_draws_them(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(world)
    assert (
        run(["protect", "plan", "site", "--files", "code=app/", "--files", "data=dump.sql", "--plot", "odds.svg"]) == 0
    )
    out = capsys.readouterr().out
    assert "growth a page" in out and "recommended: --need 4" in out and "if 70% captured" in out and "█" in out
    svg = (world / "odds.svg").read_text()
    assert svg.startswith('<svg xmlns="http://www.w3.org/2000/svg"') and svg.endswith("</svg>")
    (world / "odds.svg").unlink()
    assert contents(world) == before, "a plan writes nothing"
    assert run(["protect", "plan", "site", "--files", "app/", "--growth", "700", "--json"]) == 0
    plan = said(capsys)
    assert plan["vault_pages"] > 0  # type: ignore[operator]
    assert {"need", "pages_needed", "share", "growth", "probability", "probability_if"} == set(plan["table"][0])  # type: ignore[index]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reclaim", "absent", "-o", "x"], "no such source"),
        (["protect", "apply", "site", "--files", "absent", "--key", "site.key"], "no such file"),
        (["protect", "apply", "site", "--files", "app", "--key", "site.pub"], "not a key"),
        (["protect", "apply", "site", "--files", "app", "--key", "site.key", "--need", "95%"], "too large a share"),
        (["protect", "apply", "site", "--files", "app", "--key", "site.key", "--need", "some"], "not a share"),
        (["protect", "apply", "dump.sql", "--files", "app", "--key", "site.key"], "missing -o FILE"),
        (["protect", "verify", "site", "--trust", "nonsense"], "not a public key"),
    ],
)
def test_wrong_usage_is_explained(
    world: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(arguments) in (1, 2)
    assert message in capsys.readouterr().err


def test_missing_packages_have_a_remedy(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    from recollect.protection import code

    monkeypatch.setitem(sys.modules, "pyrage", None)
    assert apply("--recipient", "age1x") == 2
    assert "recollect-web[protect]" in capsys.readouterr().err
    monkeypatch.setattr(code, "find_spec", lambda name: None)
    assert apply("--json") == 0
    assert said(capsys)["classes"][0]["code"] == "gf256", "the built-in code replaces RaptorQ"  # type: ignore[index]
    assert apply("--code", "raptorq") == 2
    assert "recollect-web[protect]" in capsys.readouterr().err


def test_without_a_library_for_signatures_nothing_is_written(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    before = contents(world / "site")
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    for arguments in (["keygen", "-o", "new.key"], ["apply", "site", "--files", "app/", "--key", "site.key"]):
        assert run(["protect", *arguments]) == 2
        assert "signatures need the package cryptography" in capsys.readouterr().err
    assert not (world / "new.key").exists() and contents(world / "site") == before


def test_plan_counts_the_pages_that_apply_would_use(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (world / "site" / "broken.html").write_text("<script>var a = 1;")
    assert run(["protect", "plan", "site", "--files", "app/", "--json"]) == 0
    planned = said(capsys)["pages"]
    assert apply("--json") == 3
    assert said(capsys)["pages"] == planned
    (world / "void").mkdir()
    assert run(["protect", "plan", "void", "--files", "app/"]) == 2


def test_the_documented_build_is_stable(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--files code=.` holds the folder of the copy."""
    key = f"../{world.name}.key"
    command = ["protect", "apply", "site", "--files", "code=.", "--key", key, "-o", "deploy", "--json"]
    command += ["--exclude-files", "/site.key"]
    assert run(["protect", "keygen", "-o", key]) == 0
    capsys.readouterr()
    assert run(command) == 0
    first = said(capsys)
    assert run(command) == 0
    again = said(capsys)
    assert again["changed"] == 0
    assert [one["version"] for one in again["classes"]] == [one["version"] for one in first["classes"]]


@pytest.mark.parametrize("option", ["--identity", "--passphrase-file"])
def test_wrong_openers_are_named_before_any_page_is_read(
    world: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    (world / "bad").write_bytes(b"\xff\xfe\n")
    assert run(["reclaim", "http://nowhere.example/", "-o", "back", option, "bad"]) == 2
    assert "passphrase" in (text := capsys.readouterr().err) or "identity" in text
    assert not (world / "back").exists()


def test_a_date_before_all_versions_is_said(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    apply()
    assert run(["reclaim", "site", "-o", "back", "--version", "2020"]) == 1
    text = capsys.readouterr().err
    assert "no version is that old" in text and "not enough blocks" not in text


@pytest.mark.parametrize("target", ["index.html", "style.css"])
def test_a_file_that_is_not_a_list_of_paths_is_refused(
    world: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    command = ["protect", "apply", f"site/{target}", "--files", "app/", "--key", "site.key", "-o", "site.blocks"]
    assert run(command) == 2
    assert f"site/{target}:1" in capsys.readouterr().err and not (world / "site.blocks").exists()


def test_blocks_of_a_dynamic_site_go_into_a_file(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (world / "paths.txt").write_text("\ufeff/about\nhttps://site.example/a?b=1&c=2\n", encoding="utf-8")
    command = ["protect", "apply", "paths.txt", "--files", "app/", "--key", "site.key", "-o"]
    assert run([*command, "site"]) == 2
    assert "the output is a folder" in capsys.readouterr().err
    assert run([*command, "si#te?.blocks"]) == run([*command, "si#te?.blocks"]) == 0
    assert "0 files changed" in capsys.readouterr().err
    blocks = Bundle("si#te?.blocks")
    assert "class=manifest" in blocks.text_for("/about")  # the site's root is not in the list


def test_addresses_in_a_sitemap_are_unescaped(tmp_path: Path) -> None:
    (tmp_path / "sitemap.xml").write_text("<urlset><url><loc>http://x.example/a?b=1&amp;c=2</loc></url></urlset>")
    assert read_paths(tmp_path / "sitemap.xml") == ["/a?b=1&c=2"]


def test_a_missing_code_is_not_called_missing_blocks(
    world: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("raptorq")
    apply("--code", "raptorq")
    monkeypatch.setattr("recollect.protection.code.find_spec", lambda _name: None)
    assert run(["reclaim", "site", "-o", "back"]) == 1
    text = capsys.readouterr()
    assert "the code raptorq is not installed" in text.err and "more needed" not in text.out


def test_a_terminal_is_asked_once_before_programs_are_published(world: Path) -> None:
    before = contents(world / "site")
    options = ["--files", "code=app/", "--key", "site.key"]
    command = [sys.executable, "-m", "recollect", "protect", "apply", "site", *options]
    assert _on_a_terminal(command, "n\n") == (1, True) and contents(world / "site") == before
    assert _on_a_terminal(command, "y\n") == (0, True) and contents(world / "site") != before
    (world / "app" / "main.py").write_text("print('again')\n")
    assert _on_a_terminal(command, "") == (0, False), "asked once"


def _on_a_terminal(command: list[str], answer: str) -> tuple[int, bool]:
    """The exit code of a command whose input is a terminal, and whether it asked."""
    person, terminal = os.openpty()
    try:
        os.write(person, answer.encode())
        done = subprocess.run(command, stdin=terminal, capture_output=True, text=True, timeout=120)
    finally:
        os.close(person)
        os.close(terminal)
    return done.returncode, "Publish them?" in done.stderr + done.stdout


def test_without_a_terminal_the_command_says_that_programs_become_public(
    world: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert run(["protect", "apply", "site", "--files", "code=app/", "--key", "site.key"]) == 0
    err = capsys.readouterr().err
    assert "become public, permanently" in err and err.index("  main.py (") < err.index("become public")


def test_a_version_that_lives_on_is_not_shown_with_the_number_of_files_of_now(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["protect", "apply", "site", "--files", "code=app/", "--key", "site.key", "--yes"]
    assert run(command) == 0
    (world / "app" / "new.txt").write_text("new")
    capsys.readouterr()
    assert run(command) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("code") and "version" in line]
    assert "lives on" in lines[0] and "file" not in lines[0]
    assert "what changed since then" in lines[1] and "(new)" in lines[1]
