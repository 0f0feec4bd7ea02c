"""Statistics for the operator: McCown's Tables 12 to 14 and Figures 32 and 33 (2007, section VI.6), and the history."""

from __future__ import annotations

from aiohttp import web

from recollect.desk.http import operator_api as operate
from recollect.desk.http.context import desk_of
from recollect.desk.http.session import page, session
from recollect.desk.statistics import Statistics, statistics
from recollect.ui.look import Html, bars, card, figures, join, notice, table, tag


async def show_statistics(request: web.Request) -> web.Response:
    desk = desk_of(request)
    csrf = await session(request)
    found = statistics(await operate.whole_history(desk))
    return page("Statistics", "/admin/statistics", *_statistics(found), csrf=csrf)


def _statistics(found: Statistics) -> list[Html]:
    if not found.completed:
        return [notice("No recovery was completed yet.")]
    done = found.completed
    with_content = max(done - found.nothing_found, 1)
    tenths = {f"{10 * n}%": count for n, count in enumerate(found.shares)}
    shares = [
        (f"{found.nothing_found / done:.1%}", "found nothing"),
        (f"{found.single_pages / done:.1%}", "asked for one page"),
        (f"{found.not_picked_up / with_content:.1%}", "were never picked up"),
    ]
    formats = (tag("a", kind.upper(), href=f"/admin/history.{kind}") for kind in ("csv", "json", "xml"))
    return [
        figures(shares),
        card("Usage by month (Table 12)", _months(found)),
        card("Recovery summary (Table 13)", _spreads(found)),
        card("Archives (Table 14)", _archives(found)),
        card(
            "Recoveries by share of resources recovered (Figure 32)", bars(tenths, "Recoveries by share of resources")
        ),
        card("Recoveries by top-level domain (Figure 33)", _domains(found)),
        card("The whole history", tag("p", join(formats, " · "))),
    ]


def _months(found: Statistics) -> Html:
    rows = [(month, f"{jobs:,}", f"{resources:,}") for month, (jobs, resources) in found.months.items()]
    jobs, resources = (sum(one[place] for one in found.months.values()) / len(found.months) for place in (0, 1))
    rows.append(("Average", f"{jobs:,.0f}", f"{resources:,.0f}"))
    return table(("month", "completed jobs", "resources recovered"), rows, numbers=(1, 2), caption="Usage by month")


def _spreads(found: Statistics) -> Html:
    named = (
        ("URLs discovered", found.discovered),
        ("URLs recovered", found.recovered),
        ("Days to complete", found.days),
    )
    rows = [
        (name, *(f"{value:,.2f}" for value in (one.average, one.least, one.most, one.deviation)))
        for name, one in named
        if one is not None
    ]
    return table(("", "average", "min", "max", "std"), rows, numbers=(1, 2, 3, 4), caption="Recovery summary")


def _archives(found: Statistics) -> Html:
    rows = [
        (name, f"{one.used:.1%}", f"{one.contribution:.1%}", f"{one.requests:,.1f}")
        for name, one in found.archives.items()
    ]
    heads = ("archive", "used in recoveries", "contribution", "requests per recovery")
    return table(heads, rows, numbers=(1, 2, 3), caption="Archives")


def _domains(found: Statistics) -> Html:
    rows = [(f".{name}", f"{number:,}", f"{share:.1%}") for name, (number, share) in found.tlds.items()]
    return table(("domain", "recoveries", "recovered"), rows, numbers=(1, 2), caption="Top-level domains")


async def history(request: web.Request) -> web.Response:
    await session(request)
    return await operate.history_reply(desk_of(request), request.match_info["format"])
