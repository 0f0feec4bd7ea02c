"""Texts in the reader's language: message catalogues, and numbers, dates and durations as the language writes them.

Hides: gettext, reading `.po` files, the choice of a language. A language is one file, `locales/LANGUAGE.po`; English
is in the sources. Catalogues are read from `.po` when first used (a few milliseconds), so that a wheel and a clone
work alike and nothing generated is kept. What a page or a mail shows is made `with using(language):`; templates and
`current()` follow it. `docs/translate.md` says how to add a language.
"""

from __future__ import annotations

import gettext
import io
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path

from recollect.quantities import format_size

SOURCE = "en"
LOCALES = Path(__file__).parent.parent / "locales"
_FIELD = re.compile(r'(msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)?\s*"((?:[^"\\]|\\.)*)"\s*$')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def message(text: str) -> str:
    """Marks a text for the catalogues where it is written down; it is translated where it is shown."""
    return text


def plural_message(one: str, many: str) -> tuple[str, str]:
    """Marks a text with a count (`%(count)s`) for the catalogues; `Messages.ngettext` translates it."""
    return one, many


MONTHS = (
    message("January"), message("February"), message("March"), message("April"), message("May"), message("June"),
    message("July"), message("August"), message("September"), message("October"), message("November"),
    message("December"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Messages:
    """The texts of one language."""

    language: str
    name: str = "English"
    thousands: str = ","
    decimal: str = "."
    catalogue: gettext.NullTranslations = field(default_factory=gettext.NullTranslations)

    def gettext(self, text: str) -> str:
        return self.catalogue.gettext(text) if text else ""

    def ngettext(self, one: str, many: str, number: float) -> str:
        return self.catalogue.ngettext(one, many, int(number))

    def number(self, value: float, digits: int = 0) -> str:
        whole, point, part = f"{value:,.{digits}f}".partition(".")
        return whole.replace(",", self.thousands) + point.replace(".", self.decimal) + part

    def percent(self, share: float) -> str:
        """A share as whole percent; little is not none, and nearly all is not all."""
        percent = round(100 * share)
        if share > 0 and percent == 0:
            return self.gettext("less than 1%")
        return f"{min(percent, 99) if share < 1 else percent}%"

    def size(self, value: float) -> str:
        return re.sub(r"[\d.,]+", lambda m: m[0].replace(".", self.decimal), format_size(value), count=1)

    def day(self, moment: float | str | date | None) -> str:
        """`3 March 2019`, of seconds, a date or an ISO 8601 text; a text that is none stays as it is."""
        when = _date(moment)
        if when is None:
            return str(moment or "")
        values = {"day": when.day, "month": self.gettext(MONTHS[when.month - 1]), "year": when.year}
        return self.gettext("%(day)s %(month)s %(year)s") % values

    def month(self, moment: float | str | date | None) -> str:
        """`March 2019`."""
        when = _date(moment)
        if when is None:
            return str(moment or "")
        return self.gettext("%(month)s %(year)s") % {"month": self.gettext(MONTHS[when.month - 1]), "year": when.year}

    def moment(self, seconds: float | None) -> str:
        """`3 March 2019, 14:05 UTC`."""
        if seconds is None:
            return ""
        return f"{self.day(seconds)}, {datetime.fromtimestamp(seconds, UTC):%H:%M} UTC"

    def duration(self, seconds: float) -> str:
        """`less than a minute`, `12 minutes`, `3 hours`, `2 days`: as exact as an estimate is."""
        if seconds < 60:
            return self.gettext("less than a minute")
        if seconds < 5400:
            n = max(1, round(seconds / 60))
            return self.ngettext("%(n)s minute", "%(n)s minutes", n) % {"n": self.number(n)}
        if seconds < 2 * 86400:
            n = round(seconds / 3600)
            return self.ngettext("%(n)s hour", "%(n)s hours", n) % {"n": self.number(n)}
        n = round(seconds / 86400)
        return self.ngettext("%(n)s day", "%(n)s days", n) % {"n": self.number(n)}


def _date(moment: float | str | date | None) -> date | None:
    if isinstance(moment, int | float):
        return datetime.fromtimestamp(moment, UTC).date()
    if isinstance(moment, str):
        try:
            return date.fromisoformat(moment[:10])
        except ValueError:
            return None
    return moment


# Catalogues ----------------------------------------------------------------------------------------------------------


def entries(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """(singular, plural or empty, translations) of a `.po` text; fuzzy and obsolete entries are left out."""
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        if any(line.startswith("#,") and "fuzzy" in line for line in lines):
            continue
        fields: dict[str, str] = {}
        name = ""
        for line in lines:
            if line.startswith("#") or not (match := _FIELD.match(line)):
                continue
            name = match[1] or name
            fields[name] = fields.get(name, "") + _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[1]), match[2])
        if "msgid" in fields:
            made = [value for key, value in sorted(fields.items()) if key.startswith("msgstr")]
            yield fields["msgid"], fields.get("msgid_plural", ""), made


def compiled(text: str) -> bytes:
    """A `.po` text as the `.mo` that gettext reads."""
    pairs = {}
    for singular, plural, made in entries(text):
        if all(made):
            key = f"{singular}\0{plural}" if plural else singular
            pairs[key.encode()] = "\0".join(made).encode()
    ordered = sorted(pairs.items())
    head = 7 * 4
    at = head + 16 * len(ordered)
    tables: list[int] = []
    for texts in ([key for key, _ in ordered], [value for _, value in ordered]):
        for one in texts:
            tables += (len(one), at)
            at += len(one) + 1
    strings = b"".join(one + b"\0" for column in zip(*ordered, strict=True) for one in column) if ordered else b""
    count = len(ordered)
    header = struct.pack("<7I", 0x950412DE, 0, count, head, head + 8 * count, 0, 0)
    return header + struct.pack(f"<{4 * count}I", *tables) + strings


@cache
def languages() -> dict[str, Messages]:
    """Every language there is, English first, then by code."""
    made = {SOURCE: Messages(SOURCE)}
    for path in sorted(LOCALES.glob("*.po")):
        catalogue = gettext.GNUTranslations(io.BytesIO(compiled(path.read_text(encoding="utf-8"))))
        info = catalogue.info()
        made[path.stem] = Messages(
            path.stem,
            info.get("x-language-name", path.stem),
            info.get("x-thousands", ",").replace("space", "\u202f"),
            info.get("x-decimal", "."),
            catalogue,
        )
    return made


# The choice ----------------------------------------------------------------------------------------------------------

_current: ContextVar[Messages | None] = ContextVar("messages", default=None)


def current() -> Messages:
    """The language of the page or mail that is being made; English if none was chosen."""
    return _current.get() or languages()[SOURCE]


@contextmanager
def using(language: str) -> Iterator[Messages]:
    """Texts in this language, in this thread or task; English for a language that there is not."""
    chosen = languages().get(language) or languages()[SOURCE]
    token = _current.set(chosen)
    try:
        yield chosen
    finally:
        _current.reset(token)


def preferred(accept_language: str, *first: str) -> str:
    """The language for a reader: the first of `first` that there is, else by the header `Accept-Language`
    (RFC 9110, 12.5.4; `pt-BR` is answered with `pt`), else English."""
    offered = languages()
    for one in first:
        if one in offered:
            return one
    weighted: list[tuple[float, int, str]] = []
    for position, part in enumerate(accept_language[:1000].split(",")):
        tag, _, parameter = part.strip().partition(";")
        name, _, value = parameter.strip().partition("=")
        try:
            weight = float(value) if name.strip() == "q" else 1.0
        except ValueError:
            weight = 0.0
        code = tag.strip().lower().partition("-")[0]
        if code in offered and weight > 0:
            weighted.append((-weight, position, code))
    return min(weighted)[2] if weighted else SOURCE
