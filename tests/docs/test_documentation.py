"""The documentation is true: generated pages are fresh, nothing is undocumented, links lead somewhere, commands run."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import click
import pytest

from docs_world import docs_world, write_files
from recollect.aggregator.http.endpoints import ENDPOINTS
from recollect.cli.main import COMMANDS, cli
from recollect.desk.settings import DeskSettings
from recollect.settings import Settings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
UNLISTED = {"", "_", "mementomap"}  # the page, its style and the files below the well-known address


def test_generated_pages_are_fresh() -> None:
    # In a process of its own: click remembers the help option a command was first shown with.
    command = [sys.executable, str(ROOT / "scripts" / "reference.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{done.stderr}: make reference"


def test_manual_pages_are_made_of_every_command(tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'scripts')!r}); import manpages, pathlib; " + (
        f"manpages.FOLDER = pathlib.Path({str(tmp_path)!r}); manpages.main()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=120)
    assert {page.name for page in tmp_path.iterdir()} == {"recollect.1", *(f"recollect-{name}.1" for name in COMMANDS)}
    assert "\\-\\-max\\-bytes" in (tmp_path / "recollect-keep.1").read_text()
    if shutil.which("groff") is not None:
        for page in tmp_path.iterdir():
            done = subprocess.run(
                ["groff", "-Kutf8", "-man", "-ww", "-Tutf8", "-z", page], capture_output=True, text=True
            )
            assert done.stderr == "", page


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_with_examples_and_every_option_a_meaning(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None and command.help
    assert "Examples:" in (command.epilog or ""), f"recollect {name} shows no examples"
    inner = list(command.commands.values()) if isinstance(command, click.Group) else []
    for one in (command, *inner):
        for parameter in one.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"recollect {one.name} {parameter.opts[0]} says nothing"


def test_every_setting_and_every_endpoint_is_documented() -> None:
    settings = (DOCS / "reference" / "settings.md").read_text()
    missing = [one.name for one in (*fields(Settings), *fields(DeskSettings)) if f"| `{one.name}` |" not in settings]
    http = (DOCS / "reference" / "http.md").read_text()
    missing += [
        word for word in ENDPOINTS if word not in UNLISTED and not re.search(rf"`(GET|POST) /{re.escape(word)}\b", http)
    ]
    assert missing == []


def test_every_page_is_in_the_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text()
    assert [
        str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if f": {page.relative_to(DOCS)}\n" not in menu
    ] == []


def test_every_dependency_is_used_and_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [re.match(r"[\w-]+", line)[0] for line in project["dependencies"]]
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    reasons = re.findall(r"^\| ([\w, -]+)", (DOCS / "design.md").read_text(), re.MULTILINE)
    named = {name.strip() for cell in reasons for name in cell.split(",")}
    assert [name for name in wanted if name not in named] == [], "docs/design.md gives no reason"
    used = [name for name in wanted if re.search(rf"(import|from) {name.replace('-', '_')}\b", source)]
    assert used == wanted


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s#]+)[^)]*\)", text)
    assert [to for to in targets if not re.match(r"[a-z]+:", to) and not (page.parent / to).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_named_in_pages_exist_with_their_options(page: Path) -> None:
    """`recollect COMMAND --option` in code of any page."""
    wrong = []
    for line in re.findall(r"recollect [a-z]+[^\n`|]*", page.read_text(encoding="utf-8")):
        name, *words = re.split(r"\s(?:#|&&)|[;)]", line.removeprefix("recollect "))[0].split()
        if name not in COMMANDS:
            continue  # prose
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        for word in words:
            if not isinstance(command, click.Group) or word not in command.commands:
                break
            command = command.commands[word]
        known = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
        wrong += [
            f"{name} {word}"
            for word in words
            if word.startswith("--") and word.rstrip(",.:") not in {*known, "--help", "--"}
        ]
    assert wrong == []


def test_the_ten_examples_of_the_library_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "library.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^## \d+\. ", text, re.MULTILINE)) == 10
    test = doctest.DocTestParser().get_doctest(text.replace("```", ""), {}, "library.md", "docs/library.md", 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("docs")
    with docs_world(folder):
        yield folder


@pytest.mark.parametrize("page", [page for page in TUTORIALS if page.stem != "watch"], ids=lambda page: page.stem)
def test_the_commands_of_the_tutorials_run(page: Path, world: Path) -> None:
    """Every `sh` block, in order; a block that serves is kept running beside the others."""
    port = _free_port()
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "RECOLLECT_PORT": str(port),
        "XDG_CONFIG_HOME": str(world),
        "XDG_STATE_HOME": str(world),
        "COLUMNS": "120",
    }
    with _servers() as running:
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            block = block.replace("127.0.0.1:1208", f"127.0.0.1:{port}").replace("127.0.0.1:1209", f"127.0.0.1:{port}")
            block = block.replace("--port 1209", f"--port {port}").replace("http.server 1209", f"http.server {port}")
            if "curl " in block and shutil.which("curl") is None:
                continue
            if block.startswith(("recollect serve", "recollect desk --data desk/ --archives")):
                running.append(subprocess.Popen(["bash", "-c", f"exec {block}"], cwd=world, env=environment))
                _wait_for(port)
                continue
            done = subprocess.run(
                ["bash", "-ec", block],
                cwd=world,
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
                stdin=subprocess.DEVNULL,
            )
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"


@contextmanager
def _servers() -> Iterator[list[subprocess.Popen[bytes]]]:
    running: list[subprocess.Popen[bytes]] = []
    try:
        yield running
    finally:
        for process in running:
            process.terminate()
            process.wait(15)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int) -> None:
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the server did not start")
