"""The pages of all captures (`--all-captures`): one for each resource, with its captures over time, and a list of them.

Hides: layout. Captures themselves are in the WARC and the WACZ, which every replay software opens at any date; nothing
of them is written as a page of its own, because an old page that is opened from the disk would call the live web.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from recollect.recovery.filenames import ANY_SYSTEM, NameRules, file_names, relative_link
from recollect.recovery.journal import Journal
from recollect.recovery.ownfiles import OwnFiles
from recollect.recovery.records import Recovered, Version
from recollect.recovery.store import Store
from recollect.ui.pages import INLINED, render

FOLDER = "captures"
NAME = f"{FOLDER}/index.html"


def write_timelines(store: Store, files: OwnFiles, *, name_rules: NameRules = ANY_SYSTEM) -> int:
    """A page for each resource with more than one capture, and the list of them; returns how many pages."""
    histories = [(resource, captures) for resource, captures in _histories(store) if len(captures) > 1]
    if not histories:
        return 0
    pairs = ((resource.uri, resource.media_type) for resource, _ in histories)
    names = {uri: f"{name}.html" for uri, name in file_names(pairs, lambda _uri: FOLDER, name_rules).items()}
    for resource, captures in histories:
        page = render("recovery/timeline.html", INLINED, name=resource.uri, rows=list(_rows(captures)))
        files.write(names[resource.uri], page.encode("utf-8", "replace"))
    links = [
        {
            "href": relative_link(NAME, names[resource.uri]),
            "name": resource.uri,
            "count": len(captures),
            "first": f"{captures[0].resource.captured_at:%Y-%m-%d}",
            "last": f"{captures[-1].resource.captured_at:%Y-%m-%d}",
        }
        for resource, captures in histories
    ]
    total = sum(len(captures) for _, captures in histories)
    page = render("recovery/timelines.html", INLINED, name=", ".join(store.start), links=links, total=total)
    files.write(NAME, page.encode("utf-8", "replace"))
    return len(histories)


def _histories(store: Store) -> Iterator[tuple[Recovered, list[Version]]]:
    """Each resource with all of its captures, in order of time."""
    further = {
        key: list(some) for key, some in groupby(Journal(store).versions(), key=lambda version: version.resource.key)
    }
    for resource in store.recovered():
        captures = [Version(resource), *further.get(resource.key, ())]
        yield resource, sorted(captures, key=lambda one: (one.resource.captured_at, one.resource.archive))


def _rows(captures: list[Version]) -> Iterator[dict[str, str]]:
    before: Recovered | None = None
    for version in captures:
        one = version.resource
        changed = "" if before is None else "the same" if before.digest == one.digest else "changed"
        yield {
            "at": f"{one.captured_at:%Y-%m-%d %H:%M:%S}",
            "archive": one.archive,
            "href": one.uri_m if one.uri_m.startswith(("http://", "https://")) else "",
            "what": f"redirect to {one.redirect_to}" if one.redirect_to else one.media_type,
            "length": "" if one.redirect_to else f"{one.length:,}",
            "changed": changed,
        }
        before = one
