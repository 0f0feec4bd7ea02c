"""Profiling as its users see it: results, reports about bad input, files that remain."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import random
import sys
import threading
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard

import recollect
from recollect.errors import FormatError, RecollectError, ResourceError, UsageError
from recollect.formats.ukvs import open_map
from recollect.maps.lookup import open_map as open_holdings
from recollect.model import Progress
from recollect.profiles.indexes.profile import ProfileResult, profile
from recollect.profiles.indexes.scan import ScanOptions, scan
from recollect.profiles.statistics.stats import stats
from recollect.uris import POLICIES

NOW = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)


def line(
    surt: str, time: str = "20140101000000", media: str = "text/html", status: str = "200", url: str = "http://x.com/"
) -> str:
    return f'{surt} {time} {{"url": "{url}", "mime": "{media}", "status": "{status}"}}\n'


def written(folder: Path, content: str | bytes, name: str = "index.cdxj") -> Path:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def body(result: ProfileResult) -> list[str]:
    assert result.text is not None
    return [row.decode() for row in result.text.splitlines() if not row.startswith((b"!", b"@"))]


# -- what comes out -------------------------------------------------------------------------------


def test_keys_are_unique_sorted_and_complete_where_the_reference_is_not(tmp_path: Path) -> None:
    # An error of the reference: `?` sorts after `/` and digits, so cutting queries leaves keys out of order.
    surts = [
        "com,x)/",
        "com,x)/0",
        "com,x)/0/1",
        "com,x)/0?q=1",
        "com,x)/a",
        "com,x)/a-b",
        "com,x)/a/b",
        "com,x)/a?q",
        "com,x)/?q",
    ]
    result = profile(written(tmp_path, "".join(line(surt) for surt in sorted(surts))))
    assert body(result) == [
        "com,x)/ 2/2",
        "com,x)/0 2/2",
        "com,x)/0/1 1/1",
        "com,x)/a 2/2",
        "com,x)/a-b 1/1",
        "com,x)/a/b 1/1",
    ]
    assert result.was_sorted


def test_keys_without_a_comma_are_kept(tmp_path: Path) -> None:
    # Fault 6: dotted addresses and single names were dropped.
    result = profile(written(tmp_path, line("1.2.3.4)/a") + line("localhost)/") + line("com,x)/")))
    assert body(result) == ["4,3,2,1)/a 1/1", "com,x)/ 1/1", "localhost)/ 1/1"]


def test_locale_sorted_input_is_not_trusted(tmp_path: Path) -> None:
    # Fault 7: an order that ignores punctuation.
    surts = ["com,ab)/", "com,a,b)/", "com,a-b)/c", "com,a)/bb", "com,a)/b"]
    result = profile(written(tmp_path, "".join(line(surt) for surt in surts)))
    assert body(result) == [f"{surt.rstrip('/') if not surt.endswith(')/') else surt} 1/1" for surt in sorted(surts)]
    assert not result.was_sorted


def test_the_header_says_how_the_map_was_made(tmp_path: Path) -> None:
    file = written(tmp_path, line("com,x)/") * 3 + line("com,x)/?q", "20160101000000"))
    target = tmp_path / "map.ukvs"
    profile(
        file, target, name="A", archive_id="https://a.org/", updated_at=NOW, statuses=["2xx"], media_types=["text/*"]
    )
    with open_map(target) as opened:
        header = opened.header
    assert header.id == {"uri": "https://a.org/"}
    assert header.meta == {
        "name": "A",
        "type": "MementoMap",
        "policy": "HxPx",
        "generator": f"recollect {recollect.__version__}",
        "counts": {"captures": 4, "uri_rs": 2, "keys": 1},
        "gamma": 2.0,
        "span": {"from": "20140101000000", "to": "20160101000000"},
        "sources": [{"name": "index.cdxj", "bytes": file.stat().st_size}],
        "filters": {"status": ["2xx"], "media_type": ["text/*"]},
        "updated_at": "2024-05-01T12:00:00Z",
    }


def test_without_a_clock_two_runs_give_the_same_bytes(tmp_path: Path) -> None:
    file = written(tmp_path, "".join(line(f"com,x)/{number}") for number in range(1000)))
    assert profile(file, threads=1).text == profile(file, threads=3, piece=500).text


def test_the_older_format_has_frequency_and_spread(tmp_path: Path) -> None:
    result = profile(
        written(tmp_path, line("com,x,www)/a/b/c") * 2 + line("com,x,www)/a/z?q")), output_format="cdxj", policy="H3P1"
    )
    assert result.text is not None
    assert result.text.startswith(b"@context https://oduwsdl.github.io/contexts/archiveprofile.jsonld\n")
    assert b'"type": "urikey#H3P1"' in result.text
    assert body(result) == ['com,x,www)/a {"frequency": 3, "spread": 1}']


def test_decomposition_in_key_columns_has_a_row_for_the_whole(tmp_path: Path) -> None:
    content = (
        line("com,x)/", "20140101000000") + line("com,x)/", "20150101000000") + line("com,x)/?q", "20150101000000")
    )
    result = profile(written(tmp_path, content), by=["year"], by_columns=True)
    assert body(result) == ["com,x)/ 2014 1/1", "com,x)/ 2015 2/2", "com,x)/ : 3/2"]
    assert result.header.keys == ("surt", "datetime")


def test_decomposition_by_media_type_and_language_in_the_json_block(tmp_path: Path) -> None:
    content = 'com,x)/ 2014 {"mime": "text/html", "languages": "eng,fra"}\ncom,x)/ 2014 {"mime": "-"}\n'
    result = profile(written(tmp_path, content), by=["media-type", "language", "month"])
    assert [json.loads(row.split(" ", 2)[2]) for row in body(result)] == [
        {
            "media_type": {"-": "1/1", "text/html": "1/1"},
            "language": {"-": "1/1", "eng": "1/1"},
            "datetime": {"201401": "2/1"},
        }
    ]


def test_revisits_count_whatever_the_filters_say_of_media_types(tmp_path: Path) -> None:
    content = line("com,x)/", media="warc/revisit", status="-") + line("com,x)/", media="warc/revisit", status="404")
    content += line("com,x)/", media="image/png")
    result = profile(written(tmp_path, content), statuses=[200], media_types=["text/html"])
    assert body(result) == ["com,x)/ 1/1"]
    assert result.tally.filtered == {"status": 1, "media type": 1}
    asked = profile(written(tmp_path, content), where="status == 200 and media_type == 'text/html'")
    assert body(asked) == body(result)


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"since": "2015"}, 2),
        ({"until": "2014"}, 1),
        ({"since": "2014-06-02", "until": "2015-12-31"}, 1),
        ({"where": "year >= 2015 and url matches 'b$'"}, 1),
        ({"where": "length == None"}, 3),
        ({"exclude": ["robots.txt", "sitemap.xml"]}, 2),
        ({"media_types": ["image/*"], "statuses": ["2xx", "404"]}, 1),
    ],
)
def test_filters(tmp_path: Path, options: dict[str, object], kept: int) -> None:
    content = line("com,x)/a", "20140601000000", "text/html", "200", "http://x.com/a")
    content += line("com,x)/b", "20150601000000", "image/png", "404", "http://x.com/b")
    content += line("com,x)/robots.txt", "20160601000000", "text/plain", "301", "http://x.com/robots.txt")
    result = profile(written(tmp_path, content), **options)  # type: ignore[arg-type]
    assert result.totals.captures == kept
    assert result.totals.captures + sum(result.tally.filtered.values()) == 3


def test_what_is_not_a_web_capture_is_counted_and_left_out_unless_asked_for(tmp_path: Path) -> None:
    content = (
        line("com,x)/")
        + line("dns:x.com", url="dns:x.com", media="text/dns")
        + line("com,x)/p", url="urn:view:http://x.com/p")
    )
    file = written(tmp_path, content)
    result = profile(file)
    assert (body(result), result.tally.left_out, result.partial) == (["com,x)/ 1/1"], {"dns": 1, "urn": 1}, False)
    assert body(profile(file, all_schemes=True)) == ["com,x)/ 1/1", "com,x)/p 1/1", "dns:x.com 1/1"]
    for policy in POLICIES:
        assert body(profile(file, all_schemes=True, policy=policy))[-1] == "dns:x.com 1/1", policy
    assert stats([file], all_schemes=True).top_hosts == [("com,x", 2), ("dns:x.com", 1)]


def test_arrow_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match="pyarrow") as caught:
        profile(written(tmp_path, line("com,x)/a"))).to_arrow()
    assert "recollect-web[arrow]" in caught.value.hint


def test_parquet_is_read_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    file = tmp_path / "x.parquet"
    duckdb.sql("SELECT 'http://x.com/' || i AS url FROM range(70000) t(i)").write_parquet(str(file))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert profile(file).totals.keys == 70000


def test_results_as_arrow(tmp_path: Path) -> None:
    file = written(tmp_path, line("com,x)/") * 2 + line("com,y)/?a") + line("com,y)/?b"))
    table = profile(file).to_arrow()
    assert table.to_pydict() == {"key": [b"com,x)/", b"com,y)/"], "uri_m": [2, 2], "uri_r": [1, 2]}
    target = tmp_path / "map.ukvs.gz"
    assert profile(file, target, by=["year"]).to_arrow().column("json")[0].as_py() == '{"datetime": {"2014": "2/1"}}'


# -- inputs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, zstandard.ZstdCompressor().compress])
def test_every_container_gives_the_same(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    content = "".join(line(f"com,x)/{number}?{number % 7}") for number in range(3000)).encode()
    result = profile(written(tmp_path, pack(content)), piece=10_000)
    assert (result.totals.keys, result.totals.captures, result.tally.lines) == (3000, 3000, 3000)


def test_blocks_of_a_zipnum_shard_may_lack_their_last_newline(tmp_path: Path) -> None:
    rows = [f"com,x)/{n} 20140101000000 http://x.com/{n} text/html 200 D - - 1 2 f" for n in range(10)]
    shard = b"".join(gzip.compress("\n".join(rows[at : at + 3]).encode()) for at in range(0, 10, 3))
    written(tmp_path, shard, "part-0.gz")
    index = written(tmp_path, "com,x)/0 20140101000000\tpart-0\t0\t9\t1\n", "cluster.idx")
    result = profile(index)
    assert (result.totals.keys, result.tally.skipped) == (10, {})


def test_bgzf_blocks_end_anywhere_and_that_is_fine(tmp_path: Path) -> None:
    text = "".join(line(f"com,x)/{number:05d}") for number in range(3000)).encode()
    cuts = b"".join(gzip.compress(text[at : at + 1000]) for at in range(0, len(text), 1000))
    result = profile(written(tmp_path, cuts))
    assert (result.totals.keys, result.tally.skipped) == (3000, {})


def warc(*records: tuple[str, str, bytes]) -> bytes:
    out = b""
    for kind, uri, payload in records:
        head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nWARC-Date: 2014-01-01T00:00:00Z\r\n"
        out += head.encode() + f"Content-Length: {len(payload)}\r\n\r\n".encode() + payload + b"\r\n\r\n"
    return out


HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\nWARC/1.0 in a page\r\n"


def test_cdxj_of_openwayback_3(tmp_path: Path) -> None:
    content = "!OpenWayback-CDXJ 1.0\n" + "".join(
        f'(com,x,www,)/{n % 3}?{n} 2014-01-0{n + 1}T00:00:00Z {kind} {{"uri": "http://x.com/{n % 3}", "hsc": 200}}\n'
        for n, kind in enumerate(["response", "revisit", "response", "request", "response"])
    )
    result = profile(written(tmp_path, content), statuses=["200"])
    assert body(result) == ["com,x,www)/0 1/1", "com,x,www)/1 2/2", "com,x,www)/2 1/1"]
    assert result.tally.left_out == {"request": 1}


def test_warc_records(tmp_path: Path) -> None:
    content = warc(
        ("warcinfo", "", b"x"), ("response", "http://www.x.com/a?b", HTTP), ("request", "http://www.x.com/a?b", b"GET"),
        ("revisit", "http://x.com/a?b", b"HTTP/1.1 200 OK\r\n\r\n"), ("resource", "dns:x.com", b"1.2.3.4"),
        ("resource", "<http://x.com/r>", b"text"), ("metadata", "http://x.com/a", b"m"),
    )  # fmt: skip
    result = profile(written(tmp_path, gzip.compress(content), "x.warc.gz"), media_types=["text/html"])
    assert body(result) == ["com,x)/a 2/1"]
    assert result.tally.left_out == {"warcinfo": 1, "request": 1, "dns": 1, "metadata": 1}
    assert result.tally.filtered == {"media type": 1}


def test_a_warc_with_noise_inside_is_read_on_after_it(tmp_path: Path) -> None:
    content = (
        warc(("response", "http://x.com/a", HTTP)) + b"noise\nmore noise\n" + warc(("response", "http://x.com/b", HTTP))
    )
    result = profile(written(tmp_path, content, "x.warc"))
    assert result.totals.keys == 2
    assert "no record where one should begin" in result.tally.damaged[0].reason


def test_a_wacz_is_read_by_its_index_or_else_its_warcs(tmp_path: Path) -> None:
    for name, members in (
        ("a.wacz", {"indexes/index.cdx.gz": gzip.compress(line("com,x)/i").encode()), "archive/a.warc": b""}),
        ("b.wacz", {"archive/a.warc.gz": gzip.compress(warc(("response", "http://x.com/w", HTTP)))}),
    ):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member, content in members.items():
                archive.writestr(member, content)
    assert body(profile([tmp_path / "a.wacz", tmp_path / "b.wacz"])) == ["com,x)/i 1/1", "com,x)/w 1/1"]


def test_parquet_with_the_columns_of_common_crawl(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    table = pa.table(
        {
            "url_surtkey": ["com,x)/b?q", "com,x)/a", "com,x)/a"],
            "url": ["https://x.com/b?q", "https://x.com/a", "https://x.com/a"],
            "fetch_time": [datetime(2020, 1, 2, tzinfo=UTC)] * 3,
            "fetch_status": pa.array([200, 404, 200], pa.int16()),
            "content_mime_type": ["text/html", None, "text/html"],
            "content_languages": ["eng", "fra,eng", None],
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    pyarrow.parquet.write_table(pa.table({"url": ["http://www.x.com/a"]}), tmp_path / "y.parquet")
    assert body(profile(tmp_path / "x.parquet", statuses=["200"])) == ["com,x)/a 1/1", "com,x)/b 1/1"]
    assert body(profile([tmp_path / "x.parquet", tmp_path / "y.parquet"])) == ["com,x)/a 3/1", "com,x)/b 1/1"]
    assert body(profile(tmp_path / "x.parquet", by=["language"]))[0].endswith(
        '{"language": {"-": "1/1", "fra": "1/1"}}'
    )
    pyarrow.parquet.write_table(pa.table({"other": [1]}), tmp_path / "z.parquet")
    with pytest.raises(FormatError, match="none of its columns"):
        profile(tmp_path / "z.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "x.parquet").read_bytes()[:-20])
    result = profile([tmp_path / "z.parquet", tmp_path / "cut.parquet", tmp_path / "y.parquet"])
    assert body(result) == ["com,x)/a 1/1"]
    assert [Path(problem.file).name for problem in result.tally.damaged] == ["z.parquet", "cut.parquet"]


def test_timemaps_logs_and_lists(tmp_path: Path) -> None:
    timemap = (
        '<http://x.com/t>; rel="original",\n'
        '<http://a.org/1/http://x.com/t>; rel="memento"; datetime="Tue, 01 Jul 2014 00:00:00 GMT",\n'
        '<http://a.org/2/http://x.com/t>; rel="memento"; datetime="Wed, 01 Jul 2015 00:00:00 GMT"\n'
    )
    log = '1.2.3.4 - - [16/Jan/2019:05:00:00 -0700] "GET /web/2016/http://x.com/l HTTP/1.1" 200 12\n'
    files = [
        written(tmp_path, timemap, "timemap"),
        written(
            tmp_path,
            log
            + log.replace("/l ", "/gone ").replace(" 200 ", " 404 ")
            + log.replace("web/2016/http://x.com/l", "about"),
            "log",
        ),
        written(tmp_path, "http://www.x.com/u\nX.com/U\n", "urls"),
        written(tmp_path, "com,x)/s\ncom,x)/s?q\n", "surts"),
    ]
    result = profile(files)
    assert body(result) == ["com,x)/l 1/1", "com,x)/s 2/2", "com,x)/t 2/1", "com,x)/u 2/1"]
    assert result.tally.left_out == {"failed lookup": 1, "no lookup": 1}
    assert result.tally.lines == 9


def test_a_memento_that_a_timemap_names_twice_is_one_capture(tmp_path: Path) -> None:
    listed = [{"uri": f"http://a.org/{n}/http://x.com/", "datetime": f"201{n}-01-01T00:00:00Z"} for n in range(4)]
    mementos = {"list": listed, "first": listed[0], "last": listed[3]}
    timemap = json.dumps({"original_uri": "http://x.com/", "mementos": mementos})
    assert body(profile(written(tmp_path, timemap, "timemap.json"))) == ["com,x)/ 4/1"]


def test_maps_can_be_profiled_again_under_another_policy(tmp_path: Path) -> None:
    one = written(tmp_path, "com,x)/a 3/2\ncom,x)/b/c 1/1\ncom,x,sub)/* 5+/2~\ncom,y)/ 0\n", "one.ukvs")
    two = written(tmp_path, "com,x)/a 4/1\n", "two.ukvs")
    assert body(profile([one, two])) == ["com,x)/a 7/2+", "com,x)/b/c 1/1", "com,x,sub)/* 5+/2~", "com,y)/ 0"]
    assert body(profile(one, policy="H2P0")) == ["com,x)/ 9+/5~", "com,y)/ 0"]
    with pytest.raises(UsageError):
        profile(one, policy="URIR")
    with pytest.raises(UsageError):
        profile([one, written(tmp_path, line("com,x)/"))])
    with pytest.raises(UsageError):
        profile(one, statuses=["200"])
    with pytest.raises(UsageError, match="spread"):
        profile([one, two], output_format="cdxj")


def test_uri_rs_that_were_not_counted_are_unknown_not_none(tmp_path: Path) -> None:
    result = profile(written(tmp_path, "com,x)/a 3\ncom,x)/b 1\n", "one.ukvs"))
    assert body(result) == ["com,x)/a 3", "com,x)/b 1"]
    assert result.header.meta["counts"] == {"captures": 4, "keys": 2}
    assert result.as_dict()["uri_rs"] is None


def test_stdin_and_pipes_are_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("".join(line(f"com,x)/{n}") for n in range(5000)),))
    writer.start()
    result = profile(pipe, piece=2000)
    writer.join()
    assert result.totals.keys == 5000


def piped(folder: Path, content: bytes, **options: Any) -> ProfileResult:
    """The profile of what comes through a pipe."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    try:
        return profile(pipe, **options)
    finally:
        writer.join()
        pipe.unlink()


