"""What a file of exclusions excludes, however its lines are spelled."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.errors import FormatError
from recollect.profiles.upkeep.exclusion import read_exclusions


def excludes(folder: Path, text: str | bytes, *keys: str) -> list[bool]:
    path = folder / "rules.aclj"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    rules = read_exclusions(path)
    return [rules.excludes(key.encode()) for key in keys]


@pytest.mark.parametrize(
    "line",
    [
        "com,example)/private/*",
        "COM,Example)/Private/*",
        "http://(com,example,)/private/*",
        "http://example.com/private/*",
        "https://www.example.com/private/*",
        "com,example)/private/*   # takedown of May",
        "com,example)/private/*\r",
        '\ufeffcom,example)/private - {"access": "block"}',
        'com,example)/private - {"access": "exclude", "url": "http://example.com/private"}',
        'com,example)/private - {"url": "http://example.com/private"}',
        'com,example)/private - {"access": "exclude", "after": "20200101"}',
    ],
)
def test_a_subtree_is_excluded_in_every_spelling(tmp_path: Path, line: str) -> None:
    keys = ("com,example)/private", "com,example)/private/a", "com,example)/", "com,example)/public/private")
    assert excludes(tmp_path, line + "\n", *keys) == [True, True, False, False]


@pytest.mark.parametrize(
    "line", ["com,example)/café/*", 'com,example)/café/ - {"access": "exclude"}', "http://example.com/café/*"]
)
def test_letters_outside_of_ascii_are_those_of_keys(tmp_path: Path, line: str) -> None:
    keys = ("com,example)/caf%c3%a9", "com,example)/caf%c3%a9/menu", "com,example)/cafe")
    assert excludes(tmp_path, line, *keys) == [True, True, False]


@pytest.mark.parametrize("line", ["com,example,*", "http://(com,example,*", "com,Example,*"])
def test_a_host_is_excluded_with_its_subdomains_and_ports(tmp_path: Path, line: str) -> None:
    keys = ("com,example)/a", "com,example,www)/", "com,example:8080)/", "com,examples)/", "com,other)/")
    assert excludes(tmp_path, line, *keys) == [True, True, True, False, False]


def test_the_longest_rule_of_pywb_decides_and_users_do_not_count(tmp_path: Path) -> None:
    rules = """
com,example)/a/open### - {"access": "allow"}
com,example)/a/open - {"access": "allow_ignore_embargo"}
com,example)/a - {"access": "exclude"}
com,example)/b - {"access": "allow", "user": "staff"}
com,example)/b - {"access": "block"}
com,example)/c?id=7 - {"access": "exclude"}
com,example)/d?id=7 - {"access": "allow"}
com,example)/d - {"access": "block"}
com, - {"access": "allow"}
*, - {"access": "exclude"}
"""
    keys = ("com,example)/a/open", "com,example)/a/open/x", "com,example)/a/x", "com,example)/b", "com,example)/c")
    assert excludes(tmp_path, rules, *keys) == [False, False, True, True, True]
    assert excludes(tmp_path, rules, "com,example)/d", "com,example)/c/x", "org,example)/") == [True, False, True]


@pytest.mark.parametrize(
    "line",
    [
        b"com,example)/a b\n",
        b"com,example)/a*\n",
        b"*.example.com\n*\0\n",
        b'com,example)/ - {"access": "deny"}\n',
        b'com,example)/ - {"access": "exclude"\n',
        b"com,example)/\n".decode().encode("utf-16"),
    ],
)
def test_a_line_that_cannot_be_read_is_an_error(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(FormatError, match="not a rule"):
        excludes(tmp_path, line)
