"""The page of a job, whatever its state. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from recollect.desk.http.views import STEPS, day, moment, page, try_this
from recollect.desk.states import DELIVERED, State
from recollect.quantities import counted, format_size
from recollect.recovery.store import REASONS
from recollect.ui.look import (
    Html,
    card,
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

_TITLES = {
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
}


def job_page(view: Mapping[str, Any], token: str) -> str:
    """The page of a job."""
    state = State(view["state"])
    title = _TITLES[state]
    if state in DELIVERED:
        body = _ready(view, token)
    elif state == State.NOTHING_FOUND:
        body = _nothing(view)
    elif state == State.EXPIRED:
        body = [_expired(view)]
    elif state in (State.FAILED, State.CANCELLED):
        body = [_ended(view, state)]
    else:
        live = tag(
            "div",
            card("", *_under_way(view, state)),
            data_events=f"/api/jobs/{view['id']}/events?token={quote(token)}",
            data_state=state.value,
        )
        at = 2 if state == State.PENDING else 3
        body = [steps(STEPS, at), live, _leave(view, token)]
        return page(title, tag("h1", title), *body, refresh=10, scripts=("desk.js",))
    return page(title, tag("h1", title), *body)


# Under way -----------------------------------------------------------------------------------------------------------


def _under_way(view: Mapping[str, Any], state: State) -> list[Html]:
    parts = [tag("p", "Address: ", tag("b", view["uri"]))]
    if state == State.PENDING:
        parts.append(
            tag("p", "Please press the button on the page that the link in our mail opens. We start after that.")
        )
    if state == State.QUEUED:
        parts.append(tag("p", "You are number ", tag("b", view["rank"] or 1, data_live="rank"), " in the queue."))
    if (estimate := view.get("estimate")) and state != State.PENDING:
        words = f"Waiting: {duration(estimate['waiting'])}. Working: {duration(estimate['working'])}."
        parts.append(tag("p", words, class_="note"))
    if state == State.WAITING:
        until = f" We go on at {moment(view['resume_at'])}." if view["resume_at"] else ""
        parts.append(notice(tag("p", f"{view['reason'] or 'An archive asked us to wait.'}{until}")))
    parts += _progress(view, state)
    # The paragraph is there while it is empty, so that the script can fill it.
    waiting = ", ".join(f"{one['archive']} until {moment(one['until'])}" for one in view["waiting_for"])
    words = f"We wait for {waiting}." if waiting else ""
    parts.append(tag("p", words, data_live="waiting", class_="note"))
    parts.append(tag("p", "You may close this page; we send you a mail when it is ready.", class_="note"))
    return parts


def _progress(view: Mapping[str, Any], state: State) -> list[Html]:
    counts = view["counts"]
    total = {name: sum(counts[name].values()) for name in ("recovered", "queued", "missing")}
    if not (total["recovered"] or total["queued"] or state in (State.RUNNING, State.PACKING)):
        return []
    percent = tag("b", f"{view['progress']:.0%}", data_live="percent")
    shown = [
        (tag("span", f"{total['recovered']:,}", data_live="recovered"), "recovered"),
        (tag("span", f"{total['queued']:,}", data_live="queued"), "still to fetch"),
        (tag("span", f"{total['missing']:,}", data_live="missing"), "not available"),
    ]
    rows = [
        (
            kind + "s",
            *(
                tag("span", f"{counts[name].get(kind, 0):,}", data_live=f"{name}-{kind}")
                for name in ("recovered", "queued", "missing")
            ),
        )
        for kind in sorted({kind for name in total for kind in counts[name]})
    ]
    heads = ("kind", "recovered", "to fetch", "missing")
    return [
        progress_bar(view["progress"], "Processed, of what is known so far"),
        tag("p", percent, " of what is known so far is processed.", role="status"),
        figures(shown),
        table(heads, rows, numbers=(1, 2, 3), caption="Counts by kind") if rows else Html(""),
    ]


def _leave(view: Mapping[str, Any], token: str) -> Html:
    return card(
        "",
        tag("p", "You do not want it any more?"),
        post(f"/jobs/{view['id']}/cancel?token={quote(token)}", button="Cancel this recovery", plain=True),
        kind="small",
    )


# Ready ---------------------------------------------------------------------------------------------------------------


def _ready(view: Mapping[str, Any], token: str) -> list[Html]:
    ask = tag("a", "Get the site again with what is new", href="/survey?" + urlencode(again(view["options"])))
    parts = [
        notice(tag("p", "More of this site has turned up. ", ask)) if view.get("outdated") else Html(""),
        _result(view),
        _thumbnails(view, token),
        tag("p", tag("a", "Browse a preview", href=view["preview"])) if view.get("preview") else Html(""),
        _missing(view["summary"]),
        _next_steps(view),
        _another_date(view, token),
        _more(view, token),
    ]
    return [part for part in parts if part]


def _result(view: Mapping[str, Any]) -> Html:
    summary, files = view["summary"], view["result"]["files"]
    known = summary.get("discovered", 0)
    recovered = summary.get("recovered", 0)
    first, last = (str(summary.get(name) or "unknown")[:10] for name in ("first", "last"))
    numbers = [
        (f"{recovered:,}", "files recovered"),
        (f"{summary.get('pages', 0):,}", "of them pages"),
        (f"{recovered / known:.0%}" if known else "all", "of what is known of the site"),
        (first if first == last else f"{first} to {last}", "dates of the copies"),
    ]
    checksum = files.get("result.zip", {}).get("sha256", "")
    stopped = f"The recovery is not complete: {summary['stopped']}." if summary.get("stopped") else ""
    return card(
        view["uri"],
        figures(numbers),
        notice(tag("p", stopped)) if stopped else "",
        _downloads(view),
        tag("p", "Checksum of the zip (SHA-256): ", tag("code", checksum), class_="note"),
        tag("p", f"We keep the files until {day(view['expires_at'])}.", class_="note"),
    )


def _downloads(view: Mapping[str, Any]) -> Html:
    result, files = view["result"], view["result"]["files"]
    made = [tag("li", tag("a", "Download as zip", href=_path(result["zip"]), class_="button"), _zip_words(files))]
    if "tar.gz" in result:
        size = format_size(files["result.tar.gz"]["size"])
        made.append(tag("li", tag("a", "tar.gz", href=_path(result["tar.gz"])), f" {size}, for Linux and servers"))
    if "wacz" in result:
        made.append(tag("li", tag("a", "WACZ", href=_path(result["wacz"])), " for web archives and replayweb.page"))
    if "report" in result:
        words = ": every file, where it came from, and what is missing"
        made.append(tag("li", tag("a", "The full report", href=_path(result["report"])), words))
    return tag("ul", *made, class_="downloads")


def _zip_words(files: Mapping[str, Any]) -> str:
    return f" {format_size(files['result.zip']['size'])}; opens on every computer"


def _thumbnails(view: Mapping[str, Any], token: str) -> Html:
    thumbs = [
        tag(
            "li",
            tag(
                "img",
                src=f"/api/jobs/{view['id']}/thumb-{number}.png?token={quote(token)}",
                loading="lazy",
                alt=f"Picture of recovered page {number + 1}",
                width="1024",
                height="768",
            ),
        )
        for number in view.get("thumbs", ())
    ]
    return card("How it looks", tag("ul", *thumbs, class_="thumbs")) if thumbs else Html("")


def _missing(summary: Mapping[str, Any]) -> Html:
    if not summary.get("missing"):
        return Html("")
    reasons = [(REASONS.get(reason, reason), f"{n:,}") for reason, n in summary.get("missing_by_reason", {}).items()]
    examples = [tag("li", one["uri"]) for one in summary.get("missing_examples", ())[:10]]
    listed = tag("details", tag("summary", "Some of them"), tag("ul", *examples)) if examples else ""
    return card(
        "What is missing, and why", table(("why", "files"), reasons, numbers=(1,), caption="Missing files"), listed
    )


def _next_steps(view: Mapping[str, Any]) -> Html:
    unpack = "Unpack the file and open index.html in the folder named like your site; it works offline."
    if view["options"].get("windows_names"):
        unpack = (
            "Right-click the zip in the Explorer and choose Extract all. Then open index.html in the folder named like "
            "your site; it works offline."
        )
    return card(
        "What to do next",
        tag(
            "ol",
            tag("li", unpack),
            tag("li", "To put it on the web again, use the folder rehost: its README says how, for each web server."),
            tag("li", "Keep the file recovered.wacz: it is an exact copy of what the archives gave."),
        ),
    )


def _another_date(view: Mapping[str, Any], token: str) -> Html:
    last = str(view["summary"].get("last") or "")[:10]
    return card(
        "Try again with another date",
        tag("p", "We use again what we have fetched already."),
        post(
            f"/jobs/{view['id']}/again?token={quote(token)}",
            field("at", "Around this date", value=last, placeholder="2009-06-01"),
            button="Try again",
            plain=True,
        ),
    )


def _more(view: Mapping[str, Any], token: str) -> Html:
    subscribed = bool(view.get("tell_more"))
    words = "Shall we write to you if more of this site turns up?"
    if subscribed:
        words = "You get a mail if more of this site turns up."
    return card(
        "",
        post(
            f"/jobs/{view['id']}/tell?token={quote(token)}",
            hidden({"more": "" if subscribed else "yes"}),
            tag("p", f"Archives go on collecting. {words}"),
            button="Do not write any more" if subscribed else "Tell me if more turns up",
            plain=True,
        ),
        kind="small",
    )


def _path(url: str) -> str:
    """An address without its host: the reader's way here is the right one."""
    return "/" + url.partition("://")[2].partition("/")[2]


