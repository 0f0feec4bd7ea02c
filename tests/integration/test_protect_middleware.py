"""Dynamic pages carry blocks: the middleware in Flask (over a socket) and in Starlette, streaming, ETags, lengths."""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from protected_sites import CODES, KEY, NOW, contents, write_app
from recollect.cli.main import run
from recollect.errors import FormatError, UsageError
from recollect.protection.block import Block, read
from recollect.protection.blocksfile import Bundle, path_of
from recollect.protection.bundle import read_paths, write
from recollect.protection.collect import Collector
from recollect.protection.markup import strip
from recollect.protection.middleware import ProtectASGI, ProtectWSGI
from recollect.protection.pack import gather, unpack
from recollect.protection.sealing import Options

flask = pytest.importorskip("flask")
starlette = pytest.importorskip("starlette")

PATHS = ["/", *(f"/article/{n}" for n in range(1, 20)), "/search?q=café"]
Answer = tuple[int, dict[str, str], bytes]


def article(n: int) -> str:
    return f"<!DOCTYPE html><html><head><title>{n}</title></head><body><h1>Article {n}</h1></body></html>"


@pytest.fixture
def blocks(tmp_path: Path) -> Path:
    (tmp_path / "paths.txt").write_text("# pages\n" + "\n".join(PATHS) + "\n", encoding="utf-8")
    write_app(tmp_path / "app", 2_000)
    options = Options(KEY, NOW, need=6, code=CODES[0])
    write(tmp_path / "site.blocks", read_paths(tmp_path / "paths.txt"), gather([f"{tmp_path}/app/"]), options)
    return tmp_path / "site.blocks"


def flask_app() -> Any:
    app = flask.Flask(__name__)

    @app.get("/")
    def index() -> str:
        return article(0)

    @app.get("/article/<int:n>")
    def page(n: int) -> Any:
        response = flask.make_response(article(n))
        response.set_etag(f"article-{n}")
        return response.make_conditional(flask.request)

    @app.get("/search")
    def search() -> str:
        return f"<p>{flask.request.args['q']}"

    @app.get("/stream")
    def stream() -> Any:
        def pieces() -> Iterator[str]:
            yield "<html><body>"
            for n in range(1000):
                yield f"<p>{n} '</bo"
                yield "dy>'</p>" if n % 2 else "x'</p>"
            yield "</body></html>"

        return flask.Response(pieces(), mimetype="text/html")

    @app.get("/data.json")
    def data() -> Any:
        return {"body": "</body>"}

    @app.get("/packed")
    def packed() -> Any:
        import gzip

        return flask.Response(
            gzip.compress(b"<body></body>"), headers={"Content-Encoding": "gzip"}, mimetype="text/html"
        )

    return app


