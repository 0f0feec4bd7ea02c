"""The sentences about a recovery: a pure function from its figures, one table for every edge.

The command, the report, START-HERE, the desk and the watch word a recovery by `headline`, `share` and `details`; each
returns `Sentence` values (a phrase and its fields), and `text` words them in the current language of `ui.messages`
(English for commands and files). Invariants: `Headline.WHOLE` ("Your site is back") only without any known or possible
loss; 100% is never written beside a loss; every outage is named.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from recollect.recovery.figures import Figures, Loss, Outage, OutageKind
from recollect.ui.messages import current, message, plural_message


class Headline(StrEnum):
    """The first sentence about a recovery."""

    WHOLE = "whole"
    AS_LINKED = "as-linked"  # all that is linked, where no archive lists sites
    AS_SAVED = "as-saved"  # all that archives list, though more is known to be lost
    MOST = "most"
    PART = "part"
    LISTED_SO_FAR = "listed-so-far"  # all that is listed, though not every archive gave its whole list
    MOST_SO_FAR = "most-so-far"
    PART_SO_FAR = "part-so-far"
    NOTHING_BACK = "nothing-back"  # listed, and nothing came
    NOTHING_SAVED = "nothing-saved"
    NOTHING_YET = "nothing-yet"  # not every archive answered


class Phrase(StrEnum):
    """The other sentences."""

    SHARE = "share"
    SHARE_ALL = "share-all"
    SHARE_LITTLE = "share-little"  # less than one percent
    RESOURCES = "resources"  # where nothing was listed
    NEVER_SAVED_PAGES = "never-saved-pages"
    NEVER_SAVED_FILES = "never-saved-files"
    LOST_FAILED = "lost-failed"
    LOST_OUT_OF_QUOTA = "lost-out-of-quota"
    LOST_BLOCKED = "lost-blocked"
    LOST_REJECTED = "lost-rejected"
    LOST_NOT_REACHED = "lost-not-reached"
    LOST_NOT_WANTED = "lost-not-wanted"
    BESIDE_LOST = "beside-lost"
    ELSEWHERE_ONE_HOST = "elsewhere-one-host"
    ELSEWHERE = "elsewhere"
    FOREIGN = "foreign"
    SUSPECTS = "suspects"
    OTHER_ADDRESS = "other-address"
    UNLINKED_PAGES = "unlinked-pages"
    UNLINKED_FILES = "unlinked-files"
    NO_FRONT = "no-front"
    OUTAGE_SLOW = "outage-slow"
    OUTAGE_UNREACHABLE = "outage-unreachable"
    OUTAGE_REFUSED = "outage-refused"
    OUTAGE_FAILED = "outage-failed"
    OUTAGE_CUT = "outage-cut"
    OUTAGE_NOT_HELD = "outage-not-held"
    OUTAGE_LISTS = "outage-lists"
    OUTAGE_WAITS = "outage-waits"
    OUTAGE_UNKNOWN = "outage-unknown"
    HINT_POLICY = "hint-policy"  # options of the command, after a semicolon
    HINT_ASSETS = "hint-assets"


WORDS: Mapping[Headline | Phrase, str | tuple[str, str]] = {
    Headline.WHOLE: message("Your site is back"),
    Headline.AS_LINKED: message("All that is linked came back; no archive gave a list of the site"),
    Headline.AS_SAVED: message("All that archives list of your site is back"),
    Headline.MOST: message("Most of your site is back"),
    Headline.PART: message("A part of your site is back"),
    Headline.LISTED_SO_FAR: message("All that archives list is back so far; not every archive gave its whole list"),
    Headline.MOST_SO_FAR: message("Most of your site is back so far; more can be asked for"),
    Headline.PART_SO_FAR: message("A part of your site is back so far; more can be asked for"),
    Headline.NOTHING_BACK: message("Nothing of your site came back"),
    Headline.NOTHING_SAVED: message("No archive lists anything of your site"),
    Headline.NOTHING_YET: message("Nothing came back so far; not every archive gave what it holds"),
    Phrase.SHARE: plural_message(
        "%(percent)s%% of %(count)s address that archives list",
        "%(percent)s%% of %(count)s addresses that archives list",
    ),
    Phrase.SHARE_ALL: plural_message(
        "the one address that archives list came back",
        "all %(count)s addresses that archives list came back",
    ),
    Phrase.SHARE_LITTLE: message("less than 1%% of %(count)s addresses that archives list"),
    Phrase.RESOURCES: plural_message(
        "%(count)s resource came back; no archive gave a list",
        "%(count)s resources came back; no archive gave a list",
    ),
    Phrase.NEVER_SAVED_PAGES: plural_message(
        "%(count)s linked page was never saved", "%(count)s linked pages were never saved"
    ),
    Phrase.NEVER_SAVED_FILES: plural_message(
        "%(count)s linked file was never saved", "%(count)s linked files were never saved"
    ),
    Phrase.LOST_FAILED: plural_message(
        "%(count)s listed address did not come: its archives failed",
        "%(count)s listed addresses did not come: their archives failed",
    ),
    Phrase.LOST_OUT_OF_QUOTA: plural_message(
        "%(count)s listed address waits for its archive's next quota",
        "%(count)s listed addresses wait for their archives' next quota",
    ),
    Phrase.LOST_BLOCKED: plural_message(
        "%(count)s listed address is held and not given out",
        "%(count)s listed addresses are held and not given out",
    ),
    Phrase.LOST_REJECTED: plural_message(
        "%(count)s listed address was saved only as an error page or a redirect elsewhere",
        "%(count)s listed addresses were saved only as error pages or redirects elsewhere",
    ),
    Phrase.LOST_NOT_REACHED: plural_message(
        "%(count)s more is listed, and was not reached before the end of this run",
        "%(count)s more are listed, and were not reached before the end of this run",
    ),
    Phrase.LOST_NOT_WANTED: plural_message(
        "%(count)s more is listed, but no link leads there",
        "%(count)s more are listed, but no link leads there",
    ),
    Phrase.BESIDE_LOST: plural_message(
        "%(count)s linked resource did not come back", "%(count)s linked resources did not come back"
    ),
    Phrase.ELSEWHERE_ONE_HOST: plural_message(
        "the pages need %(count)s more resource of 1 other host",
        "the pages need %(count)s more resources of 1 other host",
    ),
    Phrase.ELSEWHERE: plural_message(
        "the pages need %(count)s more resource of %(hosts)s other hosts",
        "the pages need %(count)s more resources of %(hosts)s other hosts",
    ),
    Phrase.FOREIGN: plural_message(
        "%(count)s listed address holds only another site's pages and was left out",
        "%(count)s listed addresses hold only another site's pages and were left out",
    ),
    Phrase.SUSPECTS: plural_message(
        "%(count)s page looks doubtful and was kept, marked (login, error, another site ...)",
        "%(count)s pages look doubtful and were kept, marked (login, error, another site ...)",
    ),
    Phrase.OTHER_ADDRESS: plural_message(
        "%(count)s linked page was found under another address",
        "%(count)s linked pages were found under another address",
    ),
    Phrase.UNLINKED_PAGES: plural_message(
        "also found: %(count)s older page, not linked from the newest front page",
        "also found: %(count)s older pages, not linked from the newest front page",
    ),
    Phrase.UNLINKED_FILES: plural_message(
        "also found: %(count)s file, not linked from the newest front page",
        "also found: %(count)s files, not linked from the newest front page",
    ),
    Phrase.NO_FRONT: message("the front page did not come back"),
    Phrase.OUTAGE_SLOW: message("%(archive)s did not answer in time"),
    Phrase.OUTAGE_UNREACHABLE: message("%(archive)s could not be reached"),
    Phrase.OUTAGE_REFUSED: message("%(archive)s refused"),
    Phrase.OUTAGE_FAILED: message("%(archive)s failed"),
    Phrase.OUTAGE_CUT: message("%(archive)s cut its list off"),
    Phrase.OUTAGE_NOT_HELD: message("%(archive)s does not have all that it lists"),
    Phrase.OUTAGE_LISTS: plural_message(
        "it lists %(count)s address of this site", "it lists %(count)s addresses of this site"
    ),
    Phrase.OUTAGE_WAITS: plural_message("%(count)s of them is not back", "%(count)s of them are not back"),
    Phrase.OUTAGE_UNKNOWN: message("what it lists is not known"),
    Phrase.HINT_POLICY: plural_message("--policy exhaustive recovers it too", "--policy exhaustive recovers them too"),
    Phrase.HINT_ASSETS: plural_message("--assets anywhere recovers it too", "--assets anywhere recovers them too"),
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A phrase with its fields; `more` are clauses after semicolons."""

    phrase: Headline | Phrase
    count: int = 0
    fields: Mapping[str, str | int] = field(default_factory=dict)
    more: tuple[Sentence, ...] = ()


