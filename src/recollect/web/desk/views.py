"""The pages of people as HTML, from plain values. Pure: no request, no database.

Hides: words and layout. Everything that came from outside is escaped by the components of `look`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from recollect.archives.registry import Archive
from recollect.quantities import format_size
from recollect.recovery.store import REASONS
from recollect.service.states import State
from recollect.web.look import (
    Html,
    bars,
    card,
    checks,
    choice,
    document,
    duration,
    field,
    figures,
    hidden,
    notice,
    post,
    progress_bar,
    steps,
    table,
    tag,
)

NAV = {"/": "Get a site back", "/takedown": "Take a site down"}
_STEPS = ("Describe it", "See what there is", "Confirm by mail", "Download")
_WHEN = {
    "newest": "The newest good copy of everything (recommended)",
    "at": "As it was around one date",
    "between": "Only copies between two dates",
}


def moment(seconds: float | None) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%d %B %Y, %H:%M} UTC" if seconds is not None else ""


def day(seconds: float | None) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%d %B %Y}" if seconds is not None else ""


def page(
    title: str, *body: Any, here: str = "", refresh: int = 0, scripts: Sequence[str] = (), narrow: bool = True
) -> str:
    return document(title, *body, nav=NAV, here=here, refresh=refresh, scripts=scripts, narrow=narrow)


# Asking --------------------------------------------------------------------------------------------------------------


def form_page(archives: Sequence[Archive], given: Mapping[str, Any], errors: Mapping[str, str]) -> str:
    """Where one says what was lost."""
    wrong = [
        notice(tag("p", text), bad=True) for name, text in errors.items() if name not in ("uri", "at", "from", "to")
    ]
    names = {archive.id: archive.name or archive.id for archive in archives}
    body = tag(
        "form",
        field(
            "uri",
            "Address of the lost site",
            value=given.get("uri", ""),
            required=True,
            inputmode="url",
            autocomplete="url",
            placeholder="http://lost.example/",
            error=errors.get("uri", ""),
            hint="As it stood in the browser. Everything below this address is looked for.",
        ),
        choice(
            "scope",
            "How much of it?",
            {"site": "The whole site", "page": "Only this one page"},
            given.get("scope") or "site",
        ),
        tag(
            "details",
            tag("summary", "More choices: dates, archives, file names"),
            choice("when", "Which copies?", _WHEN, given.get("when") or "newest"),
            tag(
                "div",
                field("at", "Around", value=given.get("at", ""), placeholder="2009-06-01", error=errors.get("at", "")),
                field("from", "From", value=given.get("from", ""), placeholder="2004", error=errors.get("from", "")),
                field("to", "To", value=given.get("to", ""), placeholder="2008-12", error=errors.get("to", "")),
                class_="inline field",
            ),
            checks("archives", "Which archives?", names, given.get("archives") or list(names)),
            checks(
                "windows_names",
                "File names",
                {"yes": "I use Windows: explain the download for Windows (names of files always work there)"},
                ["yes"] if given.get("windows_names") else [],
            ),
            open=bool(errors) or (given.get("when") or "newest") != "newest",
            class_="field",
        ),
        tag("button", "See what the archives have"),
        method="get",
        action="/survey",
    )
    return page(
        "Get a lost website back",
        tag("h1", "Get a lost website back"),
        tag(
            "p",
            "Web archives keep copies of many websites. We look for yours in all of them, put the pieces together and "
            "give you the site as one file that opens on any computer. It is free, and you need no account.",
        ),
        steps(_STEPS, 0),
        *wrong,
        card("", body),
        here="/",
    )


def survey_wait_page(uri: str) -> str:
    return page(
        "Asking the archives",
        tag("h1", "Asking the archives"),
        steps(_STEPS, 1),
        card(
            "",
            tag("p", "We ask each archive what it has of ", tag("b", uri), "."),
            tag("p", "This takes from some seconds to some minutes. The page reloads by itself.", class_="note"),
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
    captures = int(found.get("captures", 0))
    if not captures:
        return _nothing_listed(uri, found)
    cost = found.get("estimate", {})
    rows = [
        (one["name"], f"{one['captures']:,}", f"{one['resources']:,}", (one["last_good"] or "")[:10], _listing(one))
        for one in found.get("archives", [])
    ]
    kept = {k: v for k, v in fields.items() if isinstance(v, str) and v and k not in ("email", "name")}
    listed = hidden(kept)
    listed = Html(listed + "".join(hidden({"archives": one}) for one in fields.get("archives", [])))
    ask = post(
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
            hint="For one mail to confirm and one when it is ready. It is deleted afterwards.",
        ),
        field("name", "Your name (optional)", autocomplete="name", value=str(fields.get("name", ""))),
        button="Ask for the recovery",
    )
    wrong = [notice(tag("p", text), bad=True) for name, text in errors.items() if name not in ("email", "name")]
    return page(
        f"What the archives have of {uri}",
        tag("h1", "What the archives have"),
        steps(_STEPS, 1),
        *wrong,
        card(
            uri,
            figures(
                [
                    (f"{int(found.get('resources', 0)):,}", "pages and files may come back"),
                    (f"{captures:,}", "copies are listed"),
                    ((found.get("last_good") or "unknown")[:10], "last good date"),
                    (format_size(float(cost.get("bytes", 0))) if cost.get("bytes") else "unknown", "to download"),
                ]
            ),
            bars(_years(found["per_year"]), "Copies per year"),
            table(("archive", "copies", "files", "last good", "listing"), rows, numbers=(1, 2), caption="Archives"),
            tag("p", "These numbers are upper limits: a copy can turn out to be an error page.", class_="note"),
        ),
        card(
            "How long it takes",
            tag(
                "p",
                f"Waiting in the queue: {duration(float(estimate.get('waiting', 0)))}. "
                f"Working: {duration(float(cost.get('seconds', 0)))}. "
                "You can close all pages meanwhile; a mail tells you when it is ready.",
            ),
        ),
        card("Ask for it", ask),
    )


def _years(counts: Mapping[str, int]) -> dict[str, int]:
    """Every year from the first to the last, also those without copies; two digits where there are many."""
    years = [int(year) for year in counts]
    span = range(min(years), max(years) + 1)
    return {f"{year}" if len(span) <= 14 else f"{year % 100:02d}": counts.get(str(year), 0) for year in span}


def _listing(one: Mapping[str, Any]) -> str:
    words = {
        "complete": "complete",
        "truncated": "cut off, there may be more",
        "failed": "did not answer",
        "no listing": "cannot list",
        "not asked": "not asked",
    }
    return words.get(str(one["state"]), str(one["state"]))


def _nothing_listed(uri: str, found: Mapping[str, Any]) -> str:
    rows = [(one["name"], _listing(one)) for one in found.get("archives", [])]
    return page(
        "Nothing listed",
        tag("h1", "The archives list nothing of it"),
        card(uri, table(("archive", "answer"), rows, caption="Archives"), level=2),
        _try_this(uri),
    )


def _try_this(uri: str) -> Html:
    host = uri.partition("://")[2].partition("/")[0]
    other = host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"
    return card(
        "What you can still try",
        tag(
            "ul",
            tag("li", "Check the spelling of the address, above all its ending (.com, .net, .org)."),
            tag("li", "Try the address of the whole site instead of a page: ", _ask_link(f"http://{host}/")),
            tag("li", "Try it with or without www: ", _ask_link(f"http://{other}/")),
            tag("li", "If the site moved in its life, try its older addresses."),
            tag("li", "Search engines, friends and your own old computers may have single pages."),
        ),
    )


def _ask_link(uri: str) -> Html:
    return tag("a", uri, href="/survey?" + urlencode({"uri": uri}))


def sent_page(uri: str) -> str:
    return page(
        "Look into your mail",
        tag("h1", "Look into your mail"),
        steps(_STEPS, 2),
        card(
            "One more step",
            tag(
                "p",
                "We sent you a mail with one link. Open it and press the button there; then ",
                tag("b", uri),
                " is queued.",
            ),
            tag(
                "p",
                "No mail after ten minutes? Look into the folder for spam, or ask again with another address. "
                "You may close this page now.",
                class_="note",
            ),
        ),
    )


def confirm_page(uri: str, token: str) -> str:
    """The page behind the link of the mail: one form, and only its button confirms."""
    return page(
        "Please confirm",
        tag("h1", "Please confirm"),
        steps(_STEPS, 2),
        card(
            uri,
            tag("p", "Shall we bring this website back from the archives?"),
            post(f"/confirm/{quote(token)}", button="Yes, get it back"),
        ),
    )


# A job ---------------------------------------------------------------------------------------------------------------


def job_page(told: Mapping[str, Any], token: str) -> str:
    """The page of a job, whatever its state."""
    state = State(told["state"])
    title = {
        State.PENDING: "Waiting for your confirmation",
        State.QUEUED: "In the queue",
        State.RUNNING: "We are collecting your site",
        State.WAITING: "Waiting for an archive",
        State.PACKING: "Packing your site",
        State.READY: "Your site is back",
        State.PICKED_UP: "Your site is back",
        State.EXPIRED: "These files were removed",
        State.FAILED: "Something went wrong on our side",
        State.CANCELLED: "Cancelled",
        State.NOTHING_FOUND: "Nothing found",
    }[state]
    body: list[Html] = [tag("h1", title)]
    if state in (State.READY, State.PICKED_UP):
        return page(title, *body, *_ready(told, token), here="")
    if state == State.NOTHING_FOUND:
        body += _nothing(told)
    elif state == State.EXPIRED:
        body.append(_expired(told))
    elif state in (State.FAILED, State.CANCELLED):
        body.append(_ended(told, state))
    else:
        live = tag(
            "div",
            *_under_way(told, state),
            data_events=f"/api/jobs/{told['id']}/events?token={quote(token)}",
            data_state=state.value,
        )
        body += [steps(_STEPS, 2 if state == State.PENDING else 3), live, _leave(told, token)]
        return page(title, *body, refresh=10, scripts=("desk.js",))
    return page(title, *body)


def _under_way(told: Mapping[str, Any], state: State) -> list[Html]:
    counts, estimate = told["counts"], told.get("estimate") or {}
    total = {name: sum(counts[name].values()) for name in ("recovered", "queued", "missing")}
    parts: list[Any] = [tag("p", "Address: ", tag("b", told["uri"]))]
    if state == State.PENDING:
        parts.append(tag("p", "Please press the button behind the link in our mail. Until then nothing happens."))
    if state == State.QUEUED:
        parts.append(tag("p", "You are number ", tag("b", told["rank"] or 1, data_live="rank"), " in the queue."))
    if estimate and state != State.PENDING:
        words = f"Waiting: {duration(estimate['waiting'])}. Working: {duration(estimate['working'])}."
        parts.append(tag("p", words, class_="note"))
    if state == State.WAITING:
        until = f" We go on at {moment(told['resume_at'])}." if told["resume_at"] else ""
        parts.append(notice(tag("p", f"{told['reason'] or 'An archive asked us to wait.'}{until}")))
    if total["recovered"] or total["queued"] or state in (State.RUNNING, State.PACKING):
        parts.append(progress_bar(told["progress"], "Processed, of what is known so far"))
        parts.append(
            tag(
                "p",
                tag("b", f"{told['progress']:.0%}", data_live="percent"),
                " of what is known so far is processed.",
                role="status",
            )
        )
        parts.append(
            figures(
                [
                    (tag("span", f"{total['recovered']:,}", data_live="recovered"), "recovered"),
                    (tag("span", f"{total['queued']:,}", data_live="queued"), "still to fetch"),
                    (tag("span", f"{total['missing']:,}", data_live="missing"), "not to be had"),
                ]
            )
        )
        by_kind = sorted({kind for name in counts for kind in counts[name]})
        rows = [
            (kind + "s", *(f"{counts[name].get(kind, 0):,}" for name in ("recovered", "queued", "missing")))
            for kind in by_kind
        ]
        if rows:
            parts.append(
                table(("kind", "recovered", "to fetch", "missing"), rows, numbers=(1, 2, 3), caption="Counts by kind")
            )
    waiting = ", ".join(f"{one['archive']} until {moment(one['until'])}" for one in told["waiting_for"])
    if waiting:
        parts.append(tag("p", "We wait for ", tag("span", waiting, data_live="waiting"), class_="note"))
    parts.append(tag("p", "You may close this page; a mail tells you when it is ready.", class_="note"))
    return [card("", *parts)]


def _leave(told: Mapping[str, Any], token: str) -> Html:
    return card(
        "",
        tag("p", "You do not want it any more?"),
        post(f"/jobs/{told['id']}/cancel?token={quote(token)}", button="Cancel this recovery", plain=True),
        kind="small",
    )


def _ready(told: Mapping[str, Any], token: str) -> list[Html]:
    summary, result = told["summary"], told["result"]
    files = result["files"]
    missing = summary.get("missing", 0)
    known = summary.get("discovered", 0)
    share = f"{summary.get('recovered', 0) / known:.0%}" if known else "all"
    first, last = (str(summary.get(name) or "")[:10] for name in ("first", "last"))
    windows = bool(told["options"].get("windows_names"))
    downloads = tag(
        "ul",
        tag(
            "li",
            tag("a", "Download as zip", href=_path(result["zip"]), class_="button"),
            f" {format_size(files['result.zip']['size'])}; opens on every computer"
            + (
                ": right-click it in the Explorer, Extract all, then open index.html in the folder of your site"
                if windows
                else ""
            ),
        ),
        tag(
            "li",
            tag("a", "tar.gz", href=_path(result["tar.gz"])),
            f" {format_size(files['result.tar.gz']['size'])}, for Linux and servers",
        ),
        tag("li", tag("a", "WACZ", href=_path(result["wacz"])), " for web archives and replayweb.page")
        if "wacz" in result
        else "",
        tag(
            "li",
            tag("a", "The full report", href=_path(result["report"])),
            ": every file, where it came from, and what is missing",
        )
        if "report" in result
        else "",
        class_="downloads",
    )
    reasons = [
        (REASONS.get(reason, reason), f"{number:,}") for reason, number in summary.get("missing_by_reason", {}).items()
    ]
    thumbs = [
        tag(
            "li",
            tag(
                "img",
                src=f"/api/jobs/{told['id']}/thumb-{n}.png?token={quote(token)}",
                loading="lazy",
                alt=f"Picture of recovered page {n + 1}",
                width="1024",
                height="768",
            ),
        )
        for n in range(4)
        if n in told.get("thumbs", ())
    ]
    parts = [
        card(
            told["uri"],
            figures(
                [
                    (f"{summary.get('recovered', 0):,}", "files recovered"),
                    (f"{summary.get('pages', 0):,}", "of them pages"),
                    (share, "of what is known of the site"),
                    (f"{first} to {last}", "dates of the copies"),
                ]
            ),
            downloads,
            tag("p", "Checksum of the zip (SHA-256): ", tag("code", files["result.zip"]["sha256"]), class_="note"),
            tag("p", f"The files are kept until {day(told['expires_at'])}.", class_="note"),
        ),
        card("How it looks", tag("ul", *thumbs, class_="thumbs")) if thumbs else Html(""),
        tag("p", tag("a", "Browse a preview", href=told["preview"])) if told.get("preview") else Html(""),
        card("What is missing, and why", table(("why", "files"), reasons, numbers=(1,), caption="Missing files"))
        if missing
        else Html(""),
        card(
            "What to do next",
            tag(
                "ol",
                tag(
                    "li",
                    "Unpack the file and open index.html in the folder named like your site; it works offline.",
                ),
                tag("li", "To put it on the web again, the folder rehost has the rules for web servers and a README."),
                tag("li", "Keep the file recovered.wacz: it is an exact copy of what the archives gave."),
            ),
        ),
        card(
            "Try again with another date",
            tag("p", "What was fetched already is used again."),
            post(
                f"/jobs/{told['id']}/again?token={quote(token)}",
                field("at", "Around this date", value=last, placeholder="2009-06-01"),
                button="Try again",
                plain=True,
            ),
        ),
        card(
            "",
            post(
                f"/jobs/{told['id']}/tell?token={quote(token)}",
                hidden({"more": "" if told.get("tell_more") else "yes"}),
                tag(
                    "p",
                    "Archives go on collecting. "
                    + (
                        "You get a mail if more of this site turns up."
                        if told.get("tell_more")
                        else "Shall we write to you if more of this site turns up?"
                    ),
                ),
                button="Do not write any more" if told.get("tell_more") else "Tell me if more turns up",
                plain=True,
            ),
            kind="small",
        ),
    ]
    return [part for part in parts if part]


def _path(url: str) -> str:
    """An address without its host: the reader's way here is the right one."""
    return "/" + url.partition("://")[2].partition("/")[2]


