"""The pages of people: form, survey, confirmation, the page of a job. They work without script.

Hides: reading forms. A POST from another origin, or from a page without one (a sandbox), is refused.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import web

from recollect.desk import outbox, people, promises, queue
from recollect.desk.addresses import Question, read_date, understand
from recollect.desk.database import Connection
from recollect.desk.http import removing, views, views_ask, views_job
from recollect.desk.http.api import decide, full_view, take
from recollect.desk.http.context import (
    BODY_SECONDS,
    Denied,
    Desk,
    TooSlow,
    authorized,
    desk_of,
    network_of,
    same_origin,
    status_of,
)
from recollect.desk.jobs import Extent, Refused, clean_email, clean_uri, parse_submission
from recollect.desk.states import DELIVERED, State
from recollect.errors import RecollectError
from recollect.ui.colours import accent_css
from recollect.ui.messages import message
from recollect.ui.pages import ASSET_TYPES, HEADERS, asset

_HOUR = 3600.0
_NO_ADDRESS = "survey@desk.invalid"  # a survey needs no address, a submission does
# With `no-referrer`, browsers send forms with `Origin: null`, as a sandbox does. Other sites get no referrer either.
_OWN_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"}


def html(text: str, status: int = 200) -> web.Response:
    body = text.encode("utf-8", "replace")
    return web.Response(status=status, body=body, headers={**HEADERS, **_OWN_HEADERS})


def _words(error: RecollectError) -> str:
    """An error as sentences."""
    parts = (views.translated(part).rstrip(".") for part in (error.what, error.why, error.hint) if part)
    return ". ".join(parts) + "."


def problem(_desk: Desk, status: int, what: str, why: str, hint: str = "") -> web.Response:
    return html(views.problem_page(what, why, hint), status)


def problem_of(desk: Desk, error: RecollectError) -> web.Response:
    return problem(desk, status_of(error)[0], error.what, error.why, error.hint)


def see(place: str) -> web.Response:
    return web.Response(status=303, headers={"Location": place, "Cache-Control": "no-store"})


async def assets(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if (own := _own_asset(desk_of(request), name)) is not None:
        return own
    if name not in ASSET_TYPES:
        raise web.HTTPNotFound()
    return web.Response(body=asset(name), headers={"Content-Type": ASSET_TYPES[name], "Cache-Control": "max-age=3600"})


def _own_asset(desk: Desk, name: str) -> web.Response | None:
    """The colour and the logo of the operator."""
    settings, headers = desk.settings, {"Cache-Control": "max-age=3600", "X-Content-Type-Options": "nosniff"}
    if name == "operator.css" and (sheet := accent_css(settings.operator_colour)):
        return web.Response(text=sheet, content_type="text/css", headers=headers)
    if name == "operator-logo" and settings.operator_logo:
        path = Path(settings.operator_logo)
        kind = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg"}.get(path.suffix.lower())
        if kind is not None and path.is_file():
            headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
            return web.Response(body=path.read_bytes(), content_type=kind, headers=headers)
    return None


async def posted(request: web.Request) -> dict[str, Any]:
    """The fields of a form of the desk."""
    if not same_origin(request):
        raise Denied("this form was not sent from our page", hint="open the page again and send it from there")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            form = await request.post()
    except TimeoutError:
        raise TooSlow("the form did not arrive in time") from None
    found: dict[str, Any] = {name: value for name, value in form.items() if isinstance(value, str)}
    if "archives" in form:
        found["archives"] = [value for value in form.getall("archives") if isinstance(value, str)]
    return found


def _form(desk: Desk, given: dict[str, Any], errors: dict[str, str], status: int = 200) -> web.Response:
    uploads = bool(desk.settings.upload_bytes)
    return html(views_ask.form_page(desk.usual_archives(), given, errors, uploads=uploads), status)


def _asked(request: web.Request) -> dict[str, Any]:
    """The fields of the first form, from the address."""
    found: dict[str, Any] = dict(request.query)
    if "archives" in request.query:
        found["archives"] = request.query.getall("archives")
    return found


def _options_of(given: dict[str, Any]) -> dict[str, Any]:
    """What the form says as fields of a submission: dates count only where their choice was made."""
    fields = {
        name: given[name]
        for name in ("uri", "scope", "archives", "windows_names", "scripts", "own_files")
        if given.get(name)
    }
    when = given.get("when") or ("at" if given.get("at") else "between")
    for name in ("at",) if when == "at" else ("from", "to") if when == "between" else ():
        if given.get(name):
            fields[name] = given[name]
    return fields


def _in_plain_dates(given: dict[str, Any], languages: str) -> dict[str, Any]:
    """The fields with dates as 2009-06-01, whatever the person's way to write them."""
    month_first = languages.lower().startswith("en-us")
    dates = {
        name: read_date(str(given[name]), month_first=month_first) for name in ("at", "from", "to") if name in given
    }
    return {**given, **{name: date for name, date in dates.items() if date}}