def text(sentence: Sentence) -> str:
    """The words of a sentence, in the current language."""
    texts = current()
    entry = WORDS[sentence.phrase]
    words = texts.gettext(entry) if isinstance(entry, str) else texts.ngettext(*entry, sentence.count)
    fields = {"count": sentence.count, **sentence.fields}
    words %= {name: texts.number(value) if isinstance(value, int) else value for name, value in fields.items()}
    return "; ".join([words, *(text(clause) for clause in sentence.more)])


def headline(figures: Figures) -> Headline:
    """The first sentence that the figures allow."""
    waiting = bool(figures.outages) or not figures.complete
    if not figures.recovered:
        if figures.outages or (waiting and not figures.listed):
            return Headline.NOTHING_YET
        return Headline.NOTHING_BACK if figures.listed or figures.lost else Headline.NOTHING_SAVED
    all_listed = figures.listed_back == figures.listed and not figures.suspects
    if waiting:
        if all_listed and figures.complete and not figures.lost:
            return Headline.LISTED_SO_FAR
        return Headline.MOST_SO_FAR if _is_most(figures) else Headline.PART_SO_FAR
    if all_listed and not figures.lost and figures.front:
        return Headline.WHOLE if figures.listed else Headline.AS_LINKED
    if all_listed and figures.listed and not figures.beside_lost:
        return Headline.AS_SAVED
    return Headline.MOST if _is_most(figures) else Headline.PART


