"""The dissertation's measurements: figure 37, Table 15, equations 16 to 24."""

import hashlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.recovery.diagram import diagram_svg
from recollect.recovery.measure import (
    Difference,
    Penalties,
    Resource,
    days_needed,
    extract_text,
    measure,
    query_cost,
    shingles,
    similarity,
)


def site(**pages: str) -> list[Resource]:
    def one(name: str, text: str) -> Resource:
        body = text.encode()
        return Resource(name, "text/html", hashlib.sha1(body).hexdigest(), lambda: body)

    return [one(name, text) for name, text in pages.items()]


WORDS = " ".join(f"word{i}" for i in range(100))


def test_figure_37_of_the_dissertation():
    # Printed: (2/6, 1/6, 1/5) = (0.333, 0.167, 0.200) for six lost and five recovered resources.
    vector = Difference.of_counts(2, 1, 1, lost=6, recovered=5)
    assert (round(vector.changed, 3), round(vector.missing, 3), round(vector.added, 3)) == (0.333, 0.167, 0.200)


def test_figure_37_as_drawn():
    # B and C came back older, G was added, F was never found and nothing linked to D.
    lost = site(A="a", B="b", C="c", D="d", E="e", F="f")
    got = measure(lost, site(A="a", B="b old", C="c old", E="e", G="g"))
    assert (got.difference.changed, got.difference.added) == (2 / 6, 1 / 5)
    assert got.missing == ("D", "F")


def test_a_perfect_reconstruction_is_zero_at_every_level():
    lost = site(a="x", b="y")
    assert set(measure(lost, lost).success.values()) == {0.0}


def test_a_site_that_is_gone_is_all_missing():
    got = measure(site(a="x", b="y"), [])
    assert got.difference == Difference(0.0, 1.0, 0.0)
    assert got.success["s4"] == 1.0


def test_success_levels_relax_from_s1_to_s5():
    lost = site(same="x", alike=WORDS, other="left", gone="g", known="k")
    recovered = site(same="x", alike=WORDS + " tail", other="right", extra="e")
    got = measure(lost, recovered, recoverable=["known"])
    assert got.similar == ("alike",)
    assert got.success == pytest.approx(
        {"s1": 2 / 5 + 2 / 5 + 1 / 4, "s2": 4 / 5, "s3": 1 / 5 + 2 / 5, "s4": 2 / 5, "s5": 1 / 5}
    )


def test_efficiency_is_recovered_per_request():
    got = measure(site(a="x"), site(a="x", b="y"), requests=4)
    assert (got.efficiency, got.efficiency_without_added) == (0.5, 0.25)
    assert measure([], []).efficiency is None


def test_shingles_are_runs_of_ten_words_and_short_texts_are_one():
    assert len(shingles(WORDS)) == 91
    assert shingles("Only four words here") == {("only", "four", "words", "here")}
    assert shingles("  ") == set()


def test_similarity_ignores_markup_scripts_and_case():
    left = extract_text(b"<html><script>var x</script><p>Hello <b>World</b></p>", "text/html")
    assert left is not None
    assert similarity(left, "hello world") == 1.0


def test_text_keeps_to_its_declared_charset():
    text = extract_text("<p>žluťoučký kůň</p>".encode("windows-1250"), "text/html; charset=windows-1250")
    assert text is not None
    assert "žluťoučký" in text


def test_images_and_broken_pdfs_have_no_text():
    assert extract_text(b"\x89PNG", "image/png") is None
    assert extract_text(b"%PDF-1.4 broken", "application/pdf") is None


def test_cost_formulas_of_chapter_five():
    # 250 + 40 resources, 100 and 1000 a listing, one and two requests a download, 50 resources.
    assert query_cost([250, 40], [100, 1000], [1, 2], 50) == 3 + 1 + 150
    assert days_needed(3000, [1000, 10_000, 5000]) == 3.0


names = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["one", "two", WORDS, WORDS + " more"]))


@given(names, names)
def test_every_resource_is_classified_exactly_once(lost: dict[str, str], recovered: dict[str, str]):
    got = measure(site(**lost), site(**recovered))
    assert sorted([*got.identical, *got.changed, *got.missing]) == sorted(lost)
    assert sorted([*got.identical, *got.changed, *got.added]) == sorted(recovered)
    assert set(got.similar) <= set(got.changed)
    levels = list(got.success.values())
    assert all(0 <= level <= 2 for level in levels)
    assert levels[0] >= levels[1] >= levels[2] and levels[3] >= levels[4]


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_the_diagram_is_always_drawable(a: float, b: float, c: float):
    missing = a
    svg = diagram_svg(Difference((1 - missing) * b, missing, c), title="<script>&")
    assert "nan" not in svg and "inf" not in svg and "<script>" not in svg
    assert svg.startswith("<svg") and svg.endswith("</svg>")
    assert math.isfinite(len(svg))


def test_penalties_by_type_and_by_resource_go_into_single_vectors():
    lost = [
        Resource("/a.html", "text/html", "1", bytes),
        Resource("/b.pdf", "application/pdf", "2", bytes),
        Resource("/papers/c.pdf", "application/pdf; x=y", "3", bytes),
        Resource("/d.png", "image/png", "4", bytes),
    ]
    recovered = [
        Resource("/b.pdf", "application/pdf", "x", bytes),
        Resource("/papers/c.pdf", "application/pdf", "y", bytes),
        Resource("/e.gif", "image/gif", "5", bytes),
    ]
    penalties = Penalties((("application/pdf", (0.5, 1, 0)), ("/papers/*", (1, 1, 0)), ("images", (1, 0.25, 0.2))))
    got = measure(lost, recovered, penalties=penalties)
    assert got.penalized == Difference((0.5 + 1) / 4, (1 + 0.25) / 4, 0.2 / 3)
    assert measure(lost, recovered).penalized is None
    assert measure(lost, recovered, penalties=Penalties()).penalized == got.difference


def test_what_the_policy_left_out_is_recoverable(tmp_path):
    from datetime import UTC, datetime

    from recollect.recovery.choose import Candidate
    from recollect.recovery.journal import Journal
    from recollect.recovery.options import Options
    from recollect.recovery.scope import Scope
    from recollect.recovery.snapshots import open_snapshot
    from recollect.recovery.store import Store

    with Store.create(tmp_path) as store:
        store.set_meta("start", ["http://lost.example/"])
        store.set_meta("options", Options(Scope(("http://lost.example/",)), policy="knowledgeable").to_json())
        journal = Journal(store)
        at = datetime(2010, 1, 1, tzinfo=UTC)
        with journal.transaction():
            for uri, status in (
                ("http://lost.example/old", 200),
                ("http://lost.example/err", 404),
                ("http://x.net/", 200),
            ):
                journal.add_captures([(uri, Candidate("one", uri, at, status, "text/html"))])
    assert open_snapshot(str(tmp_path)).recoverable == ("/old",)