async def home(request: web.Request) -> web.Response:
    return _form(desk_of(request), _asked(request), {})


async def survey(request: web.Request) -> web.Response:
    """What the archives have; asked for on demand, limited by network."""
    desk = desk_of(request)
    given = _in_plain_dates(_asked(request), request.headers.get("Accept-Language", ""))
    note = ""
    if not given.get("exact"):
        reading = understand(str(given.get("uri", "")))
        if reading.question is Question.PATH and given.get("scope") != Extent.PAGE:
            note, given["uri"] = str(given["uri"]), reading.choices[0].uri
        elif reading.question not in (None, Question.PATH):
            return html(views_ask.question_page(reading, given))
        elif reading.uri:
            given["uri"] = reading.uri
    known = [archive.id for archive in desk.usual_archives()]
    try:
        asked = parse_submission({**_options_of(given), "email": _NO_ADDRESS}, known)
        await desk.run(people.check_blocked, asked)
    except Refused as error:
        words = _words(error)
        return _form(desk, given, {error.field: words}, 400)
    assert desk.surveyor is not None
    network = network_of(request)
    if network and not await desk.surveyor.known(asked.options()):
        bucket = f"survey {people.hash_of(network)}"
        if not await desk.run(people.allow, bucket, desk.now(), desk.settings.surveys_per_network, _HOUR):
            raise people.TooMany("too many surveys from your network", hint="try again in an hour")
    listed = await desk.surveyor.look(asked.options(), wait=2.0)
    if listed.state == "running":
        return html(views_ask.survey_wait_page(asked.uri))
    if listed.state == "failed":
        return problem(
            desk,
            502,
            message("The archives did not answer"),
            listed.error,
            message("Please try again in some minutes."),
        )
    fields = {**given, "uri": asked.uri, "promise": promises.mails(desk.settings)}
    outage = views_ask.Outage(listed.silent, listed.retry_at)
    if listed.state == "unanswered":
        return html(views_ask.unanswered_page(asked.uri, fields, {}, outage), 503)
    return html(views_ask.survey_page(asked.uri, listed.found, await _queue(desk), fields, {}, outage, note))


async def _queue(desk: Desk) -> dict[str, float]:
    def work(c: Connection) -> dict[str, float]:
        rows = c.rows(
            """SELECT coalesce(sum(coalesce(estimate, ?)), 0) AS seconds FROM job
               WHERE state IN ('queued', 'running', 'packing')""",
            queue.TYPICAL_SECONDS,
        )
        return {"waiting": float(rows[0]["seconds"]) / queue.workers_at_work(c, desk.now())}

    return await desk.transact(work)


async def submit(request: web.Request) -> web.Response:
    desk = desk_of(request)
    given = _in_plain_dates(await posted(request), request.headers.get("Accept-Language", ""))
    fields = {**_options_of(given), "email": given.get("email", ""), "name": given.get("name", "")}
    try:
        asked = parse_submission(fields, [archive.id for archive in desk.usual_archives()])
        await take(desk, asked, network_of(request))
    except (Refused, people.TooMany) as error:
        name = error.field if isinstance(error, Refused) else "form"
        return await _survey_again(desk, given, {name: _words(error)}, status_of(error)[0])
    return see("/sent?uri=" + quote(asked.uri, safe=""))


