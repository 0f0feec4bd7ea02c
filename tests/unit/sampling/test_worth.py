"""Drawing samples, journals that go on, vocabularies, and estimates of what was not seen."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from recollect.archives.http1 import Headers
from recollect.archives.registry import Archive, SearchDialect
from recollect.archives.transport import Request, Response
from recollect.errors import FormatError, UsageError
from recollect.sampling.journal import NAME, Journal, Kind, Outcome, read_journal
from recollect.sampling.prefixes import prefix_of
from recollect.sampling.search import Found, Vocabulary, parse_results, words_of
from recollect.sampling.uris import draw, sample_uris
from recollect.sampling.worth import chao1, wilson, worth_of

URIS = [f"http://site{number}.{tld}/" for tld, count in (("com", 400), ("pt", 20)) for number in range(count)]


def test_a_larger_sample_contains_the_smaller_one() -> None:
    small, large = draw(URIS, 50), draw(reversed(URIS), 80)
    assert set(small.chosen) < set(large.chosen)
    assert len(small.chosen) == 50
    assert draw(URIS, 50, seed=2).chosen != small.chosen


def test_repeated_and_unreadable_lines_are_not_drawn() -> None:
    drawn = draw(["http://a.example/", "https://www.a.example", "not a uri at all", ""], 10)
    assert len(drawn.chosen) == 1
    assert drawn.bad == 2


def test_stratified_samples_do_not_leave_rare_top_level_domains_out() -> None:
    def of_pt(drawn: object) -> int:
        return sum(key.startswith(b"pt,") for key in drawn.chosen)  # type: ignore[attr-defined]

    assert of_pt(draw(URIS, 60, stratify="tld")) == pytest.approx(60 * 20**0.5 / (20**0.5 + 400**0.5), abs=1)
    assert draw(URIS, 60, stratify="tld").strata == {"com": 400, "pt": 20}


def test_a_journal_goes_on_after_a_torn_line_and_refuses_another_archive(tmp_path: Path) -> None:
    with Journal(tmp_path, "a") as journal:
        journal.write(Kind.URI, Outcome.HELD, uri="http://x.example/", key="example,x)/")
    with (tmp_path / NAME).open("ab") as file:
        file.write(b'{"kind": "uri", "outc')
    with Journal(tmp_path, "a") as journal:
        journal.write(Kind.URI, Outcome.ABSENT, uri="http://y.example/", key="example,y)/")
    archive, entries = read_journal(tmp_path)
    assert archive == "a"
    assert [entry.outcome for entry in entries] == [Outcome.HELD, Outcome.ABSENT]
    with pytest.raises(UsageError, match="another archive"):
        Journal(tmp_path, "b")


def test_a_damaged_journal_names_its_line(tmp_path: Path) -> None:
    with Journal(tmp_path, "a"):
        pass
    with (tmp_path / NAME).open("ab") as file:
        file.write(b'{"kind": "nonsense"}\n')
    with pytest.raises(FormatError, match=r"journal\.jsonl:2"):
        read_journal(tmp_path)


@pytest.mark.parametrize(
    ("text", "key", "uri", "match"),
    [
        ("example.com", b"com,example,*", "example.com", "domain"),
        ("com,example,*", b"com,example,*", "example.com", "domain"),
        ("com,example)/*", b"com,example)/*", "example.com", "host"),
        ("com,example)/a/*", b"com,example)/a/*", "example.com/a", "prefix"),
        ("http://example.com/a/*", b"com,example)/a/*", "example.com/a", "prefix"),
        ("COM,Example,*", b"com,example,*", "example.com", "domain"),
        ("http://example.com/A?q=1", b"com,example)/a", "http://example.com/A?q=1", "exact"),
        ("[::1]", b"[::1],*", "[::1]", "domain"),
        ("http://example.com/a", b"com,example)/a", "http://example.com/a", "exact"),
        ("com,example:8080)/*", b"com,example:8080)/*", "example.com:8080", "host"),
        ("4,3,2,1)/*", b"4,3,2,1)/*", "1.2.3.4", "host"),
    ],
)
def test_a_line_of_keys_becomes_the_question_that_lists_it(text: str, key: bytes, uri: str, match: str) -> None:
    prefix = prefix_of(text)
    assert (prefix.key, prefix.uri, prefix.match) == (key, uri, match)


@pytest.mark.parametrize("text", ["*", "com,*"])
def test_what_is_too_wide_is_not_listed(text: str) -> None:
    with pytest.raises(UsageError, match="too wide"):
        prefix_of(text)


def test_a_vocabulary_asks_its_seed_first_and_no_word_twice() -> None:
    vocabulary = Vocabulary(["one", "two", "one"], random.Random(1))
    vocabulary.learn(["two", "three", "four", "three"])
    vocabulary.forget(["four"])
    assert [vocabulary.take() for _ in range(4)] == ["one", "two", "three", None]
    fixed = Vocabulary(["one"], random.Random(1), learn=False)
    fixed.learn(["three"])
    assert [fixed.take(), fixed.take()] == ["one", None]


def test_results_of_both_dialects_are_read() -> None:
    arquivo = (
        b'{"response_items": [{"originalURL": "http://a.pt/", "title": "Lisboa", "snippet": "um <em>dia</em> longo"}]}'
    )
    assert parse_results(arquivo, SearchDialect.ARQUIVO) == [Found("http://a.pt/", "Lisboa um  dia  longo")]
    assert words_of(parse_results(arquivo, SearchDialect.ARQUIVO)) == ["lisboa", "longo"]
    solr = b'{"response": {"docs": [{"url": "http://b.dk/", "title": "Aarhus"}, {"url": "ftp://x/"}]}}'
    assert [found.uri for found in parse_results(solr, SearchDialect.SOLRWAYBACK)] == ["http://b.dk/"]
    with pytest.raises(KeyError):
        parse_results(b"{}", SearchDialect.ARQUIVO)


def test_chao1_of_known_cases() -> None:
    assert chao1([2, 3, 4]).value == 3
    assert chao1([1] * 10 + [2] * 5).value == 15 + 100 / 10
    assert chao1([1, 1, 1]).value == 3 + 3
    estimate = chao1([1] * 30 + [2] * 20 + [3] * 10)
    assert 60 < estimate.low < estimate.value < estimate.high


def test_chao1_covers_the_truth_of_random_searches() -> None:
    chance = random.Random(3)
    inside = 0
    for _ in range(100):
        seen: dict[int, int] = {}
        for _ in range(600):
            one = chance.randrange(500)
            seen[one] = seen.get(one, 0) + 1
        estimate = chao1(seen.values())
        inside += estimate.low <= 500 <= estimate.high
    assert inside >= 88


def test_wilson_of_a_known_case() -> None:
    interval = wilson(10, 100)
    assert (round(interval.low, 4), round(interval.high, 4)) == (0.0552, 0.1744)


def test_errors_are_not_absences(tmp_path: Path) -> None:
    with Journal(tmp_path, "a") as journal:
        journal.write(Kind.URI, Outcome.ERROR, uri="http://x.example/", key="example,x)/", why="timeout")
        journal.write(Kind.URI, Outcome.ABSENT, uri="http://y.example/", key="example,y)/")
    worth = worth_of(*read_journal(tmp_path))
    assert (worth.probes, worth.held, worth.errors) == (1, 0, 1)
    assert b"example,x)/" not in {record.key for record in worth.records}


def test_a_listing_that_was_cut_says_no_to_nothing(tmp_path: Path) -> None:
    page = {"cursor": "", "captures": 0, "keys": {}}
    with Journal(tmp_path, "a") as journal:
        journal.write(Kind.PREFIX, Outcome.COMPLETE, key="com,gone,*", why="", **page)
        journal.write(Kind.PREFIX, Outcome.CUT, key="com,cut,*", why="cut short", **page)
        journal.write(Kind.PREFIX, Outcome.PAGE, key="com,more,*", why="", **{**page, "cursor": "x"})
    voids = [record.key for record in worth_of(*read_journal(tmp_path)).records if record.frequency.is_void]
    assert voids == [b"com,gone,*"]


def test_a_change_of_strata_is_noted_so_that_the_share_is_weighted_by_them(tmp_path: Path) -> None:
    async def ask(stratify: str) -> None:
        with Journal(tmp_path, "a") as journal:
            await sample_uris(
                Absent(), Archive("a", timemap="http://a.test/"), draw(URIS, 5, stratify=stratify), journal
            )  # type: ignore[arg-type]

    asyncio.run(ask(""))
    asyncio.run(ask("tld"))
    asyncio.run(ask("tld"))
    frames = [entry.data["strata"] for entry in read_journal(tmp_path)[1] if entry.kind is Kind.FRAME]
    assert frames == [{"": 420}, {"com": 400, "pt": 20}]


class Absent:
    """An archive that holds nothing."""

    async def send(self, request: Request) -> Response:
        return Response(404, Headers(b""), b"", request.url, 0.0)


def test_a_journal_whose_first_line_is_torn_begins_again(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b'{"archive": "a", "ver')
    with Journal(tmp_path, "a") as journal:
        journal.write(Kind.URI, Outcome.ABSENT, uri="http://y.example/", key="example,y)/")
    assert [entry.outcome for entry in read_journal(tmp_path)[1]] == [Outcome.ABSENT]
