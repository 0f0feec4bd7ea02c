"""No parser of foreign bytes takes more than linear time: every regular expression of the package, and every reader.

Time is CPU time of this process, so that a busy machine changes nothing; what counts is the ratio between an input and
one four times as long: linear is 4, quadratic 16. A suspicion is measured again, and the best of three counts.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pytest

from attack.parsers import HALVES, PARSERS, UNITS
from attack.patterns import Found, hard_inputs, package_patterns
from recollect.recovery.addressrules import Evidence, Pair, learn_rules

SMALL, LARGE = 3_000, 12_000  # characters for an expression: quadratic time is 70 million steps
ENOUGH = 0.02  # seconds of CPU: less is not worth a second look
MOST = 2.0  # an expression that takes longer is stopped, and counts as this long
MOST_RATIO = 9.0
# Every input with RECOLLECT_LONG=1; else each parser and expression gets a share of them.
EVERY = 1 if os.environ.get("RECOLLECT_LONG") else 5


class _Slow(Exception):
    pass


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _Slow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _seconds(work: Callable[[], object], most: float = MOST) -> float:
    start = time.process_time()
    try:
        with _limit(most):
            work()
    except _Slow:
        return most
    return time.process_time() - start


def _grows(small: Callable[[], object], large: Callable[[], object], most: float = MOST) -> float | None:
    """The ratio of the two times where it is more than linear; None where it is not."""
    longer = _seconds(large, most)
    if longer < ENOUGH:
        return None
    for _ in range(3):
        shorter = _seconds(small, most)
        if shorter >= most:
            return float("inf")
        ratio = longer / max(shorter, 1e-6)
        if ratio < MOST_RATIO:
            return None
        longer = min(longer, _seconds(large, most))
    return ratio


def _uses(found: Found) -> Iterator[tuple[str, Callable[[Any], object]]]:
    if found.searched:
        yield "finditer", lambda text: sum(1 for _ in found.pattern.finditer(text))
    else:
        yield "match", found.pattern.match
        yield "fullmatch", found.pattern.fullmatch


FOUND, MADE = package_patterns()


@pytest.mark.parametrize("part", range(4))
def test_no_expression_backtracks_more_than_linearly(part: int) -> None:
    slow: list[str] = []
    for found in FOUND[part::4]:
        pairs = zip(hard_inputs(found.pattern, SMALL), hard_inputs(found.pattern, LARGE), strict=True)
        for small, large in islice(pairs, 0, None, EVERY):
            for name, use in _uses(found):
                ratio = _grows(lambda use=use, text=small: use(text), lambda use=use, text=large: use(text))  # type: ignore[misc]
                if ratio is not None:
                    slow.append(f"{found.where} {name} {ratio:.0f} {large[:60]!r} {found.pattern.pattern!r:.100}")
                    break
            else:
                continue
            break
    assert slow == [], "\n".join(slow)


# Expressions that are made while the package runs, each with the reason why foreign bytes do not make it slow.
_MADE = {
    "aggregator/http/published.py": "a name of a content coding between two word boundaries",
    "archives/discovery.py": "an escaped name of a file",
    "archives/replay.py": "names of hosts from the registry, and bounded repetitions",
    "desk/outbox.py": "an escaped address",
    "desk/queue.py": "an escaped name of a site",
    "maps/columnquery.py": "what the operator of the command typed, and one repetition",
    "protection/credentials.py": "an escaped name of a table between bounded repetitions, over 2,000 bytes",
    "recovery/addressrules.py": "at most three open variables, over 300 characters: the test below",
    "profiles/indexes/select.py": "what the operator of the command typed",
    "profiles/indexes/where.py": "what the operator of the command typed",
    "protection/block.py": "two lengths, fixed",
    "protection/markup.py": "the name of an element of a fixed set",
    "recovery/hostpages.py": "patterns of the module, found as its values",
    "recovery/judge.py": "phrases of the module, found as its values",
    "recovery/rewrite.py": "the name of an element of a fixed set",
    "recovery/scope.py": "what the operator of the command typed",
    "uris/sessions.py": "patterns of the module, found as its values",
}


def test_expressions_made_at_run_time_are_known() -> None:
    assert {place.partition(":")[0] for place in MADE} <= set(_MADE)


@pytest.mark.parametrize("mark", ["-", ".", "a", "1", "/"])
def test_rules_that_a_site_teaches_are_quick_to_try(mark: str) -> None:
    """A site whose redirects have many variables each, and addresses that nearly match."""
    values = [[f"{letter}{n}x" for letter in "bcdefghij"] for n in range(4)]
    pairs = [Pair("/s/" + mark.join(v), "/t?" + mark.join(v) + "&z", Evidence.REDIRECT) for v in values]
    pairs += [Pair("/u/" + mark.join(v[:3]), "/w/" + mark.join(v[:3]), Evidence.REDIRECT) for v in values]
    rules = learn_rules(pairs, [], lambda _one, _other: None)
    for address in ("/s/", "/u/", "/t?", "/w/"):
        for unit in (mark, "b" + mark, "b1x" + mark):
            text = address + unit * (100_000 // len(unit)) + "?"
            assert _seconds(lambda text=text: [list(rule.images(text[:299])) for rule in rules]) < 1.0  # type: ignore[misc]
            assert _seconds(lambda text=text: [list(rule.images(text)) for rule in rules]) < 0.2  # type: ignore[misc]


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_no_parser_takes_more_than_linear_time(name: str) -> None:
    parser = PARSERS[name]
    slow: list[str] = []
    turn = sorted(PARSERS).index(name)
    repeated = [(b"", b"", before, unit) for before, unit in UNITS]
    if EVERY > 1:
        repeated = [*repeated[turn % EVERY :: EVERY], *repeated[:1]]
    for before, filler, after, unit in [*repeated, *HALVES]:

        def text(size: int, shape: tuple[bytes, bytes, bytes, bytes] = (before, filler, after, unit)) -> bytes:
            before, filler, after, unit = shape
            half = size // 2 if filler else size
            return before + filler * (half // max(1, len(filler))) + after + unit * max(1, half // len(unit))

        small, large = text(parser.size), text(4 * parser.size)
        ratio = _grows(lambda data=small: parser.run(data), lambda data=large: parser.run(data), most=6.0)  # type: ignore[misc]
        if ratio is not None:
            slow.append(f"{ratio:.0f} {before[:40]!r} {filler!r} {after[:40]!r} {unit[:60]!r}")
    assert slow == [], "\n".join(slow)
