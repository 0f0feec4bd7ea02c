"""`recollect preview`: a recovered site under its own paths."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click

from recollect.cli.console import talk
from recollect.errors import UsageError

PREVIEW_EPILOG = """\b
Examples:
  recollect preview site/                                  open the printed address
  recollect preview site/ --port 8080

\b
The site is served to this machine only, under its own paths (/page.php?id=2), so that modules, fetch and SVG sprites
work, which browsers forbid for files. Nothing is loaded from the live web. A browser that uses the server as its proxy
for http sees the site under its own host name, as it was archived.
"""


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
