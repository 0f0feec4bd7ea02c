"""Profiles of random, nasty indexes are those of a dictionary of sets, in any order, any pieces, any threads."""

from __future__ import annotations

import json
import random
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.errors import BadURI
from recollect.formats.cdx import REVISIT
from recollect.profiles.indexes.profile import profile
from recollect.uris import policy_key, uri_key

SEGMENTS = ["a", "a-b", "a.html", "b", "0", "1", "%20", "A", "é", "*", "a*b", "", "robots.txt"]
SEGMENTS += ["(x)", "a,b", "~u", "z:1", '"q"']
HOSTS = [
    "com,x", "com,x,sub", "com,x:8080", "com,X", "com,x,", "1.2.3.4", "4,3,2,1", "com,x-y", "com,x_y", "localhost",
    "org,é", "de,xn--bcher-kva", "com,example.dot", "[::1]", "com,x:80", "uk,co,bbc",
]  # fmt: skip
MEDIA = ["text/html", "TEXT/HTML", "text/html; charset=utf-8", "image/png", "image/gif", REVISIT, "-", "unk"]
MEDIA += ["application/pdf"]
STATUSES = ["200", "404", "301", "-", "2OO", "", "500", "0", "999"]


@dataclass(frozen=True)
class Line:
    """What a line says; `style` is how it is spelled."""

    surt: str
    time: str
    media: str
    status: str
    style: int = 0

    def cdxj(self) -> str:
        fields: dict[str, object] = {"url": "http://example.com/", "mime": self.media, "status": self.status, "n": "1"}
        match self.style:
            case 1:  # ipwb's names, no URL
                fields = {"locator": 'urn:ipfs/"x"', "mime_type": self.media, "status_code": self.status}
            case 2:  # nested values and numbers
                fields = {"mime": self.media, "extra": {"a": [1, {"b": 2}]}, "status": self.status, "length": 12}
            case 3:  # escapes
                fields = {"url": "https://example.com/\\ \u00e9", "mime": self.media, "status": self.status}
            case 4:
                return f"{self.surt} {self.time} {json.dumps(fields, separators=(',', ':'), ensure_ascii=False)} "
            case 5:
                escaped = json.dumps(fields).replace("/", "\\/")
                return f"{self.surt} {self.time} {escaped}"
        return f"{self.surt} {self.time} {json.dumps(fields)}"

    def cdx(self) -> str:
        media = self.media.replace(" ", "")
        fields = f"{media} {self.status or '-'} DIGEST - - 12 34 x.warc.gz"
        return f"{self.surt} {self.time} http://example.com/ {fields}"

    @property
    def media_type(self) -> str | None:
        plain = self.media.partition(";")[0].lower()
        return None if plain == "-" else plain

    @property
    def status_number(self) -> int | None:
        return int(self.status) if self.status in ("200", "404", "301", "500", "999") else None


@st.composite
def surts(draw: st.DrawFn) -> str:
    host = draw(st.sampled_from(HOSTS))
    path = "".join("/" + segment for segment in draw(st.lists(st.sampled_from(SEGMENTS), max_size=4)))
    query = draw(st.sampled_from(["", "", "", "?q=1", "?", "?a=1&b=*", "?q=2", "#frag"]))
    return f"{host}){path or draw(st.sampled_from(['/', '']))}{query}".replace(" ", "%20")


LINES = st.lists(
    st.builds(
        Line,
        surts(),
        st.sampled_from(["20140101000000", "20151231235959", "2014", "20191301000000", "19960102030405"]),
        st.sampled_from(MEDIA),
        st.sampled_from(STATUSES),
        st.integers(0, 5),
    ),
    max_size=60,
)
BAD = ["com,x)/bad", "com,x)/bad 20", "com,x)/bad 20140101000000 {", 'com,x)/bad 2014010100000x {"a": 1}']
BAD += ["\x00\x01", "no key here at all"]


def expected(lines: list[Line], keep=lambda _line: True, key=lambda surt: uri_key(surt)) -> bytes:
    found: dict[bytes, dict[bytes, int]] = defaultdict(lambda: defaultdict(int))
    for line in lines:
        surt = line.surt.encode()
        try:
            made = key(surt)
        except BadURI:
            continue
        if keep(line):
            found[made][surt] += 1
    return b"".join(b"%b %d/%d\n" % (made, sum(of.values()), len(of)) for made, of in sorted(found.items()))


def body(text: bytes | None) -> bytes:
    assert text is not None
    return b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(b"!"))


def made(tmp: Path, contents: list[bytes], **options: object) -> bytes:
    files = []
    for number, content in enumerate(contents):
        files.append(tmp / f"{number}.idx")
        files[-1].write_bytes(content)
    return body(profile(files, **options).text)  # type: ignore[arg-type]


def text_of(lines: list[Line], form: str, newline: str = "\n") -> bytes:
    return "".join(getattr(line, form)() + newline for line in lines).encode()


@settings(max_examples=150, deadline=None)
@given(
    LINES,
    st.sampled_from(["cdx", "cdxj"]),
    st.booleans(),
    st.integers(1, 3),
    st.integers(0, 2**32),
    st.sampled_from([64, 500, 1 << 20]),
)
def test_any_order_any_split_any_piece(
    lines: list[Line], form: str, in_order: bool, threads: int, seed: int, piece: int
) -> None:
    if not lines:
        return
    shuffler = random.Random(seed)
    mixed = sorted(lines, key=lambda line: line.surt.encode()) if in_order else shuffler.sample(lines, len(lines))
    cut = shuffler.randrange(len(mixed) + 1)
    parts = [part for part in (mixed[:cut], mixed[cut:]) if part]
    newline = shuffler.choice(["\n", "\r\n"])
    with tempfile.TemporaryDirectory() as folder:
        tmp = Path(folder)
        anchor = [Line("com,anchor)/", "20140101000000", "text/html", "200")]  # shows the kind of file
        contents = [text_of(anchor + part, form, newline) for part in parts]
        result = made(tmp, contents, threads=threads, piece=piece)
    assert result == expected(anchor * len(parts) + lines)


