"""Recoveries in this process: of a lost site, or of just the lost pages of a live one, ready to be uploaded.

For lost pages the folder has, beside the recovery itself:

    upload/          the pages, and what they embed that the site does not have any more: nothing that is live is
                     in it, so that an upload overwrites nothing
    redirects/       rules that lead links to lost pages elsewhere: nginx, Apache, static hosts, a table
    README.txt
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from recollect.errors import UsageError
from recollect.formats.containers import atomic_output
from recollect.quantities import counted, format_percent
from recollect.recovery.sentences import outage, rerun_command, summary, text
from recollect.watch.pageloss import Redirect, redirects_of
from recollect.watch.records import RecoveryState
from recollect.watch.recoveries import RecoveryProgress
from recollect.watch.redirects import apache_redirects, netlify_redirects, nginx_redirects, table

if TYPE_CHECKING:
    from recollect.recovery.report import Report
    from recollect.watch.records import RecoveryRecord, Resource, Site

MOST_ASSETS = 100
_README = """Lost pages of {site}, recovered from web archives

upload/       Copy what is in it to the root of your web space. It has {pages} that came back, and what they embed
              and the site does not have any more, as archived. Nothing that answers today is in it.
{renamed}redirects/    If you do not want the old pages back, or for those that did not come back: rules that lead
              links to lost pages to their new addresses (moved) or to copies in archives (copy). nginx.conf and
              htaccess are parts for your configuration, _redirects for static hosts, redirects.tsv is a table of all.
