"""The result of a recovery for the page and the mail, in the reader's language. Pure.

`recovery.sentences` words the figures; here is the sentence beside the buttons, which follows from the same figures.
"""

from __future__ import annotations

from recollect.recovery.figures import Figures
from recollect.recovery.sentences import Headline, Sentence, details, outage, share, text
from recollect.recovery.sentences import headline as headline_of
from recollect.ui.messages import current


def headline(figures: Figures) -> str:
    """`Your site is back`, if the figures allow it."""
    return text(Sentence(headline_of(figures)))


def sentence(figures: Figures) -> str:
    """How much came back, and how much did not."""
    texts = current()
    found = _found(figures.pages, figures.recovered - figures.pages)
    lost = figures.lost
    if figures.never_saved * 2 > lost and lost > figures.recovered:
        return texts.gettext("We found %(found)s; most of the site was never saved.") % {"found": found}
    if lost:
        words = texts.ngettext("%(n)s piece is missing", "%(n)s pieces are missing", lost) % {"n": texts.number(lost)}
        return texts.gettext("We found %(found)s; %(lost)s.") % {"found": found, "lost": words}
    if headline_of(figures) is Headline.WHOLE:
        return texts.gettext("We found %(found)s; nothing is known to be missing.") % {"found": found}
    return texts.gettext("We found %(found)s.") % {"found": found}


def share_words(figures: Figures) -> str:
    """The share of what archives list, and what was never saved."""
    return _capital(text(share(figures)))


def lines(figures: Figures) -> list[str]:
    """Each loss, doubt, find and outage in a line."""
    found = [*details(figures, hints=False), *(outage(one) for one in figures.outages)]
    return [_capital(text(one)) if one.fields.get("archive") is None else text(one) for one in found]


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


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
