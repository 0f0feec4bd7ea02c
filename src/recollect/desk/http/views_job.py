"""The page of a job, whatever its state. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode

from recollect.desk import outcome
from recollect.desk.http.views import show, translated
from recollect.desk.reports import figures_of
from recollect.desk.states import DELIVERED, FINAL, State
from recollect.recovery.ownership import Owner, Period, ownership_words
from recollect.recovery.verdicts import RETRIED
from recollect.ui import charts
from recollect.ui.messages import current, message

_MOST_EXAMPLES = 10
# Reasons that workers and the operator give; what is not here is shown as it is.
REASONS = (
    message("the archive asked us to wait"),
    message("paused by the operator"),
    message("the largest size of a recovery was reached"),
)
_MOST_ARCHIVES = 7  # in the chart of a life


def job_page(view: Mapping[str, Any], token: str) -> str:
    """The page of a job."""
    state = State(view["state"])
    href = "/survey?" + urlencode(again(view["options"]))
    if state in DELIVERED:
        return _result(view, token, href)
    if state in FINAL:
        asked = sorted(view.get("summary", {}).get("requests", {}).items())
        return show(
            "ended.html", state=state.value, job={"left": False, **view}, again_href=href, requests=asked, token=token
        )
    return _under_way(view, state, token)


# Under way -----------------------------------------------------------------------------------------------------------


def _under_way(view: Mapping[str, Any], state: State, token: str) -> str:
    texts = current()
    names: Mapping[str, str] = view.get("names", {})
    counts = view["counts"]
    kinds = sorted({kind for one in counts.values() for kind in one})
    total = {name: sum(counts[name].values()) for name in ("recovered", "queued", "missing")}
    known = sum(total.values())
    waiting = [
        texts.gettext("%(archive)s until %(time)s")
        % {"archive": names.get(one["archive"], one["archive"]), "time": texts.moment(one["until"])}
        for one in view["waiting_for"]
    ]
    return show(
        "job.html",
        job={"uploads": [], **view},
        state=state.value,
        token=token,
        rank=texts.number(view["rank"] or 1),
        reason=_waiting_reason(view["reason"], names),
        silent=[one["name"] for one in view.get("outages", ())],
        estimate=view.get("estimate"),
        known=bool(known) or state in (State.RUNNING, State.PACKING),
        collected=texts.number(total["recovered"]),
        known_pieces=texts.number(known),
        waiting_words=texts.gettext("We wait for %(archives)s.") % {"archives": ", ".join(waiting)},
        counts=[
            {"kind": kind, **{name: counts[name].get(kind, 0) for name in ("recovered", "queued", "missing")}}
            for kind in kinds
        ],
        pictures=_pictures(view, token),
    )


def _waiting_reason(reason: str, names: Mapping[str, str]) -> str:
    """`ARCHIVE: why` with the reason in the reader's language."""
    name, _, why = reason.rpartition(": ")
    words = translated(why or message("an archive asked us to wait"))
    return f"{names.get(name, name)}: {words}." if name else f"{words}."


def _pictures(view: Mapping[str, Any], token: str) -> list[dict[str, str]]:
    """The pictures of recovered pages that there are; the first one is of the front page."""
    words = current().gettext("Picture of recovered page %(n)s")
    return [
        {
            "src": f"/api/jobs/{view['id']}/thumb-{number}.png?token={quote(token)}",
            "alt": words % {"n": number + 1},
            "href": "",
            "words": "",
        }
        for number in view.get("thumbs", ())
    ]


# The result ----------------------------------------------------------------------------------------------------------


def _result(view: Mapping[str, Any], token: str, again_href: str) -> str:
    summary = view["summary"]
    pictures = _pictures(view, token)
    if pictures and view.get("preview"):
        pictures[0]["href"] = view["preview"]
    reasons = summary.get("missing_by_reason", {})
    figures = figures_of(summary)
    first, last = (str(summary.get(name) or "")[:10] for name in ("first", "last"))
    days = [current().day(one) for one in dict.fromkeys((first, last)) if one]
    return show(
        "result.html",
        job={"preview": "", "tell_more": False, "outdated": False, "doubtful": [], "rebuilding": False, **view},
        token=token,
        again_href=again_href,
        silent=[one["name"] for one in view.get("outages", ())],
        headline=outcome.headline(figures),
        sentence=outcome.sentence(figures),
        stopped=current().gettext(str(summary.get("stopped") or "")),
        front=pictures[0] if pictures else None,
        gallery=pictures[1:],
        life=_life(summary, view.get("names", {})),
        life_words=_life_words(summary, first, last),
        lines=outcome.lines(figures),
        out_of_range=reasons.get("out-of-range", 0),
        missing_examples=[one["uri"] for one in summary.get("missing_examples", ())[:_MOST_EXAMPLES]],
        again_later=any(reason in reasons for reason in RETRIED),
        other_owner=bool(summary.get("ended_at")),
        windows=bool(view["options"].get("windows_names")),
        runs=bool(view["options"].get("scripts")),
        last_date=last,
        downloads=_downloads(view["result"]),
        recovered=figures.recovered,
        pages=figures.pages,
        share=outcome.share_words(figures),
        dates=" – ".join(days) or "–",
        by_archive=_by_archive(summary, view.get("names", {})),
    )


