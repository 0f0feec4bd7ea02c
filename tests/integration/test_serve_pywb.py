"""Every endpoint of the server in front of three real archives (pywb)."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from pywb_archive import Capture, PywbArchive, pywb_archive, pywb_archives
from recollect.formats.timemap import parse_link_header, parse_timemap
from small_archives import serving

PAGE = "http://lost.example/"
OTHER = "http://lost.example/a%20b?x=1&y=%2F"
MOVED = "http://moved.example/"
GONE = "http://gone.example/page"
BUSY = "http://busy.example/"
SECURE = "http://secure.example/"
RETRY = (("Retry-After", "600"),)
HELD = {
    "a": [(PAGE, "20100101000000"), (PAGE, "20140127171200"), (OTHER, "20120101000000")],
    "b": [(PAGE, "20140127171251"), (PAGE, "20200101000000")],
    "c": [(PAGE, "20140216050221")],
}


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict:
        return json.loads(self.body)

    def links(self) -> dict[str, str]:
        """Relation to target, of the Link header."""
        return {rel: link.target for link in parse_link_header([self.headers["link"]]) for rel in link.rels}


def ask(base: str, path: str, method: str = "GET", **headers: str) -> Reply:
    """A request whose path is sent byte for byte, without following redirects."""
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=30)
    try:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=fields)
        response = connection.getresponse()
        return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, PywbArchive]]:
    holdings = []
    for name, held in HELD.items():
        captures = [Capture(uri, stamp, f"<p>{name} {stamp}".encode()) for uri, stamp in held]
        if name == "a":
            captures[1] = Capture(PAGE, "20140127171200", b"<p>a 20140127171200", headers=(("X-Own", "yes"),))
            captures.append(Capture(MOVED, "20150101000000", status="301 Moved", headers=(("Location", PAGE),)))
            captures.append(Capture(GONE, "20150101000000", b"<p>not here", status="404 Not Found"))
            captures.append(Capture(BUSY, "20150101000000", b"<p>busy", status="503 Busy", headers=RETRY))
            secure = (("Location", SECURE.replace("http:", "https:")),)
            captures.append(Capture(SECURE, "20150101000000", status="301 Moved", headers=secure))
        if name == "b":
            captures.append(Capture(MOVED, "20190101000000", b"<p>it is back"))
        holdings.append((tmp_path_factory.mktemp(f"pywb-{name}"), captures, ()))
    with pywb_archives(holdings) as running:
        yield dict(zip(HELD, running, strict=True))


@pytest.fixture(scope="module")
def base(archives: dict[str, PywbArchive], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    registry = tmp_path_factory.mktemp("serve") / "archives.json"
    entries = [
        {"id": name, "name": f"Archive {name}", "timemap": one.timemap, "timegate": one.timegate, "raw": one.raw}
        for name, one in archives.items()
    ]
    registry.write_text(json.dumps(entries))
    with serving(registry, "--no-learn", "--no-cache", "--deadline", "15") as base:
        yield base


def stamps(mementos: list[str]) -> list[str]:
    return [re.search(r"/(\d{14})", uri)[1] for uri in mementos]


@pytest.mark.parametrize("kind", ["link", "json", "cdxj"])
def test_timemap(base: str, kind: str) -> None:
    reply = ask(base, f"/timemap/{kind}/{PAGE}")
    assert reply.status == 200
    types = {"link": "application/link-format", "json": "application/json", "cdxj": "application/cdxj+ors"}
    assert reply.headers["content-type"] == types[kind]
    assert reply.headers["x-memento-count"] == "5"
    assert reply.headers["access-control-allow-origin"] == "*"
    assert "X-Memento-Count" in reply.headers["access-control-expose-headers"]
    timemap = parse_timemap(reply.body, types[kind], base)
    assert timemap.problems == ()
    assert timemap.original == PAGE
    assert len(timemap) >= 5
    in_order = re.findall(r"/(\d{14})mp_/", reply.body.decode())
    assert list(dict.fromkeys(in_order)) == sorted(
        stamp for held in HELD.values() for uri, stamp in held if uri == PAGE
    )
    head = ask(base, f"/timemap/{kind}/{PAGE}", "HEAD")
    assert (head.status, head.body, head.headers["x-memento-count"]) == (200, b"", "5")
    if kind != "json":  # which has the milliseconds that each archive took; they differ each time
        assert head.headers["content-length"] == str(len(reply.body))


def test_timemap_names_the_archives_and_itself(base: str) -> None:
    document = ask(base, f"/timemap/json/{PAGE}").json
    assert document["original_uri"] == PAGE
    assert document["self"] == f"{base}/timemap/json/{PAGE}"
    assert document["timegate_uri"] == f"{base}/timegate/{PAGE}"
    assert [m["archive"] for m in document["mementos"]["list"]] == ["a", "a", "b", "c", "b"]
    assert {one["id"]: one["mementos"] for one in document["archives"]} == {"a": 2, "b": 2, "c": 1}
    link = ask(base, f"/timemap/link/{PAGE}").body.decode()
    assert f'<{base}/timemap/link/{PAGE}>; rel="self"; type="application/link-format"; from="Fri, 01 Jan 2010' in link


def test_a_uri_goes_through_byte_for_byte(base: str) -> None:
    reply = ask(base, f"/timemap/json/{OTHER}")
    assert (reply.status, reply.json["original_uri"]) == (200, OTHER)
    whole = ask(base, f"/timemap/json/{quote(OTHER, safe='')}")
    assert whole.json["original_uri"] == OTHER
    assert ask(base, "/timemap/json/lost.example/").json["original_uri"] == PAGE
    assert ask(base, "/timemap/json/http:/lost.example/").json["original_uri"] == PAGE


def test_pages_ranges_and_choices(base: str) -> None:
    encoded = quote(PAGE, safe="")
    assert ask(base, f"/timemap/json/{encoded}?from=2014&to=201401").headers["x-memento-count"] == "2"
    assert ask(base, f"/timemap/link/{encoded}?archives=a,c").headers["x-memento-count"] == "3"
    assert ask(base, f"/timemap/link/{encoded}?archives=!a").headers["x-memento-count"] == "3"
    assert ask(base, f"/timemap/link/{PAGE}?archives=b").headers["x-memento-count"] == "2"
    assert ask(base, f"/timemap/json?url={encoded}&archives=c").headers["x-memento-count"] == "1"
    assert ask(base, f"/timemap/link/{encoded}?archives=unknown").status == 400
    assert ask(base, f"/timemap/link/{encoded}?unknown=1").status == 400
    paged = ask(base, f"/timemap/json/1/{PAGE}").json
    assert (paged["page"], len(paged["mementos"]["list"])) == (1, 5)
    assert ask(base, f"/timemap/json/2/{PAGE}").status == 404


def test_nothing_found_is_404_in_one_shape(base: str) -> None:
    for path in (
        "/timemap/link/",
        "/timemap/json/",
        "/timegate/",
        "/memento/2014/",
        "/memento/json/2014/",
        "/summary/",
    ):
        reply = ask(base, f"{path}http://nothing.example/")
        assert reply.status == 404, path
        error = reply.json["error"]
        assert (error["status"], error["kind"], error["uri"]) == (404, "not-found", "http://nothing.example/")
        assert {one["outcome"] for one in error["archives"]} == {"none"}
        assert "x-recollect-partial" not in reply.headers


@pytest.mark.parametrize(
    ("accept", "stamp"),
    [
        ("Mon, 27 Jan 2014 17:12:30 GMT", "20140127171251"),
        ("Mon, 27 Jan 2014 17:12:10 GMT", "20140127171200"),
        ("Thu, 01 Jan 1998 00:00:00 GMT", "20100101000000"),
        ("Fri, 01 Jan 2038 00:00:00 GMT", "20200101000000"),
        ("", "20200101000000"),
    ],
)
def test_timegate(base: str, accept: str, stamp: str) -> None:
    reply = ask(base, f"/timegate/{PAGE}", **({"Accept_Datetime": accept} if accept else {}))
    assert reply.status == 302
    assert stamps([reply.headers["location"]]) == [stamp]
    assert reply.headers["vary"] == "accept-datetime, prefer"
    assert "memento-datetime" not in reply.headers
    links = reply.links()
    assert links["original"] == PAGE
    assert links["timegate"] == f"{base}/timegate/{PAGE}"
    assert "timemap" in links
    assert links["memento"]
    head = ask(base, f"/timegate/{PAGE}", "HEAD", **({"Accept_Datetime": accept} if accept else {}))
    assert (head.status, head.headers["location"]) == (302, reply.headers["location"])


def test_a_bad_datetime_is_400_with_vary_and_link(base: str) -> None:
    reply = ask(base, f"/timegate/{PAGE}", Accept_Datetime="yesterday")
    assert (reply.status, reply.headers["vary"]) == (400, "accept-datetime, prefer")
    assert reply.links()["original"] == PAGE


def test_memento_redirect(base: str) -> None:
    reply = ask(base, f"/memento/2014/{PAGE}")
    assert (reply.status, stamps([reply.headers["location"]])) == (302, ["20140127171200"])
    assert reply.headers["vary"] == "prefer", "it depends on Prefer, and not on Accept-Datetime"
    assert reply.links()["original"] == PAGE
    raw = ask(base, f"/memento/2014/{PAGE}", Prefer="original-content")
    assert "20140127171200id_/" in raw.headers["location"]
    assert (raw.headers["preference-applied"], raw.headers["vary"]) == ("original-content", "prefer")


@pytest.mark.parametrize("endpoint", ["memento", "api"])
def test_memento_description(base: str, endpoint: str) -> None:
    described = ask(base, f"/{endpoint}/json/20140127171230/{PAGE}").json["mementos"]
    named = {name: memento["datetime"] for name, memento in described.items()}
    assert named == {
        "first": "2010-01-01T00:00:00Z",
        "prev": "2014-01-27T17:12:00Z",
        "closest": "2014-01-27T17:12:51Z",
        "next": "2014-02-16T05:02:21Z",
        "last": "2020-01-01T00:00:00Z",
    }
    link = ask(base, f"/{endpoint}/link/20140127171230/{PAGE}")
    assert link.headers["content-type"] == "application/link-format"
    assert b'rel="first memento"' in link.body
    assert b'"rel": "closest memento"' in ask(base, f"/{endpoint}/cdxj/20140127171230/{PAGE}").body


@pytest.mark.parametrize(
    "path", ["/memento/proxy/2014/", "/memento/raw/2014/", "/memento/2014id_/", "/api/proxy/2014/"]
)
def test_memento_itself_unchanged(base: str, archives: dict[str, PywbArchive], path: str) -> None:
    reply = ask(base, path + PAGE)
    assert (reply.status, reply.body) == (200, b"<p>a 20140127171200")
    assert reply.headers["memento-datetime"] == "Mon, 27 Jan 2014 17:12:00 GMT"
    assert reply.headers["content-type"].startswith("text/html")
    assert reply.links()["original"] == PAGE
    assert reply.headers["content-location"].startswith(archives["a"].base)
    assert reply.headers["access-control-allow-origin"] == "*"
    assert "set-cookie" not in reply.headers
    assert "sandbox" in reply.headers["content-security-policy"]
    head = ask(base, path + PAGE, "HEAD")
    assert (head.status, head.body, head.headers["memento-datetime"]) == (200, b"", reply.headers["memento-datetime"])
    own = ask(base, path + PAGE, Prefer="original-headers")
    assert own.headers["preference-applied"] == "original-headers"
    assert own.headers["x-own"] == "yes"


def test_a_captured_redirect_leads_to_its_memento(base: str) -> None:
    reply = ask(base, f"/memento/proxy/2015/{MOVED}")
    assert reply.status == 301
    assert reply.headers["location"] == f"{base}/memento/proxy/20150101000000/{PAGE}"


def test_summary_and_route(base: str) -> None:
    summary = ask(base, f"/summary/{PAGE}").json
    assert summary["years"] == {"2010": 1, "2014": 3, "2020": 1}
    assert summary["per_archive"]["b"] == {"mementos": 2, "years": {"2014": 1, "2020": 1}}
    route = ask(base, f"/route/{PAGE}").json
    assert (route["ask"], route["skip"]) == (3, 0)


def test_stream_tells_each_archive_as_it_answers(base: str) -> None:
    events = ask(base, f"/stream/{PAGE}").body.decode().split("\n\n")
    sent = [(one.split("\n")[0].removeprefix("event: "), json.loads(one.split("data: ")[1])) for one in events if one]
    assert [name for name, _ in sent] == ["route", "archive", "archive", "archive", "done"]
    assert sum(len(data["list"]) for name, data in sent if name == "archive") == 5
    assert (sent[-1][1]["mementos"], sent[-1][1]["complete"]) == (5, True)


def test_about_health_archives_openapi_and_page(base: str) -> None:
    assert ask(base, "/health").json["status"] == "ok"
    assert b"/timemap/{FORMAT}/{URI-R}" in ask(base, "/about").body
    listed = ask(base, "/archives").json
    assert [(one["id"], one["state"]) for one in listed] == [("a", "closed"), ("b", "closed"), ("c", "closed")]
    assert "detail" not in listed[0]
    described = ask(base, "/openapi.json").json
    assert described["openapi"].startswith("3.")
    assert "/timemap/{format}/{uri}" in described["paths"]
    page = ask(base, "/")
    assert (page.status, page.headers["content-type"].partition(";")[0]) == (200, "text/html")


@pytest.mark.parametrize(
    "path",
    [
        "/timemap/xml/http://lost.example/",
        "/timemap/link/",
        "/timemap/http://lost.example/",
        "/timemap/JSON/http://lost.example/",
        "/timegate/",
        "/memento/201/http://lost.example/",
        "/memento/20141332/http://lost.example/",
        "/memento/201401271712301/http://lost.example/",
        "/memento/xml/2014/http://lost.example/",
        "/memento/http://lost.example/",
        "/timemap/link/mailto:x@y.example",
        "/timemap/link/http://",
        "/timemap/link/http%3A%2F%2Flost.example%2F%0D%0AX-Evil:1",
    ],
)
def test_malformed_requests_are_400_in_words(base: str, path: str) -> None:
    reply = ask(base, path)
    assert reply.status == 400
    assert reply.json["error"]["message"]
    assert "x-evil" not in reply.headers


def test_methods(base: str) -> None:
    preflight = ask(
        base, f"/timemap/link/{PAGE}", "OPTIONS", Origin="http://o.example", Access_Control_Request_Method="GET"
    )
    assert preflight.status == 204
    assert "Accept-Datetime" in preflight.headers["access-control-allow-headers"]
    refused = ask(base, f"/timemap/link/{PAGE}", "POST")
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert ask(base, "/foo/bar").status == 404


# Captures of any status


@pytest.fixture(scope="module")
def cached(archives: dict[str, PywbArchive], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    registry = tmp_path_factory.mktemp("cached") / "archives.json"
    entries = [{"id": n, "timemap": one.timemap, "timegate": one.timegate} for n, one in archives.items()]
    registry.write_text(json.dumps(entries))
    with serving(registry, "--no-learn", "--deadline", "15") as base:
        yield base


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize(("uri", "status"), [(MOVED, 301), (GONE, 404), (BUSY, 503)])
def test_captured_redirects_and_errors_are_mementos(base: str, cached: str, uri: str, status: int, warm: bool) -> None:
    if warm:
        assert ask(cached, f"/timemap/link/{uri}").status == 200
    there = cached if warm else base
    # Later than the capture, earlier than that of the other archive: an invented memento of this datetime would win.
    wanted = "Wed, 01 Jun 2016 00:00:00 GMT"
    for _ in range(6):
        gate = ask(there, f"/timegate/{uri}", Accept_Datetime=wanted)
        assert gate.status == 302
        assert re.search(r"/20150101000000(mp_)?/", gate.headers["location"])
        assert urlsplit(gate.headers["location"]).path.endswith(uri)
    by_path = ask(there, f"/memento/20160601/{uri}")
    assert (by_path.status, "/20150101000000" in by_path.headers["location"]) == (302, True)
    replayed = ask(there, f"/memento/proxy/20160601/{uri}")
    assert replayed.status == status
    assert replayed.headers["memento-datetime"] == "Thu, 01 Jan 2015 00:00:00 GMT"
    states = {one["id"]: one["state"] for one in ask(there, "/archives").json}
    assert states["a"] == "closed", "an archived error is not a failure of the archive"


@pytest.mark.parametrize("warm", [False, True])
def test_a_page_whose_captures_redirect_to_itself_is_found_by_its_timemap(base: str, cached: str, warm: bool) -> None:
    if warm:
        assert ask(cached, f"/timemap/link/{SECURE}").status == 200
    there = cached if warm else base  # pywb answers 400: by its TimeGate, and when it should replay the capture
    gate = ask(there, f"/timegate/{SECURE}", Accept_Datetime="Wed, 01 Jun 2016 00:00:00 GMT")
    assert (gate.status, "/20150101000000" in gate.headers["location"]) == (302, True)
    assert "x-recollect-partial" not in gate.headers
    assert ask(there, f"/memento/2016/{SECURE}").status == 302
    assert ask(there, f"/memento/proxy/2016/{SECURE}").status == 502


def test_one_client_cannot_switch_the_archives_off(base: str) -> None:
    for number in range(6):
        for evil in (f"http://evil.example/%0AX{number}", f"http%3A%2F%2Fevil.example%2F%0A{number}", "http://x/%7f"):
            reply = ask(base, f"/timemap/link/{evil}")
            assert (reply.status, reply.json["error"]["kind"]) == (400, "bad-request")
    assert {one["state"] for one in ask(base, "/archives").json} == {"closed"}
    assert ask(base, f"/timemap/link/{PAGE}").headers["x-memento-count"] == "5"


PYWB = """
collections:
  short: memento+{base}/
  long:
    index:
      type: memento
      timegate_url: {base}/timegate/{{url}}
      timemap_url: {base}/timemap/link/{{url}}
      replay_url: {base}/memento/raw/{{timestamp}}/{{url}}