def _nothing(told: Mapping[str, Any]) -> list[Html]:
    summary = told.get("summary", {})
    asked = [(name, f"{number:,}") for name, number in sorted(summary.get("requests", {}).items())]
    return [
        card(
            told["uri"],
            tag("p", "We are sorry: none of the archives has anything of it that can be used."),
            table(("archive asked", "requests"), asked, numbers=(1,), caption="Archives that were asked")
            if asked
            else "",
        ),
        _try_this(told["uri"]),
    ]


def _expired(told: Mapping[str, Any]) -> Html:
    return card(
        told["uri"],
        tag("p", "Results are kept for some weeks, and this one is too old. You can have it made again."),
        tag("p", tag("a", "Make it again", href="/survey?" + urlencode(again(told["options"])), class_="button")),
    )


def again(options: Mapping[str, Any]) -> dict[str, str]:
    """The fields of the form for the same wish."""
    kept = {name: str(options[name]) for name in ("uri", "scope", "at", "from", "to") if options.get(name)}
    return {**kept, "when": "at" if "at" in kept else "between" if "from" in kept or "to" in kept else "newest"}


def _ended(told: Mapping[str, Any], state: State) -> Html:
    words = "The operator has been told." if state == State.FAILED else "Nothing more happens with this request."
    return card(
        told["uri"],
        tag("p", words),
        tag("p", tag("a", "Ask again", href="/survey?" + urlencode(again(told["options"])), class_="button plain")),
    )