report.html   How each page came back.
"""


@dataclass(frozen=True, slots=True)
class LocalRecoveries:
    """Recovers lost sites in this process."""

    folder: Path

    async def start(self, site: Site, folder: str, pages: Sequence[Resource] = ()) -> RecoveryProgress:
        """Recover a site as it was just before it was lost, or just these pages; stops when the run is stopped."""
        stopped = threading.Event()
        place = self.folder / folder
        place.parent.mkdir(parents=True, exist_ok=True)
        work = self._pages if pages else self._site
        try:
            report = await asyncio.to_thread(work, site, place, pages, stopped.is_set)
        finally:
            stopped.set()
        assert report is not None  # only a person who declines the survey gets none
        told = await self._make_upload(site, place, pages, report) if pages else _told(report, place)
        if report.resources:
            return RecoveryProgress(RecoveryState.DONE, detail=told)
        failed = bool(report.figures.outages)  # an archive that failed may have it: it is asked again
        return RecoveryProgress(RecoveryState.FAILED if failed else RecoveryState.NOTHING_FOUND, detail=told)

    async def follow(self, recovery: RecoveryRecord) -> RecoveryProgress:
        """A job of a desk that is no longer configured."""
        raise UsageError("this job is at a desk", where=recovery.folder, hint="--desk URL")

    def _site(self, site: Site, place: Path, _: Sequence[Resource], stop: Callable[[], bool]) -> Report | None:
        from recollect.recovery.choose import DatePreference
        from recollect.recovery.options import Options
        from recollect.recovery.progress import Watch
        from recollect.recovery.recover import recover
        from recollect.recovery.scope import Scope
        from recollect.recovery.sources import Sources

        options = Options(Scope((site.uri,)), DatePreference(end=site.status.since))
        sources = Sources(registry=site.archives)
        return recover(site.uri, place, archives=sources, options=options, watch=Watch(stop=stop)).report

    def _pages(self, site: Site, place: Path, pages: Sequence[Resource], stop: Callable[[], bool]) -> Report | None:
        from recollect.recovery.choose import DatePreference
        from recollect.recovery.options import Options
        from recollect.recovery.outputs import Outputs
        from recollect.recovery.progress import Watch
        from recollect.recovery.recover import recover
        from recollect.recovery.scope import Scope
        from recollect.recovery.sources import Sources

        uris = tuple(page.uri for page in pages)
        gone = [page.gone_since for page in pages if page.gone_since is not None]
        options = Options(Scope(uris, extent="page"), DatePreference(end=max(gone, default=None)))
        outputs = Outputs(warc=False, wacz=False, missing="keep")
        sources = Sources(registry=site.archives)
        return recover(uris, place, archives=sources, options=options, outputs=outputs, watch=Watch(stop=stop)).report

    async def _make_upload(self, site: Site, place: Path, pages: Sequence[Resource], report: Report) -> str:
        """Copy the pages, and assets that are gone, into `upload/`, and write the rules; how much came back."""
        from recollect.watch.store import Store

        wanted = {page.uri for page in pages}
        files = _files_of(place)
        back = [uri for uri in files if uri in wanted]
        gone = await self._gone(site, [uri for uri in files if uri not in wanted])
        _write_files(place, {uri: files[uri] for uri in (*back, *gone)})
        with Store(self.folder) as store:
            rules = redirects_of(pages, store.resources(site.uri))
        _write_rules(place / "redirects", rules)
        readme = _README.format(site=site.uri, pages=counted(len(back), "page"), renamed=_renamed(files, back))
        with atomic_output(place / "README.txt") as out:
            out.write(readme.encode())
        lines = [
            f"{len(back):,} of {counted(len(pages), 'lost page')} came back ({format_percent(len(back), len(pages))}).",
            *([f"To upload: {(place / 'upload').resolve()}"] if back else []),
            *([f"Rules that lead links to lost pages elsewhere: {(place / 'redirects').resolve()}"] if rules else []),
            *(f"{text(outage(one))}." for one in report.figures.outages),
        ]
        return "\n".join(lines)

    async def _gone(self, site: Site, assets: Sequence[str]) -> list[str]:
        """Assets that the live site does not have any more; what answers, or does not say, is left alone."""
        from recollect.archives.live import LiveClient
        from recollect.archives.opening import operator_agent

        async with LiveClient(user_agent=operator_agent(), allow_private=site.allow_private) as client:
            answers = [(uri, await client.get(uri)) for uri in assets[:MOST_ASSETS]]
        return [uri for uri, answer in answers if answer.failure is None and answer.status in (404, 410)]


def _told(report: Report, place: Path) -> str:
    """How a recovery ended, in the sentences of all recoveries; for each archive that failed, how to ask it again."""
    figures = report.figures
    again = [f"To ask it again: {rerun_command(one, str(place.resolve()))}" for one in figures.outages]
    return "\n".join([*(f"{line[:1].upper()}{line[1:]}." for line in summary(figures)), *again])


def _files_of(place: Path) -> dict[str, str]:
    """By old address, the file below `rehost/public/` that holds it."""
    listing = place / "rehost" / "redirects.tsv"
    if not listing.exists():  # nothing came back
        return {}
    rows = [line.split("\t") for line in listing.read_text("utf-8", "surrogateescape").splitlines()]
    public = "public/"
    found = {row[1]: row[2].removeprefix(public) for row in rows if row[0] == "file" and row[2].startswith(public)}
    return {uri: name for uri, name in found.items() if not name.startswith("_recollect/")}


def _write_files(place: Path, files: Mapping[str, str]) -> None:
    """Write files to `upload/`, by address: as archived, because links of a live site lead where they led."""
    from recollect.recovery.store import Store

    with Store.open(place) as store:
        for resource in store.recovered(redirects=False):
            if resource.uri in files:
                target = place / "upload" / files[resource.uri]
                target.parent.mkdir(parents=True, exist_ok=True)
                with atomic_output(target) as out:
                    out.write(store.content(resource))


def _renamed(files: Mapping[str, str], pages: Sequence[str]) -> str:
    """Pages that a server does not find by their file alone: those with a query, and programs."""
    lines = []
    for uri in pages:
        split = urlsplit(uri)
        path = unquote(split.path).strip("/")
        if split.query or files[uri] not in (path, f"{path}/index.html".lstrip("/"), f"{path}.html"):
            lines.append(f"              {uri} is {files[uri]}\n")
    head = "              Pages whose address is not the name of a file; lead links there, or use redirects/:\n"
    return "".join([head, *lines]) if lines else ""


def _write_rules(folder: Path, rules: Iterable[Redirect]) -> None:
    found = tuple(rules)
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "nginx.conf": nginx_redirects(found),
        "htaccess": apache_redirects(found),
        "_redirects": netlify_redirects(found),
        "redirects.tsv": table(found),
    }
    for name, rows in texts.items():
        with atomic_output(folder / name) as out:
            out.write(rows.encode("utf-8", "surrogateescape"))