async def _survey_again(desk: Desk, given: dict[str, Any], errors: dict[str, str], status: int) -> web.Response:
    """The second form once more, with what is wrong."""
    try:
        asked = parse_submission({**_options_of(given), "email": _NO_ADDRESS}, [a.id for a in desk.usual_archives()])
    except Refused:
        return _form(desk, given, errors, status)
    assert desk.surveyor is not None
    given = {**given, "promise": promises.mails(desk.settings)}
    listed = await desk.surveyor.look(asked.options())
    if listed.state == "unanswered":
        outage = views_ask.Outage(listed.silent, listed.retry_at)
        return html(views_ask.unanswered_page(asked.uri, given, errors, outage), status)
    if not listed.is_answer or not listed.found.get("captures"):
        return _form(desk, given, errors, status)
    return html(views_ask.survey_page(asked.uri, listed.found, await _queue(desk), given, errors), status)


async def sent(request: web.Request) -> web.Response:
    return html(views_ask.sent_page(request.query.get("uri", "")[:200]))


# Confirming ----------------------------------------------------------------------------------------------------------


async def confirm_form(request: web.Request) -> web.Response:
    """The link of the mail. Opening it changes nothing: scanners of mails open links, too."""
    desk = desk_of(request)
    token = request.match_info["token"]
    person = await desk.run(people.by_token, token, people.Purpose.CONFIRM)
    job = await desk.run(queue.get, person.job)
    return html(views_ask.confirm_page(job.uri, token))


async def confirm(request: web.Request) -> web.Response:
    desk = desk_of(request)
    if not same_origin(request):
        raise Denied("this form was not sent from our page")

    one = await desk.run(people.confirm_by_link, request.match_info["token"], desk.now(), desk.settings)
    desk.changed(one.job)
    return see(_job_path(one.job, one.token))


def _job_path(job: str, token: str) -> str:
    return f"/jobs/{job}?token={token}"


# The page of a job ---------------------------------------------------------------------------------------------------


async def show(request: web.Request) -> web.Response:
    desk = desk_of(request)
    job, person = await authorized(request)
    token = request.query.get("token", "")
    view = await desk.transact(lambda c: full_view(desk, c, job, person, token))
    view["names"] = {archive.id: archive.name or archive.id for archive in desk.archives}
    view["left"] = person is not None and person.left_at is not None
    view["tell_more"] = person is not None and person.tell_more
    if desk.preview_url and State(view["state"]) in DELIVERED:
        from recollect.desk.http.preview import preview_folder, preview_path

        view["preview"] = desk.preview_url + preview_path(desk, job)
        folder = desk.preview_url + preview_folder(desk, job)
        view["doubtful"] = [
            {**one, "href": folder + quote(one["file"]) if one["file"] else ""} for one in view["doubtful"]
        ]
    return html(views_job.job_page(view, token))


async def cancel(request: web.Request) -> web.Response:
    desk = desk_of(request)
    await posted(request)
    job, person = await authorized(request)
    if person is not None:
        after = await desk.run(people.leave, person, desk.now())
        if after.state == State.CANCELLED:
            desk.taken_away(job.id)
        desk.changed(job.id)
    return see(_job_path(job.id, request.query.get("token", "")))


async def forget(request: web.Request) -> web.Response:
    """Delete everything that is stored of a person; the files, too, without other recipients."""
    desk = desk_of(request)
    await posted(request)
    job, person = await authorized(request)
    if person is not None:
        await removing.forget(desk, person)
    return see(_job_path(job.id, request.query.get("token", "")))


async def review(request: web.Request) -> web.Response:
    """The answers of the form about doubtful pages: page-N is its address, answer-N what the person says."""
    desk = desk_of(request)
    given = await posted(request)
    job, person = await authorized(request)
    numbers = [name.removeprefix("page-") for name in given if name.startswith("page-")]
    answers = {given[f"page-{one}"]: given.get(f"answer-{one}", "") for one in numbers}
    await decide(desk, job, person, {uri: answer for uri, answer in answers.items() if answer})
    return see(_job_path(job.id, request.query.get("token", "")))


