"""Markup is in templates: the sources of pages that are made so have none."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from recollect.ui.pages import PACKAGES

_TAG = re.compile(
    r"</?(?:html|head|body|div|span|p|a|b|ul|ol|li|table|tr|td|th|h[1-6]|form|input|svg|rect|style|img)\b[^<]*>?"
)
SOURCES = [
    *sorted((PACKAGES / "desk/http").glob("views*.py")),
    *(
        PACKAGES / name
        for name in ("desk/letters.py", "desk/outcome.py", "desk/http/pages.py", "desk/http/language.py")
    ),
    *(PACKAGES / "recovery" / name for name in ("report.py", "reportpage.py", "restore.py", "alsofound.py")),
    *sorted((PACKAGES / "ui").glob("*.py")),
]
_BUILDER = {"look.py"}  # of pages that are not templates yet: admin, watch, keep


def markup(source: str) -> list[str]:
    """Texts of a source with tags in them, documentation aside."""
    tree = ast.parse(source)
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in documentation
        and _TAG.search(node.value)
    ]


@pytest.mark.parametrize("path", [path for path in SOURCES if path.name not in _BUILDER], ids=lambda path: path.name)
def test_no_markup_outside_of_templates(path: Path) -> None:
    assert markup(path.read_text()) == []


def test_markup_is_noticed() -> None:
    assert markup('"""<p>fine</p>"""\nx = f"<p>{y}</p>"\nz = "a < b > c"') == ["<p>", "</p>"]
