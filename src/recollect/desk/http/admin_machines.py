"""Pages of the operator about what jobs need: workers and their tokens, archives, mails."""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import quote

from aiohttp import web

from recollect.desk import outbox, people, queue
from recollect.desk.database import Connection
from recollect.desk.http import operator_api as operate
from recollect.desk.http.context import Denied, desk_of, whole_number
from recollect.desk.http.pages import see
from recollect.desk.http.session import button, form, page, search_form, session
from recollect.ui.look import card, field, figures, hidden, join, notice, post, table, tag
from recollect.ui.messages import current


async def workers(request: web.Request) -> web.Response:
    desk = desk_of(request)
    csrf = await session(request)
    found = await desk.run(operate.worker_rows, desk.now())
    tokens = await desk.transact(
        lambda c: c.rows("SELECT name, created FROM credential WHERE role = 'worker' ORDER BY name")
    )
    rows = [
        (
            one["name"],
            one["host"],
            one["egress"],
            one["state"],
            current().moment(one["last_seen"]),
            tag("a", one["job"], href=f"/admin/jobs/{one['job']}") if one["job"] else "",
            tag(
                "div",
                *(
                    button(f"/admin/workers/{quote(one['name'])}/{action}", csrf, words)
                    for action, words in (("drain", "Drain"), ("wake", "Wake"), ("remove", "Remove"))
                ),
                class_="small",
            ),
        )
        for one in found
    ]
    keys = [
        (
            one["name"],
            current().moment(one["created"]),
            tag("div", button(f"/admin/tokens/{quote(one['name'])}/remove", csrf, "Revoke"), class_="small")
            if one["name"] != "local"
            else "",
        )
        for one in tokens
    ]
    add = post(
        "/admin/tokens",
        hidden({"csrf": csrf}),
        field("name", "Name of the machine", required=True),
        button="Make a token",
    )
    return page(
        "Workers",
        "/admin/workers",
        card(
            "Workers",
            table(("worker", "host", "egress", "state", "last seen", "job", "actions"), rows, caption="Workers"),
        ),
        card("Tokens", table(("name", "made", ""), keys, caption="Tokens of workers")),
        card("Add a machine", add),
        csrf=csrf,
    )


async def change_worker(request: web.Request) -> web.Response:
    desk, _ = await form(request)
    await operate.act_worker(desk, request.match_info["action"], request.match_info["worker"])
    return see("/admin/workers")


async def add_token(request: web.Request) -> web.Response:
    """A token for another machine; shown once."""
    desk, given = await form(request)
    name, token = str(given.get("name", "")).strip()[:100], secrets.token_urlsafe(32)
    if not name or name in ("local", "operator", "admin"):
        raise Denied("choose another name")

    def keep(c: Connection) -> None:
        c.change("DELETE FROM credential WHERE name = ? AND role = 'worker'", name)
        c.change("INSERT INTO credential VALUES (?, 'worker', ?, ?)", name, people.hash_of(token), desk.now())

    await desk.transact(keep)
    words = f"RECOLLECT_WORKER_TOKEN={token} recollect desk worker --desk {desk.base_url}"
    return page(
        "A token for " + name,
        "",
        card(
            "",
            tag("p", "This token is for workers of this name only, and is not shown again."),
            tag("pre", token, tabindex="0"),
            tag("p", "One command on the machine starts a worker:"),
            tag("pre", words, tabindex="0"),
        ),
        csrf=await session(request),
    )


async def remove_token(request: web.Request) -> web.Response:
    desk, _ = await form(request)
    name = request.match_info["name"]
    await desk.transact(lambda c: c.change("DELETE FROM credential WHERE name = ? AND role = 'worker'", name))
    return see("/admin/workers")


async def archives(request: web.Request) -> web.Response:
    desk = desk_of(request)
    csrf = await session(request)
    rows = []
    for one in operate.archive_rows(desk):
        lanes = join((_lane(lane) for lane in one["lanes"]), "<br>")
        action = "wake" if one["resting"] else "rest"
        rows.append(
            (
                one["name"],
                f"rests: {one['resting']}" if one["resting"] else "awake",
                f"{one['in_use']} of {one['concurrency']}" if one["concurrency"] else "",
                lanes,
                tag("div", button(f"/admin/archives/{one['id']}/{action}", csrf, action.capitalize()), class_="small"),
            )
        )
    return page(
        "Archives",
        "/admin/archives",
        card("", table(("archive", "state", "concurrent requests", "budget", ""), rows, caption="Archives")),
        csrf=csrf,
    )


def _lane(lane: dict[str, Any]) -> str:
    words = f"{lane['kind']} from {lane['egress']}: {lane['given']:,} requests, {lane['waiting']} wait"
    if lane["quota_left"] is not None:
        words += f", {lane['quota_left']:,} left of the quota"
    return words + (f", paused until {current().moment(lane['paused_until'])}" if lane["paused_until"] else "")


async def change_archive(request: web.Request) -> web.Response:
    desk, given = await form(request)
    await operate.act_archive(
        desk, request.match_info["action"], request.match_info["archive"], str(given.get("reason", ""))
    )
    return see("/admin/archives")


async def mails(request: web.Request) -> web.Response:
    desk = desk_of(request)
    csrf = await session(request)
    asked = request.query.get("q", "")
    counts = await desk.run(outbox.counts)
    found = await desk.run(outbox.mails, search=queue.about(asked) if asked else ())
    rows = [
        (
            row["number"],
            row["kind"],
            row["state"],
            current().moment(row["created"]),
            current().moment(row["sent_at"]),
            row["attempts"],
            row["error"],
            tag("div", button(f"/admin/mails/{row['number']}/send", csrf, "Send again"), class_="small"),
        )
        for row in found
    ]
    heads = ("mail", "about", "state", "queued", "sent", "attempts", "error", "")
    return page(
        "Mails",
        "/admin/mails",
        figures([(n, s) for s, n in counts.items()]),
        notice(tag("p", f"The mail server does not answer: {desk.mail_trouble}"), bad=True)
        if desk.mail_trouble
        else "",
        search_form("/admin/mails", asked),
        card("", table(heads, rows, numbers=(0, 5), caption="Mails")),
        csrf=csrf,
    )


async def send_again(request: web.Request) -> web.Response:
    desk, _ = await form(request)
    await desk.run(outbox.send_again, whole_number(request.match_info["number"], "number"), desk.now())
    return see("/admin/mails")
