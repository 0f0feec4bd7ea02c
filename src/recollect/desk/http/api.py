"""The API of people: submit, status, events, cancel, files. The contract is in docs/desk.md.

Hides: how a request becomes calls of the service. Every address of a job needs its token, or the operator's.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Mapping
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from aiohttp import web

from recollect.desk import outages, people, queue
from recollect.desk.delivery import DOWNLOADS, MEDIA_TYPES, REPORT, WACZ, packed
from recollect.desk.http import removing
from recollect.desk.http.context import (
    BadRequest,
    Denied,
    Desk,
    Gone,
    authorized,
    check_origin,
    desk_of,
    has_role,
    json_body,
    json_reply,
    network_of,
)
from recollect.desk.http.hub import OPERATOR
from recollect.desk.http.uploads import described, is_open
from recollect.desk.jobs import Job, Submission, parse_submission
from recollect.desk.letters import status_url
from recollect.desk.reports import figures_of
from recollect.desk.states import ACTIVE, DELIVERED, FINAL, State
from recollect.desk.surveyor import known, listing_key
from recollect.errors import RecollectError
from recollect.recovery.sentences import summary as sentences
from recollect.recovery.verdicts import Decision

_HEARTBEAT = 5.0
_PICKED_UP = frozenset(("result.zip", "result.tar.gz", WACZ))
# What is inside a report came from archives: it is shown without script, without our origin, without any request.
_FOREIGN = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"


async def submit(request: web.Request) -> web.Response:
    """POST /api/jobs"""
    desk = desk_of(request)
    check_origin(request)
    fields = await json_body(request)
    asked = parse_submission(fields, [archive.id for archive in desk.usual_archives()])
    operator = await has_role(request, "operator")
    key = request.headers.get("Idempotency-Key", "").strip('"')[:200]
    one = await take(desk, asked, network_of(request), key=key, operator=operator)
    job = await desk.run(queue.get, one.job)
    person = await desk.run(people.by_token, one.token, people.Purpose.STATUS)
    answer = {
        "id": one.job,
        "state": people.shown_state(job, person).value,
        "status_url": status_url(desk.base_url, one.job, one.token),
        "token": one.token,
    }
    return json_reply(answer, 201, {"Location": f"{desk.base_url}/api/jobs/{one.job}"})


async def take(desk: Desk, asked: Submission, network: str, *, key: str = "", operator: str = "") -> people.Submitted:
    """Take a submission, with the estimate of its survey if there was one."""
    now = desk.now()
    listed = await desk.run(known, listing_key(asked.options()), now, desk.settings.listings_for)
    seconds = listed.found.get("estimate", {}).get("seconds") if listed is not None else None
    one = await desk.run(
        people.submit,
        asked,
        now,
        desk.settings,
        network=network,
        key=key,
        confirmed_by=f"operator {operator}" if operator else "",
        estimate=seconds,
    )
    desk.changed(one.job)
    return one


def full_view(desk: Desk, c: Any, job: Job, person: people.Recipient | None, token: str) -> dict[str, Any]:
    """What a recipient sees of a job, with the addresses of its files."""
    view = people.view(c, job, person, desk.now())
    names = {archive.id: archive.name or archive.id for archive in desk.archives}
    view["outages"] = [{**one, "name": names.get(one["archive"], one["archive"])} for one in view["outages"]]
    view["waiting_for"] = [{**one, "name": names.get(one["archive"], one["archive"])} for one in view["waiting_for"]]
    view["status_url"] = status_url(desk.base_url, job.id, token) if token else None
    view["thumbs"] = pictures_of(desk, job, State(view["state"]))
    view["uploads"] = is_open(desk, job, State(view["state"]))
    # A token of a request that was not confirmed shows a new job, whatever its job has become.
    view["sources"] = described(desk, job.id) if State(view["state"]) is job.state else []
    if State(view["state"]) in DELIVERED:
        view["result"] = result_urls(desk, job, token)
        view["sentences"] = sentences(figures_of(job.result.get("summary", {})), hints=False)
    return view


def pictures_of(desk: Desk, job: Job, state: State) -> list[int]:
    """Numbers of the pictures of recovered pages: of a result, or of what came while others are collected."""
    if state in DELIVERED:
        return [number for number in range(10) if f"thumb-{number}.png" in job.result.get("files", {})]
    if state not in ACTIVE:
        return []
    folder = desk.results(job.id)
    return [number for number in range(10) if (folder / f"thumb-{number}.png").is_file()]


def result_urls(desk: Desk, job: Job, token: str) -> dict[str, Any]:
    files: Mapping[str, Mapping[str, Any]] = job.result.get("files", {})
    query = f"?token={token}" if token else ""
    names = {"zip": "result.zip", "tar.gz": "result.tar.gz", "wacz": WACZ, "report": REPORT}
    urls: dict[str, Any] = {
        kind: f"{desk.base_url}/api/jobs/{job.id}/{name}{query}" for kind, name in names.items() if name in files
    }
    urls["files"] = {name: files[name] for name in names.values() if name in files}
    return urls


async def show(request: web.Request) -> web.Response:
    """GET /api/jobs/ID"""
    desk = desk_of(request)
    job, person = await authorized(request)
    token = request.query.get("token", "")
    return json_reply(await desk.transact(lambda c: full_view(desk, c, job, person, token)))


async def events(request: web.Request) -> web.StreamResponse:
    """GET /api/jobs/ID/events: the same as the status, as server-sent events, whenever it changes."""
    desk = desk_of(request)
    job, person = await authorized(request)
    watcher = person.id if person is not None else OPERATOR
    if not desk.hub.enter(watcher):
        raise people.TooMany("too many people watch", hint="load the page again now and then")
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
    identifier, recipient = job.id, person.id if person is not None else ""
    last = b""
    try:
        await response.prepare(request)
        await response.write(b"retry: 5000\n\n")
        while not desk.stopping.is_set():
            seen = desk.hub.version(identifier)
            if recipient:
                person = await desk.run(_again, recipient)
            kind = _kind(person)
            message = await desk.hub.message(identifier, kind, partial(_message, desk, identifier, person))
            if message != last:
                await response.write(b"event: status\ndata: " + message + b"\n\n")
                last = message
            if json.loads(message)["state"] in FINAL | DELIVERED:
                break
            if not await desk.hub.wait(identifier, seen, _HEARTBEAT):
                await response.write(b": still here\n\n")
    except (ConnectionError, RecollectError):
        pass  # the head is sent already: the browser connects again automatically, and gets the error then
    finally:
        desk.hub.leave(watcher)
    return response


def _kind(person: people.Recipient | None) -> str:
    """Recipients of one kind see the same of a job."""
    if person is None:
        return "operator"
    return "left" if person.left_at is not None else "pending" if person.confirmed_at is None else "confirmed"


def _again(c: Any, recipient: str) -> people.Recipient | None:
    rows = c.rows("SELECT * FROM recipient WHERE id = ?", recipient)
    return people.recipient_of(rows[0]) if rows else None


async def _message(desk: Desk, job: str, person: people.Recipient | None) -> bytes:
    view = await desk.transact(lambda c: full_view(desk, c, queue.get(c, job), person, ""))
    for name in ("updated", "status_url", "result"):
        view.pop(name, None)
    return json.dumps(view).encode()


async def cancel(request: web.Request) -> web.Response:
    """POST /api/jobs/ID/cancel: the recipient leaves; the last one, or the operator, ends the job."""
    desk = desk_of(request)
    check_origin(request)
    job, person = await authorized(request)
    if person is None:
        await desk.run(queue.cancel, job.id, desk.now(), "operator")
    else:
        await desk.run(people.leave, person, desk.now())
    after = await desk.run(queue.get, job.id)
    if after.state == State.CANCELLED:
        desk.taken_away(job.id)
    desk.changed(job.id)
    state = State.CANCELLED if person is not None else after.state
    return json_reply({"id": job.id, "state": state.value})


async def forget(request: web.Request) -> web.Response:
    """POST /api/jobs/ID/forget: everything that is stored of the recipient is deleted now."""
    desk = desk_of(request)
    check_origin(request)
    job, person = await authorized(request)
    if person is None:
        raise Denied("only a recipient can delete their data", hint="DELETE /api/jobs/ID removes the job")
    await removing.forget(desk, person)
    return json_reply({"id": job.id, "state": State.CANCELLED.value})


async def review(request: web.Request) -> web.Response:
    """POST /api/jobs/ID/review {"decisions": {URI: "mine" | "not-mine"}}: the result is built again from them."""
    desk = desk_of(request)
    check_origin(request)
    job, person = await authorized(request)
    decisions = (await json_body(request)).get("decisions")
    if not isinstance(decisions, dict):
        raise BadRequest("`decisions` is not an object")
    await decide(desk, job, person, decisions)
    return json_reply({"id": job.id, "decided": len(decisions)})


async def decide(desk: Desk, job: Job, person: people.Recipient | None, decisions: Mapping[Any, Any]) -> None:
    """Take a person's answers about doubtful pages; raises BadRequest for what is not one."""
    asked = {one["uri"] for one in job.result.get("summary", {}).get("doubtful", ())}
    for uri, decision in decisions.items():
        if uri not in asked or not isinstance(decision, str) or decision not in set(Decision):
            raise BadRequest("not an answer about a doubtful page", where=str(uri)[:200])
    if people.shown_state(job, person) not in DELIVERED:
        raise BadRequest("there is no result to review")
    if person is not None and not await desk.run(people.is_first, person):
        raise Denied("others share this result; who asked first decides about its pages")
    if decisions:
        await desk.run(outages.review, job, decisions, desk.now())
        desk.changed(job.id)


