"""A site served on loopback is measured like any other."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from recollect.recovery.snapshots import open_snapshot


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_a_live_copy_and_its_folder_are_one_site(tmp_path: Path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="sub/p.html">p</a><img src="i.png"><a href="http://example.com/">out</a>'
    )
    (tmp_path / "sub/p.html").write_text('<a href="/">home</a><a href="gone.html">gone</a>')
    (tmp_path / "i.png").write_bytes(b"\x89PNG")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        live = open_snapshot(f"http://127.0.0.1:{server.server_address[1]}/")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    folder = open_snapshot(str(tmp_path))
    assert {(r.uri, r.digest) for r in live.resources} == {(r.uri, r.digest) for r in folder.resources}
