"""The pages of the operator, behind a login.

Hides: sessions. The password is kept as scrypt; logins are throttled by network; the session is a random cookie
(`__Host-`, stored hashed) and every form carries the session's token and must come from the desk's origin.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from typing import Any
from urllib.parse import quote

from aiohttp import web

from recollect.service import outbox, people, queue
from recollect.service.database import Connection
from recollect.service.database import one as first_of
from recollect.service.jobs import Job
from recollect.service.states import ACTIVE, CLAIMED, FINAL, State
from recollect.service.statistics import Statistics, statistics
from recollect.web.desk import operator_api as operate
from recollect.web.desk.context import Denied, Desk, client_of, desk_of
from recollect.web.desk.pages import html, posted, see
from recollect.web.desk.views import moment
from recollect.web.look import (
    Html,
    bars,
    card,
    document,
    facts,
    field,
    figures,
    hidden,
    join,
    notice,
    post,
    progress_bar,
    table,
    tag,
)

COOKIE = "__Host-recollect"
_SESSION = 8 * 3600.0
_TRIES, _PERIOD = 5, 900.0
NAV = {
    "/admin": "Jobs",
    "/admin/workers": "Workers",
    "/admin/archives": "Archives",
    "/admin/mails": "Mails",
    "/admin/statistics": "Statistics",
    "/admin/blocklist": "Blocklist",
    "/admin/takedowns": "Takedowns",
}


def page(title: str, here: str, *body: Any, csrf: str = "") -> web.Response:
    out = post("/admin/logout", hidden({"csrf": csrf}), button="Log out", plain=True, class_="small") if csrf else ""
    return html(document(title, tag("h1", title), *body, out, nav=NAV if csrf else None, here=here, narrow=False))


# Login ---------------------------------------------------------------------------------------------------------------


def _scrypt(password: str, salt: bytes) -> str:
    return hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1, maxmem=64 * 1024 * 1024).hex()


def set_password(desk: Desk) -> None:
    """Keep the operator's password as scrypt; without one in the settings, one is generated and written to a file."""
    password = desk.settings.admin_password
    path = desk.folder / "admin.password"
    if not password:
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(secrets.token_urlsafe(12) + "\n")
        password = path.read_text().strip()

    def keep(c: Connection) -> None:
        row = first_of(c.rows("SELECT hash FROM credential WHERE name = 'admin'"))
        if row is not None and _matches(password, row["hash"]):
            return
        salt = secrets.token_bytes(16)
        c.change("DELETE FROM credential WHERE name = 'admin'")
        value = f"{salt.hex()}${_scrypt(password, salt)}"
        c.change("INSERT INTO credential VALUES ('admin', 'admin', ?, ?)", value, desk.now())
        c.change("DELETE FROM session")

    desk.database.transact(keep)


def _matches(password: str, stored: str) -> bool:
    salt, _, digest = stored.partition("$")
    return hmac.compare_digest(_scrypt(password, bytes.fromhex(salt)), digest)


async def login_form(_request: web.Request) -> web.Response:
    return _login_page("")


def _login_page(error: str, status: int = 200) -> web.Response:
    body = post(
        "/admin/login",
        field("password", "Password", kind="password", required=True, autocomplete="current-password", error=error),
        button="Log in",
    )
    response = page("Operator", "", card("", body))
    response.set_status(status)
    return response


async def login(request: web.Request) -> web.Response:
    desk = desk_of(request)
    given = await posted(request)
    bucket = f"login {people.hash_of(people.network_of(client_of(request)))}"
    if not await desk.run(people.allow, bucket, desk.now(), _TRIES, _PERIOD):
        return _login_page("too many attempts: wait a quarter of an hour", 429)
    stored = await desk.transact(lambda c: c.rows("SELECT hash FROM credential WHERE name = 'admin'"))
    if not stored or not _matches(str(given.get("password", "")), stored[0]["hash"]):
        return _login_page("wrong password", 403)
    cookie, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(24)

    def keep(c: Connection) -> None:
        c.change("INSERT INTO session VALUES (?, ?, ?)", people.hash_of(cookie), csrf, desk.now() + _SESSION)
        c.change("DELETE FROM attempt WHERE bucket = ?", bucket)

    await desk.transact(keep)
    response = see("/admin")
    response.set_cookie(COOKIE, cookie, path="/", secure=True, httponly=True, samesite="Strict", max_age=int(_SESSION))
    return response


