"""Bring the catalogues in line with the sources: `make messages`, or `python scripts/messages.py [--check]`.

Collects every message of templates (`_()`, `ngettext()`, `{% trans %}`) and sources (`message()`, `plural_message()`,
`gettext()`, `ngettext()`, and the sentences of errors that visitors of the desk see), adds new ones to `locales/*.po` without a
translation, and removes those that nothing uses. With --check it changes nothing and fails where something would be.
docs/translate.md is about it.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "recollect"
LOCALES = SOURCES / "locales"
KEYWORDS = {"_": None, "gettext": None, "message": None, "ngettext": (1, 2), "plural_message": (1, 2)}
# Errors that visitors of the desk see on a page: their sentences are messages.
ERRORS = frozenset(("Refused", "TooMany", "BadToken", "Denied", "TooSlow", "Gone", "Busy", "UnknownJob"))
SHOWN = ("desk/*.py", "desk/http/pages.py", "desk/http/context.py", "desk/http/session.py")
Message = str | tuple[str, ...]


def collected() -> Iterator[tuple[Message, str, int]]:
    """(message, file, line) of all sources."""
    options = {"newstyle_gettext": "true", "trimmed": "true", "silent": "false"}
    for path in sorted(SOURCES.rglob("templates/**/*")):
        if path.is_file():
            for line, text, _, _ in extract_from_file("jinja2.ext:babel_extract", path, KEYWORDS, options=options):
                yield text, str(path.relative_to(SOURCES)), line
    for path in sorted(SOURCES.rglob("*.py")):
        if path.name == "messages.py" or "gettext" in (source := path.read_text()) or "message(" in source:
            for line, text, _, _ in extract_from_file("python", path, KEYWORDS):
                yield text, str(path.relative_to(SOURCES)), line
    for pattern in SHOWN:
        for path in sorted(SOURCES.glob(pattern)):
            for text, line in sentences(path.read_text()):
                yield text, str(path.relative_to(SOURCES)), line


def sentences(source: str) -> Iterator[tuple[str, int]]:
    """The literal sentences of errors that are raised: what, why and hint."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Raise) or not isinstance(call := node.exc, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name not in ERRORS:
            continue
        given = [*call.args[:1], *(word.value for word in call.keywords if word.arg in ("why", "hint"))]
        for value in given:
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
                yield value.value, value.lineno


def template() -> Catalog:
    """All messages, without translations."""
    catalogue = Catalog(project="recollect")
    for text, file, _ in collected():
        if text:
            catalogue.add(text, locations=[(file, 1)])
    return catalogue


def updated(path: Path, wanted: Catalog) -> str:
    """A catalogue with all messages of the sources and no other; translations stay."""
    with path.open("rb") as file:
        catalogue = read_po(file, locale=path.stem)
    catalogue.update(wanted, no_fuzzy_matching=True)
    catalogue.obsolete.clear()
    out = io.BytesIO()
    write_po(out, catalogue, width=100, include_lineno=False, sort_by_file=True, omit_header=False)
    # The header is ours: Babel's has dates, and lacks our fields.
    header = path.read_text().partition("\n\n")[0].strip()
    body = out.getvalue().decode().strip().partition("\n\n")[2]
    return f"{header}\n\n{body}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, and fail where something would change")
    given = parser.parse_args()
    wanted = template()
    wrong = 0
    for path in sorted(LOCALES.glob("*.po")):
        text = updated(path, wanted)
        if given.check:
            wrong += text != path.read_text()
        else:
            path.write_text(text)
        untranslated = [
            one.id for one in read_po(io.BytesIO(text.encode())) if one.id and not all(_strings(one.string))
        ]
        print(f"{path.stem}: {len(wanted)} messages, {len(untranslated)} without a translation")
        for text_ in untranslated[:5]:
            print(f"  {text_}")
        wrong += bool(untranslated)
    return 1 if wrong else 0


def _strings(value: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


if __name__ == "__main__":
    sys.exit(main())
