"""`recollect review` and `recollect preview`: a recovered site, looked at and decided about."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, emit_table, json_option, talk
from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.recovery.store import Recovered

REVIEW_EPILOG = """\b
Examples:
  recollect review site/                                   list the doubtful pages; on a terminal, decide one by one
  recollect review site/ --accept 1 --accept 3 --reject all
  recollect review site/ --accept 'http://lost.example/forum/*'

\b
A page is doubtful when every capture of it looks like an error page, a login, a parked domain or another site. The
best capture was kept. An accepted page becomes an ordinary page; a rejected page is missing and is not taken again. The
files of the site, the kit and the report are written again.
"""
PREVIEW_EPILOG = """\b
Examples:
  recollect preview site/                                  open the printed address
  recollect preview site/ --port 8080

\b
The site is served to this machine only, under its own paths (/page.php?id=2), so that modules, fetch and SVG sprites
work, which browsers forbid for files. Nothing is loaded from the live web. A browser that uses the server as its proxy
for http sees the site under its own host name, as it was archived.
"""


@click.command(epilog=REVIEW_EPILOG)
@click.argument("site", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--accept", multiple=True, metavar="PAGE", help="Accept these pages: number in the list, URL, glob, or all."
)
@click.option(
    "--reject", multiple=True, metavar="PAGE", help="Reject these pages: number in the list, URL, glob, or all."
)
@click.option("--quiet", "-q", is_flag=True, help="Only errors.")
@json_option
def review(site: str, accept: tuple[str, ...], reject: tuple[str, ...], quiet: bool, as_json: bool) -> int:
    """List the doubtful pages of a recovered SITE, and accept or reject them."""
    from recollect.recovery.review import decide_suspects, suspects

    found = suspects(site)
    if not accept and not reject and not as_json and found and sys.stdin.isatty() and sys.stdout.isatty():
        accept, reject = _ask(found)
    if accept or reject:
        report = decide_suspects(site, accept=accept, reject=reject)
        left = report.suspects
        if not quiet and not as_json:
            missing = sum(m.verdict == "dropped" for m in report.missing)
            talk(f"{len(found) - len(left):,} decided, {len(left):,} left to review; {missing:,} dropped in all")
    else:
        left = found
    if as_json:
        emit_json([_as_dict(number, resource) for number, resource in enumerate(left, start=1)])
    elif not quiet:
        _show(left, site, decided=bool(accept or reject))
    return 0


def _ask(found: tuple[Recovered, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    accept: list[str] = []
    reject: list[str] = []
    for number, resource in enumerate(found, start=1):
        talk(f"\n{number} of {len(found)}: {resource.uri}\n  {resource.suspect}: {resource.doubt}")
        talk(f"  captured {resource.captured_at:%Y-%m-%d}, {resource.uri_m}")
        answer = click.prompt("  accept, reject, skip or quit", type=click.Choice(["a", "r", "s", "q"]), default="s")
        if answer == "q":
            break
        (accept if answer == "a" else reject if answer == "r" else []).append(str(number))
    return tuple(accept), tuple(reject)


def _as_dict(number: int, resource: Recovered) -> dict[str, Any]:
    return {
        "number": number,
        "uri": resource.uri,
        "verdict": resource.suspect,
        "detail": resource.doubt,
        "captured_at": f"{resource.captured_at:%Y-%m-%dT%H:%M:%SZ}",
        "archive": resource.archive,
        "uri_m": resource.uri_m,
    }


def _show(found: tuple[Recovered, ...], site: str, *, decided: bool) -> None:
    if not found:
        if not decided:
            talk("nothing to review")
        return
    rows = [(number, r.uri, r.suspect, r.doubt, f"{r.captured_at:%Y-%m-%d}") for number, r in enumerate(found, start=1)]
    emit_table(["", "page", "looks like", "because", "captured"], rows, right=(0,))
    talk(f"take or drop: recollect review {site} --accept NUMBER --reject NUMBER (or a URL, a glob, all)")


@click.command(epilog=PREVIEW_EPILOG)
@click.argument("site", type=click.Path(exists=True, file_okay=False))
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1.  [default: a free one]")
@click.option("--quiet", "-q", is_flag=True, help="Do not print requests.")
def preview(site: str, port: int, quiet: bool) -> int:
    """Serve a recovered SITE on this machine under its original paths, to look at it."""
    from recollect.recovery.store import Store

    folder = Path(site)
    with Store.open(folder) as store:
        if not any(True for _ in store.recovered(redirects=False)):
            raise UsageError("nothing was recovered here", where=site, hint="recollect recover URI -o FOLDER")
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), _handler(folder, quiet))
    except OSError as error:
        raise UsageError("cannot listen", where=f"127.0.0.1:{port}", why=error.strerror or str(error)) from error
    click.echo(f"serving {site} at http://127.0.0.1:{server.server_address[1]}{_path(folder)} (Ctrl-C ends it)")
    sys.stdout.flush()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        talk("")
    finally:
        server.server_close()
    return 0


def _path(folder: Path) -> str:
    from urllib.parse import urlsplit

    from recollect.recovery.preview import front
    from recollect.recovery.store import Store

    with Store.open(folder) as store:
        page = front(store)
        return urlsplit(store.start[0]).path or "/" if page is not None and store.start else "/"


def _handler(folder: Path, quiet: bool) -> type[BaseHTTPRequestHandler]:
    from recollect.recovery.preview import reply
    from recollect.recovery.store import Store

    class Handler(BaseHTTPRequestHandler):
        server_version = "recollect"
        sys_version = ""

        def do_GET(self) -> None:
            with Store.open(folder) as store:
                answer = reply(store, self.path, self.headers.get("Host", ""))
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        do_HEAD = do_GET  # noqa: N815 - the library's name

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
            if not quiet:
                talk(" ".join(str(arg) for arg in args))

    return Handler