async def _session(request: web.Request) -> str:
    """The token of the session's forms; raises a redirect to the login."""
    desk = desk_of(request)
    cookie = request.cookies.get(COOKIE, "")
    rows = await desk.transact(
        lambda c: c.rows("SELECT csrf FROM session WHERE hash = ? AND expires > ?", people.hash_of(cookie), desk.now())
    )
    if not rows:
        raise web.HTTPSeeOther("/admin/login")
    return str(rows[0]["csrf"])


async def _form(request: web.Request) -> tuple[Desk, dict[str, Any]]:
    """A form of a logged-in operator."""
    csrf = await _session(request)
    given = await posted(request)
    if not hmac.compare_digest(str(given.pop("csrf", "")), csrf):
        raise Denied("this form is too old", hint="open the page again")
    return desk_of(request), given


async def logout(request: web.Request) -> web.Response:
    desk, _ = await _form(request)
    cookie = people.hash_of(request.cookies.get(COOKIE, ""))
    await desk.transact(lambda c: c.change("DELETE FROM session WHERE hash = ?", cookie))
    response = see("/admin/login")
    response.del_cookie(COOKIE, path="/", secure=True)
    return response


# Jobs ----------------------------------------------------------------------------------------------------------------

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


def _button(path: str, csrf: str, words: str, **fields: str) -> Html:
    return post(path, hidden({"csrf": csrf, **fields}), button=words, plain=True)


def _actions(job: Job, rank: int | None, csrf: str) -> Html:
    base = f"/admin/jobs/{job.id}"
    made: list[Html] = []
    if job.state == State.QUEUED and rank is not None:
        made += [
            _button(f"{base}/move", csrf, "First", rank="1"),
            _button(f"{base}/move", csrf, "Up", rank=str(max(1, rank - 1))),
            _button(f"{base}/move", csrf, "Down", rank=str(rank + 1)),
        ]
    if job.state in (State.QUEUED, State.RUNNING):
        made.append(_button(f"{base}/pause", csrf, "Pause"))
    if job.state == State.WAITING:
        made.append(_button(f"{base}/resume", csrf, "Resume"))
    if job.state in (ACTIVE | {State.PENDING}):
        made.append(_button(f"{base}/cancel", csrf, "Cancel"))
    if job.state in FINAL:
        made.append(_button(f"{base}/retry", csrf, "Retry"))
    if job.state not in CLAIMED:
        made.append(_button(f"{base}/delete", csrf, "Delete"))
    return tag("div", *made, class_="small")


async def jobs(request: web.Request) -> web.Response:
    desk = desk_of(request)
    csrf = await _session(request)

    def work(c: Connection) -> tuple[dict[str, int], dict[State, list[tuple[Job, int | None]]]]:
        found = {state: queue.jobs(c, state=state.value, limit=100) for state in _SHOWN}
        return queue.counts(c), {s: [(job, queue.rank_of(c, job)) for job in each] for s, each in found.items()}

    counts, by_state = await desk.transact(work)
    parts: list[Html] = [figures([(f"{number:,}", state) for state, number in counts.items() if number])]
    for state, each in by_state.items():
        if not each:
            continue
        rows = [
            (
                tag("a", job.uri, href=f"/admin/jobs/{job.id}"),
                _age(desk.now() - job.created),
                job.worker or "",
                progress_bar(job.progress, f"Progress of {job.uri}") if state in CLAIMED else job.reason or rank or "",
                _actions(job, rank, csrf),
            )
            for job, rank in each
        ]
        heads = ("site", "age", "worker", "progress" if state in CLAIMED else "rank or reason", "actions")
        parts.append(card(f"{state} ({counts[state]:,})", table(heads, rows, caption=f"Jobs that are {state}")))
    if len(parts) == 1:
        parts.append(notice("No jobs yet."))
    return page("Jobs", "/admin", *(_unique(part) for part in parts), csrf=csrf)


def _unique(part: Html) -> Html:
    """Progress bars on one page need ids of their own, or none."""
    return Html(part.replace(' id="progress"', ""))


def _age(seconds: float) -> str:
    minutes = int(seconds // 60)
    return f"{minutes // 1440} d {minutes // 60 % 24} h {minutes % 60} min"


async def job(request: web.Request) -> web.Response:
    desk = desk_of(request)
    csrf = await _session(request)
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
        ("created", moment(found.created)),
        ("worker", found.worker or ""),
        ("crashes", found.crashes),
        ("fence", found.fence),
        ("reason", found.reason),
        ("waits until", moment(found.resume_at)),
        ("expires", moment(found.expires_at)),
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
        (moment(row["at"]), row["action"], row["before"] or "", row["after"], row["actor"], row["detail"][:200])
        for row in events
    ]
    return page(
        found.uri,
        "",
        card("Job", facts(pairs), _actions(found, rank, csrf), start),
        card("History", table(("when", "action", "before", "after", "who", "detail"), rows, caption="History")),
        card("Log", tag("pre", found.log or "nothing was logged", tabindex="0")),
        csrf=csrf,
    )


