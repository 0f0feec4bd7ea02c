"""The registry: MemGator's list as it is, Recollect's files, clear errors, rules, and the list that ships."""

from __future__ import annotations

import dataclasses
import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recollect.archives.registry import Archive, Rate, choose, load_archives
from recollect.errors import FormatError, UsageError

MEMGATOR = [
    {
        "id": "ia",
        "name": "Internet Archive",
        "timemap": "http://web.archive.org/web/timemap/link/",
        "timegate": "http://web.archive.org/web/",
        "probability": 0.9,
        "ignore": False,
    },
    {"id": "ba", "name": "B", "timemap": "http://ba.example/tm/", "timegate": "http://ba.example/", "ignore": True},
]


def save(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def load_one(folder: Path, **keys: object) -> Archive:
    entry = {"id": "x", "timemap": "http://x.example/tm/", **keys}
    (archive,) = load_archives(save(folder, "a.json", [entry]))
    return archive


def complaint(folder: Path, content: object, name: str = "a.json") -> str:
    with pytest.raises(FormatError) as caught:
        load_archives(save(folder, name, content))
    return str(caught.value)


def test_memgators_list_is_read_as_it_is(tmp_path: Path) -> None:
    ia, ba = load_archives(save(tmp_path, "archives.json", MEMGATOR))
    assert (ia.id, ia.name, ia.probability, ia.ignore) == ("ia", "Internet Archive", 0.9, False)
    assert ia.timemap_uri("http://a.example/?b=1#c") == "http://web.archive.org/web/timemap/link/http://a.example/?b=1"
    assert ia.timegate_uri("http://a.example/") == "http://web.archive.org/web/http://a.example/"
    assert ba.ignore


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    toml = """
        [[archive]]
        id = "x"
        name = "X"
        timemap = "https://x.example/tm/{uri}?format=link"
        cdx = "https://x.example/cdx"
        raw = "https://x.example/{timestamp}id_/{uri}"
        map = "https://x.example/.well-known/mementomap"
        rates = { index = "24/min", replay = 5 }
        concurrency = 3
        timeout = 10
        allow_hosts = ["cdn.x.example"]
        never = ["*.gov.uk"]
    """
    entry = {
        "id": "x",
        "name": "X",
        "timemap": "https://x.example/tm/{uri}?format=link",
        "cdx": "https://x.example/cdx",
        "raw": "https://x.example/{timestamp}id_/{uri}",
        "map": "https://x.example/.well-known/mementomap",
        "rates": {"timemap": "0.4/s", "cdx": "24/min", "raw": 5},
        "concurrency": 3,
        "timeout": 10,
        "allow_hosts": ["cdn.x.example"],
        "never": ["*.gov.uk"],
    }
    (one,) = load_archives(save(tmp_path, "a.toml", toml))
    (two,) = load_archives(save(tmp_path, "a.json", {"archives": [entry]}))
    assert one.rate == two.rate == 0.4
    assert one.index_rate == Rate(24, 60)
    assert one.replay_rate == two.replay_rate == Rate(5, 1)
    assert one.timemap_uri("http://a.example/") == "https://x.example/tm/http://a.example/?format=link"
    for name in ("cdx", "raw", "map", "concurrency", "timeout", "allow_hosts", "never"):
        assert getattr(one, name) == getattr(two, name)


@pytest.mark.parametrize("name", ["list", "list.txt"])
def test_the_kind_of_a_file_without_suffix_is_detected_from_its_content(tmp_path: Path, name: str) -> None:
    assert len(load_archives(save(tmp_path, name, MEMGATOR))) == 2
    assert len(load_archives(save(tmp_path, name, '[[archive]]\nid = "x"\ncdx = "http://x.example/"'))) == 1


def test_a_map_may_lie_beside_the_list(tmp_path: Path) -> None:
    assert load_one(tmp_path, map="maps/x.ukvs").map == str(tmp_path / "maps" / "x.ukvs")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"id": "x", "timemap": "http://x.example/", "colour": "red"}, ["entry 1 (x): colour", "unknown key"]),
        ({"timemap": "http://x.example/"}, ["entry 1: id"]),
        ({"id": "a b", "timemap": "http://x.example/"}, ["entry 1: id", "letters"]),
        ({"id": "../x", "timemap": "http://x.example/"}, ["entry 1: id"]),
        ({"id": "x"}, ["entry 1 (x): timemap", "needs"]),
        ({"id": "x", "timemap": "ftp://x.example/"}, ["timemap", "http(s)"]),
        ({"id": "x", "timemap": 3}, ["timemap", "a string"]),
        ({"id": "x", "cdx": "http://x.example/", "raw": "http://x.example/{uri}"}, ["raw", "{timestamp} is missing"]),
        ({"id": "x", "cdx": "http://x.example/", "ignore": "yes"}, ["ignore", "true or false"]),
        ({"id": "x", "cdx": "http://x.example/", "probability": -1}, ["probability", "too small"]),
        ({"id": "x", "cdx": "http://x.example/", "concurrency": 0}, ["concurrency", "too small"]),
        ({"id": "x", "cdx": "http://x.example/", "rates": "fast"}, ["rates", "24/min"]),
        ({"id": "x", "cdx": "http://x.example/", "rates": {"tea": 1}}, ["rates.tea", "unknown key"]),
        ({"id": "x", "cdx": "http://x.example/", "only": ["*.uk/path"]}, ["only", "path"]),
        ({"id": "x", "cdx": "http://x.example/", "headers": {"A": 1}}, ["headers"]),
        ("x", ["entry 1", "table"]),
    ],
)
def test_errors_name_file_entry_and_key(tmp_path: Path, entry: object, words: list[str]) -> None:
    message = complaint(tmp_path, [entry])
    assert str(tmp_path / "a.json") in message
    for word in words:
        assert word in message


