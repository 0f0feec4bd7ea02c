"""Choice among captures, and the next step for a resource."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.recovery.choose import Candidate, DatePreference, in_order, resolve_revisits
from recollect.recovery.plan import Ask, Attempt, Fetch, GiveUp, Holder, decide

URI = "http://a.example/x"


def moment(year: int, month: int = 1, day: int = 1) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


def capture(year: int, month: int = 1, archive: str = "one", status: int | None = 200, **fields: object) -> Candidate:
    return Candidate(archive, str(fields.pop("uri", URI)), moment(year, month), status, **fields)  # type: ignore[arg-type]


def years(captures: list[Candidate]) -> list[int]:
    return [c.captured_at.year for c in captures]


def test_the_newest_goes_first_and_errors_do_not_go_at_all() -> None:
    found = in_order([capture(2008), capture(2012), capture(2015, status=404), capture(2010)], DatePreference())
    assert years(found) == [2012, 2010, 2008]


def test_near_a_wanted_date_and_inside_a_range() -> None:
    captures = [capture(year) for year in (2004, 2008, 2012)]
    assert years(in_order(captures, DatePreference(at=moment(2007)))) == [2008, 2004, 2012]
    assert years(in_order(captures, DatePreference(start=moment(2005), end=moment(2010)))) == [2008]


def test_what_a_page_embeds_is_taken_near_the_page() -> None:
    captures = [capture(year) for year in (2004, 2008, 2012)]
    assert years(in_order(captures, DatePreference(), near=moment(2005))) == [2004, 2008, 2012]
    assert years(in_order(captures, DatePreference(at=moment(2012)), near=moment(2005))) == [2004, 2008, 2012]


def test_canonical_goes_before_altered_unless_only_recency_counts() -> None:
    captures = [capture(2008), capture(2012, altered=True)]
    assert years(in_order(captures, DatePreference())) == [2008, 2012]
    assert years(in_order(captures, DatePreference(most_recent=True))) == [2012, 2008]


def test_renderings_and_thumbnails_go_after_the_originals() -> None:
    pdf = "http://a.example/paper.PDF"
    original = capture(2008, uri=pdf, media_type="application/pdf")
    rendering = capture(2012, archive="two", uri=pdf, media_type="text/html")
    assert in_order([rendering, original], DatePreference()) == [original, rendering]
    assert in_order([rendering, original], DatePreference(most_recent=True)) == [rendering, original]
    large = capture(2008, media_type="image/jpeg", length=12_000)
    small = capture(2012, archive="two", media_type="image/jpeg", length=400)
    assert in_order([small, large], DatePreference()) == [large, small]
    own = capture(2012, media_type="image/jpeg", length=400)  # the same archive: the site itself changed it
    assert in_order([own, large], DatePreference()) == [own, large]
    revisit = capture(2012, archive="two", media_type="image/jpeg", length=400, revisit=True)
    assert in_order([revisit, large], DatePreference()) == [revisit, large]
    confirmed = [
        capture(year, archive=name, media_type="image/png", length=400, digest="SAME")
        for year, name in ((2012, "two"), (2011, "one"))
    ]
    assert in_order([*confirmed, large], DatePreference()) == [*confirmed, large]


@given(
    captures=st.lists(
        st.tuples(st.integers(2000, 2012), st.sampled_from("ab"), st.integers(1, 100_000), st.booleans()), max_size=8
    )
)
def test_no_thumbnail_goes_before_the_largest_image_of_another_archive(
    captures: list[tuple[int, str, int, bool]],
) -> None:
    images = [capture(y, archive=a, length=n, revisit=r, media_type="image/gif") for y, a, n, r in captures]
    order = in_order(images, DatePreference())
    known = [c for c in order if not c.revisit]
    largest = max(known, key=lambda c: c.length or 0, default=None)
    for c in known:
        if largest is not None and c.archive != largest.archive and (c.length or 0) * 10 < (largest.length or 0):
            assert order.index(largest) < order.index(c)


def test_a_redirect_beside_content_led_there_and_a_much_newer_one_is_the_last_word() -> None:
    content, beside, moved = capture(2010, 6), capture(2010, 6, status=301), capture(2012, status=301)
    assert in_order([beside, content], DatePreference()) == [content, beside]
    assert in_order([content, moved], DatePreference()) == [moved, content]
    secure = capture(2009, uri="https://a.example/x")
    assert in_order([secure, moved], DatePreference()) == [secure, moved]  # content under another spelling


def test_equal_captures_go_by_the_order_of_archives() -> None:
    captures = [capture(2010, archive=name) for name in ("c", "a", "b")]
    assert [c.archive for c in in_order(captures, DatePreference(), archives=["b", "a", "c"])] == ["b", "a", "c"]


def test_a_revisit_is_what_it_repeats() -> None:
    first = capture(2010, digest="AAA", media_type="image/png")
    lost = capture(2011, status=404, digest="BBB")
    again = capture(2012, status=None, digest="AAA", revisit=True)
    gone = capture(2013, status=None, digest="BBB", revisit=True)
    resolved = resolve_revisits([first, lost, again, gone])
    assert [c.status for c in resolved] == [200, 404, 200, 404]
    assert resolved[2].media_type == "image/png"


ONE, TWO = Holder("one", covered=True), Holder("two", covered=True)


def tried(candidate: Candidate, outcome: str, detail: str = "", digest: str = "") -> Attempt:
    return Attempt(candidate.archive, candidate.uri, candidate.captured_at, outcome, detail, digest)  # type: ignore[arg-type]


def test_the_next_best_after_a_failure_and_no_bytes_that_were_rejected() -> None:
    new, same, old = capture(2012, digest="P"), capture(2011, digest="P"), capture(2008, digest="Q")
    assert decide([old, new, same], [], [ONE], DatePreference()) == Fetch(new)
    assert decide([old, new, same], [tried(new, "failed")], [ONE], DatePreference()) == Fetch(same)
    assert decide([old, new, same], [tried(new, "rejected", "parked", "P")], [ONE], DatePreference()) == Fetch(old)


def test_who_listed_everything_is_never_asked_and_who_did_not_is_asked_last() -> None:
    cut = Holder("cut", covered=False)
    assert decide([], [], [ONE, TWO], DatePreference()) == GiveUp("never-archived", "")
    assert decide([capture(2010)], [], [ONE, cut], DatePreference()) == Fetch(capture(2010))
    assert decide([], [], [ONE, cut], DatePreference()) == Ask("cut")
    asked = Attempt("cut", URI, None, "answered")
    assert decide([], [asked], [ONE, cut], DatePreference()) == GiveUp("never-archived", "")
    assert (
        decide([], [], [ONE, Holder("cut", covered=False, may_hold=False)], DatePreference()).reason == "never-archived"
    )  # type: ignore[union-attr]


def test_the_naive_policy_asks_all_archives_before_it_chooses() -> None:
    holders = [Holder("one", covered=False), Holder("two", covered=False)]
    asked = [Attempt("one", URI, None, "answered")]
    assert decide([], [], holders, DatePreference(), ask_first=True) == Ask("one")
    assert decide([capture(2010)], asked, holders, DatePreference(), ask_first=True) == Ask("two")
    asked.append(Attempt("two", URI, None, "answered"))
    assert decide([capture(2010)], asked, holders, DatePreference(), ask_first=True) == Fetch(capture(2010))


@pytest.mark.parametrize(
    ("attempts", "captures", "holders", "reason"),
    [
        ([], [capture(2010)], [Holder("one", True, budget=0)], "out-of-quota"),
        ([], [], [Holder("one", False, budget=0)], "out-of-quota"),
        ([], [capture(2010)], [Holder("one", True, down="broken")], "failed"),
        ([tried(capture(2010), "failed", "cut short")], [capture(2010)], [ONE], "failed"),
        ([tried(capture(2010), "blocked", "403")], [capture(2010)], [ONE], "blocked"),
        ([tried(capture(2010), "rejected", "parked")], [capture(2010)], [ONE], "rejected"),
        ([tried(capture(2010), "absent")], [capture(2010)], [ONE], "failed"),
        ([], [capture(2010, status=404)], [ONE], "rejected"),
        ([], [], [ONE], "never-archived"),
    ],
)
def test_every_missing_resource_has_its_reason(
    attempts: list[Attempt], captures: list[Candidate], holders: list[Holder], reason: str
) -> None:
    step = decide(captures, attempts, holders, DatePreference())
    assert isinstance(step, GiveUp) and step.reason == reason


def test_out_of_range_names_the_dates_there_are() -> None:
    step = decide([capture(2001), capture(2003)], [], [ONE], DatePreference(start=moment(2010)))
    assert step == GiveUp("out-of-range", "captured only from 2001-01-01 to 2003-01-01")
