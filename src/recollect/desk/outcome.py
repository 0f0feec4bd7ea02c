"""The result of a recovery in one honest sentence, for the page and the mail, in the reader's language. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect.ui.messages import current

_MOST, _SOME = 0.75, 0.1


def share(summary: Mapping[str, Any]) -> float | None:
    """The share that came back of everything known to have existed; None if nothing is known."""
    known = summary.get("discovered", 0)
    return summary.get("recovered", 0) / known if known else None


def is_whole(summary: Mapping[str, Any]) -> bool:
    """Nothing is known to be missing, and the recovery went to its end."""
    return bool(summary.get("complete", True)) and not summary.get("missing") and not summary.get("stopped")


def headline(summary: Mapping[str, Any]) -> str:
    """`Your site is back`, if the figures allow it."""
    _ = current().gettext
    back = share(summary)
    if is_whole(summary):
        return _("Your site is back")
    if back is None or back >= _MOST:
        return _("Most of your site is back")
    return _("A part of your site is back") if back >= _SOME else _("A little of your site is back")


def sentence(summary: Mapping[str, Any]) -> str:
    """How much came back, and how much did not."""
    texts = current()
    pages, recovered = summary.get("pages", 0), summary.get("recovered", 0)
    missing, back = summary.get("missing", 0), share(summary)
    found = _found(pages, recovered - pages)
    never = summary.get("missing_by_reason", {}).get("never-archived", 0)
    if back is not None and back < 0.5 and never * 2 > missing:
        return texts.gettext("We found %(found)s; most of the site was never saved.") % {"found": found}
    if not missing:
        return texts.gettext("We found %(found)s; nothing is known to be missing.") % {"found": found}
    lost = texts.ngettext("%(n)s piece is missing", "%(n)s pieces are missing", missing) % {"n": texts.number(missing)}
    return texts.gettext("We found %(found)s; %(lost)s.") % {"found": found, "lost": lost}


def _found(pages: int, files: int) -> str:
    texts = current()
    parts = []
    if pages or not files:
        parts.append(texts.ngettext("%(n)s page", "%(n)s pages", pages) % {"n": texts.number(pages)})
    if files:
        words = texts.ngettext("%(n)s picture or other file", "%(n)s pictures and other files", files)
        parts.append(words % {"n": texts.number(files)})
    return (
        texts.gettext("%(first)s and %(second)s") % dict(zip(("first", "second"), parts, strict=True))
        if len(parts) == 2
        else parts[0]
    )