def problem_page(what: str, why: str, hint: str = "") -> str:
    return page(
        what,
        tag("h1", what),
        card(
            "",
            tag("p", why) if why else "",
            tag("p", hint) if hint else "",
            tag("p", tag("a", "Back to the start", href="/")),
        ),
    )


def takedown_page(errors: Mapping[str, str], given: Mapping[str, str], done: bool = False) -> str:
    if done:
        return page("Thank you", tag("h1", "Thank you"), card("", tag("p", "The operator reads your request.")))
    body = post(
        "/takedown",
        field(
            "uri",
            "Address of the site",
            value=given.get("uri", ""),
            required=True,
            inputmode="url",
            error=errors.get("uri", ""),
        ),
        field(
            "email",
            "Your e-mail address",
            value=given.get("email", ""),
            kind="email",
            required=True,
            error=errors.get("email", ""),
        ),
        tag(
            "div",
            tag("label", "Why should it not be recovered here?", for_="reason"),
            tag("textarea", given.get("reason", ""), id="reason", name="reason", rows="5", required=True),
            class_="field",
        ),
        button="Send",
    )
    return page(
        "Take a site down",
        tag("h1", "Take a site down"),
        tag("p", "Is it your site, and you do not want it to be recovered here? Tell the operator."),
        card("", body),
        here="/takedown",
    )
