"""What an installation and a release take from others: no known weakness, nothing that can change later."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
# The first release without a known advisory (November 2026), of what reads bytes of others or keeps secrets.
SAFE = {
    "aiohttp": "3.14.3",  # CVE-2026-69244
    "brotli": "1.2",  # CVE-2025-6176
    "cryptography": "50",  # CVE-2026-69247
    "jinja2": "3.1.6",  # CVE-2025-27516
    "lxml": "6.1",  # CVE-2026-41066
    "pypdf": "6.16.1",  # CVE-2026-84310
}


def requirements() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    return [Requirement(line) for line in [*project["dependencies"], *(line for lines in extras for line in lines)]]


@pytest.mark.parametrize("name", sorted(SAFE))
def test_no_release_with_a_known_weakness_can_be_installed(name: str) -> None:
    bounds = [one.specifier for one in requirements() if canonicalize_name(one.name) == name]
    assert bounds
    for bound in bounds:
        lowest = [Version(one.version) for one in bound if one.operator == ">="]
        assert lowest and max(lowest) >= Version(SAFE[name]), f"{name}{bound}"


def test_pinned_versions_are_within_the_bounds() -> None:
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.M))
    known = {canonicalize_name(name): version for name, version in pins.items()}
    for one in requirements():
        version = known.get(canonicalize_name(one.name))
        assert version is None or one.specifier.contains(version), f"{one}: {version} is pinned"
    assert SAFE.keys() <= known.keys()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_and_may_only_read(path: Path) -> None:
    text = path.read_text()
    uses = re.findall(r"uses:\s*(\S+)", text)
    assert uses and all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one) for one in uses), uses
    assert re.search(r"^permissions:\n  contents: read$", text, re.M) and "write" not in text


def test_a_release_has_the_hash_of_everything_that_it_installs() -> None:
    release = (ROOT / ".github/workflows/release.yml").read_text()
    assert "make dist" in release and "dist/requirements.txt" in release
    recipe = (ROOT / "Makefile").read_text().partition("\ndist:")[2].partition("\n\n")[0]
    assert "scripts/hashes.py dist/requirements.txt" in recipe and "-c constraints.txt" in recipe
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert all("://" not in line and line.count("==") <= 1 for line in lines), "versions, no address of an index"
