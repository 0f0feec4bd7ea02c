"""Rules of addresses: learned with enough support only, never against what is known, and right where they are used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.recovery.addressrules import ENOUGH, FEWEST_PAIRS, WEIGHTS, Evidence, Pair, learn_rules

# (address before, address after) of page number n with name w: every kind of move that sites made.
MOVES = {
    "query to name": ("/{f}?id={n}", "/{f}_{n}"),
    "query to folder": ("/{f}.php?id={n}", "/{f}/{n}/"),
    "ending": ("/{f}/{w}.html", "/{f}/{w}.php"),
    "ending to folder": ("/{w}.htm", "/{w}/"),
    "into a folder": ("/{w}.html", "/archive/{w}.html"),
    "order of parts": ("/{f}/{n}/{w}", "/{w}/{f}-{n}"),
    "language": ("/page.asp?lang=en&doc={w}", "/en/{w}"),
    "digits to the name": ("/{f}{n}.html", "/{f}/{n}"),
}
words = st.from_regex(r"[a-df-z]{3,7}(-[a-df-z]{3,7})?", fullmatch=True)
stated = st.sampled_from([Evidence.REDIRECT, Evidence.CANONICAL, Evidence.DIGEST])


def of(move: str, folder: str, pages: list[tuple[int, str]]) -> list[tuple[str, str]]:
    before, after = MOVES[move]
    return [(before.format(f=folder, n=n, w=w), after.format(f=folder, n=n, w=w)) for n, w in pages]


pages_of = st.lists(
    st.tuples(st.integers(10, 9999), words), min_size=5, max_size=9, unique_by=(lambda p: p[0], lambda p: p[1])
)


def unknown(_one: str, _other: str) -> None:
    return None


@given(st.sampled_from(sorted(MOVES)), pages_of, st.lists(stated, min_size=9, max_size=9), st.booleans())
def test_a_move_is_learned_from_some_pages_and_holds_for_the_others(
    move: str, pages: list[tuple[int, str]], how: list[Evidence], turned: bool
) -> None:
    addresses = of(move, "story", pages)
    pairs = [Pair(*pair, kind) for pair, kind in zip(addresses[:-2], how, strict=False)]
    if turned:
        pairs = [Pair(p.other, p.one, p.evidence) for p in pairs]
    seen = {"-" in word for _, word in pages[:-2]}
    for (before, after), (_, word) in zip(addresses[-2:], pages[-2:], strict=True):
        images = {image for rule in learn_rules(pairs, (), unknown) for image in rule.images(before)}
        back = {image for rule in learn_rules(pairs, (), unknown) for image in rule.images(after)}
        assert images <= {after} and back <= {before}
        if ("-" in word) in seen:  # a rule learned of plain words says nothing of others
            assert images == {after} and back == {before}


@given(st.sampled_from(sorted(MOVES)), pages_of, st.lists(st.sampled_from(list(Evidence)), min_size=9, max_size=9))
def test_no_rule_without_enough_support(move: str, pages: list[tuple[int, str]], how: list[Evidence]) -> None:
    pairs = [Pair(*pair, kind) for pair, kind in zip(of(move, "story", pages), how, strict=False)]
    for count in range(len(pairs) + 1):
        some = pairs[:count]
        weight = sum(WEIGHTS[pair.evidence] for pair in some)
        if count < FEWEST_PAIRS or weight < ENOUGH:
            assert learn_rules(some, (), unknown) == []
        # The same pair said twice is one pair.
        assert learn_rules(some + some, (), unknown) == learn_rules(some, (), unknown)


@given(st.sampled_from(sorted(MOVES)), pages_of)
def test_a_rule_that_known_pages_contradict_is_not_used(move: str, pages: list[tuple[int, str]]) -> None:
    addresses = of(move, "story", pages)
    pairs = [Pair(*pair, Evidence.REDIRECT) for pair in addresses[:-1]]
    before, after = addresses[-1]
    different = learn_rules(pairs, [before, after], lambda one, other: {one, other} != {before, after} and None)
    assert all(after not in rule.images(before) and before not in rule.images(after) for rule in different)
    elsewhere = learn_rules([*pairs, Pair(before, "/quite/another", Evidence.REDIRECT)], (), unknown)
    assert all(after not in rule.images(before) for rule in elsewhere)


@given(st.lists(st.tuples(words, words), min_size=3, max_size=12, unique_by=(lambda p: p[0], lambda p: p[1])))
def test_addresses_without_anything_in_common_give_no_rule(pairs: list[tuple[str, str]]) -> None:
    one = [Pair(f"/{a}/1", f"/{b}/2", Evidence.REDIRECT) for a, b in pairs if not set(a) & set(b)]
    for rule in learn_rules(one, (), unknown):
        assert all(set(rule.images(f"/{a}/1")) <= {f"/{b}/2"} for a, b in pairs if not set(a) & set(b))


def test_what_is_wrong_for_one_folder_may_hold_for_another() -> None:
    pairs = [Pair(f"/{f}?id={n}", f"/{f}_{n}", Evidence.REDIRECT) for f in ("story", "poll") for n in (1, 2, 3)]
    rules = learn_rules([*pairs, Pair("/poll?id=7", "/poll_8", Evidence.REDIRECT)], (), unknown)
    assert [str(rule) for rule in rules] == ["/story?id=… = /story_…"]
    assert rules[0].evidence == "3 redirects" and list(rules[0].images("/story?id=9")) == ["/story_9"]
    assert not list(rules[0].images("/poll?id=9"))


@pytest.mark.parametrize("move", sorted(MOVES))
def test_rules_of_one_site_do_not_give_addresses_of_no_page(move: str) -> None:
    """A rule for stories says nothing of other addresses."""
    pairs = [Pair(*p, Evidence.DIGEST) for p in of(move, "story", [(11, "one"), (12, "two"), (13, "three")])]
    for rule in learn_rules(pairs, (), unknown):
        for other in ("/", "/robots.txt", "/images/logo.gif?x=1", "/cgi-bin/search?q=a&b=c"):
            assert not list(rule.images(other))