# The end -------------------------------------------------------------------------------------------------------------


def _nothing(view: Mapping[str, Any]) -> list[Html]:
    summary = view.get("summary", {})
    asked = [(name, counted(number, "request")) for name, number in sorted(summary.get("requests", {}).items())]
    heads = ("archive asked", "requests")
    listed = table(heads, asked, numbers=(1,), caption="Archives that were asked") if asked else ""
    words = "We are sorry: none of the archives has anything of it that can be used."
    return [card(view["uri"], tag("p", words), listed), try_this(view["uri"])]


def _expired(view: Mapping[str, Any]) -> Html:
    return card(
        view["uri"],
        tag("p", "We keep results for some weeks, and this one is older. We can make it again."),
        tag("p", tag("a", "Make it again", href="/survey?" + urlencode(again(view["options"])), class_="button")),
    )


def again(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The fields of the form for the same choices."""
    kept = {name: str(options[name]) for name in ("uri", "scope", "at", "from", "to") if options.get(name)}
    when = "at" if "at" in kept else "between" if "from" in kept or "to" in kept else "newest"
    windows = [("windows_names", "yes")] if options.get("windows_names") else []
    return [*kept.items(), ("when", when), *(("archives", one) for one in options.get("archives", ())), *windows]


def _ended(view: Mapping[str, Any], state: State) -> Html:
    words = "Nothing more happens with this request."
    if state == State.FAILED:
        words = "The operator of this service knows about it. You can also ask again."
    return card(
        view["uri"],
        tag("p", words),
        tag("p", tag("a", "Ask again", href="/survey?" + urlencode(again(view["options"])), class_="button plain")),
    )