async def tell_more(request: web.Request) -> web.Response:
    """POST /api/jobs/ID/tell {"more": true}: a mail if a later listing has a real gain."""
    desk = desk_of(request)
    check_origin(request)
    job, person = await authorized(request)
    wanted = bool((await json_body(request)).get("more", True))
    if person is not None:
        await desk.run(people.tell_more, person, wanted)
    return json_reply({"id": job.id, "tell_more": wanted})


async def download(request: web.Request) -> web.StreamResponse:
    """GET /api/jobs/ID/result.zip and the others: one file, with ranges and its checksum."""
    desk = desk_of(request)
    name = request.match_info["file"]
    job, person = await authorized(request)
    state = people.shown_state(job, person)
    if state not in DELIVERED:
        if state in ACTIVE and name.startswith("thumb-"):
            return await _early_picture(desk, job, name)
        if job.state == State.EXPIRED:
            raise Gone("the files of this job were removed", hint="ask for the site again")
        raise queue.UnknownJob("there is nothing to download yet", where=job.id)
    response = await sent_file(desk, job, name)
    if name in _PICKED_UP and request.method == "GET" and person is not None:
        await desk.run(people.pick_up, person, desk.now())
        desk.changed(job.id)
    return response


async def sent_file(desk: Desk, job: Job, name: str) -> web.StreamResponse:
    """A file of a result; raises UnknownJob."""
    path, known_file = desk.results(job.id) / name, job.result.get("files", {}).get(name)
    if (name not in DOWNLOADS and not name.startswith("thumb-")) or known_file is None or not path.is_file():
        raise queue.UnknownJob("this job has no such file", where=name[:80])
    if name == REPORT:
        return await _report(desk, path, job)
    return _file(path, name, known_file["sha256"], job)


