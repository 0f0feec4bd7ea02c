"""Sentences follow from figures: every combination, none claims more than the figures allow."""

from __future__ import annotations

from itertools import product

import pytest

from recollect.recovery.figures import Figures, Loss, Outage, OutageKind
from recollect.recovery.sentences import (
    WORDS,
    Headline,
    Phrase,
    Sentence,
    details,
    headline,
    outage,
    percent,
    rerun_command,
    share,
    summary,
    text,
)

OUTAGES = [
    (),
    (Outage("ia", OutageKind.REFUSED, "status 429", None, 0),),
    (Outage("b", OutageKind.SLOW, "", 120, 14), Outage("c", OutageKind.CUT, "", 7, 0)),
]


def combinations() -> list[Figures]:
    """Every combination of the figures that sentences depend on, in small and in large."""
    found = []
    grid = product(
        (0, 1, 400), (0, 1, 30), Loss, (0, 1, 31), (0, 2), (0, 1), (0, 3), OUTAGES, (True, False), (True, False)
    )
    for back, lost, loss, pages, files, elsewhere, suspects, outages, complete, front in grid:
        found.append(
            Figures(
                recovered=back,
                listed=back + lost,
                listed_back=back,
                losses={loss: lost} if lost else {},
                never_saved_pages=pages,
                never_saved_files=files,
                elsewhere=elsewhere,
                suspects=min(suspects, back),
                outages=outages,
                complete=complete,
                front=front and back > 0,
            )
        )
    return found


def test_success_is_claimed_only_without_any_known_or_possible_loss() -> None:
    for figures in combinations():
        whole = (
            figures.recovered > 0
            and figures.listed_back == figures.listed > 0
            and not (figures.never_saved_pages or figures.never_saved_files or figures.elsewhere or figures.suspects)
            and not figures.outages
            and figures.complete
            and figures.front
        )
        assert (headline(figures) == Headline.WHOLE) == whole, figures
        lines = " ".join(summary(figures))
        assert ("Your site is back" in lines) == whole, figures
        if not whole and (figures.lost or figures.outages or figures.suspects):
            assert "100%" not in lines, figures


def test_every_loss_and_every_outage_is_named() -> None:
    for figures in combinations():
        lines = summary(figures)
        for one in figures.outages:
            assert any(line.startswith(one.archive) for line in lines)
        phrases = {sentence.phrase for sentence in details(figures)}
        assert len([name for name in phrases if name.startswith("lost-")]) == len(figures.losses)
        clauses = {clause.phrase for clause in share(figures).more}
        assert (Phrase.NEVER_SAVED_PAGES in clauses) == bool(figures.never_saved_pages)
        assert (Phrase.NEVER_SAVED_FILES in clauses) == bool(figures.never_saved_files)


def test_nothing_back_is_never_called_a_part() -> None:
    for figures in combinations():
        nothing = {Headline.NOTHING_BACK, Headline.NOTHING_SAVED, Headline.NOTHING_YET}
        assert (headline(figures) in nothing) == (figures.recovered == 0)
        if headline(figures) == Headline.NOTHING_SAVED:
            assert not (figures.listed or figures.outages or figures.lost)


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        (
            Figures(396, listed=412, listed_back=396, losses={Loss.FAILED: 16}, never_saved_pages=31),
            "96% of 412 addresses that archives list; 31 linked pages were never saved",
        ),
        (Figures(412, listed=412, listed_back=412), "100% of 412 addresses that archives list"),
        (
            Figures(412, listed=412, listed_back=412, never_saved_pages=1, never_saved_files=2),
            "all 412 addresses that archives list came back; "
            "1 linked page was never saved; 2 linked files were never saved",
        ),
        (
            Figures(2, listed=900, listed_back=2, losses={Loss.FAILED: 898}),
            "less than 1% of 900 addresses that archives list",
        ),
        (
            Figures(9999, listed=10000, listed_back=9999, losses={Loss.FAILED: 1}),
            "99% of 10,000 addresses that archives list",
        ),
    ],
)
def test_the_share_in_words(figures: Figures, words: str) -> None:
    assert text(share(figures)) == words


def test_a_share_rounds_down() -> None:
    for listed in range(1, 400):
        for back in {0, 1, listed // 2, listed - 1, listed}:
            known = percent(Figures(back, listed=listed, listed_back=back))
            assert known is not None and (known == 100) == (back == listed)


def test_an_outage_names_the_archive_what_it_lists_and_the_command_that_asks_it_again() -> None:
    slow = Outage("b", OutageKind.SLOW, "", 120, 14)
    assert text(outage(slow)) == (
        "b did not answer in time; it lists 120 addresses of this site; 14 of them are not back"
    )
    assert text(outage(Outage("x", OutageKind.REFUSED))) == "x refused; what it lists is not known"
    assert rerun_command(slow, "my site") == "recollect recover --resume 'my site' --use b --yes"


def test_the_catalogue_has_every_sentence_once() -> None:
    assert set(WORDS) == {*Headline, *Phrase}
    for phrase in WORDS:
        fields = {"percent": 50, "archive": "ia", "hosts": 2}
        assert "%(" not in text(Sentence(phrase, 1, fields)) + text(Sentence(phrase, 2, fields))


def test_figures_survive_json() -> None:
    for figures in combinations()[::97]:
        assert Figures.from_json(figures.to_json()) == figures