async def change_job(request: web.Request) -> web.Response:
    desk, given = await _form(request)
    identifier, action = request.match_info["job"], request.match_info["action"]
    if action == "delete":
        await operate.delete(desk, identifier, "admin")
    else:
        await operate.act(desk, action, identifier, given, "admin")
    return see("/admin")


# Workers, archives, mails --------------------------------------------------------------------------------------------


async def workers(request: web.Request) -> web.Response:
    desk = desk_of(request)
    csrf = await _session(request)
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
            moment(one["last_seen"]),
            tag("a", one["job"], href=f"/admin/jobs/{one['job']}") if one["job"] else "",
            tag(
                "div",
                *(
                    _button(f"/admin/workers/{quote(one['name'])}/{action}", csrf, words)
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
            moment(one["created"]),
            tag("div", _button(f"/admin/tokens/{quote(one['name'])}/remove", csrf, "Revoke"), class_="small")
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
            "Seen", table(("worker", "host", "egress", "state", "last seen", "job", "actions"), rows, caption="Workers")
        ),
        card("Tokens", table(("name", "made", ""), keys, caption="Tokens of workers")),
        card("Add a machine", add),
        csrf=csrf,
    )


async def change_worker(request: web.Request) -> web.Response:
    desk, _ = await _form(request)
    await operate.act_worker(desk, request.match_info["action"], request.match_info["worker"])
    return see("/admin/workers")


async def add_token(request: web.Request) -> web.Response:
    """A token for another machine; shown once."""
    desk, given = await _form(request)
    name, token = str(given.get("name", "")).strip()[:100], secrets.token_urlsafe(32)
    if not name or name in ("local", "operator", "admin"):
        raise Denied("choose another name")

    def keep(c: Connection) -> None:
        c.change("DELETE FROM credential WHERE name = ? AND role = 'worker'", name)
        c.change("INSERT INTO credential VALUES (?, 'worker', ?, ?)", name, people.hash_of(token), desk.now())

    await desk.transact(keep)
    words = f"recollect worker --desk {desk.base_url} --token-file FILE"
    return page(
        "A token for " + name,
        "",
        card(
            "",
            tag("p", "Write this into a file on the machine; it is not shown again."),
            tag("pre", token, tabindex="0"),
            tag("p", "Then run there:"),
            tag("pre", words, tabindex="0"),
        ),
        csrf=await _session(request),
    )


async def remove_token(request: web.Request) -> web.Response:
    desk, _ = await _form(request)
    name = request.match_info["name"]
    await desk.transact(lambda c: c.change("DELETE FROM credential WHERE name = ? AND role = 'worker'", name))
    return see("/admin/workers")


async def archives(request: web.Request) -> web.Response:
    desk = desk_of(request)
    csrf = await _session(request)
    rows = []
    for one in operate.archive_rows(desk):
        lanes = join((_lane(lane) for lane in one["lanes"]), "<br>")
        action = "wake" if one["resting"] else "rest"
        rows.append(
            (
                one["name"],
                f"rests: {one['resting']}" if one["resting"] else "awake",
                lanes,
                tag("div", _button(f"/admin/archives/{one['id']}/{action}", csrf, action.capitalize()), class_="small"),
            )
        )
    return page(
        "Archives",
        "/admin/archives",
        card("", table(("archive", "state", "budget", ""), rows, caption="Archives")),
        csrf=csrf,
    )


def _lane(lane: dict[str, Any]) -> str:
    words = f"{lane['kind']} from {lane['egress']}: {lane['given']:,} requests, {lane['waiting']} wait"
    if lane["quota_left"] is not None:
        words += f", {lane['quota_left']:,} left of the quota"
    return words + (f", paused until {moment(lane['paused_until'])}" if lane["paused_until"] else "")


async def change_archive(request: web.Request) -> web.Response:
    desk, given = await _form(request)
    await operate.act_archive(
        desk, request.match_info["action"], request.match_info["archive"], str(given.get("reason", ""))
    )
    return see("/admin/archives")


