"""The table of endpoints: the first word of a path, and who answers it."""

from __future__ import annotations

from recollect.aggregator.http import lookups, operator, people, published
from recollect.aggregator.http.app import Endpoint

ENDPOINTS: dict[str, Endpoint] = {
    "": people.page,
    ".well-known": published.well_known,
    "_": people.assets,
    "about": operator.about,
    "archives": operator.archives,
    "health": operator.health,
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