"""


def test_pywb_replays_what_the_aggregator_finds(base: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(PYWB.format(base=base))
    with pywb_archive(tmp_path) as front:
        for collection in ("short", "long"):
            for stamp, body in (
                ("20100601000000", "<p>a 20100101000000"),
                ("20140216050221", "<p>c 20140216050221"),
                ("20210101000000", "<p>b 20200101000000"),
            ):
                reply = ask(front.base, f"/{collection}/{stamp}id_/{PAGE}")
                if reply.status in (302, 307):  # to the exact time
                    reply = ask(front.base, urlsplit(reply.headers["location"]).path)
                assert (reply.status, reply.body.decode()) == (200, body), collection
            listed = ask(front.base, f"/{collection}/timemap/link/{PAGE}").body.decode()
            assert len(re.findall(r'rel="[^"]*memento"', listed)) == 5
            assert ask(front.base, f"/{collection}/2015id_/http://nowhere.example/").status == 404


def test_addresses_as_pywb_and_wayback_spell_them(base: str) -> None:
    gate = ask(base, f"/{PAGE}", Accept_Datetime="Mon, 27 Jan 2014 17:12:51 GMT")
    assert (gate.status, gate.headers["location"]) == (
        302,
        ask(base, f"/memento/20140127171251/{PAGE}").headers["location"],
    )
    assert ask(base, "/" + quote(PAGE, safe=""), "HEAD").status == 302
    raw = ask(base, f"/20140127171251id_/{PAGE}")
    assert (raw.status, raw.body) == (200, b"<p>b 20140127171251")
    assert ask(base, f"/20140127171251/{PAGE}").status == 302


def test_parts_of_a_memento(base: str) -> None:
    path = f"/memento/raw/20140127171251/{PAGE}"
    whole = b"<p>b 20140127171251"
    for asked, (status, part, there) in {
        "bytes=3-6": (206, b"b 20", "bytes 3-6/19"),
        "bytes=15-": (206, b"1251", "bytes 15-18/19"),
        "bytes=-2": (206, b"51", "bytes 17-18/19"),
        "bytes=0-99": (206, whole, "bytes 0-18/19"),
        "bytes=6-3": (200, whole, None),
        "lines=1-2": (200, whole, None),
    }.items():
        reply = ask(base, path, Range=asked)
        assert (reply.status, reply.body, reply.headers.get("content-range")) == (status, part, there), asked
        assert reply.headers["memento-datetime"] == "Mon, 27 Jan 2014 17:12:51 GMT"
    beyond = ask(base, path, Range="bytes=99-")
    assert (beyond.status, beyond.headers["content-range"]) == (416, "bytes */19")
    assert ask(base, path, Range="bytes=3-6", If_Range='"another"').status in (200, 206)