def test_kinds_that_are_not_lines_come_through_pipes_too(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table({"url": ["http://x.com/a"]}), tmp_path / "x.parquet")
    with zipfile.ZipFile(tmp_path / "x.wacz", "w") as archive:
        archive.writestr("indexes/index.cdx", line("com,x)/a"))
    record = warc(("response", "http://x.com/a", HTTP))
    whole = b"com,x)/a 1/1\n" + b"".join(b"com,y)/%06d 1/1\n" % n for n in range(200_000))
    for content in ((tmp_path / "x.parquet").read_bytes(), (tmp_path / "x.wacz").read_bytes(), record):
        assert body(piped(tmp_path, content)) == ["com,x)/a 1/1"]
    for content in (whole, gzip.compress(whole)):  # longer than the part that is read to detect its kind
        result = piped(tmp_path, content)
        assert (result.totals.keys, body(result)[0]) == (200_001, "com,x)/a 1/1")
        assert result.as_dict()["sources"][0]["name"].endswith("pipe")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.parquet", "x.wacz"]


@pytest.mark.parametrize(
    "content",
    [
        '1.2.3.4 - - [16/Jan/2019:05:00:00 -0700] "GET /web/2016/http://x.com/l HTTP/1.1" 200 12\n',
        "com,x)/a 1/1\n",
        warc(("response", "http://x.com/a", HTTP)).decode(),
        line("com,x)/a"),
    ],
)
def test_damage_of_what_comes_through_a_pipe_is_reported(tmp_path: Path, content: str) -> None:
    noise = random.Random(0)
    text = "".join(content.replace("x.com/", f"x.com/{noise.random()}") for _ in range(3000))
    packed = gzip.compress(text.encode())
    result = piped(tmp_path, packed[: -len(packed) // 8])
    assert any("gzip data is cut off" in problem.reason for problem in result.tally.damaged)
    assert result.totals.captures
    for read in (piped, lambda _, text: profile(written(tmp_path, text))):
        with pytest.raises(FormatError, match="gzip data is cut off"):  # nothing is left, which would be an empty map
            read(tmp_path, packed[:12])


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    log = '1.2.3.4 - - [16/Jan/2019:05:00:00 -0700] "GET /web/2016/http://x.com/a HTTP/1.1" 200 12\n'
    for content in (line("com,x)/a"), "com,x)/a\n", "http://x.com/a\n", " CDX N b a\ncom,x)/a 2014 x.com/a\n", log):
        plain = written(tmp_path, mark + content.encode(), "plain")
        packed = written(tmp_path, gzip.compress(mark + content.encode()), "packed")
        assert body(profile(plain)) == body(profile(packed)) == ["com,x)/a 1/1"]


def test_a_host_with_a_port_needs_no_scheme(tmp_path: Path) -> None:
    urls = written(tmp_path, "example.com:8080/a\nlocalhost:81/\nexample.com/b\n", "urls")
    assert body(profile(urls)) == ["com,example)/b 1/1", "com,example:8080)/a 1/1", "localhost:81)/ 1/1"]
    keys = " CDX N b a\nexample.com:8080/a 2014 -\n"
    assert body(profile(written(tmp_path, keys, "cdx"))) == ["com,example:8080)/a 1/1"]
    counted = written(tmp_path, "3 example.com:8080/a\n2 example.com/\n", "counts")
    assert body(profile(counted)) == ["com,example)/ 2/1", "com,example:8080)/a 3/1"]


# -- bad input ------------------------------------------------------------------------------------


def test_bad_lines_are_named_with_file_line_and_reason(tmp_path: Path) -> None:
    content = line("com,x)/a") * 3 + "com,x)/b 20140101000000 {broken\n" + line("com,x)/c", "x") + line("com,x)/d")
    result = profile(written(tmp_path, content), piece=100)
    assert [problem.line for problem in result.tally.problems] == [4, 5]
    assert result.tally.skipped == {"broken JSON": 1, "no timestamp": 1}
    assert result.totals.captures == 4
    assert result.partial


def test_strict_stops_at_the_first_bad_line(tmp_path: Path) -> None:
    file = written(tmp_path, line("com,x)/a") * 20 + "com,x)/b 20140101000000 {broken\n")
    with pytest.raises(FormatError, match=r"index\.cdxj:21"):
        profile(file, strict=True, piece=100)


@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_a_truncated_gzip_counts_up_to_the_damage(tmp_path: Path, kept: float) -> None:
    text = "".join(line(f"com,x)/{os.urandom(8).hex()}") for number in range(2000)).encode()
    packed = gzip.compress(text)
    result = profile(written(tmp_path, packed[: int(len(packed) * kept)]), piece=5000)
    assert 0 < result.totals.captures < 2000
    assert result.partial
    assert result.tally.skipped == {}
    assert "cut off" in result.tally.damaged[0].reason


def test_a_file_of_no_known_kind_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    written(tmp_path, "Read me first.\n", "README")
    written(tmp_path, line("com,x)/"))
    result = profile(tmp_path)
    assert (body(result), result.partial) == (["com,x)/ 1/1"], False)
    assert result.tally.ignored[0].file.endswith("README") and not result.tally.damaged


def test_nothing_of_a_known_kind_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="nothing to profile"):
        profile(written(tmp_path, "Read me first.\n", "README"))


def test_a_key_beyond_all_measure_is_skipped_and_counted(tmp_path: Path) -> None:
    file = written(tmp_path, line("com,x)/") + line("com,x)/" + "a" * 70_000) + line("com,X)/" + "/" * 70_000))
    result = profile(file)
    assert (body(result), result.tally.skipped) == (["com,x)/ 1/1"], {"a key that is too long": 2})


def test_an_empty_file_among_sorted_ones_does_not_make_them_be_sorted_again(tmp_path: Path) -> None:
    files = [written(tmp_path, line("com,x)/a"), "a"), written(tmp_path, "", "b"), written(tmp_path, line("com,x)/b"))]
    result = profile(files)
    assert (result.was_sorted, body(result)) == (True, ["com,x)/a 1/1", "com,x)/b 1/1"])


def test_an_empty_input_gives_an_empty_map_only_if_that_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no captures"):
        profile(written(tmp_path, ""))
    result = profile(written(tmp_path, ""), allow_empty=True)
    assert (body(result), result.totals.gamma) == ([], None)


def test_more_media_types_than_the_kernel_counts(tmp_path: Path) -> None:
    content = "".join(line("com,x)/", media=f"x/y{number}") for number in range(3000))
    result = profile(written(tmp_path, content), media_types=["x/y29*"])
    assert result.totals.captures == 111


def test_a_key_longer_than_a_piece(tmp_path: Path) -> None:
    long = "com,x)/" + "a" * 5000
    result = profile(written(tmp_path, line("com,w)/") + line(long) + line("com,y)/")), piece=64)
    assert body(result) == ["com,w)/ 1/1", f"{long} 1/1", "com,y)/ 1/1"]


# -- files that remain ----------------------------------------------------------------------------


def test_a_folder_can_be_profiled_again_into_itself(tmp_path: Path) -> None:
    written(tmp_path, line("com,x)/"))
    for _ in range(2):
        assert profile(tmp_path, tmp_path / "map.ukvs").totals.captures == 1


def test_an_interrupted_run_leaves_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, "".join(line(f"com,x)/{n}") for n in range(20_000)))
    target = written(tmp_path, "old", "map.ukvs")

    def interrupt(progress: Progress) -> None:
        if progress.done > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        profile(file, target, progress=interrupt, piece=50_000, temp_dir=tmp_path)
    assert target.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.cdxj", "map.ukvs"]


