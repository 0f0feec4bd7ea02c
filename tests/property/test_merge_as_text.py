"""Merging stretches of text against merging record by record: the same bytes, counts and complaints for any lines."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recollect.formats.ukvs import MapFile
from recollect.maps import mapinputs, merge
from recollect.maps.merge import MergeOptions, merge_maps

IS_TEXT = merge._Merger.is_text
HEADER = b'!context ["c"]\n!fields {"keys": ["surt"], "values": ["frequency"]}\n!id {"uri": "http://x/"}\n!meta {}\n'
KEYS = [
    b"com,x)/",
    b"com,x)/a",
    b"com,x)/a-b",
    b"com,x)/a/1",
    b"com,x)/ab",
    b"com,x,y)/",
    b"com,xy)/" + b"z" * 40,
    b"org)/",
]
WILDCARDS = [b"com,x)/*", b"*"]
ORDINARY = [b"1/1", b"7/3", b"12/4+", b"5+/2+", b"9", b"3+", b"100/99"]
IRREGULAR = [
    b"0", b"0/20", b"/", b"/5", b"-", b"4-/2", b"4~/2~", b"05/1", b"7/01", b"7/", b"0-", b"9223372036854775807/1",
    b"bad", b"7/0", b"1/2/3", b"",
]  # fmt: skip
BLOCKS = [b"", b"", b"", b' {"a": 1}', b'  {"a": 1}', b' {"a": 1} ', b' {"b": {"c": 2}', b" {\xff}", b" more"]
ENDS = [b"\n", b"\n", b"\n", b"\r\n", b" \n", b"\n\n", b"\n# a comment\n"]


class OneLineAtATime(MapFile):
    """A map that is read in the smallest pieces."""

    def pieces(self):
        for piece in super().pieces():
            yield from piece.splitlines(keepends=True)


@st.composite
def maps(draw, strange):
    lines = []
    keys = draw(st.lists(st.sampled_from(KEYS + WILDCARDS if strange else KEYS), max_size=8, unique=not strange))
    for key in keys if strange and draw(st.integers(0, 9)) == 0 else sorted(keys):
        frequency = draw(st.sampled_from(ORDINARY + IRREGULAR if strange else ORDINARY))
        block = draw(st.sampled_from(BLOCKS)) if strange else b""
        lines.append(key + b" " + frequency + block + (draw(st.sampled_from(ENDS)) if strange else b"\n"))
    text = b"".join(lines)
    return HEADER + (text.rstrip(b"\n") if draw(st.booleans()) else text)


def merged(texts, monkeypatch, *, as_text, window=64, **options):
    """The result: the map's lines, the counts, the problems; or the error."""
    monkeypatch.setattr(merge._Merger, "is_text", IS_TEXT if as_text else lambda _merger: False)
    monkeypatch.setattr(merge, "WINDOW", window)
    monkeypatch.setattr(mapinputs, "open_map", OneLineAtATime)
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, text in enumerate(texts):
            paths.append(Path(folder) / f"{number}.ukvs")
            paths[-1].write_bytes(text)
        output = Path(folder) / "out.ukvs"
        done = merge_maps(paths, output, MergeOptions(**options), on_problem=problems.append)
        for problem in problems:
            if problem.line:  # a map that was sorted first has lost the numbers of its lines
                line = Path(problem.file).read_bytes().split(b"\n")[problem.line - 1]
                assert line.split()[0] == problem.excerpt.split()[0].encode()
        complaints = sorted((Path(problem.file).name, problem.reason[-10:]) for problem in problems)
        return output.read_bytes(), done.as_dict() | {"sorted_first": []}, complaints


@pytest.mark.parametrize("strange", [False, True])
@pytest.mark.parametrize("disjoint", [False, True])
def test_the_same_as_record_by_record(strange, disjoint):
    @settings(deadline=None)
    @given(st.lists(maps(strange), min_size=1, max_size=4), st.sampled_from([1, 64, 1 << 20]))
    @example([HEADER + b"com,x)/a 1/1\n" * 40, HEADER + b"com,x)/a 2/2\ncom,x)/b 1/1"], 64)
    def check(texts, window):
        with pytest.MonkeyPatch.context() as patch:
            as_text = merged(texts, patch, as_text=True, window=window, disjoint=disjoint, updated_at="2020")
            one_by_one = merged(texts, patch, as_text=False, disjoint=disjoint, updated_at="2020")
        assert as_text == one_by_one

    check()
