"""`recollect review`: doubtful pages of a recovered site, decided about in the terminal or in a local page."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import click

from recollect.cli.console import emit_json, emit_table, json_option, talk
from recollect.errors import UsageError
from recollect.quantities import counted

if TYPE_CHECKING:
    from recollect.recovery.review import Decision, DoubtfulPage

EPILOG = """\b
Examples:
  recollect review site/                                   list the doubtful pages; on a terminal, decide one by one
  recollect review site/ --page                            decide in a browser, with the pages in view
  recollect review site/ --accept 1 --accept 3 --reject all
  recollect review site/ --accept 'http://lost.example/forum/*'

\b
A page is doubtful when every capture of it looks like an error page, a login, a parked domain or another site. The
best capture was kept. An accepted page becomes an ordinary page; a rejected page is missing and is not taken again. The
files of the site, the kit and the report are written again. SITE is the folder of a recovery, also one that was
downloaded and unzipped.
"""
_MOST_BYTES = 1 << 20


@click.command(epilog=EPILOG)
@click.argument("site", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--accept",
    "--mine",
    "accept",
    multiple=True,
    metavar="PAGE",
    help="Accept these pages: number in the list, URL, glob, or all.",
)
@click.option(
    "--reject",
    "--not-mine",
    "reject",
    multiple=True,
    metavar="PAGE",
    help="Reject these pages: number in the list, URL, glob, or all.",
)
@click.option("--page", is_flag=True, help="Serve a page to this machine in which to decide.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of --page.  [default: a free one]")
@click.option("--quiet", "-q", is_flag=True, help="Only errors.")
@json_option
def review(
    site: str, accept: tuple[str, ...], reject: tuple[str, ...], page: bool, port: int, quiet: bool, as_json: bool
) -> int:
    """List the doubtful pages of a recovered SITE, and accept or reject them."""
    from recollect.recovery.review import decide, decide_suspects, doubtful_pages

    if page:
        return _serve(Path(site), port)
    found = doubtful_pages(site)
    report = None
    if accept or reject:
        report = decide_suspects(site, accept=accept, reject=reject)
    elif not as_json and found and sys.stdin.isatty() and sys.stdout.isatty() and (chosen := _ask(found)):
        report = decide(site, chosen)
    left = found
    if report is not None:
        left = doubtful_pages(site)
        if not quiet and not as_json:
            missing = sum(m.verdict == "dropped" for m in report.missing)
            talk(f"{len(found) - len(left):,} decided, {len(left):,} left to review; {missing:,} dropped in all")
    if as_json:
        emit_json([one.to_json() for one in left])
    elif not quiet:
        _show(left, site, decided=report is not None)
    return 0


def _ask(found: tuple[DoubtfulPage, ...]) -> dict[str, Decision]:
    """Decisions from the terminal; pages like one that was decided about are not asked for."""
    from recollect.recovery.review import Decision

    chosen: dict[str, Decision] = {}
    settled: set[int] = set()
    words = {"m": Decision.MINE, "n": Decision.NOT_MINE}
    for one in found:
        if one.number in settled:
            continue
        talk(f"\n{one.number} of {len(found)}: {one.uri}\n  {one.verdict}: {one.reason}{_percent(one)}")
        talk(f"  captured {one.captured_at:%Y-%m-%d}, {one.uri_m}")
        if one.similar:
            talk(f"  {counted(len(one.similar), 'page')} like this one will be decided the same way")
        answer = click.prompt("  mine, not mine, skip or quit", type=click.Choice(["m", "n", "s", "q"]), default="s")
        if answer == "q":
            break
        if answer in words:
            chosen[one.uri] = words[answer]
            settled |= set(one.similar)
    return chosen


def _percent(one: DoubtfulPage) -> str:
    return f" ({one.confidence:.0%})" if one.confidence is not None else ""


def _show(found: tuple[DoubtfulPage, ...], site: str, *, decided: bool) -> None:
    if not found:
        if not decided:
            talk("nothing to review")
        return
    rows = [(r.number, r.uri, r.verdict, r.reason, f"{r.captured_at:%Y-%m-%d}") for r in found]
    emit_table(["", "page", "looks like", "because", "captured"], rows, right=(0,))
    talk(f"take or drop: recollect review {site} --accept NUMBER --reject NUMBER (or a URL, a glob, all)")


# The local page ------------------------------------------------------------------------------------------------------


def _serve(folder: Path, port: int) -> int:
    from recollect.recovery.review import doubtful_pages

    if not doubtful_pages(folder):
        talk("nothing to review")
        return 0
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), _handler(folder, secrets.token_urlsafe(24)))
    except OSError as error:
        raise UsageError("cannot listen", where=f"127.0.0.1:{port}", why=error.strerror or str(error)) from error
    from recollect.recovery.reviewpage import PATH

    click.echo(f"decide at http://127.0.0.1:{server.server_address[1]}{PATH} (Ctrl-C ends it)")
    sys.stdout.flush()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        talk("")
    finally:
        server.server_close()
    return 0


def _handler(folder: Path, token: str) -> type[BaseHTTPRequestHandler]:
    """Answers for the page, for the pages in its frames, and for decisions with the token of the page. Everything that
    was recovered is sent with a sandbox, so that nothing of it runs or reads the page."""
    from recollect.recovery.reviewpage import PATH, answer, decisions_of

    class Handler(BaseHTTPRequestHandler):
        server_version = "recollect"
        sys_version = ""

        def do_GET(self) -> None:
            self._guarded(lambda: answer(folder, self.path, token))

        do_HEAD = do_GET  # noqa: N815 - the library's name

        def do_POST(self) -> None:
            from recollect.recovery.review import decide

            length = int(self.headers.get("Content-Length") or 0)
            if self.path != PATH or not 0 < length <= _MOST_BYTES:
                self._send(404, (), b"")
                return
            fields = parse_qs(self.rfile.read(length).decode("utf-8", "replace"))
            if not secrets.compare_digest((fields.get("token") or [""])[0].encode(), token.encode()):
                self._send(403, (), b"")
                return
            chosen = decisions_of(folder, fields)
            if chosen:
                decide(folder, chosen)
            self._send(303, (("Location", PATH),), b"")

        def _guarded(self, make: Callable[[], Any]) -> None:
            host = (self.headers.get("Host") or "").rpartition(":")[0]
            if host not in ("127.0.0.1", "localhost"):
                self._send(403, (), b"")  # a name that leads here, of a page on the web
                return
            reply = make()
            self._send(reply.status, reply.headers, reply.body)

        def _send(self, status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            if not any(name == "Content-Length" for name, _ in headers):
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
            return

    return Handler