async def mails(request: web.Request) -> web.Response:
    desk = desk_of(request)
    csrf = await _session(request)
    counts, found = await desk.run(outbox.counts), await desk.run(outbox.mails)
    rows = [
        (
            row["number"],
            row["kind"],
            row["state"],
            moment(row["created"]),
            moment(row["sent_at"]),
            row["attempts"],
            row["error"],
            tag("div", _button(f"/admin/mails/{row['number']}/send", csrf, "Send again"), class_="small"),
        )
        for row in found
    ]
    heads = ("mail", "about", "state", "queued", "sent", "attempts", "error", "")
    return page(
        "Mails",
        "/admin/mails",
        figures([(n, s) for s, n in counts.items()]),
        card("", table(heads, rows, numbers=(0, 5), caption="Mails")),
        csrf=csrf,
    )


async def send_again(request: web.Request) -> web.Response:
    desk, _ = await _form(request)
    await desk.run(outbox.send_again, int(request.match_info["number"]), desk.now())
    return see("/admin/mails")


# Statistics ----------------------------------------------------------------------------------------------------------


async def show_statistics(request: web.Request) -> web.Response:
    desk = desk_of(request)
    csrf = await _session(request)
    return page("Statistics", "/admin/statistics", *_statistics(statistics(await desk.run(queue.history))), csrf=csrf)


def _statistics(found: Statistics) -> list[Html]:
    if not found.completed:
        return [notice("No recovery was completed yet.")]
    jobs_total = sum(one[0] for one in found.months.values())
    resources = sum(one[1] for one in found.months.values())
    months = [(month, f"{n:,}", f"{r:,}") for month, (n, r) in found.months.items()]
    many = len(found.months)
    months.append(("Average", f"{jobs_total / many:,.0f}", f"{resources / many:,.0f}"))
    spreads = [
        (name, *(f"{value:,.2f}" for value in (one.average, one.least, one.most, one.deviation)))
        for name, one in (
            ("URLs discovered", found.discovered),
            ("URLs recovered", found.recovered),
            ("Days to complete", found.days),
        )
        if one is not None
    ]
    uses = [
        (name, f"{one.used:.1%}", f"{one.contribution:.1%}", f"{one.requests:,.1f}")
        for name, one in found.archives.items()
    ]
    tenths = {f"{10 * n}%": count for n, count in enumerate(found.shares)}
    tlds = [(f".{name}", f"{n:,}", f"{share:.1%}") for name, (n, share) in found.tlds.items()]
    done = found.completed
    with_content = max(done - found.nothing_found, 1)
    return [
        figures(
            [
                (f"{found.nothing_found / done:.1%}", "found nothing"),
                (f"{found.single_pages / done:.1%}", "asked for one page"),
                (f"{found.not_picked_up / with_content:.1%}", "were never picked up"),
            ]
        ),
        card(
            "Usage by month (Table 12)",
            table(("month", "completed jobs", "resources recovered"), months, numbers=(1, 2), caption="Usage by month"),
        ),
        card(
            "Recovery summary (Table 13)",
            table(("", "average", "min", "max", "std"), spreads, numbers=(1, 2, 3, 4), caption="Recovery summary"),
        ),
        card(
            "Archives (Table 14)",
            table(
                ("archive", "used in recoveries", "contribution", "requests per recovery"),
                uses,
                numbers=(1, 2, 3),
                caption="Archives",
            ),
        ),
        card(
            "Recoveries by share of resources recovered (Figure 32)", bars(tenths, "Recoveries by share of resources")
        ),
        card(
            "Recoveries by top-level domain (Figure 33)",
            table(("domain", "recoveries", "recovered"), tlds, numbers=(1, 2), caption="Top-level domains"),
        ),
        card(
            "The whole history",
            tag(
                "p",
                join((tag("a", kind.upper(), href=f"/admin/history.{kind}") for kind in ("csv", "json", "xml")), " · "),
            ),
        ),
    ]


async def history(request: web.Request) -> web.Response:
    await _session(request)
    return await operate.history_reply(desk_of(request), request.match_info["format"])


# Blocklist and takedowns ---------------------------------------------------------------------------------------------


