"""Session ids that do not belong into keys."""

from __future__ import annotations

import pytest

from recollect.uris.sessions import without_path_session, without_query_session

ID24, ID32 = "0123456789abcdefghijklmn", "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"/({ID24})/a.aspx", "/a.aspx"),
        (f"/x/(s({ID24})f({ID24}))/a.aspx", "/x/a.aspx"),
        (f"/({ID24})/({ID24})/a.aspx", f"/({ID24})/a.aspx"),
        (f"/({ID24})/a.aspx/({ID24})/b", f"/a.aspx/({ID24})/b"),
        (f"/({ID24})/?a.aspx", f"/({ID24})/?a.aspx"),
        (f"/({ID24})/a.aspx?({ID24})/b", f"/a.aspx?({ID24})/b"),
        (f"/({ID24})/.aspx", f"/({ID24})/.aspx"),
        (f"/a({ID24})/b.aspx", f"/a({ID24})/b.aspx"),
    ],
)
def test_sessions_in_paths(path: str, expected: str) -> None:
    assert without_path_session(path) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"sid={ID32}", ""),
        (f"a=1&sid={ID32}", "a=1&"),
        (f"a=1&sid={ID32}&b=2", "a=1&b=2"),
        (f"sid={ID32}&sid={ID32}", f"sid={ID32}&"),
        ("cfid=1&cftoken=2&a=b", "a=b"),
        ("a=b&cfid=1&cftoken=2", "a=b&"),
        ("cfid=cfid=&cftoken=2", ""),
        ("xcfid=1&cftoken=2&y", "xy"),
        ("cfid=1&cftoken=", "cfid=1&cftoken="),
    ],
)
def test_sessions_in_queries(query: str, expected: str) -> None:
    assert without_query_session(query) == expected
