"""Partial keys and key columns are looked up: against an oracle of plain sets."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.formats.ukvs.periods import Period
from recollect.maps.lookup import MementoMap
from recollect.maps.scope import Query
from recollect.model import Answer
from recollect.profiles.compaction.weights import Weights, compact_by_weights
from recollect.uris import ancestors, covers, policy_key

HEAD = '!context ["https://oduwsdl.github.io/contexts/mementomap"]\n'
names = st.sampled_from(["a", "b", "a-b", "%21", "x"])
keys = st.builds(
    lambda hosts, port, path: "com," + ",".join(hosts) + port + ")/" + "/".join(path),
    st.lists(names, min_size=1, max_size=3),
    st.sampled_from(["", "", ":80"]),
    st.lists(names, max_size=3),
).map(str.encode)
wildcards = st.builds(
    lambda key, up: ([key, *ancestors(key)][1:] or [b"*"])[up % max(len(ancestors(key)), 1)], keys, st.integers(0, 9)
)


@settings(max_examples=150, deadline=None)
@given(
    held=st.sets(keys, min_size=1, max_size=8),
    asked=st.lists(wildcards, min_size=1, max_size=8),
    policy=st.sampled_from(["HxPx", "H2P0", "HxP1", "DDom", "DPth", "H2P1", "URIR"]),
    weight=st.sampled_from([None, 0.0]),
)
def test_a_partial_key_above_something_held_is_never_a_no(
    held: set[bytes], asked: list[bytes], policy: str, weight: float | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("partial") / "m.ukvs"
    lines = sorted({policy_key(key, policy) for key in held})
    path.write_text(HEAD + f'!fields {{keys: ["surt"], values: ["frequency"]}}\n!meta {{policy: "{policy}"}}\n')
    with path.open("ab") as file:
        file.writelines(b"%b 1/1\n" % line for line in lines)
    if weight is not None:
        compact_by_weights(path, path, Weights(weight, weight))
    with MementoMap.open(path) as opened:
        texts = [wildcard.decode() for wildcard in asked]
        answers = [opened.lookup(text).answer for text in texts]
        assert [one.answer for one in opened.lookup_many(texts)] == answers
    for wildcard, answer in zip(asked, answers, strict=True):
        below = any(covers(wildcard, key) for key in held)
        assert not below or answer is Answer.YES, (wildcard, held)
        if policy == "HxPx" and weight is None:
            assert below == (answer is Answer.YES), (wildcard, held)


languages, types, years = (
    st.sampled_from(["pt", "en", "?"]),
    st.sampled_from(["text/html", "image/png"]),
    st.sampled_from(["2010", "2011"]),
)


@settings(max_examples=100, deadline=None)
@given(
    rows=st.sets(st.tuples(languages, types, years), min_size=1),
    language=st.sampled_from(["pt", "de"]),
    media_type=st.sampled_from(["image/*", "text/html", "video"]),
    year=st.sampled_from(["2010", "2011:2012"]),
)
def test_key_columns_decide(
    rows: set[tuple[str, str, str]], language: str, media_type: str, year: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("columns") / "m.ukvs"
    lines = [f"com,x)/ - - : {len(rows)}/1", *(f"com,x)/ {one} {kind} {when} 1/1" for one, kind, when in rows)]
    head = '!fields {keys: ["surt", "language", "media_type", "datetime"], values: ["frequency"]}\n'
    path.write_text(HEAD + head + "".join(f"{line}\n" for line in sorted(lines)))
    query = Query(at=Period.parse(year), conditions=(("language", language), ("media_type", media_type)))
    with MementoMap.open(path) as opened:
        answer = opened.lookup("http://x.com/", query).answer
    fitting = {one for one, kind, when in rows if kind.startswith(media_type.rstrip("*")) and when == year[:4]}
    assert answer is (Answer.YES if language in fitting else Answer.UNKNOWN if "?" in fitting else Answer.NO)


def test_the_total_of_a_foreign_map_is_neither_yes_nor_no(tmp_path: Path) -> None:
    lines = "* 54321/20000\ncom,* 10000+\norg,arxiv)/ 100\n"
    foreign, stated, ours = (tmp_path / name for name in ("foreign.ukvs", "stated.ukvs", "ours.ukvs"))
    head = HEAD + '!fields {keys: ["surt"], values: ["frequency"]}\n'
    foreign.write_text(head + lines)
    stated.write_text(head + '!meta {"covers_all": true}\n' + lines)
    ours.write_text(head + '!meta {"generator": "recollect 0.1"}\n' + lines)
    for path, expected in ((foreign, ["unknown", "yes"]), (stated, ["yes", "yes"]), (ours, ["yes", "yes"])):
        with MementoMap.open(path) as opened:
            uris = ["http://roda.pt/", "http://x.com/"]
            assert [opened.lookup(uri).answer for uri in uris] == expected
            assert [one.answer for one in opened.lookup_many(uris)] == expected
            assert opened.lookup("*").answer is Answer.YES
