"""Every page with generated data, little, normal and extreme: for screenshots and for tests of all pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recollect.archives.registry import Archive
from recollect.desk.http import views, views_ask, views_job

LONG = "http://a-very-long-name-of-a-lost-site-that-does-not-end.example/~anna/" + "folder/" * 30
RIGHT_TO_LEFT = "http://xn--mgbh0fb.example/الصفحة-الرئيسية"
SITE = """<!doctype html><meta charset=utf-8><title>Anna's bakery</title><style>
body{font:18px Georgia,serif;margin:0;background:#fdf6e3;color:#4a3520}header{background:#8c5a2b;color:#fff;padding:40px 60px}
h1{margin:0;font-size:44px}nav{background:#5d3a18;padding:12px 60px}nav a{color:#ffe;margin-right:26px}
main{padding:30px 60px;display:grid;grid-template-columns:2fr 1fr;gap:40px}
.bread{background:linear-gradient(135deg,#d9a05b,#a86a2d);height:250px;border-radius:8px}</style>
<header><h1>Anna's bakery</h1>Bread and cake since 1962</header><nav><a>Home</a><a>Bread</a><a>Cake</a><a>Opening hours</a></nav>
<main><div><h2>Welcome!</h2><p>We bake every morning at four, with flour from the mill across the river.</p>
<p>Our rye bread rests for a day before it goes into the oven.</p></div><div class=bread></div></main>"""
ARCHIVES = [
    Archive(id="ia", name="Internet Archive", timemap="http://x/"),
    Archive(id="pt", name="Arquivo.pt", timemap="http://x/"),
]
MANY_ARCHIVES = [
    Archive(id=f"a{n}", name=f"Archive number {n} of the national library of somewhere", timemap="http://x/")
    for n in range(40)
]


def _survey(archives: list[Archive], per_year: dict[str, int], captures: int) -> dict[str, Any]:
    listed = [
        {
            "name": a.name,
            "captures": captures // len(archives),
            "resources": captures // 9,
            "last_good": "2012-05-03T00:00:00Z",
            "state": state,
        }
        for a, state in zip(archives, ["complete", "truncated", "failed", "no listing"] * 10, strict=False)
    ]
    return {
        "captures": captures, "resources": captures // 5, "last_good": "2012-05-03T00:00:00Z", "per_year": per_year,
        "archives": listed, "estimate": {"seconds": captures / 3, "bytes": captures * 4000.0},
    }  # fmt: skip


def _job(state: str, uri: str = "http://bakery.example/", **fields: Any) -> dict[str, Any]:
    counts = {"recovered": {"page": 25, "asset": 80}, "queued": {"page": 20, "asset": 3}, "missing": {"page": 7}}
    return {
        "id": "0123456789abcdef", "state": state, "uri": uri, "options": {"uri": uri, "scope": "site"}, "rank": 3,
        "estimate": {"waiting": 300.0, "working": 2700.0}, "progress": 0.83, "counts": counts, "waiting_for": [],
        "resume_at": 1_600_000_000.0, "reason": "ia: the archive asked us to wait", "created": 1.6e9, "updated": 1.6e9,
        **fields,
    }  # fmt: skip


def _result(**summary: Any) -> dict[str, Any]:
    files = {
        name: {"size": 23_456_789, "sha256": "0123456789abcdef" * 4}
        for name in ("result.zip", "result.tar.gz", "result.wacz", "report.html")
    }
    result = {
        kind: f"http://desk.example/api/jobs/0123456789abcdef/{name}?token=x"
        for kind, name in (
            ("zip", "result.zip"),
            ("tar.gz", "result.tar.gz"),
            ("wacz", "result.wacz"),
            ("report", "report.html"),
        )
    }
    return {
        "result": {**result, "files": files},
        "expires_at": 1.7e9,
        "outdated": False,
        "tell_more": False,
        "summary": summary,
    }


def _results() -> Iterator[tuple[str, dict[str, Any]]]:
    yield (
        "little",
        _job(
            "ready",
            **_result(
                recovered=1, pages=1, missing=0, discovered=1, complete=True, first="2009-01-01", last="2009-01-01"
            ),
        ),
    )
    normal = _result(
        recovered=138, pages=41, missing=25, discovered=163, complete=True, first="2004-03-12T00:00:00Z", last="2018-11-03T00:00:00Z",
        missing_by_reason={"never-archived": 21, "rejected": 3, "failed": 1}, ended_at="2019-04-02T00:00:00Z",
        missing_examples=[{"uri": f"http://bakery.example/recipes/{n}.html", "reason": "never-archived"} for n in range(12)],
        by_archive={"Internet Archive": 101, "Arquivo.pt": 37}, years={"Internet Archive": {"2004": 12, "2009": 60, "2017": 20, "2018": 9}, "Arquivo.pt": {"2009": 30, "2011": 7}},
    )  # fmt: skip
    yield "normal", _job("ready", **normal, thumbs=[0, 1, 2, 3], preview="http://preview.example/x/")
    years = {
        f"Archive number {n} of the national library": {str(year): year * n % 977 for year in range(1996, 2026)}
        for n in range(40)
    }
    extreme = _result(
        recovered=16_000, pages=16_000, missing=9_984_000, discovered=10_000_000, complete=False, stopped="the largest size of a recovery was reached",
        first="1996-01-01", last="2025-12-31", missing_by_reason=dict.fromkeys(("never-archived", "rejected", "failed", "out-of-quota", "blocked", "out-of-range"), 1_664_000),
        missing_examples=[{"uri": f"{LONG}{n}", "reason": "failed"} for n in range(12)], by_archive={name: sum(of.values()) for name, of in years.items()}, years=years,
    ) | {"outdated": True, "tell_more": True}  # fmt: skip
    yield "extreme", _job("ready", LONG, **extreme, thumbs=list(range(10)), preview="http://preview.example/x/")


def desk_pages() -> Iterator[tuple[str, str]]:
    yield "desk-home-little", views_ask.form_page([], {}, {})
    yield "desk-home-normal", views_ask.form_page(ARCHIVES, {}, {})
    wrong = {
        "uri": "This is not an address. It is too long or has characters no address has.",
        "at": "This is not a date.",
        "form": "Too many.",
    }
    yield "desk-home-extreme", views_ask.form_page(MANY_ARCHIVES, {"uri": LONG, "when": "at"}, wrong)
    yield "desk-asking-normal", views_ask.survey_wait_page("http://bakery.example/")
    yield (
        "desk-nothing-listed-normal",
        views_ask.survey_page(RIGHT_TO_LEFT, {"archives": _survey(ARCHIVES, {}, 1)["archives"]}, {}, {}, {}),
    )
    for amount, archives, per_year, captures in (
        ("little", ARCHIVES[:1], {"2009": 1}, 1),
        ("normal", ARCHIVES, {"2004": 20, "2006": 80, "2009": 210, "2012": 4}, 314),
        ("extreme", MANY_ARCHIVES, {str(year): (year - 1990) ** 4 for year in range(1996, 2026)}, 10_000_000),
    ):
        uri = LONG if amount == "extreme" else "http://bakery.example/"
        yield (
            f"desk-survey-{amount}",
            views_ask.survey_page(uri, _survey(archives, per_year, captures), {"waiting": 400.0}, {"uri": uri}, {}),
        )
    yield "desk-sent-normal", views_ask.sent_page("http://bakery.example/")
    yield "desk-confirm-normal", views_ask.confirm_page(RIGHT_TO_LEFT, "token")
    for state in ("pending", "queued", "running", "waiting", "packing"):
        yield f"desk-job-{state}-normal", views_job.job_page(_job(state), "token")
    waiting = [{"archive": f"archive number {n}", "until": 1.6e9, "reason": ""} for n in range(9)]
    yield (
        "desk-job-running-extreme",
        views_job.job_page(_job("running", LONG, waiting_for=waiting, thumbs=[0, 1, 2]), "token"),
    )
    for state in ("expired", "failed", "cancelled", "nothing-found"):
        yield (
            f"desk-job-{state}-normal",
            views_job.job_page(_job(state, summary={"requests": {"Internet Archive": 3}}), "token"),
        )
    for amount, view in _results():
        yield f"desk-result-{amount}", views_job.job_page(view, "token")
    yield "desk-takedown-normal", views.takedown_page({}, {})
    yield (
        "desk-problem-normal",
        views.problem_page("this link is not valid", "", "check that it was copied completely, or ask again"),
    )


def pages() -> Iterator[tuple[str, str]]:
    """(name, page) of every page."""
    yield from desk_pages()
