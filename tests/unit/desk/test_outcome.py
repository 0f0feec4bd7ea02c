"""The page and the mail claim no more than the figures allow, in every language."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from recollect.desk.http.views_job import job_page
from recollect.desk.letters import letter
from recollect.desk.outcome import headline, lines, sentence, share_words
from recollect.desk.reports import clean_summary, figures_of
from recollect.recovery.figures import Figures, Loss, Outage, OutageKind
from recollect.ui.messages import languages, using

WHOLE = Figures(recovered=120, pages=12, listed=120, listed_back=120)
SHORT = [
    replace(WHOLE, listed=130, losses={Loss.FAILED: 10}),
    replace(WHOLE, never_saved_pages=1),
    replace(WHOLE, never_saved_files=2),
    replace(WHOLE, elsewhere=3, elsewhere_hosts=2),
    replace(WHOLE, suspects=1),
    replace(WHOLE, outages=(Outage("slow", OutageKind.SLOW),)),
    replace(WHOLE, complete=False),
    replace(WHOLE, front=False),
]


@pytest.mark.parametrize(("language", "figures"), list(product(languages(), SHORT)))
def test_success_is_a_word_that_the_figures_must_allow(language: str, figures: Figures) -> None:
    with using(language):
        assert headline(figures) != headline(WHOLE)
        words = [headline(figures), sentence(figures), share_words(figures), *lines(figures)]
        complete = sentence(WHOLE)
    if figures.lost or figures.outages or figures.suspects or not figures.complete:
        assert not any("100%" in one for one in words), words
    assert complete not in words
    assert not any("%(" in one or "--policy" in one or "--assets" in one for one in words)


@pytest.mark.parametrize("figures", [WHOLE, *SHORT])
def test_page_and_mail_say_the_same(figures: Figures) -> None:
    summary = clean_summary({"recovered": 120, "figures": figures.to_json()})
    assert figures_of(summary) == figures
    files = {"result.zip": {"size": 1, "sha256": "x"}}
    view = {"id": "j", "uri": "http://lost.example/", "state": "ready", "summary": summary, "options": {"uri": "x"}}
    view |= {"result": {"zip": "http://d/api/r.zip", "files": files}, "expires_at": 0, "retry_at": None, "outages": []}
    page = job_page(view, "t")
    values = {"greeting": "Hello,", "uri": "lost.example", "host": "lost.example", "expires": 0.0}
    values |= {"headline": headline(figures), "sentence": sentence(figures)}
    subject, body = letter("ready", values, "http://d/")
    assert f"<h1>{headline(figures)}</h1>" in page and headline(figures) in subject
    assert sentence(figures) in page and sentence(figures) in " ".join(body.split())
    assert all(line in page for line in lines(figures))


def test_little_of_a_large_site_is_told_as_such() -> None:
    figures = Figures(recovered=16, pages=16, listed=16, listed_back=16, never_saved_pages=1500)
    assert sentence(figures) == "We found 16 pages; most of the site was never saved."


def test_a_summary_without_figures_never_claims_more() -> None:
    older = {"recovered": 12, "pages": 9, "missing": 3, "missing_by_reason": {"never-archived": 1, "failed": 1}}
    assert figures_of(older).lost == 3 and headline(figures_of(older)) == "Most of your site is back"
    assert headline(figures_of({"recovered": 3, "missing": 0, "complete": True})) == "Your site is back"
    assert headline(figures_of({"recovered": 3, "missing": 0, "stopped": "size"})) != "Your site is back"
