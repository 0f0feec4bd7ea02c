"""One frozen value says how to profile, for the library, the command and every engine."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.cli.profile import profile as command
from recollect.errors import UsageError

LINE = 'com,x)/ 20140103030321 {"url": "http://x.com/", "mime": "text/html", "status": "200"}\n'
# Options of the command that are about its output and its engine, not about the profile.
_OF_THE_COMMAND = {"inputs", "output", "engine", "master", "conf", "parts", "as_json", "quiet", "help"}


def test_options_are_checked_made_plain_and_frozen() -> None:
    options = recollect.ProfileOptions(policy="h3p1", statuses=[200], by=["year"], since="2014-06", temp_dir=Path("/x"))  # type: ignore[arg-type]
    assert (options.policy, options.statuses, options.by) == ("H3P1", ("200",), ("year",))
    assert (options.since, options.temp_dir) == ("20140601000000", "/x")
    assert pickle.loads(pickle.dumps(options)) == options
    with pytest.raises(FrozenInstanceError):
        options.policy = "HxPx"  # type: ignore[misc]


@pytest.mark.parametrize(
    "wrong",
    [
        {"policy": "H"},
        {"output_format": "xml"},
        {"by": ["day"]},
        {"by_columns": True},
        {"statuses": ["twenty"]},
        {"since": "2014-02-30"},
        {"since": "2015", "until": "2014"},
        {"where": "status ="},
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        recollect.ProfileOptions(**wrong)


def test_one_value_and_single_options_mean_the_same(tmp_path: Path) -> None:
    file = tmp_path / "x.cdxj"
    file.write_text(LINE)
    options = recollect.ProfileOptions(name="X", by=("year",))
    assert recollect.profile(file, options=options).text == recollect.profile(file, name="X", by=["year"]).text
    assert recollect.profile(file, options=options, name="Y").header.meta["name"] == "Y"


def test_the_command_has_every_option_of_the_library_and_no_other() -> None:
    names = {parameter.name for parameter in command.params} - _OF_THE_COMMAND
    # No user sets the size of a piece; the command always compares keys, an update of `keep` need not.
    assert names == {field.name for field in fields(recollect.ProfileOptions)} - {"piece", "compare_keys"}
