"""The result of a recovery in one honest sentence, for the page and the mail, in the reader's language. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from recollect.desk.reports import unanswered
from recollect.ui.messages import current, message

_MOST, _SOME = 0.75, 0.1


def share(summary: Mapping[str, Any]) -> float | None:
    """The share that came back of everything known to have existed; None if nothing is known."""
    known = summary.get("discovered", 0)
    return summary.get("recovered", 0) / known if known else None


def is_whole(summary: Mapping[str, Any]) -> bool:
    """Nothing is known to be missing, and the recovery went to its end."""
    complete = bool(summary.get("complete", True)) and not unanswered(summary)
    return complete and not summary.get("missing") and not summary.get("stopped")


class Extent(StrEnum):
    """How much of a site is back."""

    WHOLE = "whole"
    MOST = "most"
    PART = "part"
    LITTLE = "little"


def extent(summary: Mapping[str, Any]) -> Extent:
    """How much is back, of everything known to have existed."""
    back = share(summary)
    if is_whole(summary):
        return Extent.WHOLE
    if back is None or back >= _MOST:
        return Extent.MOST
    return Extent.PART if back >= _SOME else Extent.LITTLE


_HEADLINES = {
    Extent.WHOLE: message("Your site is back"),
    Extent.MOST: message("Most of your site is back"),
    Extent.PART: message("A part of your site is back"),
    Extent.LITTLE: message("A little of your site is back"),
}


def headline(summary: Mapping[str, Any]) -> str:
    """`Your site is back`, if the figures allow it."""
    return current().gettext(_HEADLINES[extent(summary)])


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