async def _early_picture(desk: Desk, job: Job, name: str) -> web.StreamResponse:
    """A picture of a page that came while others are collected."""
    path = desk.results(job.id) / name
    if not path.is_file():
        raise queue.UnknownJob("this job has no such file", where=name[:80])
    return _file(path, name, (await asyncio.to_thread(packed, path)).sha256, job)


async def _report(desk: Desk, path: Path, job: Job) -> web.Response:
    """The report, whose links lead to the files of the preview; without a preview they are words."""
    from recollect.desk.http.preview import preview_folder

    text = await asyncio.to_thread(path.read_text, "utf-8", "replace")
    if desk.preview_url:
        base = escape(desk.preview_url + preview_folder(desk, job), quote=True)
        text = re.sub(r"(<head[^<>]*+>)", lambda found: f'{found.group()}<base href="{base}">', text, count=1)
        policy = _FOREIGN.replace("sandbox;", "sandbox allow-top-navigation-by-user-activation allow-popups;")
    else:
        text = re.sub(r"<a\b([^<>]{0,1000}?)\shref=(\"[^\"#][^\"]*+\"|'[^'#][^']*+')", _without_local_link, text)
        policy = _FOREIGN
    headers = {
        "Content-Type": MEDIA_TYPES[REPORT],
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-store",
        "Referrer-Policy": "no-referrer",
    }
    return web.Response(body=text.encode(), headers=headers)


def _without_local_link(found: re.Match[str]) -> str:
    """A link to a file of the download is of no use on a page of the desk; one to an archive stays."""
    return found.group() if re.match(r"[\"']https?://", found.group(2)) else f"<a{found.group(1)}"


def _file(path: Any, name: str, sha256: str, job: Job) -> web.FileResponse:
    from recollect.desk.jobs import host_of

    digest = base64.b64encode(bytes.fromhex(sha256)).decode()
    headers = {
        "Content-Type": MEDIA_TYPES.get(name, "image/png"),
        "Content-Security-Policy": _FOREIGN,
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "private, no-store",
        "Referrer-Policy": "no-referrer",
        "Repr-Digest": f"sha-256=:{digest}:",
        "X-Checksum-Sha256": sha256,
    }
    if name in _PICKED_UP:
        host = "".join(ch if (ch.isalnum() and ch.isascii()) or ch in ".-" else "-" for ch in host_of(job.uri))
        headers["Content-Disposition"] = f'attachment; filename="{host}{name.removeprefix("result")}"'
    return web.FileResponse(path, headers=headers)


ROUTES = [
    web.post("/api/jobs", submit),
    web.get("/api/jobs/{job}", show),
    web.get("/api/jobs/{job}/events", events),
    web.post("/api/jobs/{job}/cancel", cancel),
    web.post("/api/jobs/{job}/tell", tell_more),
    web.post("/api/jobs/{job}/review", review),
    web.post("/api/jobs/{job}/forget", forget),
    web.get("/api/jobs/{job}/{file:result\\..+|report\\.html|thumb-\\d+\\.png}", download),
]