def test_two_archives_with_one_id_are_an_error(tmp_path: Path) -> None:
    assert "entry 2" in complaint(tmp_path, [MEMGATOR[0], MEMGATOR[0]])


@pytest.mark.parametrize(
    ("name", "content"), [("a.json", "{"), ("a.toml", "a ="), ("a.json", "3"), ("a.toml", "x = 1")]
)
def test_files_that_are_not_lists_say_so(tmp_path: Path, name: str, content: str) -> None:
    assert name in complaint(tmp_path, content, name)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no-such-file"):
        load_archives(tmp_path / "no-such-file")


def test_credentials_come_from_the_environment_and_never_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_TOKEN", "s3cret")
    archive = load_one(tmp_path, headers={"Authorization": "Bearer ${X_TOKEN}"})
    assert dict(archive.headers) == {"Authorization": "Bearer s3cret"}
    assert "s3cret" not in repr(archive)


def test_a_missing_variable_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("X_TOKEN", raising=False)
    entry = {"id": "x", "cdx": "http://x.example/", "headers": {"Authorization": "Bearer ${X_TOKEN}"}}
    assert "headers.Authorization: the environment has no X_TOKEN" in complaint(tmp_path, [entry])


@pytest.mark.parametrize(
    ("rules", "uri", "reason"),
    [
        ({}, "http://a.example/", None),
        ({"only": ["*.uk"]}, "http://www.gov.uk/x", None),
        ({"only": ["*.uk"]}, "http://uk.example/", "only *.uk"),
        ({"never": ["*.gov.uk"]}, "http://www.gov.uk/x", "never *.gov.uk"),
        ({"never": ["*.gov.uk"]}, "http://gov.uk/", "never *.gov.uk"),
        ({"never": ["a.example"]}, "http://a.example/deep/page?q", "never a.example"),
        ({"never": ["a.example"]}, "http://b.a.example/", None),
        ({"never": ["a.example/docs/*"]}, "http://a.example/docs", "never a.example/docs/*"),
        ({"never": ["a.example/docs/*"]}, "http://a.example/docs/1/2", "never a.example/docs/*"),
        ({"never": ["a.example/docs/*"]}, "http://a.example/docs2", None),
        ({"never": ["http://a.example/one"]}, "https://www.a.example/one/", "never http://a.example/one"),
        ({"never": ["http://a.example/one"]}, "http://a.example/one/two", None),
        ({"never": ["com,example,*"]}, "http://x.example.com/", "never com,example,*"),
        ({"never": ["*"]}, "http://x.example.com/", "never *"),
        ({"only": ["*.uk"]}, "::", None),
    ],
)
def test_rules_by_address(tmp_path: Path, rules: dict[str, list[str]], uri: str, reason: str | None) -> None:
    assert load_one(tmp_path, **rules).rule(uri) == reason


