"""Whatever a worker reports, pages and statistics get the shape they rely on."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from recollect.desk.reports import clean_status, clean_summary
from recollect.desk.statistics import facts_of

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(
    ["recovered", "missing", "discovered", "missing_by_reason", "requests", "first", "front", "missing_examples",
     "waiting_for", "queued", "stage", "listed", "complete"]
)  # fmt: skip


@given(ANYTHING | st.dictionaries(NAMES, ANYTHING))
def test_any_summary_becomes_one_that_can_be_shown(received: object) -> None:
    found = clean_summary(received)
    json.dumps(found, allow_nan=False)
    assert all(isinstance(found[name], int) and found[name] >= 0 for name in ("recovered", "missing", "discovered"))
    assert all(isinstance(number, int) for number in found["missing_by_reason"].values())
    assert isinstance(facts_of({"scope": "site"}, found), str)


@given(st.dictionaries(NAMES, ANYTHING))
def test_any_status_becomes_one_that_can_be_shown(received: dict[str, object]) -> None:
    found = clean_status(received)
    json.dumps(found, allow_nan=False)
    assert sum(found["recovered"].values()) >= 0 and isinstance(found["stage"], str)
    assert all(isinstance(one["until"], float) for one in found["waiting_for"])


def test_a_good_summary_stays_as_it_is() -> None:
    received = {
        "recovered": 12, "pages": 3, "missing": 1, "discovered": 13, "bytes": 900, "by_type": {"page": 3},
        "missing_by_reason": {"never-archived": 1}, "by_archive": {"ia": 12}, "requests": {"ia": 14},
        "first": "2009-01-01T00:00:00Z", "last": "2010-01-01T00:00:00Z", "front": "lost.example/index.html",
        "stopped": "", "listings": {"ia": "failed: no answer"}, "listed": 20, "complete": True,
            "years": {"ia": {"2009": 5, "2010": 7}}, "ended_at": "2011-01-01T00:00:00Z",
            "owners": [{"owner": "own", "from": "2009-01-01T00:00:00Z", "to": "2010-01-01T00:00:00Z"}],
        "missing_examples": [{"uri": "http://lost.example/x", "reason": "never-archived"}],
    }  # fmt: skip
    assert clean_summary(received) == received
