"""Answers of the aggregator, without sockets."""

from __future__ import annotations

import threading

import pytest

from recollect.aggregator import service
from recollect.aggregator.service import LookupResult


def test_the_mementos_of_one_answer_do_not_wait_for_those_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    merging, go_on = threading.Event(), threading.Event()
    merged = service.merged

    def slow(outcomes: tuple[service.Outcome, ...]) -> object:
        if threading.current_thread() is not threading.main_thread():
            merging.set()
            assert go_on.wait(30)
        return merged(outcomes)

    monkeypatch.setattr(service, "merged", slow)
    large, small = LookupResult("http://a.example/", (), ()), LookupResult("http://b.example/", (), ())
    thread = threading.Thread(target=lambda: large.mementos)
    thread.start()
    assert merging.wait(30)
    watchdog = threading.Timer(5, go_on.set)
    watchdog.start()
    assert not small.mementos.rows
    assert not go_on.is_set(), "it waited"
    watchdog.cancel()
    go_on.set()
    thread.join()
    assert small.mementos is small.mementos