def _is_most(figures: Figures) -> bool:
    """Is at least three quarters of all that is known to exist back, beyond doubt?"""
    sure = figures.recovered - figures.suspects
    return sure >= 3 * (figures.lost + figures.suspects)


def percent(figures: Figures) -> int | None:
    """The share of the listed addresses that came back, rounded down; None when nothing is listed.

    100 only when nothing at all is known to be lost: otherwise `share` says "all", and names the loss beside it.
    """
    if not figures.listed:
        return None
    return 100 * figures.listed_back // figures.listed


def share(figures: Figures) -> Sentence:
    """The share of what archives list, and beside it what is linked and was never saved."""
    never = tuple(
        Sentence(phrase, count)
        for phrase, count in (
            (Phrase.NEVER_SAVED_PAGES, figures.never_saved_pages),
            (Phrase.NEVER_SAVED_FILES, figures.never_saved_files),
        )
        if count
    )
    known = percent(figures)
    if known is None:
        return Sentence(Phrase.RESOURCES, figures.recovered, more=never)
    if known == 100 and (figures.lost or figures.outages or figures.suspects or not figures.complete):
        return Sentence(Phrase.SHARE_ALL, figures.listed, more=never)
    if known == 0 and figures.listed_back:
        return Sentence(Phrase.SHARE_LITTLE, figures.listed, more=never)
    return Sentence(Phrase.SHARE, figures.listed, {"percent": known}, never)