@settings(max_examples=60, deadline=None)
@given(LINES, st.lists(st.sampled_from(BAD), max_size=5), st.integers(0, 2**32))
def test_bad_lines_are_counted_and_change_nothing(lines: list[Line], bad: list[str], seed: int) -> None:
    good = [*[Line("com,anchor)/", "20140101000000", "text/html", "200")] * 3, *lines]
    rows = [line.cdxj() for line in good]
    shuffler = random.Random(seed)
    for row in bad:
        rows.insert(shuffler.randrange(1, len(rows) + 1), row)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "index")
        file.write_bytes("".join(row + "\n" for row in rows).encode())
        result = profile(file, piece=300)
    assert body(result.text) == expected(good)
    assert sum(result.tally.skipped.values()) == len(bad) + sum(_has_no_key(line) for line in good)
    for problem in result.tally.problems:
        assert rows[problem.line - 1].startswith(problem.excerpt[:20].rstrip("\ufffd"))


def _has_no_key(line: Line) -> bool:
    try:
        uri_key(line.surt.encode())
    except BadURI:
        return True
    return False


@settings(max_examples=60, deadline=None)
@given(LINES, st.booleans())
def test_filters_keep_what_they_say(lines: list[Line], in_order: bool) -> None:
    anchor = Line("com,anchor)/", "20140101000000", "text/html", "200")
    rows = [anchor, *(sorted(lines, key=lambda line: line.surt.encode()) if in_order else lines)]

    def keep(line: Line) -> bool:
        revisit = line.media_type == REVISIT
        status = line.status_number in (200, 301) or (revisit and line.status_number is None)
        media = revisit or (line.media_type or "").startswith(("image/", "text/html"))
        excluded = uri_key(line.surt.encode()).endswith(b"/robots.txt")
        return status and media and not excluded and "2014" <= line.time[:4] <= "2019"

    with tempfile.TemporaryDirectory() as folder:
        for form in ("cdx", "cdxj"):
            result = made(
                Path(folder),
                [text_of(rows, form)],
                statuses=["200", "3xx"],
                media_types=["image/*", "text/html"],
                exclude=["robots.txt,sitemap.xml"],
                since="2014",
                until="2019",
            )
            assert result == expected(rows, keep)


@settings(max_examples=40, deadline=None)
@given(LINES, st.sampled_from(["H1P0", "H3P1", "HxP1", "DDom", "DIni", "URIR", "H2P2"]))
def test_every_policy_counts_by_its_own_keys(lines: list[Line], policy: str) -> None:
    rows = [Line("com,anchor)/", "20140101000000", "text/html", "200"), *lines]
    with tempfile.TemporaryDirectory() as folder:
        result = made(Path(folder), [text_of(rows, "cdxj")], policy=policy)
    assert result == expected(rows, key=lambda surt: policy_key(surt, policy))


@settings(max_examples=40, deadline=None)
@given(LINES, st.integers(1, 2000))
def test_sorting_on_disk_gives_the_same(lines: list[Line], budget: int) -> None:
    rows = [Line("com,anchor)/", "20140101000000", "text/html", "200"), *lines]
    with tempfile.TemporaryDirectory() as folder:
        result = made(Path(folder), [text_of(rows, "cdxj")], memory_limit=budget, piece=200, temp_dir=folder, by=[])
    assert result == expected(rows)


@settings(max_examples=40, deadline=None)
@given(LINES)
def test_decomposition_by_year_and_status_adds_up(lines: list[Line]) -> None:
    rows = [Line("com,anchor)/", "20140101000000", "text/html", "200"), *lines]
    parts: dict[tuple[bytes, str, str], dict[bytes, int]] = defaultdict(lambda: defaultdict(int))
    for line in rows:
        surt = line.surt.encode()
        try:
            key = uri_key(surt)
        except BadURI:
            continue
        for name, value in (("datetime", line.time[:4]), ("status", str(line.status_number or "-"))):
            parts[key, name, value][surt] += 1
    with tempfile.TemporaryDirectory() as folder:
        result = made(Path(folder), [text_of(rows, "cdxj")], by=["year", "status"])
    found = {}
    for row in result.splitlines():
        key, _, block = row.split(b" ", 2)
        for name, values in json.loads(block).items():
            for value, frequency in values.items():
                found[key, name, value] = frequency
    assert found == {place: f"{sum(of.values())}/{len(of)}" for place, of in parts.items()}


@pytest.mark.parametrize("threads", [1, 2])
def test_a_large_index_in_small_pieces(tmp_path: Path, threads: int) -> None:
    maker = random.Random(5)
    lines = [
        Line(
            f"com,h{maker.randrange(30)})/" + "/".join(maker.choice("abc019-._") for _ in range(maker.randrange(5)))
            + maker.choice(["", "", "?x", "/", f"?{maker.randrange(9)}"]),
            "20140101000000", "text/html", maker.choice(["200", "404"]),
        )
        for _ in range(20_000)
    ]  # fmt: skip
    lines.sort(key=lambda line: line.surt.encode())
    want = expected(lines)
    assert made(tmp_path, [text_of(lines, "cdxj")], threads=threads, piece=10_000) == want
    maker.shuffle(lines)
    options = {"threads": threads, "piece": 10_000, "memory_limit": 200_000, "temp_dir": tmp_path}
    assert made(tmp_path, [text_of(lines, "cdxj")], **options) == want
