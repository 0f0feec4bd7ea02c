"""The page of what came back although no link leads there: older pages and files, by year and folder.

A newest front page may be a farewell with one link; the pages before it are found by the archives' listings only.
Hides: grouping and layout. Everything from an archive is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from itertools import groupby
from urllib.parse import unquote, urlsplit

from recollect.quantities import counted
from recollect.recovery.filenames import relative_link
from recollect.recovery.store import Recovered

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


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Also found</title><style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }}
body {{ max-width: 50rem; margin: 2rem auto; padding: 0 1rem }}
li {{ overflow-wrap: anywhere }}
small {{ opacity: .7 }}
</style></head><body><h1>Also found</h1>
<p>{intro}</p>
{sections}
</body></html>
"""


def also_found_page(resources: Iterable[Recovered], files: Mapping[str, str], source: str, *, front: bool) -> str:
    """The page, as file `source`; `files` are names by URI, and `front` whether there is a front page to link them."""
    found = [resource for resource in resources if resource.uri in files]
    pages = sum(resource.kind == "page" for resource in found)
    counts = [counted(pages, "page")] if pages else []
    counts += [counted(len(found) - pages, "file")] if len(found) > pages else []
    why = "no link leads there from the newest front page" if front else "the front page itself did not come back"
    intro = f"{' and '.join(counts)} that archives list: {why}."
    sections = []
    for (kind, year), some in groupby(groups(found), key=lambda group: (group.kind, group.year)):
        sections.append(f"<h2>{'Pages' if kind == 'page' else 'Files'} of {year}</h2>")
        for group in some:
            rows = "\n".join(_row(resource, files, source) for resource in group.resources)
            sections.append(f"<h3>{escape(group.folder)}</h3>\n<ul>\n{rows}\n</ul>")
    return _PAGE.format(intro=escape(intro), sections="\n".join(sections))


def _row(resource: Recovered, files: Mapping[str, str], source: str) -> str:
    parts = urlsplit(resource.uri)
    name = unquote(parts.path.rpartition("/")[2]) or "/"
    name += f"?{parts.query}" if parts.query else ""
    link = escape(relative_link(source, files[resource.uri]))
    return f'<li><a href="{link}">{escape(name)}</a> <small>{resource.captured_at:%Y-%m-%d}</small></li>'
