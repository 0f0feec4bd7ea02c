"""The interface of LANL's Time Travel service, as programs written for it use it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime

import pytest

from small_archives import SmallArchives, serving, small_archives

URI = "http://lost.example/a?b=c"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with small_archives() as archives:
        archives.add("one", {URI: ["20100101000000", "20130115102033", "20200101000000"]})
        archives.add("two", {URI: ["20130301000000"]})
        with serving(_written(archives, tmp_path_factory), "--no-learn") as base:
            yield base


def _written(archives: SmallArchives, factory: pytest.TempPathFactory) -> object:
    return archives.write(factory.mktemp("timetravel"))


def get(url: str) -> dict[str, object]:
    with urllib.request.urlopen(url, timeout=30) as answer:
        found = json.loads(answer.read())
        assert isinstance(found, dict)
        return found


@pytest.mark.parametrize("digits", ["2013", "201301", "20130115", "20130115102033"])
def test_the_closest_memento_is_a_list_of_addresses(base: str, digits: str) -> None:
    found = get(f"{base}/api/json/{digits}/{URI}")
    mementos = found["mementos"]
    assert isinstance(mementos, dict)
    closest = mementos["closest"]
    assert closest["uri"][0].endswith(URI) and "20130115102033" in closest["uri"][0]
    assert datetime.fromisoformat(closest["datetime"]).year == 2013
    assert {"first", "last", "closest"} <= set(mementos)
    assert all(isinstance(one["uri"], list) for one in mementos.values())
    assert found["original_uri"] == URI
    places = found["timemap_uri"]
    assert isinstance(places, dict) and {"json_format", "link_format"} <= set(places)
    assert get(places["json_format"])["original_uri"] == URI


def test_nothing_found_is_404(base: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        get(f"{base}/api/json/2013/http://absent.example/")
    assert caught.value.code == 404


@pytest.mark.parametrize("form", ["list/2013/", "list/20130115102033/", "list/html/2013/", "list/"])
def test_the_list_is_the_page_for_people(base: str, form: str) -> None:
    with urllib.request.urlopen(f"{base}/{form}{URI}", timeout=30) as answer:
        assert answer.url == f"{base}/?uri=http%3A%2F%2Flost.example%2Fa%3Fb%3Dc"
        assert b"4 captures in 2 archives" in answer.read()