def _downloads(result: Mapping[str, Any]) -> dict[str, Any]:
    """kind -> address without its host (the reader's way here is the right one), size and checksum."""
    files = result["files"]
    names = {"zip": "result.zip", "tar.gz": "result.tar.gz", "wacz": "result.wacz", "report": "report.html"}
    made: dict[str, Any] = {"tar": None, "wacz": None, "report": None}
    for kind, name in names.items():
        if kind in result and name in files:
            href = "/" + result[kind].partition("://")[2].partition("/")[2]
            made[kind.partition(".")[0]] = {**files[name], "href": href}
    return made


def _life(summary: Mapping[str, Any], names: Mapping[str, str] = MappingProxyType({})) -> charts.Chart | None:
    """Copies by archive and year, the time of the owner and the time after it."""
    years: Mapping[str, Mapping[int, int]] = {
        names.get(name, name): {int(year): count for year, count in per_year.items() if year.isdigit()}
        for name, per_year in summary.get("years", {}).items()
    }
    known = sorted(year for per_year in years.values() for year in per_year)
    if not known:
        return None
    texts = current()
    spans = _spans(summary, known)
    label = texts.gettext("Copies that we used, by archive and year")
    years = charts.largest(years, _MOST_ARCHIVES, texts.gettext("other archives"))
    return charts.life(years, label, (texts.gettext("Year"), texts.gettext("Copies")), spans=spans)


_SHORTEST, _UNKNOWN = timedelta(days=300), timedelta(days=366)
_OWNERS = {
    "own": ("good", message("your site")),
    "other": ("bad", message("another owner")),
    "parked": ("warn", message("a domain for sale")),
}


def _spans(summary: Mapping[str, Any], known: Sequence[int]) -> list[charts.Span]:
    """Whose site it was, and when: a period lasts until the next one begins, unless nothing is known of a year between
    them."""
    periods = [(one["owner"], day, _day(one["to"])) for one in summary.get("owners", ()) if (day := _day(one["from"]))]
    if not periods and (end := _day(summary.get("ended_at"))):
        periods = [("own", date(known[0], 1, 1), end), ("other", end, None)]
    spans = []
    for place, (owner, start, seen) in enumerate(periods):
        shown = max(start + _SHORTEST, seen or start)
        if place + 1 < len(periods):
            later = periods[place + 1][1]
            end = later if later - (seen or later) <= _UNKNOWN else min(shown, later)
        else:
            end = max(shown, date(known[-1], 12, 31))
        colour, words = _OWNERS.get(owner, _OWNERS["other"])
        spans.append(charts.Span(start, end, colour, current().gettext(words)))
    return spans


def _life_words(summary: Mapping[str, Any], first: str, last: str) -> str:
    texts = current()
    owners = [one["owner"] for one in summary.get("owners", ())]
    if owners not in ([], ["own"], ["own", "other"]) and (told := ownership_words(_periods(summary))):
        words = texts.gettext(
            "The site was %(owners)s. Pages that belong to another owner were left out; look through the pages marked "
            "doubtful."
        )
        return words % {"owners": told}
    if end := _day(summary.get("ended_at")):
        own = [day for one in summary.get("owners", ()) if one["owner"] == "own" and (day := _day(one["to"]))]
        if own and end - own[-1] > _UNKNOWN:
            words = texts.gettext(
                "Yours until %(last)s at least; %(month)s is the first copy of another owner. Pages that belong to "
                "another owner were left out; look through the pages marked doubtful."
            )
            return words % {"last": texts.month(own[-1]), "month": texts.month(end)}
        words = texts.gettext(
            "Yours until %(month)s, then another owner. Pages that belong to another owner were left out; look through "
            "the pages marked doubtful."
        )
        return words % {"month": texts.month(end)}
    if first[:4] == last[:4]:
        return texts.gettext("All copies are of the year %(year)s.") % {"year": first[:4]}
    return texts.gettext("The copies are from %(first)s to %(last)s.") % {"first": first[:4], "last": last[:4]}


def _periods(summary: Mapping[str, Any]) -> list[Period]:
    """The periods of a summary that can be read."""
    found = []
    for one in summary.get("owners", ()):
        start, end = _day(one["from"]), _day(one["to"])
        if start and end and one["owner"] in set(Owner):
            looks = tuple(datetime(day.year, day.month, day.day, tzinfo=UTC) for day in (start, end))
            found.append(Period(Owner(one["owner"]), looks))
    return found


def _day(text: object) -> date | None:
    try:
        return date.fromisoformat(str(text)[:10])
    except ValueError:
        return None


def _by_archive(summary: Mapping[str, Any], names: Mapping[str, str]) -> charts.Chart | None:
    counts = {names.get(name, name): count for name, count in summary.get("by_archive", {}).items()}
    texts = current()
    headers = (texts.gettext("Archive"), texts.gettext("Files"))
    return charts.shares(counts, texts.gettext("Where the files came from"), headers) if counts else None


def again(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The fields of the form for the same choices."""
    kept = {name: str(options[name]) for name in ("uri", "scope", "at", "from", "to") if options.get(name)}
    when = "at" if "at" in kept else "between" if "from" in kept or "to" in kept else "newest"
    switches = [(name, "yes") for name in ("windows_names", "scripts") if options.get(name)]
    return [*kept.items(), ("when", when), *(("archives", one) for one in options.get("archives", ())), *switches]
