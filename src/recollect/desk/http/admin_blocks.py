"""Pages of the operator about what is not recovered here: the blocklist, and requests to take sites down."""

from __future__ import annotations

from aiohttp import web

from recollect.desk import people, queue
from recollect.desk.database import Connection, one
from recollect.desk.http import removing
from recollect.desk.http.context import Desk, desk_of, whole_number
from recollect.desk.http.pages import see
from recollect.desk.http.session import button, form, page, session
from recollect.desk.jobs import Refused, host_of
from recollect.desk.states import ACTIVE, State
from recollect.ui.look import card, field, hidden, post, table, tag
from recollect.ui.messages import current


async def blocklist(request: web.Request) -> web.Response:
    return await _blocklist(desk_of(request), await session(request))


async def _blocklist(desk: Desk, csrf: str, error: str = "", pattern: str = "", reason: str = "") -> web.Response:
    found = await desk.transact(lambda c: c.rows("SELECT * FROM block ORDER BY number DESC"))
    rows = [
        (
            row["kind"],
            row["pattern"],
            row["reason"],
            current().moment(row["created"]),
            tag("div", button(f"/admin/blocklist/{row['number']}/remove", csrf, "Remove"), class_="small"),
        )
        for row in found
    ]
    kinds = tag(
        "select", tag("option", "site", value="site"), tag("option", "address", value="address"), name="kind", id="kind"
    )
    words = "Site (lost.example) or address (anna@mail.example, @mail.example)"
    add = post(
        "/admin/blocklist",
        hidden({"csrf": csrf}),
        tag("div", tag("label", "What", for_="kind"), kinds, class_="field"),
        field("pattern", words, value=pattern, required=True, error=error),
        field("reason", "Reason, shown to people", value=reason, required=True),
        button="Block",
    )
    response = page(
        "Blocklist",
        "/admin/blocklist",
        card("", table(("what", "pattern", "reason", "since", ""), rows, caption="Blocklist")),
        card("Add", add),
        csrf=csrf,
    )
    response.set_status(400 if error else 200)
    return response


async def block(request: web.Request) -> web.Response:
    desk, given = await form(request)
    kind = "address" if given.get("kind") == "address" else "site"
    pattern, reason = str(given.get("pattern", "")), str(given.get("reason", ""))
    try:
        await desk.run(people.block, kind, pattern, reason, desk.now())
    except Refused as error:
        return await _blocklist(desk, await session(request), f"{error.what}: {error.hint}", pattern, reason)
    return see("/admin/blocklist")


async def unblock(request: web.Request) -> web.Response:
    desk, _ = await form(request)
    number = whole_number(request.match_info["number"], "number")
    await desk.transact(lambda c: c.change("DELETE FROM block WHERE number = ?", number))
    return see("/admin/blocklist")


async def takedowns(request: web.Request) -> web.Response:
    desk = desk_of(request)
    csrf = await session(request)
    found = await desk.transact(lambda c: c.rows("SELECT * FROM takedown ORDER BY number DESC LIMIT 200"))
    rows = [
        (
            current().moment(row["created"]),
            row["uri"],
            row["email"] or "",
            row["reason"],
            row["state"],
            tag(
                "div",
                button(f"/admin/takedowns/{row['number']}/block", csrf, "Block the site"),
                button(f"/admin/takedowns/{row['number']}/decline", csrf, "Decline"),
                class_="small",
            )
            if row["state"] == "open"
            else "",
        )
        for row in found
    ]
    return page(
        "Takedowns",
        "/admin/takedowns",
        card("", table(("when", "site", "from", "why", "state", ""), rows, caption="Takedowns")),
        csrf=csrf,
    )


async def settle_takedown(request: web.Request) -> web.Response:
    """Block the site of a request, and end and remove its jobs; or decline."""
    desk, _ = await form(request)
    number, action = whole_number(request.match_info["number"], "number"), request.match_info["action"]

    def work(c: Connection) -> list[str]:
        row = one(c.rows("SELECT * FROM takedown WHERE number = ?", number))
        if row is None:
            return []
        c.change("UPDATE takedown SET state = ? WHERE number = ?", "done" if action == "block" else "declined", number)
        return _take_down(c, row["uri"], desk.now()) if action == "block" else []

    for identifier in await desk.transact(work):
        desk.taken_away(identifier)
        await removing.delete(desk, identifier, "admin: takedown", queue.TAKEN_DOWN)
    return see("/admin/takedowns")


def _take_down(c: Connection, uri: str, now: float) -> list[str]:
    """Block the site of a URI and cancel its jobs; the jobs to delete."""
    host = host_of(uri).removeprefix("www.")
    people.block(c, "site", host, "its owner asked us", now)
    rows = c.rows("SELECT id, uri, state FROM job")
    hit = [row for row in rows if people.host_under(host_of(row["uri"]), host)]
    for row in hit:
        if State(row["state"]) in (ACTIVE | {State.PENDING}):
            queue.cancel(c, row["id"], now, "admin: takedown")
    return [row["id"] for row in hit]
