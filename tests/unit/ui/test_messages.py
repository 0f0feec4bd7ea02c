"""Catalogues: complete, nothing unused, right plurals and fields; no text of a visitor's page is outside of them."""

from __future__ import annotations

import ast
import gettext
import io
import re
import sys
from pathlib import Path

import pytest
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from hypothesis import given
from hypothesis import strategies as st

from recollect.ui.messages import LOCALES, MONTHS, compiled, current, languages, preferred, using
from recollect.ui.pages import PACKAGES, environment

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
import messages as collector

LANGUAGES = ("de", "es", "pt")
VISITORS = sorted((PACKAGES / "desk" / "templates").rglob("*.*"))
VISITORS += [
    PACKAGES / "recovery" / "templates" / f"{name}.html"
    for name in ("start_here", "report", "also_found", "not_recovered")
]
SOURCES = [PACKAGES / "desk" / name for name in ("letters.py", "outcome.py")]
SOURCES += [PACKAGES / "recovery" / name for name in ("reportpage.py", "starthere.py", "alsofound.py")]
SOURCES += sorted((PACKAGES / "desk" / "http").glob("views*.py"))
_FIELDS = re.compile(r"%\(\w+\)s|</?\w+[^>]*>")


def test_the_languages_are_those_promised() -> None:
    assert {"en", *LANGUAGES} <= set(languages())
    assert next(iter(languages().values())).name == "English"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_message_is_translated_and_none_is_unused(language: str) -> None:
    wanted = {one.id for one in collector.template() if one.id}
    with (LOCALES / f"{language}.po").open("rb") as file:
        catalogue = read_po(file, locale=language, abort_invalid=True)
    known = {one.id for one in catalogue if one.id}
    assert wanted - known == set(), "missing: run `make messages` and translate"
    assert known - wanted == set(), "unused: run `make messages`"
    strings = {one.id: (one.string,) if isinstance(one.string, str) else one.string for one in catalogue if one.id}
    assert [text for text, made in strings.items() if not all(made)] == [], "without a translation"
    assert not any(one.fuzzy for one in catalogue if one.id)


@pytest.mark.parametrize("language", LANGUAGES)
def test_plurals_and_fields_are_right(language: str) -> None:
    with (LOCALES / f"{language}.po").open("rb") as file:
        catalogue = read_po(file, locale=language)
    assert [(one.id, errors) for one, errors in catalogue.check()] == []
    for one in catalogue:
        ids = one.id if isinstance(one.id, tuple) else (one.id,)
        made = (one.string,) if isinstance(one.string, str) else one.string
        assert isinstance(one.id, tuple) == (len(made) == 2) or not one.id, one.id
        for text in made:
            assert sorted(_FIELDS.findall(text)) == sorted(_FIELDS.findall(ids[-1])) or not one.id, text
    with using(language) as texts:
        for number in range(200):
            shown = texts.ngettext("%(n)s page", "%(n)s pages", number)
            assert shown == texts.ngettext("%(n)s page", "%(n)s pages", 1 if number == 1 else 2)
        assert texts.ngettext("%(n)s page", "%(n)s pages", 1) != texts.ngettext("%(n)s page", "%(n)s pages", 2)


@pytest.mark.parametrize("language", LANGUAGES)
def test_catalogues_are_read_as_other_programs_read_them(language: str) -> None:
    text = (LOCALES / f"{language}.po").read_text()
    out = io.BytesIO()
    write_mo(out, read_po(io.BytesIO(text.encode()), locale=language))
    theirs = gettext.GNUTranslations(io.BytesIO(out.getvalue()))
    ours = gettext.GNUTranslations(io.BytesIO(compiled(text)))
    assert ours._catalog.items() - {("", ours._catalog[""])} == theirs._catalog.items() - {("", theirs._catalog[""])}  # type: ignore[attr-defined]


def _outside(path: Path) -> list[str]:
    """Texts of a template that no catalogue has."""
    found, inside, markup = [], False, []
    for _, kind, value in environment().lex(path.read_text()):
        if kind == "name" and value in ("trans", "endtrans"):
            inside = value == "trans"
        if kind == "data" and not inside:
            markup.append(value)
        elif kind in ("variable_begin", "block_begin"):
            markup.append("\0")
    source = re.sub(r"<(style|code)\b.*?</\1>", " ", "".join(markup), flags=re.DOTALL)
    found += re.findall(r'(?:alt|title|placeholder|aria-label)="([^"\0]*[^\W\d_]{2}[^"\0]*)"', source)
    texts = re.sub(r"<[^>]*>", " ", source) if path.suffix == ".html" else source
    found += re.findall(r"[^\W\d_]{3,}(?:[ ,.][^\W\d_]+)*", texts.replace("\0", " "))
    return [text for text in found if text not in ("tar.gz", "WACZ", "Recollect")]


@pytest.mark.parametrize("path", VISITORS, ids=lambda path: path.name)
def test_no_text_of_a_template_is_outside_of_the_catalogues(path: Path) -> None:
    assert _outside(path) == []


def test_texts_outside_of_the_catalogues_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text(
        '<p class="x">{{ _("Fine") }}</p><p>Not translated</p><img alt="A picture">{% trans %}Fine{% endtrans %}'
    )
    assert _outside(page) == ["A picture", "Not translated"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_text_of_a_source_is_outside_of_the_catalogues(path: Path) -> None:
    tree = ast.parse(path.read_text())
    allowed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
            "gettext", "ngettext", "message", "plural_message", "_",
        ):  # fmt: skip
            allowed |= {id(one) for one in node.args}
        if isinstance(node, ast.Expr):
            allowed.add(id(node.value))  # documentation
    found = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in allowed
        and re.search(r"[^\W\d_]{2,} [^\W\d_]{2,}", node.value) and "SELECT" not in node.value
    ]  # fmt: skip
    assert found == []


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("de-AT,de;q=0.9,en;q=0.5", "de"), ("fr,pt-BR;q=0.8,en;q=0.3", "pt"), ("en-GB,es", "en"), ("fr", "en"),
        ("es;q=0.1,de;q=0.2", "de"), ("de;q=0,es;q=0.1", "es"), ("", "en"), (";;q=,,", "en"), ("de;q=x", "en"),
    ],
)  # fmt: skip
def test_the_browser_chooses_the_language(header: str, language: str) -> None:
    assert preferred(header) == language
    assert preferred(header, "es") == "es" and preferred(header, "xx") == language


@given(st.text())
def test_any_header_gives_a_language(header: str) -> None:
    assert preferred(header) in languages()


def test_numbers_dates_and_durations_are_written_as_the_language_does() -> None:
    shown = {}
    for language in ("en", *LANGUAGES):
        with using(language) as texts:
            assert current() is texts
            shown[language] = (texts.number(1234567.5, 1), texts.day("2019-03-03"), texts.duration(7200))
    assert shown == {
        "en": ("1,234,567.5", "3 March 2019", "2 hours"),
        "de": ("1.234.567,5", "3. März 2019", "2 Stunden"),
        "es": ("1.234.567,5", "3 de marzo de 2019", "2 horas"),
        "pt": ("1.234.567,5", "3 de março de 2019", "2 horas"),
    }
    assert len(set(MONTHS)) == 12


def test_a_share_never_rounds_to_none_or_all() -> None:
    with using("en") as texts:
        assert [texts.percent(share) for share in (0, 0.001, 0.5, 0.999, 1)] == [
            "0%",
            "less than 1%",
            "50%",
            "99%",
            "100%",
        ]
