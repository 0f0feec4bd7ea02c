"""What is kept between updates, also by other versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect.errors import FormatError
from recollect.formats.detect import Kind
from recollect.profiles.upkeep.indexfiles import Fingerprint
from recollect.profiles.upkeep.state import FILE, LAYOUT, IndexFile, State, load, save


def test_a_state_is_read_as_it_was_saved(tmp_path: Path) -> None:
    file = IndexFile(Fingerprint(1, 2, 3, 4, 5, "6"), Kind.CDXJ, ("profiles/a.ukvs", "profiles/b.ukvs"), 7, True)
    state = State("digest", 8, "maps/8.ukvs", "maps/5.ukvs", ("profiles/a.ukvs",), 7, {"/i.cdxj": file}, {"keys": 9})
    save(tmp_path, state)
    assert load(tmp_path) == state
    assert load(tmp_path).profiles == ["profiles/a.ukvs", "profiles/b.ukvs"]


def test_after_an_earlier_version_everything_is_read_again_and_trees_are_numbered_on(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps({"layout": LAYOUT - 1, "generation": 41, "files": {"/i.cdxj": {}}}))
    assert load(tmp_path) == State(generation=41)


@pytest.mark.parametrize("body", ["", "[]", '{"layout": 1}', f'{{"layout": {LAYOUT + 1}}}', f'{{"layout": {LAYOUT}}}'])
def test_a_state_that_cannot_be_read_is_an_error_with_a_hint(tmp_path: Path, body: str) -> None:
    (tmp_path / FILE).write_text(body)
    with pytest.raises(FormatError, match="cannot read the state") as raised:
        load(tmp_path)
    assert "remove the file" in raised.value.hint
