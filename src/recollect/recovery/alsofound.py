"""The page of what came back although no link leads there: older pages and files, by year and folder.

A newest front page may be a farewell with one link; the pages before it are found by the archives' listings only.
Hides: grouping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import unquote, urlsplit

from recollect.recovery.filenames import relative_link
from recollect.recovery.records import Recovered
from recollect.ui.messages import current
from recollect.ui.pages import INLINED, render

NAME = "also-found.html"


@dataclass(frozen=True, slots=True)
class Group:
    """Resources of one kind, year of capture and folder, in order of address."""

    kind: str
    year: int
    folder: str
    resources: tuple[Recovered, ...]


def groups(resources: Iterable[Recovered]) -> list[Group]:
    """Pages before files, newest year first, then by folder."""

    def key(resource: Recovered) -> tuple[bool, int, str]:
        return resource.kind != "page", -resource.captured_at.year, _folder(resource.uri)

    ordered = sorted(resources, key=lambda r: (key(r), r.uri))
    return [
        Group("file" if is_file else "page", -year, folder, tuple(some))
        for (is_file, year, folder), some in groupby(ordered, key=key)
    ]


def _folder(uri: str) -> str:
    parts = urlsplit(uri)
    return parts.netloc + parts.path[: parts.path.rfind("/") + 1]


def also_found_page(resources: Iterable[Recovered], files: Mapping[str, str], source: str, *, front: bool) -> str:
    """The page, as file `source`; `files` are names by URI, and `front` whether there is a front page to link them."""
    found = [resource for resource in resources if resource.uri in files]
    pages = sum(resource.kind == "page" for resource in found)
    texts, files_found = current(), len(found) - pages
    counts = [texts.ngettext("%(n)s page", "%(n)s pages", pages) % {"n": texts.number(pages)}] if pages else []
    if files_found:
        counts.append(texts.ngettext("%(n)s file", "%(n)s files", files_found) % {"n": texts.number(files_found)})
    if front:
        intro = texts.gettext("%(found)s that archives list: no link leads there from the newest front page.")
    else:
        intro = texts.gettext("%(found)s that archives list: the front page itself did not come back.")
    intro %= {"found": texts.gettext(" and ").join(counts)}
    sections = [
        {
            "kind": kind,
            "year": year,
            "groups": [
                {"folder": group.folder, "links": [_link(resource, files, source) for resource in group.resources]}
                for group in some
            ],
        }
        for (kind, year), some in groupby(groups(found), key=lambda group: (group.kind, group.year))
    ]
    return render("recovery/also_found.html", INLINED, intro=intro, sections=sections)


def _link(resource: Recovered, files: Mapping[str, str], source: str) -> dict[str, str]:
    parts = urlsplit(resource.uri)
    name = unquote(parts.path.rpartition("/")[2]) or "/"
    name += f"?{parts.query}" if parts.query else ""
    href = relative_link(source, files[resource.uri])
    return {"href": href, "name": name, "captured": f"{resource.captured_at:%Y-%m-%d}"}
