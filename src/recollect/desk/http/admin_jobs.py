"""Pages of the operator about jobs: all of them by state, and one with its history and log."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from recollect.desk import people, queue
from recollect.desk.database import Connection
from recollect.desk.delivery import DOWNLOADS
from recollect.desk.http import operator_api as operate
from recollect.desk.http import removing
from recollect.desk.http.api import sent_file
from recollect.desk.http.context import desk_of, whole_number
from recollect.desk.http.pages import see
from recollect.desk.http.session import button, form, page, search_form, session
from recollect.desk.jobs import Job
from recollect.desk.reports import unanswered
from recollect.desk.states import ACTIVE, CLAIMED, FINAL, State
from recollect.quantities import counted
from recollect.ui.look import Html, card, facts, figures, hidden, notice, post, progress_bar, table, tag
from recollect.ui.messages import current

_SHOWN = (
    State.RUNNING,
    State.PACKING,
    State.QUEUED,
    State.WAITING,
    State.PENDING,
    State.READY,
    State.PICKED_UP,
    State.FAILED,
    State.NOTHING_FOUND,
    State.CANCELLED,
    State.EXPIRED,
)


def _actions(job: Job, rank: int | None, csrf: str) -> Html:
    base = f"/admin/jobs/{job.id}"
    made: list[Html] = []
    if job.state == State.QUEUED and rank is not None:
        made += [
            button(f"{base}/move", csrf, "First", rank="1"),
            button(f"{base}/move", csrf, "Up", rank=str(max(1, rank - 1))),
            button(f"{base}/move", csrf, "Down", rank=str(rank + 1)),
        ]
    if job.state in (State.QUEUED, State.RUNNING):
        made.append(button(f"{base}/pause", csrf, "Pause"))
    if job.state == State.WAITING:
        made.append(button(f"{base}/resume", csrf, "Resume"))
    if job.state in (ACTIVE | {State.PENDING}):
        made.append(button(f"{base}/cancel", csrf, "Cancel"))
    if job.state in FINAL:
        made.append(button(f"{base}/retry", csrf, "Retry"))
    if job.state not in CLAIMED:
        made.append(tag("a", "Delete", href=f"{base}/delete", class_="button plain"))
    return tag("div", *made, class_="small")


_PAGE = 100


async def jobs(request: web.Request) -> web.Response:
    """The first jobs of every state, or a page of one state."""
    desk = desk_of(request)
    csrf = await session(request)
    only = request.query.get("state", "")
    shown = [state for state in _SHOWN if not only or state == only]
    offset = whole_number(request.query.get("offset") or "0", "offset") if only else 0
    asked = request.query.get("q", "")

    def work(c: Connection) -> tuple[dict[str, int], dict[str, int], dict[State, list[Job]]]:
        by_state = {s: queue.jobs(c, state=s.value, limit=_PAGE, offset=offset, search=asked) for s in shown}
        return queue.counts(c), queue.ranks(c), by_state

    counts, ranks, by_state = await desk.transact(work)
    parts: list[Html] = [figures([(f"{number:,}", state) for state, number in counts.items() if number])]
    parts.append(search_form("/admin", asked))
    for state, each in by_state.items():
        if each:
            heads = ("site", "age", "worker", "progress" if state in CLAIMED else "rank or reason", "actions")
            rows = [_row(job, ranks.get(job.id), desk.now(), csrf) for job in each]
            listed = table(heads, rows, caption=f"Jobs that are {state}")
            parts.append(card(f"{state} ({counts[state]:,})", listed, _more(state, offset, counts[state])))
    if len(parts) == 2:
        parts.append(notice("No jobs." if only else "No jobs yet."))
    return page("Jobs", "/admin", *parts, csrf=csrf)


def _row(job: Job, rank: int | None, now: float, csrf: str) -> tuple[str | int | Html, ...]:
    return (
        tag("a", job.uri, href=f"/admin/jobs/{job.id}"),
        _age(now - job.created),
        job.worker or "",
        progress_bar(job.progress, f"Progress of {job.uri}", name="")
        if job.state in CLAIMED
        else job.reason or rank or "",
        _actions(job, rank, csrf),
    )


def _more(state: State, offset: int, total: int) -> Html:
    """Links to the jobs before and after those that are shown."""
    made = []
    if offset:
        made.append(("Previous", max(0, offset - _PAGE)))
    if offset + _PAGE < total:
        made.append(("Next", offset + _PAGE))
    links = [
        tag("a", f"{words} {state} jobs", href="/admin?" + urlencode({"state": state.value, "offset": at}))
        for words, at in made
    ]
    return tag("p", *links, class_="inline") if links else Html("")


def _age(seconds: float) -> str:
    minutes = int(seconds // 60)
    return f"{minutes // 1440} d {minutes // 60 % 24} h {minutes % 60} min"


async def job(request: web.Request) -> web.Response:
    desk = desk_of(request)
    csrf = await session(request)
    identifier = request.match_info["job"]

    def work(c: Connection) -> tuple[Job, int | None, list[Any], list[str], int]:
        found = queue.get(c, identifier)
        names = [row["name"] for row in c.rows("SELECT name FROM worker WHERE state = 'active' ORDER BY name")]
        return (
            found,
            queue.rank_of(c, found),
            queue.history(c, identifier),
            names,
            len(people.recipients(c, identifier)),
        )

    found, rank, events, names, wanted = await desk.transact(work)
    pairs = [
        ("state", found.state.value),
        ("rank", rank or ""),
        ("recipients", wanted),
        ("created", current().moment(found.created)),
        ("worker", found.worker or ""),
        ("crashes", found.crashes),
        ("fence", found.fence),
        ("reason", found.reason),
        ("waits until", current().moment(found.resume_at)),
        ("expires", current().moment(found.expires_at)),
        ("options", json.dumps(dict(found.options))),
        ("status", json.dumps(dict(found.status))),
    ]
    start = ""
    if found.state == State.QUEUED and names:
        choices = tag("select", *(tag("option", name, value=name) for name in names), name="worker", id="worker")
        start = post(
            f"/admin/jobs/{identifier}/start",
            hidden({"csrf": csrf}),
            tag("label", "Start on ", choices, for_="worker"),
            button="Start",
            plain=True,
            class_="inline",
        )
    rows = [
        (
            current().moment(row["at"]),
            row["action"],
            row["before"] or "",
            row["after"],
            row["actor"],
            row["detail"][:200],
        )
        for row in events
    ]
    return page(
        found.uri,
        "",
        card("Job", facts(pairs), _actions(found, rank, csrf), start),
        _result(found),
        card("History", table(("when", "action", "before", "after", "who", "detail"), rows, caption="History")),
        card("Log", tag("pre", found.log or "nothing was logged", tabindex="0")),
        csrf=csrf,
    )


def _result(job: Job) -> Html:
    """What a job delivered, for the operator: figures, files, the report."""
    files, summary = job.result.get("files", {}), job.result.get("summary", {})
    if not summary:
        return Html("")
    pairs = [(name, summary.get(name, 0)) for name in ("recovered", "pages", "missing", "bytes")]
    pairs += [("archives that did not answer", ", ".join(one.archive for one in unanswered(summary)))]
    links = [
        tag("li", tag("a", name, href=f"/admin/jobs/{job.id}/files/{name}"))
        for name in sorted(files)
        if name in DOWNLOADS or name.startswith("thumb-")
    ]
    return card("Result", facts(pairs), tag("ul", *links))


async def job_file(request: web.Request) -> web.StreamResponse:
    """A file of a result, for the operator."""
    desk = desk_of(request)
    await session(request)
    found, name = await desk.run(queue.get, request.match_info["job"]), request.match_info["file"]
    return await sent_file(desk, found, name)


async def ask_to_delete(request: web.Request) -> web.Response:
    """A job that is deleted is gone: asked once more."""
    desk = desk_of(request)
    csrf = await session(request)
    found = await desk.run(queue.get, request.match_info["job"])
    wanted = len(await desk.run(people.recipients, found.id))
    words = (
        f"{found.uri}: its files, and the requests of {counted(wanted, 'person', 'people')}. Their links then say so."
    )
    return page(
        "Delete this job?",
        "",
        card(
            "",
            tag("p", words),
            button(f"/admin/jobs/{found.id}/delete", csrf, "Delete it"),
            tag("p", tag("a", "Keep it", href=f"/admin/jobs/{found.id}")),
        ),
        csrf=csrf,
    )


async def change_job(request: web.Request) -> web.Response:
    desk, given = await form(request)
    identifier, action = request.match_info["job"], request.match_info["action"]
    if action == "delete":
        await removing.delete(desk, identifier, "admin")
    else:
        await operate.act(desk, action, identifier, given, "admin")
    return see("/admin")