async def privacy(request: web.Request) -> web.Response:
    return html(views.privacy_page(desk_of(request).settings))


async def imprint(request: web.Request) -> web.Response:
    settings = desk_of(request).settings
    if not settings.imprint:
        raise web.HTTPNotFound()
    return html(views.imprint_page(settings))


async def set_mails(request: web.Request) -> web.Response:
    desk = desk_of(request)
    given = await posted(request)
    job, person = await authorized(request)
    if person is not None:
        await desk.run(people.tell_more, person, bool(given.get("more")))
    return see(_job_path(job.id, request.query.get("token", "")))


async def again(request: web.Request) -> web.Response:
    """Another date for the same site, or its copy with or without scripts: no second confirmation, and what was fetched
    is used."""
    desk = desk_of(request)
    given = await posted(request)
    job, person = await authorized(request)
    if person is None or person.email is None or person.confirmed_at is None:
        raise people.BadToken(
            "this request was not confirmed, or its address was deleted", hint="ask for the site again"
        )
    fields = {"uri": job.uri, "scope": job.options["scope"], "email": person.email, "name": person.name}
    given = _in_plain_dates(given, request.headers.get("Accept-Language", ""))
    fields |= {"archives": list(job.options["archives"]), "at": given.get("at", "")}
    fields |= {name: job.options.get(name, False) for name in ("windows_names", "scripts")}
    if "scripts" in given:
        fields |= {name: job.options[name] or "" for name in ("at", "from", "to")} | {"scripts": given["scripts"]}
    asked = parse_submission(fields, [archive.id for archive in desk.usual_archives()])

    def work(c: Connection) -> people.Submitted:
        people.check_blocked(c, asked)
        bucket = f"again {people.hash_of(person.email or '')}"
        if not people.allow(c, bucket, desk.now(), desk.settings.per_address, 86_400.0):
            raise people.TooMany("too many requests of this e-mail address today", hint="try again tomorrow")
        return people.submit(c, asked, desk.now(), desk.settings, confirmed_by="person", source=job.id)

    one = await desk.transact(work)
    desk.changed(one.job)
    return see(_job_path(one.job, one.token))


# Taking down ---------------------------------------------------------------------------------------------------------


async def takedown_form(_request: web.Request) -> web.Response:
    return html(views.takedown_page({}, {}))


async def takedown(request: web.Request) -> web.Response:
    desk = desk_of(request)
    given = await posted(request)
    try:
        uri, email = clean_uri(str(given.get("uri", ""))), clean_email(str(given.get("email", "")))
    except Refused as error:
        return html(views.takedown_page({error.field: _words(error)}, given), 400)
    reason = str(given.get("reason", ""))[:5000]
    network = network_of(request)

    def work(c: Connection) -> None:
        if network and not people.allow(c, f"takedown {people.hash_of(network)}", desk.now(), 10, 86_400.0):
            raise people.TooMany("too many requests from your network today")
        c.change(
            "INSERT INTO takedown (uri, email, reason, state, created) VALUES (?, ?, ?, 'open', ?)",
            uri,
            email,
            reason,
            desk.now(),
        )
        once = f"takedown {desk.now()}"
        outbox.enqueue(c, outbox.Kind.OPERATOR_TAKEDOWN, desk.now(), desk.settings, once=once)

    await desk.transact(work)
    return html(views.takedown_page({}, {}, done=True))


ROUTES = [
    web.get("/", home),
    web.get("/_/{name}", assets),
    web.get("/survey", survey),
    web.post("/jobs", submit),
    web.get("/sent", sent),
    web.get("/confirm/{token}", confirm_form),
    web.post("/confirm/{token}", confirm),
    web.get("/jobs/{job}", show),
    web.post("/jobs/{job}/cancel", cancel),
    web.post("/jobs/{job}/forget", forget),
    web.post("/jobs/{job}/review", review),
    web.get("/privacy", privacy),
    web.get("/imprint", imprint),
    web.post("/jobs/{job}/tell", set_mails),
    web.post("/jobs/{job}/again", again),
    web.get("/takedown", takedown_form),
    web.post("/takedown", takedown),
]
