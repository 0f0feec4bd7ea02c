"""Recovery from archives that lie, stall, throttle, truncate and speak dialects: on loopback, byte by byte."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from fake_archive import START, Fake, digest, serving, site
from loopback import Request, answer, loopback
from recollect.archives.registry import Archive, Rate
from recollect.datetimes import format_http_date, parse_timestamp
from recollect.recovery.choose import DatePreference
from recollect.recovery.crawl import Crawl
from recollect.recovery.journal import Journal
from recollect.recovery.meter import Quota
from recollect.recovery.options import Options
from recollect.recovery.outputs import Outputs, write_outputs
from recollect.recovery.progress import Finished
from recollect.recovery.recover import prepare
from recollect.recovery.scope import Scope
from recollect.recovery.store import Store
from recollect.recovery.verdicts import Verdict


def options(**fields: Any) -> Options:
    return Options(Scope((START,)), **fields)


async def crawl(folder: Path, archives: list[Archive], chosen: Options, **more: Any) -> tuple[Finished, dict[str, str]]:
    """Recover, and say of each URI what became of it."""
    with Store.create(folder) as store:
        prepare(store, chosen, resuming=bool(store.start))
        finished = await Crawl(store, archives, chosen, **more).run()
        ends = {r.uri: "recovered" for r in store.recovered()}
        ends |= {m.uri: f"{m.reason}: {m.detail}" for m in store.missing()}
        ends |= {uri: "queued" for _, uri, _ in store.queued()}
        return finished, {uri.removeprefix("http://lost.example"): state for uri, state in ends.items()}


def test_one_bad_resource_harms_no_other(tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(100_000_000))
    moment = "Memento-Datetime: Fri, 01 Jan 2010 00:00:00 GMT\r\n"
    fake = site("/good", "/loop", "/bomb", "/headers", "/short", "/chunks", "/away", "/blocked", "/broken", "/huge")
    for path in ("/good", "/loop", "/bomb", "/headers", "/short", "/chunks", "/away", "/blocked", "/broken", "/huge"):
        fake.add(path, f"<title>{path}</title><p>text of {path}")
    base = "http://lost.example"
    fake.digests = {f"{base}/bomb": "", f"{base}/loop": ""}
    fake.overrides = {
        "/loop": lambda r: answer(status="302 F", Location=f"/web/{len(fake.times):014d}id_/{base}/loop"),
        "/bomb": lambda _: answer(bomb, Content_Encoding="gzip", Memento_Datetime="Fri, 01 Jan 2010 00:00:00 GMT"),
        "/headers": lambda _: b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 2_000_000 + b"\r\n\r\n",
        "/short": lambda _: f"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n{moment}\r\nonly this".encode(),
        "/chunks": lambda _: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "/away": lambda _: answer(status="302 F", Location="http://169.254.169.254/secrets"),
        "/blocked": lambda _: answer(status="451 No"),
        "/broken": lambda _: answer(status="500 No"),
        "/huge": lambda _: f"HTTP/1.1 200 OK\r\n{moment}\r\n".encode() + b"x" * 3_000_000,
    }

    async def run() -> tuple[Finished, dict[str, str]]:
        async with serving(fake) as (archive, _):
            return await crawl(tmp_path, [archive], options(max_bytes=2_000_000))

    finished, ends = asyncio.run(run())
    assert ends["/"] == ends["/good"] == "recovered"
    reasons = {path: state.partition(":")[0] for path, state in ends.items()}
    assert {reasons[p] for p in ("/loop", "/bomb", "/headers", "/short", "/chunks", "/broken", "/huge")} == {"failed"}
    assert reasons["/blocked"] == "blocked"
    assert reasons["/away"] == "failed"  # not one of the archive's hosts: never called
    assert "redirects" in ends["/loop"] and "larger" in ends["/huge"] and "more than" in ends["/bomb"]
    assert not finished.complete
    assert len(fake.times) < 60


def test_nothing_is_written_outside_the_folder_and_the_report_escapes(tmp_path: Path) -> None:
    evil = [
        "/..%2f..%2fetc/x",
        "/../../../etc/y",
        "/a/%2e%2e/%2e%2e/%2e%2e/z",
        "/con.html",
        "/..%5c..%5cw",
        "/<script>s",
    ]
    fake = site(*(path.replace("<", "%3Cscript%3E") for path in evil))
    for path in evil:
        fake.add(
            path.replace("<", "%3Cscript%3E"), "<title><script>alert(1)</script></title><p>x", media_type="text/html"
        )
    fake.add("/", fake.pages[START, "20100101000000"] + b"<a href='/missing\"><script>alert(2)</script>'>m</a>")
    out = tmp_path / "deep" / "site"

    async def run() -> None:
        async with serving(fake, id="fake") as (archive, _):
            await crawl(out, [archive], options())

    asyncio.run(run())
    with Store.create(out) as store:
        write_outputs(store, Outputs(), lambda _p: None)
    assert [p.name for p in tmp_path.rglob("*") if out not in [p, *p.parents] and p not in out.parents] == []
    page = (out / "report.html").read_text()
    assert "<script" not in page and "%3Cscript" in page
    assert all(len(line.split("\t")) == 7 for line in (out / "summary.tsv").read_text().splitlines())


def test_429_is_waited_for_and_counted(tmp_path: Path) -> None:
    fake = site("/a", "/b", "/c")
    for path in ("/a", "/b", "/c"):
        fake.add(path, f"<p>{path}")
    refused: list[float] = []

    def busy(request: Request) -> bytes:
        if not refused:
            refused.append(time.monotonic())
            return answer(status="429 Slow", Retry_After="1")
        return fake.reply(request)

    fake.overrides = {"id_/": busy}

    async def run() -> tuple[Finished, dict[str, str]]:
        async with serving(fake) as (archive, _):
            return await crawl(tmp_path, [archive], options())

    finished, ends = asyncio.run(run())
    assert finished.complete and set(ends.values()) == {"recovered"}
    assert not [t for t in fake.times if refused[0] < t < refused[0] + 0.95]
    with Store.open(tmp_path) as store:
        assert Journal(store).usage("fake").requests == len(fake.times) == 6


def test_an_archive_that_asks_for_too_long_a_pause_is_left_alone(tmp_path: Path) -> None:
    fake = site("/a")
    fake.overrides = {"id_/": lambda _: answer(status="429 Slow", Retry_After="7200")}

    async def run() -> tuple[Finished, dict[str, str]]:
        async with serving(fake) as (archive, _):
            return await crawl(tmp_path, [archive], options(), patience=5)

    finished, ends = asyncio.run(run())
    assert not finished.complete and ends["/"].startswith("failed: fake:")


@pytest.mark.parametrize("rate", [Rate(10, 1), Rate(40, 4)])
def test_never_more_than_the_configured_rate(tmp_path: Path, rate: Rate) -> None:
    paths = [f"/{n}" for n in range(30)]
    fake = site(*paths)
    for path in paths:
        fake.add(path, f"<p>{path}")

    async def run() -> None:
        async with serving(fake, replay_rate=rate, index_rate=rate) as (archive, _):
            await crawl(tmp_path, [archive], options())

    asyncio.run(run())
    times = fake.times
    assert len(times) == 32
    for start in range(len(times)):
        # 3% for the clock between sending and receiving.
        assert sum(times[start] <= t < times[start] + rate.seconds * 0.97 for t in times) <= rate.count


def test_quotas_persist_across_runs_and_are_never_exceeded(tmp_path: Path) -> None:
    paths = [f"/{n}" for n in range(12)]
    fake = site(*paths)
    for path in paths:
        fake.add(path, f"<p>{path}")
    chosen = options(quotas={"fake": Quota(5, 3600.0)})

    async def run(wanted: Options) -> tuple[Finished, dict[str, str]]:
        async with serving(fake) as (archive, _):
            return await crawl(tmp_path, [archive], wanted)

    finished, ends = asyncio.run(run(chosen))
    assert len(fake.times) == 5 and not finished.complete
    assert list(ends.values()).count("recovered") == 4
    assert all(state == "recovered" or state.startswith("out-of-quota") for state in ends.values())
    asyncio.run(run(chosen))
    assert len(fake.times) == 5  # the period is not over
    finished, ends = asyncio.run(run(options(quotas={"fake": Quota(50, 3600.0)})))
    assert finished.complete and set(ends.values()) == {"recovered"}
    assert len(fake.times) == 14  # a listing, and every page once


def test_it_can_wait_for_the_next_period(tmp_path: Path) -> None:
    paths = [f"/{n}" for n in range(7)]
    fake = site(*paths)
    for path in paths:
        fake.add(path, f"<p>{path}")

    async def run() -> tuple[Finished, dict[str, str]]:
        async with serving(fake, quota=Rate(4, 1)) as (archive, _):
            return await crawl(tmp_path, [archive], options(), wait=True)

    finished, ends = asyncio.run(run())
    assert finished.complete and set(ends.values()) == {"recovered"} and len(fake.times) == 9
    assert fake.times[4] - fake.times[0] >= 0.9 and fake.times[8] - fake.times[4] >= 0.9


def test_a_listing_that_was_cut_off_is_known_as_such(tmp_path: Path) -> None:
    fake = site("/listed", "/unlisted", "/never")
    fake.add("/listed", "<p>listed")
    fake.add("/unlisted", "<p>unlisted")

    def cut(request: Request) -> bytes:
        if "matchType=prefix" not in request.path:
            return fake.reply(request)
        rows = [json.dumps(row) for row in fake.rows(START, "prefix") if "unlisted" not in row["url"]]
        return b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n" + "\n".join(rows).encode() + b'\n{"url'

    fake.overrides = {"/cdx": cut}

    async def run() -> tuple[Finished, dict[str, str]]:
        async with serving(fake) as (archive, _):
            return await crawl(tmp_path, [archive], options())

    _, ends = asyncio.run(run())
    assert ends == {"/": "recovered", "/listed": "recovered", "/unlisted": "recovered", "/never": "never-archived: "}
    with Store.open(tmp_path) as store:
        (listing,) = Journal(store).listings().values()
        assert listing.state == "truncated" and "cut short" in listing.detail


def test_the_internet_archive_s_pages_are_followed_and_loops_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.archives.listing.PAGE_ROWS", 2)
    fake = site("/a", "/b", "/c", "/d")
    for path in ("/a", "/b", "/c", "/d"):
        fake.add(path, f"<p>{path}")
    looping = False

    def pages(request: Request) -> bytes:
        query = {name: values[0] for name, values in parse_qs(urlsplit(request.path).query).items()}
        rows = fake.rows(query["url"], query["matchType"])
        at = 0 if looping else int(query.get("resumeKey", "0"))
        names = ["timestamp", "url", "mime", "status", "digest", "length"]
        table: list[list[str]] = [["timestamp", "original", "mimetype", "statuscode", "digest", "length"]]
        table += [[row[name] for name in names] for row in rows[at : at + 2]]
        if at + 2 < len(rows):
            table += [[], [str(at + 2)]]
        return answer(json.dumps(table).encode())

    fake.overrides = {"/cdx/search/cdx": pages}

    async def run(folder: Path) -> tuple[Finished, dict[str, str]]:
        async with loopback(fake) as seen:
            raw = f"{seen.base}/web/{{timestamp}}id_/{{uri}}"
            archive = Archive("ia", cdx=f"{seen.base}/cdx/search/cdx", raw=raw)
            return await crawl(folder, [archive], options())

    finished, ends = asyncio.run(run(tmp_path / "one"))
    assert finished.complete and len(ends) == 5 and set(ends.values()) == {"recovered"}
    assert len(fake.times) == 3 + 5
    looping = True
    _, ends = asyncio.run(run(tmp_path / "two"))
    assert len(fake.times) < 40 and ends["/"] == "recovered"


def test_wrong_bytes_are_noticed_and_the_next_best_taken(tmp_path: Path) -> None:
    fake = site("/page", "/only")
    fake.add("/page", "<p>the newer page", "20110101000000")
    fake.add("/page", "<p>the older page", "20100101000000")
    fake.add("/only", "<p>the only capture")
    fake.overrides = {
        "20110101000000id_/http://lost.example/page": lambda _: answer(b"<p>tampered", Content_Type="text/html"),
        "id_/http://lost.example/only": lambda _: answer(b"<p>other bytes", Content_Type="text/html"),
    }

    async def run() -> None:
        async with serving(fake) as (archive, _):
            await crawl(tmp_path, [archive], options())

    asyncio.run(run())
    with Store.open(tmp_path) as store:
        page, only = store.find("http://lost.example/page"), store.find("http://lost.example/only")
        assert page is not None and store.content(page) == b"<p>the older page" and not page.altered
        assert only is not None and only.altered  # better than nothing, and marked


def test_content_encodings_are_removed_and_an_archive_whose_digests_always_differ_is_accepted(
    tmp_path: Path,
) -> None:
    paths = [f"/{n}" for n in range(12)]
    fake = site(*paths)
    for path in paths:
        fake.add(path, f"<p>text of {path}")
    packed = {
        f"id_/http://lost.example{path}": lambda r: answer(
            gzip.compress(fake.pages["http://lost.example/" + r.path.rpartition("/")[2], "20100101000000"]),
            Content_Type="text/html",
            Content_Encoding="gzip",
        )
        for path in paths
    }

    async def run(folder: str) -> dict[str, tuple[bytes, str, bool]]:
        async with serving(fake) as (archive, _):
            await crawl(tmp_path / folder, [archive], options())
        with Store.open(tmp_path / folder) as store:
            return {r.uri: (store.content(r), r.content_encoding, r.altered) for r in store.recovered()}

    fake.overrides = dict(packed)
    found = asyncio.run(run("packed"))
    assert found["http://lost.example/3"] == (b"<p>text of /3", "", False)
    assert len(found) == 13
    fake.digests = {f"http://lost.example{path}": digest(b"8\r\nchunked\r\n0\r\n") for path in paths}
    fake.overrides = {
        "id_/http://lost.example/": lambda r: fake.reply(r).replace(
            b"Memento", b"X-Archive-Orig-Transfer-Encoding: chunked\r\nMemento"
        )
    }
    found = asyncio.run(run("chunked"))
    assert len(found) == 13 and not any(altered for _, _, altered in found.values())
    fake.overrides = {}
    fake.digests = {f"http://lost.example{path}": digest(b"another") for path in ("/", *paths)}
    before = len(fake.times)
    found = asyncio.run(run("different"))
    assert len(found) == 13 and all(altered for _, _, altered in found.values())
    assert len(fake.times) - before <= 1 + 13 + 8 + 6  # not twice for all: after a few it is believed


def test_the_newest_good_capture_and_the_end_of_a_site(tmp_path: Path) -> None:
    parked = "<title>lost.example</title><p>This domain is for sale. Buy this domain today."
    fake = site("/p", "/gone", "/late", "/moved", "/robbed")
    fake.add("/", parked, "20150101000000")
    fake.add("/p", "<title>P</title><p>The page itself.", "20110101000000")
    fake.add("/p", "<title>Welcome to our shop of nice things</title>", "20160101000000")  # of the next owner
    fake.add("/gone", "<title>Page not found</title>", "20120101000000")
    fake.add("/late", "<title>Other people's page</title>", "20170101000000")
    fake.add("/moved", "<p>content", "20100101000000")
    fake.add("/moved", "", "20120101000000")
    fake.status["http://lost.example/moved", "20120101000000"] = 302
    fake.overrides = {
        "20120101000000id_/http://lost.example/moved": lambda _: answer(
            status="302 F", Location="http://elsewhere.example/", Memento_Datetime="Sun, 01 Jan 2012 00:00:00 GMT"
        )
    }
    fake.add("/robbed", "<p>text", "20100101000000")
    fake.status["http://lost.example/robbed", "20100101000000"] = 404

    async def run() -> tuple[Finished, dict[str, str]]:
        async with serving(fake) as (archive, _):
            return await crawl(tmp_path, [archive], options())

    finished, ends = asyncio.run(run())
    assert ends["/"] == ends["/p"] == ends["/moved"] == ends["/gone"] == "recovered"
    assert "after the site's end" in ends["/late"] and ends["/robbed"].startswith("rejected: archived only as an error")
    assert finished.complete
    with Store.open(tmp_path) as store:
        kept = {r.uri.removeprefix("http://lost.example"): (r.captured_at.year, r.suspect) for r in store.recovered()}
    # Of /gone there is nothing but an error page: the best there is, marked.
    assert kept == {"/": (2010, None), "/p": (2011, None), "/moved": (2010, None), "/gone": (2012, Verdict.SOFT_404)}


@pytest.mark.parametrize("words", ["Nos pages ont changé de propriétaire", "新しいサイト", "Under new management"])
def test_a_front_page_that_leads_to_nothing_of_the_site_gives_way_to_an_older_one(tmp_path: Path, words: str) -> None:
    paths = [f"/{n}" for n in range(6)]
    fake = site(*paths)
    for path in paths:
        fake.add(path, f"<p>{path}")
    fake.add("/", f"<title>{words}</title><p>{words}", "20140101000000")
    fake.add("/", f"<title>{words}</title><p>{words}!", "20150101000000")

    async def run(folder: str) -> tuple[dict[str, str], int]:
        async with serving(fake) as (archive, _):
            _, ends = await crawl(tmp_path / folder, [archive], options())
        with Store.open(tmp_path / folder) as store:
            front = store.find(START)
            assert front is not None
            return ends, front.captured_at.year

    assert asyncio.run(run("older")) == (dict.fromkeys(["/", *paths], "recovered"), 2010)
    del fake.pages[START, "20100101000000"]
    _, year = asyncio.run(run("none"))  # no capture leads anywhere: the newest is as good as any
    assert year == 2015


def test_redirects_lead_on_near_their_time_and_dead_ends_are_taken_back(tmp_path: Path) -> None:
    fake = site("/old", "/dead", "/a")
    moment = "Sat, 01 Jan 2011 00:00:00 GMT"
    for path, target in (("/old", "/new"), ("/dead", "/nowhere"), ("/a", "/b"), ("/b", "/a")):
        uri = f"http://lost.example{path}"
        fake.add(path, "", "20110101000000")
        fake.status[uri, "20110101000000"] = 301
        fake.overrides[f"20110101000000id_/{uri}"] = lambda _, target=target: answer(
            status="301 M", Location=target, Memento_Datetime=moment
        )
    fake.add("/dead", "<p>alive once", "20050101000000")
    fake.add("/new", "<p>near", "20110201000000")
    fake.add("/new", "<p>later", "20140101000000")

    async def run() -> tuple[Finished, dict[str, str]]:
        async with serving(fake) as (archive, _):
            return await crawl(tmp_path, [archive], options())

    _, ends = asyncio.run(run())
    assert ends["/old"] == ends["/new"] == ends["/dead"] == "recovered"
    assert ends["/nowhere"].startswith("never-archived") and ends["/a"].startswith("rejected")
    with Store.open(tmp_path) as store:
        new, dead = store.resolve("http://lost.example/old"), store.resolve("http://lost.example/dead")
        assert new is not None and new.captured_at == datetime(2011, 2, 1, tzinfo=UTC)
        assert dead is not None and store.content(dead) == b"<p>alive once"


def test_what_pages_embed_from_other_hosts_and_folders_is_listed_once(tmp_path: Path) -> None:
    pictures = [f"http://static.lost.example/i/{n}.png" for n in range(20)]
    pictures += [f"http://lost.example/img/{n}.png" for n in range(20)] + ["http://lost.example/logo.png"]
    fake = Fake()
    markup = "".join(f"<img src='{uri}'>" for uri in pictures) + "<a href='/elsewhere.html'>not ours</a>"
    fake.add("/~joe/", f"<title>Joe</title>{markup}<img src='http://static.lost.example/i/gone.png'>")
    for uri in pictures:
        fake.add(uri, uri, media_type="image/png")

    async def run() -> None:
        async with serving(fake) as (archive, _):
            chosen = Options(Scope(("http://lost.example/~joe/",)))
            with Store.create(tmp_path) as store:
                prepare(store, chosen, resuming=False)
                await Crawl(store, [archive], chosen).run()
                assert {r.uri for r in store.recovered()} == {"http://lost.example/~joe/", *pictures}
                assert [m.reason for m in store.missing()] == ["never-archived"]

    asyncio.run(run())
    # Three listings (the site, its images, the other host), one question for the logo, and everything once.
    assert len(fake.times) == 3 + 1 + 1 + len(pictures)


@pytest.mark.parametrize("media_type", ["text/html", "application/pdf"])
def test_without_a_front_page_every_listed_page_is_a_start(tmp_path: Path, media_type: str) -> None:
    fake = Fake()
    fake.add("/a", "<p>a<img src='/i.png'>", media_type=media_type)
    fake.add("/b", "<p>b", media_type=media_type)
    fake.add("/i.png", "picture", media_type="image/png")

    async def run() -> tuple[Finished, dict[str, str]]:
        async with serving(fake) as (archive, _):
            return await crawl(tmp_path, [archive], options())

    _, ends = asyncio.run(run())
    assert ends == {"/": "never-archived: ", **dict.fromkeys(["/a", "/b", "/i.png"], "recovered")}


def test_an_archive_with_only_timemaps(tmp_path: Path) -> None:
    fake = site("/a", "/b")
    fake.add("/a", "<p>a")

    def timemap(request: Request) -> bytes:
        uri = request.path.partition("/timemap/link/")[2]
        links = [f'<{uri}>; rel="original"']
        for row in fake.rows(uri, "exact"):
            when = format_http_date(parse_timestamp(row["timestamp"]))
            address = f"http://{request.headers['host']}/web/{row['timestamp']}/{uri}"
            links.append(f'<{address}>; rel="memento"; datetime="{when}"')
        found = answer(",\n".join(links).encode(), Content_Type="application/link-format")
        return found if len(links) > 1 else answer(status="404 N")

    fake.overrides = {"/timemap/link/": timemap}

    async def run() -> tuple[Finished, dict[str, str]]:
        async with loopback(fake) as seen:
            return await crawl(tmp_path, [Archive("tm", timemap=f"{seen.base}/timemap/link/")], options())

    _, ends = asyncio.run(run())
    assert ends == {"/": "recovered", "/a": "recovered", "/b": "never-archived: "}


def test_common_crawl_by_warc_ranges(tmp_path: Path) -> None:
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    warc = BytesIO()
    writer = WARCWriter(warc, gzip=True)
    rows = []
    for path, body in (("/", b"<a href='/x'>x</a>"), ("/x", b"<p>from a range")):
        offset = warc.tell()
        head = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], "HTTP/1.1")
        writer.write_record(
            writer.create_warc_record(
                f"http://lost.example{path}", "response", payload=BytesIO(body), http_headers=head
            )
        )
        row = {"timestamp": "20200101000000", "url": f"http://lost.example{path}", "mime": "text/html", "status": "200"}
        place = {"offset": str(offset), "length": str(warc.tell() - offset), "filename": "crawl/w.warc.gz"}
        rows.append(row | place | {"digest": digest(body)})
    again = rows[1] | {"timestamp": "20210101000000", "mime": "warc/revisit", "offset": "999999", "length": "10"}

    async def serve(request: Request, out: asyncio.StreamWriter) -> None:
        if request.path == "/collinfo.json":
            base = f"http://{request.headers['host']}"
            names = ["CC-MAIN-2021-04", "CC-MAIN-2020-05", "CC-MAIN-2019-09"]
            reply = answer(json.dumps([{"id": n, "cdx-api": f"{base}/{n}-index"} for n in names]).encode())
        elif "2019-09-index" in request.path:
            reply = answer(b'{"message": "No Captures found"}', "404 N")
        elif "showNumPages" in request.path:
            reply = answer(b'{"pages": 1, "pageSize": 5, "blocks": 1}')
        elif "-index" in request.path:
            chosen = rows if "2020-05" in request.path else [again]
            reply = answer("".join(json.dumps(row) + "\n" for row in chosen).encode())
        else:
            first, last = request.headers["range"].removeprefix("bytes=").split("-")
            reply = answer(warc.getvalue()[int(first) : int(last) + 1], "206 Partial")
        out.write(reply)

    async def run() -> tuple[Finished, dict[str, str]]:
        async with loopback(serve) as seen:
            archive = Archive("cc", cdx=f"{seen.base}/collinfo.json", raw=f"{seen.base}/{{filename}}")
            return await crawl(tmp_path, [archive], options())

    finished, ends = asyncio.run(run())
    assert finished.complete and ends == {"/": "recovered", "/x": "recovered"}
    with Store.open(tmp_path) as store:
        found = store.find("http://lost.example/x")
        assert found is not None and store.content(found) == b"<p>from a range"


def test_the_live_web_is_asked_only_when_wanted_and_then_marked(tmp_path: Path) -> None:
    async def run(folder: Path, fallback: bool) -> list[tuple[str, str, bool]]:
        async def live(request: Request, out: asyncio.StreamWriter) -> None:
            alive = request.path == "/live.html"
            out.write(answer(b"<p>alive", "200 OK" if alive else "404 N", Content_Type="text/html"))

        async with loopback(live) as now:
            start = f"{now.base}/"
            fake = Fake()
            fake.add(start, f"<a href='{now.base}/live.html'>x</a><a href='/dead.html'>y</a>")
            async with serving(fake) as (archive, _):
                chosen = Options(Scope((start,)), live_fallback=fallback)
                with Store.create(folder) as store:
                    prepare(store, chosen, resuming=False)
                    await Crawl(store, [archive], chosen).run()
                    found = [(r.uri.removeprefix(now.base), r.archive, r.live) for r in store.recovered()]
            assert fallback or not now.requests
            return found

    assert asyncio.run(run(tmp_path / "no", False)) == [("/", "fake", False)]
    assert asyncio.run(run(tmp_path / "yes", True)) == [("/", "fake", False), ("/live.html", "live", True)]


def test_a_range_of_dates_and_a_wanted_date(tmp_path: Path) -> None:
    fake = Fake()
    for year in (2004, 2008, 2012):
        fake.add("/", f"<p>of {year}<img src='i.png'>", f"{year}0101000000")
        fake.add("/i.png", f"picture of {year}", f"{year}0601000000", "image/png")

    async def run(folder: str, dates: DatePreference) -> dict[str, bytes]:
        async with serving(fake) as (archive, _):
            await crawl(tmp_path / folder, [archive], options(dates=dates))
        with Store.open(tmp_path / folder) as store:
            return {r.uri.rpartition("/")[2]: store.content(r) for r in store.recovered()}

    def day(year: int) -> datetime:
        return datetime(year, 1, 1, tzinfo=UTC)

    assert asyncio.run(run("new", DatePreference()))["i.png"] == b"picture of 2012"
    near = asyncio.run(run("near", DatePreference(at=day(2007))))
    assert near[""].startswith(b"<p>of 2008") and near["i.png"] == b"picture of 2008"
    early = asyncio.run(run("early", DatePreference(end=day(2005))))
    assert early[""].startswith(b"<p>of 2004") and early["i.png"] == b"picture of 2004"