@pytest.mark.parametrize(
    ("raw", "uri_m", "expected"),
    [
        ("", "http://x.example/web/20150101000000/http://a.example/", "web/20150101000000id_/http://a.example/"),
        ("", "http://x.example/web/20150101000000mp_/http://a.example/", "web/20150101000000id_/http://a.example/"),
        ("", "http://x.example/AB12-CD34", "AB12-CD34"),
        (
            "http://x.example/raw/{timestamp}/{uri}",
            "http://x.example/web/20150101000000mp_/http://www.a.example/?b",
            "raw/20150101000000/http://www.a.example/?b",
        ),
        ("http://x.example/raw/{timestamp}/{uri}", "http://x.example/AB12", "raw/20150101000000/http://a.example/"),
    ],
)
def test_where_a_raw_memento_is(tmp_path: Path, raw: str, uri_m: str, expected: str) -> None:
    archive = load_one(tmp_path, **({"raw": raw} if raw else {}))
    assert archive.raw_uri(uri_m, "20150101000000", "http://a.example/") == f"http://x.example/{expected}"


def test_a_period_never_holds_more_than_the_count_and_a_quarter() -> None:
    rate = Rate(24, 60)
    assert rate.burst + rate.per_second * 60 <= 30
    assert (str(rate), Rate(0.5, 1).burst) == ("24/min", 1)


def test_choosing_archives(tmp_path: Path) -> None:
    archives = load_archives(save(tmp_path, "a.json", [*MEMGATOR, {"id": "c", "cdx": "http://c.example/"}]))
    assert [a.id for a in choose(archives, "!ia")] == ["c"]
    assert [a.id for a in choose(archives, "ba, ia")] == ["ia", "ba"]
    assert [a.id for a in choose(archives, "")] == ["ia", "c"]
    with pytest.raises(FormatError, match="zz"):
        choose(archives, "ia,zz")


def test_the_list_that_ships_is_whole_and_polite() -> None:
    archives = load_archives()
    by_id = {archive.id: archive for archive in archives}
    assert len(archives) >= 15
    assert by_id["loc"].ignore
    for archive in archives:
        negotiates = archive.timemap.startswith("https://") and archive.timegate.startswith("https://")
        assert negotiates or (archive.ignore and archive.cdx.startswith("https://"))
        assert archive.index_rate and archive.concurrency and archive.concurrency <= 8
        assert archive.ignore == bool(archive.note)
    ia = by_id["ia"]
    assert ia.index_rate is not None and ia.replay_rate is not None
    # 30 and 600 requests a minute are the Internet Archive's limits; we stay at 80%.
    assert (ia.index_rate, ia.replay_rate) == (Rate(24, 60), Rate(480, 60))


def test_raw_bytes_are_had_by_date_and_uri_or_by_the_warc_a_listing_names(tmp_path: Path) -> None:
    path = tmp_path / "archives.json"
    entry = {"id": "cc", "cdx": "http://index.example/collinfo.json", "raw": "http://data.example/{filename}"}
    path.write_text(json.dumps([entry]))
    assert load_archives(path)[0].raw == entry["raw"]
    path.write_text(json.dumps([{**entry, "raw": "http://data.example/"}]))
    with pytest.raises(FormatError, match="timestamp"):
        load_archives(path)


DOCS = Path(__file__).parents[3] / "docs" / "archives.md"


def test_every_key_is_documented_and_every_documented_key_is_known() -> None:
    table = DOCS.read_text().partition("| key | what it is |")[2].partition("\n\n")[0]
    documented = {name.strip("` ") for line in table.splitlines()[2:] for name in line.split("|")[1].split(",")}
    known = {field.name for field in dataclasses.fields(Archive)} - {"index_rate", "replay_rate"} | {"rates"}
    assert documented == known


def test_the_example_of_the_docs_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYARCHIVE_TOKEN", "x")
    example = DOCS.read_text().partition("```toml\n")[2].partition("```")[0]
    (archive,) = load_archives(save(tmp_path, "my.toml", example))
    assert archive.rule("http://www.gov.uk/") == "never *.gov.uk"
    assert (str(archive.index_rate), str(archive.replay_rate)) == ("60/min", "10/s")


def test_a_quota_is_for_a_period_up_to_days(tmp_path: Path) -> None:
    path = tmp_path / "archives.json"
    path.write_text(json.dumps([{"id": "a", "cdx": "http://a.example/cdx", "quota": "1000/day"}]))
    assert load_archives(path)[0].quota == Rate(1000, 86400)


def test_a_list_may_be_named_by_its_url(tmp_path: Path) -> None:
    (tmp_path / "archives.json").write_text('[{"id": "a", "timemap": "http://127.0.0.1:9/"}]')

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_address[1]}"
        assert [archive.id for archive in load_archives(f"{base}/archives.json")] == ["a"]
        with pytest.raises(UsageError, match="cannot fetch"):
            load_archives(f"{base}/missing.json")
        server.shutdown()
