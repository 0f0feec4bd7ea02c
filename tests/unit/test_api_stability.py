"""The public library changes only together with the changelog: names, parameters and fields are listed in a file."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import recollect
from recollect import asgi, wsgi

ROOT = Path(__file__).parents[2]
LISTED = ROOT / "docs" / "reference" / "api.txt"
HOW = "name it in CHANGELOG.md; at a release, list it: PYTHONPATH=src python tests/unit/test_api_stability.py"


def surface() -> list[str]:
    """A line for each public name: parameters of functions, fields of values, public methods of classes."""
    names = [(f"recollect.{name}", getattr(recollect, name)) for name in recollect.__all__]
    names += [("recollect.wsgi.advertise", wsgi.advertise), ("recollect.asgi.advertise", asgi.advertise)]
    return sorted(line for name, thing in names for line in _lines(name, thing))


def _lines(name: str, thing: object) -> Iterator[str]:
    if inspect.isclass(thing):
        yield f"class {name}"
        if dataclasses.is_dataclass(thing):
            yield from (f"{name}.{field.name}" for field in dataclasses.fields(thing) if not field.name.startswith("_"))
        for member, value in vars(thing).items():
            if not member.startswith("_") and (
                inspect.isfunction(value) or isinstance(value, classmethod | staticmethod)
            ):
                inner = getattr(value, "__func__", value)
                yield f"{name}.{member}({', '.join(inspect.signature(inner).parameters)})"
    elif callable(thing):
        yield f"{name}({', '.join(inspect.signature(thing).parameters)})"
    else:
        yield name


def unreleased() -> str:
    return (ROOT / "CHANGELOG.md").read_text().partition("\n## [Unreleased]\n")[2].partition("\n## ")[0]


def unsaid(now: list[str], listed: list[str], changes: str) -> list[str]:
    """Changes of the surface whose name the changelog does not have as a word."""
    changed = sorted(set(now) ^ set(listed))
    names = {line: line.partition("(")[0].rpartition(".")[2] for line in changed}
    return [line for line, name in names.items() if not re.search(rf"\b{re.escape(name)}\b", changes)]


def test_the_public_surface_changes_only_with_a_line_in_the_changelog() -> None:
    assert unsaid(surface(), LISTED.read_text().splitlines(), unreleased()) == [], HOW


def test_a_name_that_comes_or_goes_unsaid_is_found() -> None:
    listed = surface()
    assert unsaid([*listed, "recollect.brand_new(x)"], listed, unreleased()) == ["recollect.brand_new(x)"]
    assert unsaid(listed[1:], listed, "nothing") == listed[:1]
    assert unsaid([*listed, "recollect.brand_new(x)"], listed, "- `recollect.brand_new`: new.") == []


def test_the_changelog_has_the_usual_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert sections[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", section) for section in sections[1:])
    kinds = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_version_is_the_same_wherever_it_stands() -> None:
    assert f"version: {recollect.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert 'attr = "recollect.__version__"' in (ROOT / "pyproject.toml").read_text()


if __name__ == "__main__":
    LISTED.write_text("\n".join(surface()) + "\n")
