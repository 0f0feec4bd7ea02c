"""The name on the package index, in every hint, page and recipe; and hints that fit the environment."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from recollect.installation import DISTRIBUTION, install_command

ROOT = Path(__file__).parents[2]
# A requirement by the name that belongs to another project: recollect[extra], recollect==1.0, pip install recollect
FOREIGN = re.compile(
    r"""(?:pip|pipx|uv\ tool)\ install\ (?:-\S+\ )*["']?recollect(?![-_\w/])  # to install
    |(?<![-_\w./])recollect(?:\[[a-z]+\]["'`]|[=~>]=\d)                    # with an extra or a version
    |uvx\ recollect(?!-web)""",
    re.VERBOSE,
)


def test_hints_name_the_tool_that_made_the_environment(tmp_path: Path) -> None:
    assert install_command("spark", tmp_path) == "python -m pip install 'recollect-web[spark]'"
    (tmp_path / "pipx_metadata.json").touch()
    assert install_command("spark", tmp_path) == "pipx install --force 'recollect-web[spark]'"
    (tmp_path / "uv-receipt.toml").touch()
    assert install_command("spark", tmp_path) == "uv tool install --force 'recollect-web[spark]'"


def test_the_distribution_has_the_name_that_hints_give() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == DISTRIBUTION
    assert project["scripts"]["recollect"] == project["scripts"][DISTRIBUTION]


@pytest.mark.parametrize(
    ("text", "is_foreign"),
    [
        ("pip install 'recollect[arrow]'", True),
        ("pip install --upgrade recollect", True),
        ("uvx recollect profile", True),
        ("recollect==1.0", True),
        ("pip install 'recollect-web[arrow]'", False),
        ("uvx recollect-web", False),
        ("recollect profile index.cdxj", False),
    ],
)
def test_other_spellings_are_recognised(text: str, is_foreign: bool) -> None:
    assert bool(FOREIGN.search(text)) == is_foreign


def test_no_file_installs_the_package_of_another_project() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.split("\0")[:-1] or [str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")]
    wrong = []
    for name in names:
        path = ROOT / name
        if path == Path(__file__) or path.suffix in (".png", ".gz", ".svg") or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if FOREIGN.search(line):
                wrong.append(f"{name}:{number}: {line.strip()[:120]}")
    assert not wrong, "\n".join(wrong)
