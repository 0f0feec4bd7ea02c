"""Lines that say less than they seem to: requests other than GET, and statuses that are none."""

from __future__ import annotations

from pathlib import Path

import recollect

LINES = """\
com,x)/a 20140103030321 {"url": "http://x.com/a", "mime": "text/html", "status": "200"}
com,x)/a?__wb_method=post&q=1 20140103030321 {"url": "http://x.com/a", "mime": "text/html", "status": "200"}
com,x)/b 20140103030321 {"url": "http://x.com/b", "mime": "text/html", "status": "2000"}
com,x)/c 20140103030321 {"url": "http://x.com/c", "mime": "text/html", "status": "20o"}
com,x)/d 20140103030321 {"url": "http://x.com/d", "mime": "text/html", "status": "-"}
"""


def test_posts_are_counted_apart_and_statuses_reported(tmp_path: Path) -> None:
    index = tmp_path / "index.cdxj"
    index.write_text(LINES)
    found = recollect.profile([str(index)], output=str(tmp_path / "map.ukvs")).as_dict()
    assert found["captures"] == 4
    assert found["left_out"] == {"post": 1}
    assert found["flawed"] == {"no status": 2} and found["skipped"] == {}
    assert [text.partition("index.cdxj:")[2][:2] for text in found["problems"]] == ["3:", "4:"]