def test_progress_counts_bytes_up_to_the_size_of_all_files(tmp_path: Path) -> None:
    files = [written(tmp_path, line("com,x)/") * 500, name) for name in ("a", "b")]
    seen: list[Progress] = []
    profile(files, progress=seen.append, piece=5000)
    total = sum(file.stat().st_size for file in files)
    assert seen[-1] == Progress("reading", total, total, "bytes", 1000)
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)


def test_room_for_sorting_is_checked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _folder: SimpleNamespace(free=10))
    file = written(tmp_path, line("com,x)/b") * 50 + line("com,x)/a"))
    with pytest.raises(ResourceError, match="may be needed"):
        profile(file, memory_limit=1000)


def test_a_folder_to_sort_in_that_is_not_there_is_reported(tmp_path: Path) -> None:
    file = written(tmp_path, "".join(line(f"com,x)/{n % 977}") for n in range(5000)))
    with pytest.raises((ResourceError, RecollectError, OSError)):
        profile(file, memory_limit=10_000, temp_dir=tmp_path / "none")


@pytest.mark.parametrize(
    "options",
    [
        {"policy": "H0P0"},
        {"output_format": "csv"},
        {"by": ["week"]},
        {"by_columns": True},
        {"by": ["year"], "by_columns": True, "output_format": "cdxj"},
        {"statuses": ["abc"]},
        {"since": "soon"},
        {"since": "2014-13"},
        {"until": "20140231"},
        {"media_types": ["text/html", ""]},
        {"where": "size > 1"},
        {"since": "2015", "until": "2014"},
    ],
)
def test_options_that_cannot_be_meant(tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        profile(written(tmp_path, line("com,x)/")), **options)  # type: ignore[arg-type]


def test_every_map_is_valid_and_holds_what_went_in(tmp_path: Path) -> None:
    from recollect.formats.ukvs.faults import validate

    target = tmp_path / "map.ukvs.zst"
    surts = ["com,x)/a/", "com,x)/é", "com,x)/*", "com,x)/a b".replace(" ", "%20"), "com,X)/B", "[::1]:80)/a"]
    profile(written(tmp_path, "".join(line(surt) for surt in surts)), target)
    assert list(validate(target)) == []
    with open_holdings(target) as holdings:
        assert [holdings.lookup(surt).answer for surt in surts] == ["yes"] * len(surts)


# -- the kernels ----------------------------------------------------------------------------------


def test_small_batches_give_the_same_as_large_ones(tmp_path: Path) -> None:
    from recollect.formats.detect import find_sources
    from recollect.maps.scope import Selection
    from recollect.profiles.indexes.select import Filter
    from recollect.profiles.indexes.sinks import SortedSink

    file = written(tmp_path, "".join(line(f"com,x)/{n // 6:04d}?{n % 6 // 2}") for n in range(999)))
    outputs = []
    for size in (7, 1000):
        sink = SortedSink(Filter(Selection()))
        for piece in scan(find_sources([file]), sink.work, ScanOptions(batch_lines=size)):
            for result in piece.results:
                sink.take(result)
        sink.finish()
        outputs.append((b"".join(sink.lines()), sink.totals()))
    assert outputs[0] == outputs[1]
    assert outputs[0][1].uri_rs == len({f"{n // 6}?{n % 6 // 2}" for n in range(999)})