@pytest.fixture
def flask_ask(blocks: Path) -> Iterator[Callable[..., Answer]]:
    """Requests over a socket to a Flask application behind the middleware."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *_: object) -> None:
            """Say nothing."""

    app = flask_app()
    app.wsgi_app = ProtectWSGI(app.wsgi_app, blocks)
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def ask(path: str, method: str = "GET", **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, body

    yield ask
    server.shutdown()
    thread.join(10)


def starlette_app() -> Any:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
    from starlette.routing import Route

    async def index(_request: Request) -> Response:
        return HTMLResponse(article(0))

    async def page(request: Request) -> Response:
        etag = f'"article-{request.path_params["n"]}"'
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers={"ETag": etag})
        return HTMLResponse(article(request.path_params["n"]), headers={"ETag": etag})

    async def search(request: Request) -> Response:
        return HTMLResponse(f"<p>{request.query_params['q']}")

    async def stream(_request: Request) -> Response:
        async def pieces() -> AsyncIterator[str]:
            yield "<html><body>"
            for n in range(1000):
                yield f"<p>{n} '</bo"
                yield "dy>'</p>" if n % 2 else "x'</p>"
            yield "</body></html>"

        return StreamingResponse(pieces(), media_type="text/html")

    async def data(_request: Request) -> Response:
        return JSONResponse({"body": "</body>"})

    async def packed(_request: Request) -> Response:
        import gzip

        body = gzip.compress(b"<body></body>")
        return Response(body, media_type="text/html", headers={"Content-Encoding": "gzip"})

    routes = [
        Route("/", index), Route("/article/{n:int}", page), Route("/search", search), Route("/stream", stream),
        Route("/data.json", data), Route("/packed", packed),
    ]  # fmt: skip
    return Starlette(routes=routes)


@pytest.fixture
def starlette_ask(blocks: Path) -> Callable[..., Answer]:
    """Requests to a Starlette application with the middleware, through the ASGI interface itself."""
    from starlette.middleware import Middleware

    app = starlette_app()
    app.user_middleware.append(Middleware(ProtectASGI, blocks=blocks))

    def ask(path: str, method: str = "GET", **headers: str) -> Answer:
        return asyncio.run(_asgi(app, path, method, headers))

    return ask


async def _asgi(app: Any, target: str, method: str, headers: dict[str, str]) -> Answer:
    from urllib.parse import unquote

    path, _, query = target.partition("?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": unquote(path), "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
        "headers": [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()],
        "server": ("site.example", 80), "client": ("127.0.0.1", 1),
    }  # fmt: skip
    sent: list[Any] = []

    requests = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not requests:
            await asyncio.Event().wait()  # the client stays
        return requests.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    head = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], head, b"".join(message.get("body", b"") for message in sent[1:])


@pytest.fixture(params=["flask", "starlette"])
def ask(request: pytest.FixtureRequest) -> Callable[..., Answer]:
    return request.getfixturevalue(f"{request.param}_ask")


def test_every_listed_page_carries_its_own_block(ask: Callable[..., Answer], tmp_path: Path) -> None:
    collector = Collector([KEY.public])
    numbers = []
    for n in range(1, 20):
        status, headers, body = ask(f"/article/{n}")
        assert status == 200 and strip(body) == article(n).encode()
        assert int(headers["content-length"]) == len(body)
        numbers += [block.number for block in collector.add(f"/article/{n}", body)]
    assert len(set(numbers)) == 19
    found = collector.restore("files")
    assert found is not None
    unpack(found.sealed, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "app")


def test_the_root_carries_the_manifest(ask: Callable[..., Answer]) -> None:
    collector = Collector()
    collector.add("/", ask("/")[2])
    assert collector.manifest()["classes"][0]["class"] == "files"


def test_queries_are_pages_of_their_own_and_unknown_paths_get_a_spare_block(ask: Callable[..., Answer]) -> None:
    listed = list(read(ask("/search?q=caf%C3%A9")[2]))
    other = list(read(ask("/search?q=other")[2]))
    assert isinstance(listed[0], Block) and isinstance(other[0], Block)
    assert listed[0].number < len(PATHS) <= other[0].number
    assert other == list(read(ask("/search?q=other")[2])), "the same path has the same block"


def test_a_stream_is_changed_while_it_passes(ask: Callable[..., Answer]) -> None:
    status, _headers, body = ask("/stream")
    assert status == 200 and body.endswith(b"</script></body></html>")
    assert [type(found) for found in read(body)] == [Block]
    assert strip(body).count(b"<p>") == 1000


def test_etags_are_of_what_is_sent_and_conditional_requests_work(ask: Callable[..., Answer], blocks: Path) -> None:
    _, headers, _ = ask("/article/3")
    etag = headers["etag"]
    assert etag.startswith('"article-3-') and etag != '"article-3"'
    status, headers, body = ask("/article/3", If_None_Match=etag)
    assert (status, headers["etag"], body) == (304, etag, b"")
    assert ask("/article/3", If_None_Match='"article-3-00000000"')[0] == 200, "with other blocks it is another page"


def test_head_has_the_headers_of_get(flask_ask: Callable[..., Answer]) -> None:
    _, got, body = flask_ask("/article/5")
    status, headers, nothing = flask_ask("/article/5", "HEAD")
    assert status == 200 and nothing == b""
    assert headers["content-length"] == got["content-length"] == str(len(body))
    assert headers["etag"] == got["etag"]


@pytest.mark.parametrize("path", ["/data.json", "/packed", "/absent"])
def test_what_is_not_a_page_passes_unchanged(ask: Callable[..., Answer], path: str) -> None:
    _, headers, body = ask(path)
    assert b"recollect" not in body and int(headers["content-length"]) == len(body)


def test_ranges_of_pages_are_not_answered_with_other_bytes(flask_ask: Callable[..., Answer]) -> None:
    status, headers, body = flask_ask("/article/3", Range="bytes=0-9")
    assert status == 200 and int(headers["content-length"]) == len(body)


def test_other_protocols_pass(blocks: Path) -> None:
    seen: list[str] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(ProtectASGI(inner, blocks)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan"]


def test_wsgi_applications_that_start_late_and_have_to_be_closed(blocks: Path) -> None:
    closed: list[bool] = []

    class Late:
        def __init__(self, start: Any) -> None:
            self.start, self.left = start, [b"<body>", b"x</body>"]

        def __iter__(self) -> Iterator[bytes]:
            self.start("200 OK", [("Content-Type", "text/html")])
            yield from self.left

        def close(self) -> None:
            closed.append(True)

    got: list[Any] = []
    app = ProtectWSGI(lambda _environ, start: Late(start), blocks)
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/article/1", "QUERY_STRING": ""}
    body = app(environ, lambda status, headers: got.append(status))
    text = b"".join(body)
    body.close()  # type: ignore[attr-defined]
    assert strip(text) == b"<body>x</body>" and text != b"<body>x</body>" and closed == [True] and got == ["200 OK"]


def test_wsgi_applications_that_write_their_body(blocks: Path) -> None:
    def old(_environ: Any, start: Any) -> list[bytes]:
        write = start("200 OK", [("Content-Type", "text/html"), ("Content-Length", "14")])
        write(b"<body>")
        write(b"x</bo")
        return [b"dy>"]

    sent: list[bytes] = []
    head: list[tuple[str, str]] = []

    def start(_status: str, headers: list[tuple[str, str]]) -> Any:
        head.extend(headers)
        return sent.append

    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/article/1", "QUERY_STRING": ""}
    body = b"".join(ProtectWSGI(old, blocks)(environ, start))
    text = b"".join(sent) + body
    assert strip(text) == b"<body>x</body>" and dict(head)["Content-Length"] == str(len(text))


def test_a_new_file_is_taken_while_the_server_runs(blocks: Path, tmp_path: Path) -> None:
    bundle = Bundle(blocks)
    old, tag = bundle.text_for("/article/1"), bundle.tag
    (tmp_path / "app/main.py").write_text("changed")
    options = Options(KEY, NOW, need=6, code=CODES[0])
    done = write(blocks, read_paths(tmp_path / "paths.txt"), gather([f"{tmp_path}/app/"]), options)
    assert not done.classes[0].kept
    bundle.refresh(1.0)
    assert bundle.text_for("/article/1") == old, "it looks every five seconds"
    bundle.refresh(10.0)
    assert bundle.text_for("/article/1") != old and bundle.tag != tag
    again = write(blocks, read_paths(tmp_path / "paths.txt"), gather([f"{tmp_path}/app/"]), options)
    assert again.changed == 0 and again.classes[0].kept


def test_the_command_writes_the_file_of_blocks_from_a_sitemap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_app(tmp_path / "app", 2_000)
    locations = "".join(f"<url><loc>https://site.example{path}</loc></url>" for path in PATHS[:-1])
    (tmp_path / "sitemap.xml").write_text(
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locations}</urlset>'
    )
    run(["protect", "keygen", "-o", "site.key"])
    command = ["protect", "apply", "sitemap.xml", "--files", "app/", "--key", "site.key", "-o", "site.blocks"]
    assert run(command) == 0
    assert "recollect-block/1" in Bundle("site.blocks").text_for("/article/3")


def test_what_is_not_a_file_of_blocks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no database, but long enough to be looked at" * 50)
    with pytest.raises(FormatError, match="not a file of blocks"):
        Bundle(tmp_path / "x")
    with pytest.raises(UsageError, match="no file of blocks"):
        Bundle(tmp_path / "absent")


def test_paths_of_requests_and_of_lists_are_spelled_alike() -> None:
    assert path_of("https://site.example") == path_of("/") == "/"
    assert path_of("https://site.example/a/b?c=d#e") == path_of("/a/b?c=d") == path_of("a/b?c=d") == "/a/b?c=d"
    assert path_of("/search?q=café") == path_of("/search?q=caf%c3%a9") == "/search?q=caf%C3%A9"
