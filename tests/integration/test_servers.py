"""The servers that other tests use, and what a run says about tests that had to do without."""

from __future__ import annotations

import os
import smtplib
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

import pywb_archive

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "scripts/prepare_tests.sh"


def body_of(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as reply:
        return reply.read()


@pytest.mark.parametrize("round_", [1, 2])
def test_each_test_has_an_empty_postgresql_database(postgres_url: str, postgres_server: Any, round_: int) -> None:
    name = postgres_url.partition("?")[0].rpartition("/")[2]
    data = postgres_server.psql(f"\\c {name}\nCREATE TABLE once (n int);\nSELECT version();")
    assert "PostgreSQL" in data and "ERROR" not in data


@pytest.mark.parametrize("round_", [1, 2])
def test_each_test_has_an_empty_redis(redis_url: str, round_: int) -> None:
    import redis

    with redis.Redis.from_url(redis_url) as client:
        assert client.get("key") is None
        client.set("key", "value")
        assert client.get("key") == b"value"


def test_nginx_serves_a_folder_by_our_rules(nginx: Callable[..., str], served_folder: Path) -> None:
    (served_folder / "b.html").write_text("<p>b")
    base = nginx(served_folder, server="rewrite ^/a$ /b.html;", http='map $request_uri $mark { default "x"; }')
    assert body_of(f"{base}/a") == b"<p>b"


def test_apache_serves_a_folder_and_obeys_its_htaccess(apache: Callable[..., str], served_folder: Path) -> None:
    (served_folder / "b.html").write_text("<p>b")
    (served_folder / ".htaccess").write_text("RewriteEngine On\nRewriteRule ^a$ /b.html [L]\n")
    assert body_of(f"{apache(served_folder)}/a") == b"<p>b"


def test_a_server_with_a_wrong_configuration_says_why(nginx: Callable[..., str], served_folder: Path) -> None:
    with pytest.raises(RuntimeError, match='unknown directive "nonsense"'):
        nginx(served_folder, server="nonsense;")


def test_mail_arrives(mailbox: Any) -> None:
    message = EmailMessage()
    message["Subject"] = "Your site"
    message.set_content("is back")
    with smtplib.SMTP(mailbox.host, mailbox.port, timeout=10) as client:
        client.send_message(message, "a@example.org", ["b@example.org"])
    assert [one["Subject"] for one in mailbox.messages] == ["Your site"]
    assert mailbox.envelopes == [("a@example.org", ["b@example.org"])]


def test_a_page_opens_in_chromium(page: Any) -> None:
    page.set_content("<title>here</title>")
    assert page.title() == "here"


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_ends_with_the_skipped_tests_and_what_each_lacked(tmp_path: Path, workers: str) -> None:
    (tmp_path / "test_some.py").write_text(
        "import needs\n\n"
        "def test_with_a_server(nginx): raise AssertionError\n"
        "def test_with_a_page(page): raise AssertionError\n"
        "def test_with_nothing(): pass\n"
    )
    (tmp_path / "test_whole.py").write_text("import needs\nneeds.program('Java')\ndef test_one(): pass\n")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "tests")}
    for name in ("JAVA_HOME", "PYTEST_ADDOPTS"):
        environment.pop(name, None)
    hidden = "import needs\nneeds._PATH = '/nowhere'\n"
    (tmp_path / "conftest.py").write_text(f"{hidden}pytest_plugins = ['needs', 'servers']\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        workers,
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
    ]
    done = subprocess.run(
        [*command, "-c", os.devnull, str(tmp_path)], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    _, found, listed = done.stdout.partition("skipped, and what was missing")
    assert found
    lines = [line for line in listed.splitlines()[1:] if line]
    assert lines[:-1] == [
        "Chromium is not installed (Debian: apt-get install chromium):",
        "    test_some.py::test_with_a_page",
        "Java is not installed (Debian: apt-get install default-jre-headless):",
        "    test_whole.py",
        "nginx is not installed (Debian: apt-get install nginx):",
        "    test_some.py::test_with_a_server",
    ]


def prepared(tmp_path: Path, *, tools: dict[str, str], **environment: str) -> subprocess.CompletedProcess[str]:
    """The script on a machine that has only `tools` (name, and the script it is)."""
    tmp_path.joinpath("bin").mkdir()
    for name in ("grep", "rm", "chmod", "timeout", "cat", "sh"):
        found = next(path for folder in ("/usr/bin", "/bin") if (path := Path(folder, name)).exists())
        tmp_path.joinpath("bin", name).symlink_to(found)
    for name, text in tools.items():
        tmp_path.joinpath("bin", name).write_text(f"#!/bin/sh\n{text}\n")
        tmp_path.joinpath("bin", name).chmod(0o755)
    script = SCRIPT.read_text().replace("/usr/local/sbin:/usr/sbin:/sbin", "/nowhere")
    script = script.replace("policy=/usr/sbin/policy-rc.d", f"policy={tmp_path}/policy-rc.d")
    script = script.replace("/usr/lib/apache2/modules", f"{tmp_path}/files").replace(
        "/usr/sbin/php", f"{tmp_path}/files/php"
    )
    (tmp_path / "files").mkdir()
    if "php" in tools:
        for name in ("libphp8.so", "php-fpm8"):
            (tmp_path / "files" / name).touch()
    (tmp_path / "os-release").write_text('PRETTY_NAME="Debian"\nID=debian\n')
    return subprocess.run(
        ["/bin/sh", "-c", script, "prepare_tests.sh", sys.executable],
        capture_output=True,
        text=True,
        env={"PATH": str(tmp_path / "bin"), "OS_RELEASE": str(tmp_path / "os-release"), **environment},
        cwd=REPOSITORY,
    )


PROGRAMS = ("java", "chromium", "firefox-esr", "httrack", "wget", "nginx", "apache2", "caddy", "node", "zstdcat")
TOOLS = {**dict.fromkeys(PROGRAMS, "exit 9"), "php": "echo pdo_sqlite"}


def test_preparing_does_nothing_where_everything_is_there(tmp_path: Path) -> None:
    done = prepared(tmp_path, tools=TOOLS)
    assert (done.returncode, done.stderr) == (0, "")


def test_preparing_as_root_on_debian_installs_what_is_missing_without_starting_it(tmp_path: Path) -> None:
    log = tmp_path / "apt.log"
    tools = {name: text for name, text in TOOLS.items() if name != "nginx"}
    tools |= {"id": "echo 0", "apt-get": f'echo "$@" >>{log}; cat {tmp_path}/policy-rc.d >>{log}'}
    done = prepared(tmp_path, tools=tools)
    assert done.returncode == 0
    said = log.read_text()
    assert "install --no-install-recommends nginx\n" in said and "exit 101" in said
    assert not (tmp_path / "policy-rc.d").exists()


@pytest.mark.parametrize("user", ["0", "1000"])
def test_preparing_never_fails_and_names_what_is_missing(tmp_path: Path, user: str) -> None:
    done = prepared(tmp_path, tools={"id": f"echo {user}", "apt-get": "exit 100"})
    assert done.returncode == 0
    missing = "apt-get install default-jre-headless chromium firefox-esr httrack wget nginx"
    wanted = "nginx could not be installed" if user == "0" else missing
    assert wanted in done.stderr and "caddy" in done.stderr


def test_preparing_installs_nothing_when_it_may_not(tmp_path: Path) -> None:
    done = prepared(tmp_path, tools={"id": "echo 0", "apt-get": "echo never >&2"}, INSTALL="no")
    assert done.returncode == 0
    assert "INSTALL=no" in done.stderr and "never" not in done.stderr


def test_a_machine_that_cannot_have_pywb_runs_the_other_tests(tmp_path: Path) -> None:
    """The Makefile with an environment that exists, where making another one fails."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "constraints-pywb.txt", "setup.py"):
        (tmp_path / name).write_bytes((REPOSITORY / name).read_bytes())
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/prepare_tests.sh").write_text("echo prepared\n")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").write_text('#!/bin/sh\necho ran "$@"\n')
    (tmp_path / ".venv/bin/python").chmod(0o755)
    later = time.time() + 60
    for stamp in (".package-installed", ".kernels-built", ".installed"):
        (tmp_path / ".venv" / stamp).touch()
        os.utime(tmp_path / ".venv" / stamp, (later, later))
    done = subprocess.run(
        ["make", "test", "PYTHON=/nowhere/python"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "pywb could not be installed" in done.stderr and "ran -m pytest" in done.stdout


def test_an_environment_without_pywb_is_not_pywb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.touch()
    monkeypatch.setattr(pywb_archive, "PYWB_PYTHON", python)
    with pytest.raises(pytest.skip.Exception, match="pywb is not installed"), pywb_archive.pywb_archives([]):
        pass
    (tmp_path / "lib/python3.11/site-packages/pywb").mkdir(parents=True)
    assert pywb_archive.is_installed()
