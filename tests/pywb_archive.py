"""A real web archive for tests: pywb, in its own process and environment, over WARCs made from a list of captures.

    with pywb_archive(tmp_path, [Capture("http://a.example/", "20150101000000", b"<p>hi")]) as archive:
        archive.timemap, archive.timegate, archive.cdx, archive.raw, archive.base

The archive listens on a port the system chose, on loopback only. It is started within a bounded time and ended by its
process id. Tests are skipped, loudly, where `.venv-pywb` is not installed (`make test` installs it).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

PYWB_PYTHON = Path(__file__).parents[1] / ".venv-pywb" / "bin" / "python"
START_SECONDS = 60.0


def is_installed() -> bool:
    """Whether the environment is there, with pywb in it: an installation that failed leaves it empty."""
    return PYWB_PYTHON.exists() and any(PYWB_PYTHON.parents[1].glob("lib/python*/site-packages/pywb"))


_SERVER = """
from gevent.monkey import patch_all; patch_all()
import os, sys, logging
from pathlib import Path
from pywb.manager.manager import main as manage
collection = sys.argv[1]
manage(["init", collection])
warcs = sorted(str(p) for p in Path("warcs").iterdir())
if warcs:
    manage(["add", "--unpack-wacz", collection, *warcs])
logging.disable(logging.INFO)
from pywb.apps.frontendapp import FrontEndApp
from pywb.utils.geventserver import RequestURIWSGIHandler
from gevent.pywsgi import WSGIServer
server = WSGIServer(("127.0.0.1", 0), FrontEndApp(), handler_class=RequestURIWSGIHandler, log=None)
server.init_socket()
Path("port.new").write_text(str(server.address[1]))
Path("port.new").rename("port")
server.serve_forever()
"""


@dataclass(frozen=True, slots=True)
class Capture:
    """One record of the archive. `timestamp` has 14 digits."""

    uri: str
    timestamp: str
    body: bytes = b""
    media_type: str = "text/html; charset=utf-8"
    status: str = "200 OK"
    headers: tuple[tuple[str, str], ...] = ()
    method_line: str = "HTTP/1.1"


@dataclass(frozen=True, slots=True)
class PywbArchive:
    """Where a running archive is asked."""

    base: str
    collection: str
    pid: int

    @property
    def timemap(self) -> str:
        return f"{self.base}/{self.collection}/timemap/link/"

    @property
    def timegate(self) -> str:
        return f"{self.base}/{self.collection}/"

    @property
    def cdx(self) -> str:
        return f"{self.base}/{self.collection}/cdx"

    @property
    def raw(self) -> str:
        return f"{self.base}/{self.collection}/{{timestamp}}id_/{{uri}}"


def write_warc(path: Path, captures: Sequence[Capture]) -> None:
    """A gzipped WARC with one response record per capture."""
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    with path.open("wb") as handle:
        writer = WARCWriter(handle, gzip=True)
        for capture in captures:
            fields = [("Content-Type", capture.media_type), ("Content-Length", str(len(capture.body)))]
            record = writer.create_warc_record(
                capture.uri,
                "response",
                payload=BytesIO(capture.body),
                http_headers=StatusAndHeaders(capture.status, [*fields, *capture.headers], capture.method_line),
                warc_headers_dict={"WARC-Date": _iso(capture.timestamp)},
            )
            writer.write_record(record)


@contextmanager
def pywb_archive(
    directory: Path, captures: Sequence[Capture] = (), *, warcs: Sequence[Path] = (), collection: str = "web"
) -> Iterator[PywbArchive]:
    """One running archive over `captures` (and the files `warcs`), kept in `directory`. A `config.yaml` that is there
    is used."""
    with pywb_archives([(directory, captures, warcs)], collection=collection) as archives:
        yield archives[0]


@contextmanager
def pywb_archives(
    holdings: Sequence[tuple[Path, Sequence[Capture], Sequence[Path]]], *, collection: str = "web"
) -> Iterator[list[PywbArchive]]:
    """Several running archives, started side by side."""
    if not is_installed():
        import pytest  # not here when the demo runs, which has looked before

        pytest.skip("pywb is not installed (make .venv-pywb/.installed)")
    with ExitStack() as stack:
        running = [(stack.enter_context(_process(*holding, collection=collection)), holding[0]) for holding in holdings]
        yield [
            PywbArchive(f"http://127.0.0.1:{_port(process, directory)}", collection, process.pid)
            for process, directory in running
        ]


@contextmanager
def _process(
    directory: Path, captures: Sequence[Capture], warcs: Sequence[Path], *, collection: str
) -> Iterator[subprocess.Popen[bytes]]:
    inbox = directory / "warcs"
    inbox.mkdir(parents=True, exist_ok=True)
    if captures:
        write_warc(inbox / "captures.warc.gz", captures)
    for warc in warcs:
        (inbox / warc.name).write_bytes(warc.read_bytes())
    (directory / "port").unlink(missing_ok=True)
    with (directory / "pywb.log").open("wb") as log:
        process = subprocess.Popen(
            [str(PYWB_PYTHON), "-c", _SERVER, collection],
            cwd=directory,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def _port(process: subprocess.Popen[bytes], directory: Path) -> int:
    give_up = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up and process.poll() is None:
        if (directory / "port").exists():
            return int((directory / "port").read_text())
        time.sleep(0.05)
    log = (directory / "pywb.log").read_text()[-2000:]
    raise RuntimeError(f"pywb did not start within {START_SECONDS:.0f} s:\n{log}")


def _iso(timestamp: str) -> str:
    t = timestamp
    return f"{t[:4]}-{t[4:6]}-{t[6:8]}T{t[8:10]}:{t[10:12]}:{t[12:14]}Z"


if __name__ == "__main__":  # a look by hand: python tests/pywb_archive.py DIR WARC...
    with pywb_archive(Path(sys.argv[1]), warcs=[Path(name) for name in sys.argv[2:]]) as shown:
        sys.stderr.write(f"{shown.base}/{shown.collection}/\n")
        time.sleep(3600)
