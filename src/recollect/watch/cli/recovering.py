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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING

from recollect.errors import UsageError
from recollect.formats.containers import atomic_output
from recollect.quantities import counted
from recollect.watch.pageloss import Redirect, redirects_of
from recollect.watch.records import RecoveryState
from recollect.watch.recoveries import Progressed
from recollect.watch.redirects import apache_redirects, netlify_redirects, nginx_redirects, table

if TYPE_CHECKING:
    from recollect.recovery.report import Report
    from recollect.watch.records import Recovering, Resource, Site

MOST_ASSETS = 100
_README = """Lost pages of {site}, recovered from web archives

upload/       Copy what is in it to the root of your web space. It has {pages} that came back, and what they embed
              and the site does not have any more. Nothing that answers today is in it.
redirects/    If you do not want the old pages back, or for those that did not come back: rules that lead links to lost
              pages to their new addresses (moved) or to copies in archives (copy). nginx.conf and htaccess are parts
              for your configuration, _redirects for static hosts, redirects.tsv is a table of all.
report.html   How each page came back.
"""


@dataclass(frozen=True, slots=True)
class LocalRecoveries:
    """Recovers lost sites in this process."""

    folder: Path

    async def start(self, site: Site, folder: str, pages: Sequence[Resource] = ()) -> Progressed:
        """Recover a site as it was just before it was lost, or just these pages; stops when the run is stopped."""
        stopped = threading.Event()
        place = self.folder / folder
        place.parent.mkdir(parents=True, exist_ok=True)
        work = self._pages if pages else self._site
        try:
            report = await asyncio.to_thread(work, site, place, pages, stopped.is_set)
        finally:
            stopped.set()
        if report is None or not report.resources:
            return Progressed(RecoveryState.NOTHING_FOUND, detail="archives have nothing of it")
        if pages:
            return Progressed(RecoveryState.DONE, detail=await self._make_upload(site, place, pages, report))
        known = len(report.resources) + len(report.missing)
        share = len(report.resources) / known
        detail = f"{len(report.resources):,} of {counted(known, 'resource')} came back ({share:.0%})"
        return Progressed(RecoveryState.DONE, detail=detail)

    async def follow(self, recovery: Recovering) -> Progressed:
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
        for uri in (*back, *gone):
            target = place / "upload" / files[uri]
            target.parent.mkdir(parents=True, exist_ok=True)
            copyfile(place / "rehost" / "public" / files[uri], target)
        with Store(self.folder) as store:
            rules = redirects_of(pages, store.resources(site.uri))
        _write_rules(place / "redirects", rules)
        text = _README.format(site=site.uri, pages=counted(len(back), "page"))
        with atomic_output(place / "README.txt") as out:
            out.write(text.encode())
        upload = f"; to upload: {(place / 'upload').resolve()}" if back else ""
        return f"{len(back):,} of {counted(len(pages), 'lost page')} came back ({len(back) / len(pages):.0%}){upload}"

    async def _gone(self, site: Site, assets: Sequence[str]) -> list[str]:
        """Assets that the live site does not have any more; what answers, or does not say, is left alone."""
        from recollect.archives.client import USER_AGENT
        from recollect.archives.live import LiveClient

        async with LiveClient(user_agent=USER_AGENT, allow_private=site.allow_private) as client:
            answers = [(uri, await client.get(uri)) for uri in assets[:MOST_ASSETS]]
        return [uri for uri, answer in answers if answer.failure is None and answer.status in (404, 410)]


def _files_of(place: Path) -> dict[str, str]:
    """By old address, the file below `rehost/public/` that holds it."""
    listing = place / "rehost" / "redirects.tsv"
    rows = [line.split("\t") for line in listing.read_text("utf-8", "surrogateescape").splitlines()]
    public = "public/"
    found = {row[1]: row[2].removeprefix(public) for row in rows if row[0] == "file" and row[2].startswith(public)}
    return {uri: name for uri, name in found.items() if not name.startswith("_recollect/")}


def _write_rules(folder: Path, rules: Iterable[Redirect]) -> None:
    found = tuple(rules)
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "nginx.conf": nginx_redirects(found),
        "htaccess": apache_redirects(found),
        "_redirects": netlify_redirects(found),
        "redirects.tsv": table(found),
    }
    for name, text in texts.items():
        with atomic_output(folder / name) as out:
            out.write(text.encode("utf-8", "surrogateescape"))
