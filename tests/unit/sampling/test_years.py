"""A sampled TimeMap keeps its dates: three mementos are three."""

from __future__ import annotations

import json

from recollect.sampling.journal import Entry, Kind, Outcome
from recollect.sampling.worth import worth_of


def test_a_timemap_with_three_mementos_is_three_captures_by_year() -> None:
    data = {"uri": "http://x.pt/", "key": "pt,x)/", "years": {"2010": 2, "2014": 1}}
    older = {"uri": "http://y.pt/", "key": "pt,y)/"}  # of a journal of an earlier version
    records = {
        record.key: record
        for record in worth_of("a", [Entry(Kind.URI, Outcome.HELD, data), Entry(Kind.URI, Outcome.HELD, older)]).records
    }
    assert str(records[b"pt,x)/"].frequency) == "3+/1+" and str(records[b"pt,y)/"].frequency) == "1+/1+"
    assert json.loads(records[b"pt,x)/"].json)["datetime"] == {"2010": "2+", "2014": "1+"}
