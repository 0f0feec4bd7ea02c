"""The forms that lead to a job: describe the site, see what archives have, confirm. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from recollect.archives.registry import Archive
from recollect.desk.http.views import STEPS, page, try_this
from recollect.quantities import format_size
from recollect.ui.look import (
    Html,
    bars,
    card,
    checks,
    choice,
    duration,
    field,
    figures,
    hidden,
    join,
    notice,
    post,
    steps,
    table,
    tag,
)

_WHEN = {
    "newest": "The newest good copy of every page (recommended)",
    "at": "As it was around one date",
    "between": "Only copies between two dates",
}
_LISTINGS = {
    "complete": "complete",
    "truncated": "cut off, there may be more",
    "failed": "did not answer",
    "no listing": "cannot list",
    "not asked": "not asked",
}
_INTRODUCTION = (
    "Web archives keep copies of many websites. We look for yours in all of them, put the pieces together and give you "
    "the site as one file that opens on any computer. It is free, and you do not need an account."
)


# Describing it -------------------------------------------------------------------------------------------------------


def form_page(archives: Sequence[Archive], given: Mapping[str, Any], errors: Mapping[str, str]) -> str:
    """Where one says what was lost."""
    shown = ("uri", "at", "from", "to")
    wrong = [notice(tag("p", text), bad=True) for name, text in errors.items() if name not in shown]
    address = field(
        "uri",
        "Address of the lost site",
        value=given.get("uri", ""),
        required=True,
        inputmode="url",
        autocomplete="url",
        placeholder="http://lost.example/",
        error=errors.get("uri", ""),
        hint="As you typed it in the browser. We look for everything below this address.",
    )
    extent = {"site": "The whole site", "page": "Only this one page"}
    body = tag(
        "form",
        address,
        choice("scope", "How much of it?", extent, given.get("scope") or "site"),
        _more_choices(archives, given, errors),
        tag("button", "See what the archives have"),
        method="get",
        action="/survey",
    )
    title = "Get a lost website back"
    return page(
        title, tag("h1", title), tag("p", _INTRODUCTION), steps(STEPS, 0), *wrong, card("", body), here="/"
    )  # fmt: skip


def _more_choices(archives: Sequence[Archive], given: Mapping[str, Any], errors: Mapping[str, str]) -> Html:
    names = {archive.id: archive.name or archive.id for archive in archives}
    dates = tag(
        "div",
        field("at", "Around", value=given.get("at", ""), placeholder="2009-06-01", error=errors.get("at", "")),
        field("from", "From", value=given.get("from", ""), placeholder="2004", error=errors.get("from", "")),
        field("to", "To", value=given.get("to", ""), placeholder="2008-12", error=errors.get("to", "")),
        class_="inline field",
    )
    windows = {"yes": "I use Windows: make file names short and without accents"}
    return tag(
        "details",
        tag("summary", "More choices: dates, archives, file names"),
        choice("when", "Which copies?", _WHEN, given.get("when") or "newest"),
        dates,
        checks("archives", "Which archives?", names, given.get("archives") or list(names)),
        checks("windows_names", "File names", windows, ["yes"] if given.get("windows_names") else []),
        open=bool(errors) or (given.get("when") or "newest") != "newest",
        class_="field",
    )


# What there is -------------------------------------------------------------------------------------------------------


def survey_wait_page(uri: str) -> str:
    return page(
        "Asking the archives",
        tag("h1", "Asking the archives"),
        steps(STEPS, 1),
        card(
            "",
            tag("p", "We ask each archive what it has of ", tag("b", uri), "."),
            tag("p", "This takes from a few seconds to a few minutes. The page reloads automatically.", class_="note"),
        ),
        tag("div", data_reload="2000", role="status"),
        refresh=3,
        scripts=("desk.js",),
    )


def survey_page(
    uri: str,
    found: Mapping[str, Any],
    estimate: Mapping[str, float],
    fields: Mapping[str, Any],
    errors: Mapping[str, str],
) -> str:
    """What the archives list, what may come back, and how long it takes; and the form that asks for it."""
    if not found.get("captures"):
        return _nothing_listed(uri, found)
    wrong = [notice(tag("p", text), bad=True) for name, text in errors.items() if name not in ("email", "name")]
    seconds = float(found.get("estimate", {}).get("seconds", 0))
    waiting = duration(float(estimate.get("waiting", 0)))
    times = (
        f"Waiting in the queue: {waiting}. Working: {duration(seconds)}. "
        "You can close all pages meanwhile; we send you a mail when it is ready."
    )
    return page(
        f"What the archives have of {uri}",
        tag("h1", "What the archives have"),
        steps(STEPS, 1),
        *wrong,
        _holdings(uri, found),
        card("How long it takes", tag("p", times)),
        card("Ask for it", _ask(fields, errors)),
    )


def _holdings(uri: str, found: Mapping[str, Any]) -> Html:
    size = found.get("estimate", {}).get("bytes")
    numbers = [
        (f"{int(found.get('resources', 0)):,}", "pages and files may come back"),
        (f"{int(found['captures']):,}", "copies are listed"),
        ((found.get("last_good") or "unknown")[:10], "last good date"),
        (format_size(float(size)) if size else "unknown", "to download"),
    ]
    rows = [
        (one["name"], f"{one['captures']:,}", f"{one['resources']:,}", (one["last_good"] or "")[:10], _listing(one))
        for one in found.get("archives", [])
    ]
    return card(
        uri,
        figures(numbers),
        bars(_years(found["per_year"]), "Copies per year"),
        table(("archive", "copies", "files", "last good", "listing"), rows, numbers=(1, 2), caption="Archives"),
        tag("p", "These numbers are upper limits: a copy can turn out to be an error page.", class_="note"),
    )


def _ask(fields: Mapping[str, Any], errors: Mapping[str, str]) -> Html:
    """The form that asks for the recovery, with what was chosen before."""
    kept = {k: v for k, v in fields.items() if isinstance(v, str) and v and k not in ("email", "name")}
    listed = hidden(kept) + join(hidden({"archives": one}) for one in fields.get("archives", []))
    return post(
        "/jobs",
        listed,
        field(
            "email",
            "Your e-mail address",
            kind="email",
            required=True,
            autocomplete="email",
            error=errors.get("email", ""),
            value=str(fields.get("email", "")),
            hint="For one mail to confirm and one when it is ready. We delete your address afterwards.",
        ),
        field("name", "Your name (optional)", autocomplete="name", value=str(fields.get("name", ""))),
        button="Ask for the recovery",
    )


def _years(counts: Mapping[str, int]) -> dict[str, int]:
    """Every year from the first to the last, also those without copies; two digits where there are many."""
    years = [int(year) for year in counts]
    span = range(min(years), max(years) + 1)
    return {f"{year}" if len(span) <= 14 else f"{year % 100:02d}": counts.get(str(year), 0) for year in span}


def _listing(one: Mapping[str, Any]) -> str:
    return _LISTINGS.get(str(one["state"]), str(one["state"]))


def _nothing_listed(uri: str, found: Mapping[str, Any]) -> str:
    rows = [(one["name"], _listing(one)) for one in found.get("archives", [])]
    return page(
        "Nothing listed",
        tag("h1", "The archives list nothing of it"),
        card(uri, table(("archive", "answer"), rows, caption="Archives"), level=2),
        try_this(uri),
    )


# Confirming ----------------------------------------------------------------------------------------------------------


def sent_page(uri: str) -> str:
    return page(
        "Look into your mail",
        tag("h1", "Look into your mail"),
        steps(STEPS, 2),
        card(
            "One more step",
            tag("p", "We sent you a mail with one link. Open it and press the button there."),
            tag("p", "Then we put ", tag("b", uri or "your site"), " into the queue."),
            tag(
                "p",
                "No mail after ten minutes? Look into the spam folder, or ask again with another address. "
                "You may close this page now.",
                class_="note",
            ),
        ),
    )


def confirm_page(uri: str, token: str) -> str:
    """The page that the link in the mail leads to: one form, and only its button confirms."""
    return page(
        "Please confirm",
        tag("h1", "Please confirm"),
        steps(STEPS, 2),
        card(
            uri,
            tag("p", "Shall we bring this website back from the archives?"),
            post(f"/confirm/{quote(token)}", button="Yes, get it back"),
        ),
    )
