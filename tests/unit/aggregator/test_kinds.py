"""Routing by top-level domain and language, as AlSum et al. did: the kinds of URIs, the profile, and its replay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect.aggregator.kinds import KindOf, KindProfile, language_of, tld_of
from recollect.cli.main import run


@pytest.mark.parametrize(
    ("uri", "tld", "language"),
    [
        ("http://pt.wikipedia.org/wiki/Lisboa", "org", "pt"),
        ("https://www.example.com/de/", "com", "de"),
        ("http://example.com/a/en-US/b", "com", "en"),
        ("http://example.com/a/b/en", "com", ""),
        ("http://example.com/?page=1&lang=fr", "com", "fr"),
        ("http://de.com/", "com", ""),
        ("http://example.pt/index.html", "pt", ""),
        ("http://1.2.3.4/", "", ""),
        ("http://[::1]/it/", "", "it"),
        ("", "", ""),
    ],
)
def test_the_kind_of_a_uri_comes_from_its_address(uri: str, tld: str, language: str) -> None:
    assert (tld_of(uri), language_of(uri)) == (tld, language)


def test_a_profile_corrects_the_wider_kind_by_the_narrower_one() -> None:
    profile = KindProfile((KindOf.TLD, KindOf.LANGUAGE))
    for number in range(100):
        levels = profile.levels(f"http://h{number}.com/", "pt" if number % 2 else "en")
        profile.count(levels, {"national": number % 2 == 1})
    national = {name: profile.chance(profile.levels("http://x.com/", name), "national") for name in ("pt", "en", "")}
    assert national["pt"] > 0.9 > 0.5 > national["en"]
    assert 0.4 < national[""] < 0.6
    assert 0.0 < profile.chance(profile.levels("http://x.pt/"), "unknown") < 1.0


def log(path: Path) -> str:
    """One archive has pages in Portuguese, one in German, one everything, one nothing; the log states languages."""
    lines = []
    for number in range(400):
        language = "pt" if number % 2 else "de"
        held = {"pt": 3 * (language == "pt"), "de": 3 * (language == "de"), "all": 1, "none": 0}
        line = {"uri": f"http://h{number}.com/", "status": 200, "archives": held, "language": language}
        lines.append(json.dumps(line))
    path.write_text("\n".join(lines))
    return str(path)


def ways(capsys: pytest.CaptureFixture[str]) -> dict[str, dict]:
    return {way["way"]: way for way in json.loads(capsys.readouterr().out)["ways"]}


def test_the_likeliest_archives_of_a_kind_find_the_timemaps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = log(tmp_path / "log.jsonl")
    assert run(["replay", source, "--top-k", "2", "--by", "tld,language", "--json"]) == 0
    found = ways(capsys)
    assert (found["broadcast"]["requests"], found["broadcast"]["timemap_recall"]) == (1600, 1.0)
    assert (found["kinds"]["requests"], found["kinds"]["timemap_recall"]) == (800, 1.0)
    assert run(["replay", source, "--top-k", "2", "--by", "tld", "--json"]) == 0
    assert 0.4 < ways(capsys)["kinds"]["timemap_recall"] < 0.8, "the top-level domain alone does not distinguish them"
    assert run(["replay", source, "--top-k", "1", "--by", "tld,language", "--use", "!all", "--json"]) == 0
    without = ways(capsys)["kinds"]
    assert (without["requests"], without["timemap_recall"]) == (400, 1.0)
    assert run(["replay", source, "--top-k", "2", "--by", "tld,language"]) == 0
    assert "of a TimeMap" in capsys.readouterr().out


def test_a_kind_without_a_number_and_an_unknown_kind_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = log(tmp_path / "log.jsonl")
    assert run(["replay", source, "--by", "tld"]) == 2
    assert "--top-k" in capsys.readouterr().err
    assert run(["replay", source, "--top-k", "3", "--by", "tld,colour"]) == 2
    assert "colour" in capsys.readouterr().err