async def blocklist(request: web.Request) -> web.Response:
    desk = desk_of(request)
    csrf = await _session(request)
    found = await desk.transact(lambda c: c.rows("SELECT * FROM block ORDER BY number DESC"))
    rows = [
        (
            row["kind"],
            row["pattern"],
            row["reason"],
            moment(row["created"]),
            tag("div", _button(f"/admin/blocklist/{row['number']}/remove", csrf, "Remove"), class_="small"),
        )
        for row in found
    ]
    kinds = tag(
        "select", tag("option", "site", value="site"), tag("option", "address", value="address"), name="kind", id="kind"
    )
    add = post(
        "/admin/blocklist",
        hidden({"csrf": csrf}),
        tag("div", tag("label", "What", for_="kind"), kinds, class_="field"),
        field("pattern", "Site (lost.example) or address (anna@mail.example, @mail.example)", required=True),
        field("reason", "Reason, shown to people", required=True),
        button="Block",
    )
    return page(
        "Blocklist",
        "/admin/blocklist",
        card("", table(("what", "pattern", "reason", "since", ""), rows, caption="Blocklist")),
        card("Add", add),
        csrf=csrf,
    )


async def block(request: web.Request) -> web.Response:
    desk, given = await _form(request)
    kind = "address" if given.get("kind") == "address" else "site"
    pattern, reason = str(given.get("pattern", "")).strip().lower()[:200], str(given.get("reason", "")).strip()[:300]
    if pattern and reason:
        await desk.transact(
            lambda c: c.change(
                "INSERT INTO block (kind, pattern, reason, created) VALUES (?, ?, ?, ?)",
                kind,
                pattern,
                reason,
                desk.now(),
            )
        )
    return see("/admin/blocklist")


async def unblock(request: web.Request) -> web.Response:
    desk, _ = await _form(request)
    number = int(request.match_info["number"])
    await desk.transact(lambda c: c.change("DELETE FROM block WHERE number = ?", number))
    return see("/admin/blocklist")


async def takedowns(request: web.Request) -> web.Response:
    desk = desk_of(request)
    csrf = await _session(request)
    found = await desk.transact(lambda c: c.rows("SELECT * FROM takedown ORDER BY number DESC LIMIT 200"))
    rows = [
        (
            moment(row["created"]),
            row["uri"],
            row["email"] or "",
            row["reason"],
            row["state"],
            tag(
                "div",
                _button(f"/admin/takedowns/{row['number']}/block", csrf, "Block the site"),
                _button(f"/admin/takedowns/{row['number']}/decline", csrf, "Decline"),
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
    desk, _ = await _form(request)
    number, action = int(request.match_info["number"]), request.match_info["action"]
    from recollect.service.jobs import host_of

    def work(c: Connection) -> list[str]:
        row = first_of(c.rows("SELECT * FROM takedown WHERE number = ?", number))
        if row is None:
            return []
        c.change("UPDATE takedown SET state = ? WHERE number = ?", "done" if action == "block" else "declined", number)
        if action != "block":
            return []
        host = host_of(row["uri"])
        c.change(
            "INSERT INTO block (kind, pattern, reason, created) VALUES ('site', ?, ?, ?)",
            host,
            "its owner asked us",
            desk.now(),
        )
        rows = c.rows("SELECT id, uri, state FROM job")
        hit = [each for each in rows if host_of(each["uri"]) == host or host_of(each["uri"]).endswith(f".{host}")]
        for each in hit:
            if State(each["state"]) in (ACTIVE | {State.PENDING}):
                queue.cancel(c, each["id"], desk.now(), "admin: takedown")
        return [each["id"] for each in hit]

    for identifier in await desk.transact(work):
        await operate.delete(desk, identifier, "admin: takedown")
    return see("/admin/takedowns")


ROUTES = [
    web.get("/admin/login", login_form),
    web.post("/admin/login", login),
    web.post("/admin/logout", logout),
    web.get("/admin", jobs),
    web.get("/admin/jobs/{job}", job),
    web.post("/admin/jobs/{job}/{action}", change_job),
    web.get("/admin/workers", workers),
    web.post("/admin/workers/{worker}/{action}", change_worker),
    web.post("/admin/tokens", add_token),
    web.post("/admin/tokens/{name}/remove", remove_token),
    web.get("/admin/archives", archives),
    web.post("/admin/archives/{archive}/{action}", change_archive),
    web.get("/admin/mails", mails),
    web.post("/admin/mails/{number:\\d+}/send", send_again),
    web.get("/admin/statistics", show_statistics),
    web.get("/admin/history.{format:csv|json|xml}", history),
    web.get("/admin/blocklist", blocklist),
    web.post("/admin/blocklist", block),
    web.post("/admin/blocklist/{number:\\d+}/remove", unblock),
    web.get("/admin/takedowns", takedowns),
    web.post("/admin/takedowns/{number:\\d+}/{action:block|decline}", settle_takedown),
]