_LOSSES = {
    Loss.FAILED: Phrase.LOST_FAILED,
    Loss.OUT_OF_QUOTA: Phrase.LOST_OUT_OF_QUOTA,
    Loss.BLOCKED: Phrase.LOST_BLOCKED,
    Loss.REJECTED: Phrase.LOST_REJECTED,
    Loss.NOT_REACHED: Phrase.LOST_NOT_REACHED,
    Loss.NOT_WANTED: Phrase.LOST_NOT_WANTED,
}
_OUTAGES = {
    OutageKind.SLOW: Phrase.OUTAGE_SLOW,
    OutageKind.UNREACHABLE: Phrase.OUTAGE_UNREACHABLE,
    OutageKind.REFUSED: Phrase.OUTAGE_REFUSED,
    OutageKind.FAILED: Phrase.OUTAGE_FAILED,
    OutageKind.CUT: Phrase.OUTAGE_CUT,
    OutageKind.NOT_HELD: Phrase.OUTAGE_NOT_HELD,
}


def details(figures: Figures, *, hints: bool = True) -> list[Sentence]:
    """Every further loss, doubt and find, one sentence each; outages are in `outages`.

    `hints` name the option of the command that recovers more; who has no command has no use for them.
    """
    counts = [
        *((phrase, figures.losses.get(loss, 0)) for loss, phrase in _LOSSES.items()),
        (Phrase.BESIDE_LOST, figures.beside_lost),
        (Phrase.FOREIGN, figures.foreign),
        (Phrase.SUSPECTS, figures.suspects),
        (Phrase.OTHER_ADDRESS, figures.other_address),
    ]
    policy = {Phrase.LOST_NOT_WANTED: Phrase.HINT_POLICY} if hints else {}
    found = [
        Sentence(phrase, count, more=(Sentence(policy[phrase], count),) if phrase in policy else ())
        for phrase, count in counts
        if count
    ]
    if figures.elsewhere:
        phrase = Phrase.ELSEWHERE_ONE_HOST if figures.elsewhere_hosts == 1 else Phrase.ELSEWHERE
        hint = (Sentence(Phrase.HINT_ASSETS, figures.elsewhere),) if hints else ()
        found.append(Sentence(phrase, figures.elsewhere, {"hosts": figures.elsewhere_hosts}, hint))
    if figures.recovered and not figures.front:
        return [Sentence(Phrase.NO_FRONT), *found]
    return found + unlinked(figures)


def unlinked(figures: Figures) -> list[Sentence]:
    """What came back although nothing links to it."""
    counts = ((Phrase.UNLINKED_PAGES, figures.unlinked_pages), (Phrase.UNLINKED_FILES, figures.unlinked_files))
    return [Sentence(phrase, count) for phrase, count in counts if count]


def outage(one: Outage) -> Sentence:
    """An archive that gave less than it has: its name, what it lists, and what of that is not back."""
    if one.listed is None:
        more: tuple[Sentence, ...] = (Sentence(Phrase.OUTAGE_UNKNOWN),)
    else:
        more = (Sentence(Phrase.OUTAGE_LISTS, one.listed),)
        if one.waiting:
            more += (Sentence(Phrase.OUTAGE_WAITS, one.waiting),)
    return Sentence(_OUTAGES[one.kind], fields={"archive": one.archive}, more=more)


def rerun_command(one: Outage, folder: str) -> str:
    """The command that asks this archive, and no other, for what it has not given."""
    return f"recollect recover --resume {shlex.quote(folder)} --use {shlex.quote(one.archive)} --yes"


def summary(figures: Figures, *, hints: bool = True) -> list[str]:
    """Headline, share, details and outages as lines of text."""
    lines = [Sentence(headline(figures)), share(figures), *details(figures, hints=hints)]
    return [text(line) for line in (*lines, *(outage(one) for one in figures.outages))]
