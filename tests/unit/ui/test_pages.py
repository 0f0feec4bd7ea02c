"""Pages from templates: everything is escaped, files are linked or inside, every template can be read."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.ui.pages import INLINED, PACKAGES, Linked, asset, environment, render

TEMPLATES = sorted(
    f"{path.parent.parent.relative_to(PACKAGES)}/{path.name}" for path in PACKAGES.glob("*/templates/*.*")
)


@given(st.text())
def test_values_never_become_markup(text: str) -> None:
    page = render("ui/markup.html", INLINED, title=text, body=text, note=text)
    shown = re.sub(r"(?s)<style>.*?</style>", "", page)
    assert "<script" not in shown and "onerror=" not in re.sub(r">[^<]*<", "><", shown)
    if "<" in text:
        assert f">{text}<" not in shown


def test_a_single_file_loads_nothing_and_its_policy_allows_only_its_own_style() -> None:
    page = render("ui/markup.html", INLINED, title="t", body="b", note="")
    digest = base64.b64encode(hashlib.sha256(asset("look.css")).digest()).decode()
    assert f"&#39;sha256-{digest}&#39;" in page
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)


def test_a_page_of_a_server_links_its_files() -> None:
    page = render("ui/markup.html", Linked("/x"), title="t", body="b", note="", scripts=["desk.js"])
    assert 'href="/x/_/look.css"' in page and 'src="/x/_/desk.js"' in page and "<style" not in page


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_can_be_read(name: str) -> None:
    assert environment().get_template(name)


def test_style_sheets_can_stand_inside_of_a_page() -> None:
    for name in ("look.css", "page.css"):
        assert b"</" not in asset(name) and b"@import" not in asset(name) and b"url(" not in asset(name)
