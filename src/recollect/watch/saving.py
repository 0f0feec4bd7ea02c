"""Asking an archive to save what no archive holds: off unless an endpoint is configured.

Hides: the request. It is the one of the Internet Archive's Save Page Now 2: a POST of `url` with an optional
`Authorization: LOW key:secret`, answered with JSON that has a `job_id`. Each resource is asked for at most once a
month, and at most `MOST` of a round. Whether it was saved is seen when the archives are asked the next time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from recollect.archives.live import LiveAnswer, LiveClient
from recollect.watch.states import ResourceState, SiteState
from recollect.watch.store import Store

AGAIN_AFTER = timedelta(days=30)
MOST = 20


@dataclass(frozen=True, slots=True)
class SaveEndpoint:
    """Where an archive takes requests to save."""

    url: str
    key: str = ""
    """`key:secret`, sent as `Authorization: LOW key:secret`."""


async def request_saves(store: Store, client: LiveClient, endpoint: SaveEndpoint, now: datetime) -> int:
    """Ask for the vulnerable resources of sites that are live; returns how many were accepted."""
    accepted = asked = 0
    for site in store.sites():
        if site.status.state not in (SiteState.FINE, SiteState.BACK):
            continue
        before = store.asked(site.uri)
        for resource in store.resources(site.uri):
            known = before.get(resource.uri)
            lately = known is not None and abs(now - known[0]) < AGAIN_AFTER
            if resource.state is not ResourceState.VULNERABLE or lately:
                continue
            if asked >= MOST:
                return accepted
            asked += 1
            # Noted before it is sent: a process that dies here asks later, not twice.
            with store.transaction():
                store.put_asked(site.uri, resource.uri, now, "asked")
            answer = await _ask(client, endpoint, resource.uri)
            with store.transaction():
                store.put_asked(site.uri, resource.uri, now, _words(answer))
            if answer.failure is not None or answer.status in (401, 403, 429) or answer.status >= 500:
                return accepted  # the endpoint does not take more now
            accepted += answer.status < 300
    return accepted


async def _ask(client: LiveClient, endpoint: SaveEndpoint, uri: str) -> LiveAnswer:
    fields = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    if endpoint.key:
        fields["Authorization"] = f"LOW {endpoint.key}"
    return await client.post(endpoint.url, urlencode({"url": uri}).encode(), fields)


def _words(answer: LiveAnswer) -> str:
    if answer.failure is not None:
        return f"failed: {answer.why}"
    try:
        value = json.loads(answer.body)
        job = value.get("job_id") if isinstance(value, dict) else None
    except (ValueError, RecursionError):
        job = None
    return f"status {answer.status}" + (f", job {job}" if job else "")
