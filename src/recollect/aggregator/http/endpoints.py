"""The table of endpoints: the first word of a path, and who answers it."""

from __future__ import annotations

from recollect.aggregator.http import lookups, operator, people, published, timetravel
from recollect.aggregator.http.app import Endpoint

ENDPOINTS: dict[str, Endpoint] = {
    "": people.page,
    ".well-known": published.well_known,
    "404.js": timetravel.error_page_script,
    "_": people.assets,
    "about": operator.about,
    "api": timetravel.api,
    "archives": operator.archives,
    "health": operator.health,
    "list": timetravel.listing,
    "memento": lookups.memento,
    "mementomap": published.folder,
    "metrics": operator.metrics,
    "monitor": operator.monitor,
    "openapi.json": operator.openapi,
    "ready": operator.ready,
    "reload": operator.reload,
    "rest": operator.rest,
    "route": lookups.route,
    "stream": lookups.stream,
    "summary": lookups.summary,
    "timegate": lookups.timegate,
    "timemap": lookups.timemap,
    "wake": operator.wake,
}
