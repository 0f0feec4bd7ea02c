"""Asking an archive to save what no archive holds: off unless an endpoint is configured.

Hides: the requests. They are those of the Internet Archive's Save Page Now 2: a POST of `url` with an optional
`Authorization: LOW key:secret`, answered with JSON that has a `job_id`; GET `ENDPOINT/status/JOB` then says `pending`,
`success` or `error`. Each resource is asked for at most once a month, at most `MOST` in a round. A resource that was
saved is looked up in the archives on the next visit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from recollect.archives.live import LiveAnswer, LiveClient
from recollect.watch.records import Save, SaveState
from recollect.watch.states import ResourceState, SiteState
from recollect.watch.store import Store

AGAIN_AFTER = timedelta(days=30)
FOLLOW_EVERY = timedelta(minutes=5)
GIVE_UP_AFTER = timedelta(days=2)
MOST = 20


@dataclass(frozen=True, slots=True)
class SaveEndpoint:
    """Where an archive takes requests to save."""

    url: str
    key: str = ""
    """`key:secret`, sent as `Authorization: LOW key:secret`."""

    @property
    def headers(self) -> dict[str, str]:
        return {"Accept": "application/json"} | ({"Authorization": f"LOW {self.key}"} if self.key else {})


async def request_saves(store: Store, client: LiveClient, endpoint: SaveEndpoint, now: datetime) -> int:
    """Ask for the vulnerable resources of sites that are live; returns how many were accepted."""
    accepted = asked = 0
    for site in store.sites():
        if site.status.state not in (SiteState.FINE, SiteState.BACK):
            continue
        before = store.saves(site.uri)
        for resource in store.resources(site.uri):
            known = before.get(resource.uri)
            lately = known is not None and abs(now - known.at) < AGAIN_AFTER
            if resource.state is not ResourceState.VULNERABLE or lately:
                continue
            if asked >= MOST:
                return accepted
            asked += 1
            save = Save(site.uri, resource.uri, now, SaveState.ASKED, now + FOLLOW_EVERY)
            # Written before it is sent: a process that dies here asks a month later, not twice.
            with store.transaction():
                store.put_save(save)
            answer = await _ask(client, endpoint, resource.uri)
            taken = _taken(save, answer)
            with store.transaction():
                store.put_save(taken)
            if answer.failure is not None or answer.status in (401, 403, 429) or answer.status >= 500:
                return accepted  # the endpoint does not take more now
            accepted += taken.state is not SaveState.FAILED
    return accepted


async def follow_saves(store: Store, client: LiveClient, endpoint: SaveEndpoint, now: datetime) -> int:
    """Ask what became of requests that the archive took; returns how many were saved."""
    saved = 0
    for site in store.sites():
        for one in store.saves(site.uri).values():
            if one.state is not SaveState.PENDING or not (one.next_at <= now or one.next_at > now + AGAIN_AFTER):
                continue
            address = f"{endpoint.url.rstrip('/')}/status/{quote(one.job, safe='')}"
            answer = await client.get(address, endpoint.headers)
            with store.transaction():
                updated = _updated(one, answer, now)
                store.put_save(updated)
                saved += updated.state is SaveState.SAVED
                if updated.state is SaveState.SAVED:
                    store.forget_holding(site.uri, one.uri)
            if answer.failure is not None or answer.status == 429 or answer.status >= 500:
                return saved  # the endpoint does not answer more now
    return saved


async def _ask(client: LiveClient, endpoint: SaveEndpoint, uri: str) -> LiveAnswer:
    fields = endpoint.headers | {"Content-Type": "application/x-www-form-urlencoded"}
    return await client.post(endpoint.url, urlencode({"url": uri}).encode(), fields)


def _taken(save: Save, answer: LiveAnswer) -> Save:
    """What the answer to a request makes of it. Without a job there is nothing to ask for later."""
    if answer.failure is not None:
        return replace(save, state=SaveState.FAILED, detail=answer.why)
    if not 200 <= answer.status < 300:
        return replace(save, state=SaveState.FAILED, detail=f"status {answer.status}")
    value = _json(answer)
    if value.get("status") == "error":
        return replace(save, state=SaveState.FAILED, detail=str(value.get("message") or "error"))
    job = value.get("job_id")
    return replace(save, state=SaveState.PENDING, job=str(job)) if job else save


def _updated(save: Save, answer: LiveAnswer, now: datetime) -> Save:
    """What the archive says of a job; what does not end within two days has failed."""
    status = _json(answer).get("status") if answer.failure is None and answer.status == 200 else None
    if status == "success":
        return replace(save, state=SaveState.SAVED, detail=str(_json(answer).get("timestamp") or ""))
    if status == "error":
        why = _json(answer).get("message") or _json(answer).get("status_ext") or "error"
        return replace(save, state=SaveState.FAILED, detail=str(why))
    if abs(now - save.at) > GIVE_UP_AFTER:
        return replace(save, state=SaveState.FAILED, detail="the archive did not say what became of it")
    return replace(save, next_at=now + FOLLOW_EVERY)


def _json(answer: LiveAnswer) -> Mapping[str, Any]:
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
