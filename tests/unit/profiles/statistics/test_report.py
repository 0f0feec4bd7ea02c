"""The report: every figure of an archive's holdings, escaped, self-contained, the same for the same seed."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from recollect.profiles.indexes.profile import profile
from recollect.profiles.statistics.charts import Axis, Series, curves, nice_step, number
from recollect.profiles.statistics.report import ReportOptions, collect, page_of, write_report
from recollect.profiles.statistics.reportsections import host_name, uri_of

LINES = [
    "com,example)/ 20100101000000 http://example.com/ text/html 200 AAA 10",
    "com,example)/ 20110101000000 http://example.com/ text/html 301 AAB 10",
    "com,example)/a/b 20110101000000 http://example.com/a/b image/png 200 AAC 10",
    "com,example)/<script>alert(1)</script> 20120101000000 http://example.com/x text/<b> 404 AAD 10",
    "org,example,www:8080)/q?x=1 20130101000000 http://www.example.org:8080/q?x=1 text/html 200 AAE 10",
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "index.cdx"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


class Seen(HTMLParser):
    """Tags and addresses of a page, and whether every element was closed."""

    VOID = ("meta", "line", "rect", "circle", "path", "br", "img")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_an_index_gives_every_section_and_only_links_lead_out(index: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("http://example.com/\nhttp://absent.example/\n")
    out = tmp_path / "report.html"
    data = write_report([index], out, accesses=[log], options=ReportOptions("A & <B>", "https://replay.example/web/"))
    page = out.read_text()
    seen = Seen(page)
    assert seen.open == [] and "script" not in seen.tags and "link" not in seen.tags
    assert all(address.startswith(("#", "https://replay.example/web/http://")) for address in seen.addresses)
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert len(titles) == 10, titles
    assert "A &amp; &lt;B&gt;" in page and "<B>" not in page and "text/&lt;b&gt;" in page
    assert data.stats.overview.captures == 5 and data.overlap is not None and data.overlap.accessed_and_held == 1
    for series in ("Lorenz", "Growth", "Relative cost of", "Relative cost against", "Reduction"):
        assert f'aria-label="{series}' in page


def test_a_map_gives_what_it_can_and_says_so(index: Path, tmp_path: Path) -> None:
    made = tmp_path / "map.ukvs"
    profile([index], made)
    page = page_of(collect([made]))
    assert "A map has lost times" in page and "<h2>Growth</h2>" not in page and "<h2>The shape of the tree</h2>" in page


def test_the_same_seed_picks_the_same_uris(index: Path) -> None:
    picked = [
        collect([index], options=ReportOptions(sample=2, seed=seed)).stats.sample for seed in (1, 1, *range(2, 20))
    ]
    assert picked[0] == picked[1] and len({tuple(one) for one in picked}) > 2
    assert all(len(one) == 2 for one in picked)


def test_hosts_and_types_by_year_are_counted(index: Path) -> None:
    found = collect([index], options=ReportOptions(top=1)).stats
    assert found.top_hosts == [("com,example", 4)]
    assert found.media_by_year[2011] == {"text/html": 1, "image/png": 1}
    assert sum(count for counts in found.media_by_year.values() for count in counts.values()) == 5


def test_bad_lines_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "index.cdx"
    path.write_text("\n".join([*LINES, "com,example)/<i>broken</i>"]) + "\n")
    page = page_of(collect([path]))
    assert "What was not counted" in page and "<i>" not in page.replace('<i class="', "")


@pytest.mark.parametrize(
    ("surt", "uri"),
    [
        ("com,example)/a?b=1", "http://example.com/a?b=1"),
        ("com,example:8080)/", "http://example.com:8080/"),
        ("4,3,2,1)/x", "http://1.2.3.4/x"),
        ("[::1]:80)/x", "http://[::1]:80/x"),
        ("dns:example.com", None),
        ("warcinfo", None),
    ],
)
def test_surts_become_links_where_they_are_pages(surt: str, uri: str | None) -> None:
    assert uri_of(surt) == uri


def test_hosts_are_written_as_people_do() -> None:
    assert host_name("org,example,www") == "www.example.org"


@pytest.mark.parametrize(("span", "step"), [(10, 2), (100, 20), (7, 2), (0.5, 0.1), (0, 1), (6, 1)])
def test_steps_are_round(span: float, step: float) -> None:
    assert nice_step(span) == pytest.approx(step)


@pytest.mark.parametrize(
    ("low", "high", "log"), [(0, 1, False), (2007, 2016, False), (1e-6, 1, True), (0, 12345678, False)]
)
def test_ticks_lie_within_the_axis(low: float, high: float, log: bool) -> None:
    axis = Axis("x", low, high, log=log)
    assert 2 <= len(axis.ticks()) <= 11
    assert all(-1e-9 <= axis.share(tick) <= 1 + 1e-9 for tick in axis.ticks())


def test_numbers_are_short() -> None:
    assert [number(value) for value in (0, 0.25, 12, 3400, 1.2e6, 5e9)] == ["0", "0.25", "12", "3.4k", "1.2M", "5G"]


def test_curves_stay_inside_and_name_themselves() -> None:
    svg = curves([Series("<one>", [(0, 0), (5, 99)])], Axis("x", 0, 1), Axis("y", 0, 1), title="a < b")
    assert "&lt;one&gt;" in svg and 'aria-label="a &lt; b"' in svg
    assert all(0 <= float(x) <= 760 for x in re.findall(r'cx="([\d.]+)"', svg))
