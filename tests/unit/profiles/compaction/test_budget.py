"""Compaction by budget: what users see of it, one case each."""

from __future__ import annotations

from pathlib import Path

import pytest

from map_trees import read_map
from recollect.errors import RecollectError, UsageError
from recollect.formats.logs import LogEntry
from recollect.maps.lookup import MementoMap
from recollect.profiles.compaction.budget import Budget, compact_by_budget

SITE = "".join(f"com,site)/dir{d}/page{p} 2/1\n" for d in range(4) for p in range(10, 20))


def compact(tmp_path: Path, text: str, budget: Budget, log: list[str] | None = None) -> dict[str, str]:
    source, target = tmp_path / "map.ukvs", tmp_path / "small.ukvs"
    source.write_text(text)
    compact_by_budget(source, target, budget, lookups=[LogEntry(uri) for uri in log] if log is not None else None)
    return {key.decode(): str(value) for key, value in read_map(target).items()}


def test_a_large_enough_budget_changes_nothing(tmp_path):
    assert compact(tmp_path, SITE, Budget(max_keys=40)) == {
        line.split()[0]: line.split()[1] for line in SITE.splitlines()
    }


def test_a_wildcard_has_the_inclusive_total(tmp_path):
    assert compact(tmp_path, SITE, Budget(max_keys=1)) == {"com,site)/*": "80/40"}


def test_cost_is_per_uri_r_not_per_key(tmp_path):
    # Forty keys for 400 URI-Rs: one percent is four keys.
    text = SITE.replace(" 2/1", " 20/10")
    assert len(compact(tmp_path, text, Budget(max_cost=0.01))) == 4


def test_without_counts_of_uri_rs_every_key_is_one(tmp_path):
    assert len(compact(tmp_path, SITE.replace(" 2/1", " 2"), Budget(max_cost=0.1))) == 4


def test_a_budget_below_one_key_is_refused(tmp_path):
    with pytest.raises(RecollectError, match="no map is that small"):
        compact(tmp_path, SITE, Budget(max_cost=0.01))


def test_a_log_decides_what_stays_in_detail(tmp_path):
    log = [f"http://site.com/dir2/absent{n}" for n in range(50)]
    result = compact(tmp_path, SITE, Budget(max_keys=13), log)
    assert {key for key in result if key.startswith("com,site)/dir2/")} == {
        f"com,site)/dir2/page{p}" for p in range(10, 20)
    }


def test_popular_absences_become_voids(tmp_path):
    log = ["http://site.com/missing/a"] * 60 + ["http://site.com/missing/b"] * 40
    result = compact(tmp_path, SITE, Budget(max_keys=2), log)
    assert result == {"com,site)/*": "80/40", "com,site)/missing/*": "0"}


def test_hosts_that_keep_www_are_recognised_in_a_log(tmp_path):
    text = SITE.replace("com,site)", "com,site,www)")
    log = ["http://www.site.com/missing/a"] * 60 + ["http://www.site.com/missing/b"] * 40
    result = compact(tmp_path, text, Budget(max_keys=2), log)
    assert result == {"com,site,www)/*": "80/40", "com,site,www)/missing/*": "0"}


def test_top_level_domains_roll_up_only_as_far_as_needed(tmp_path):
    text = "".join(f"{tld},host{n})/ 1/1\n" for tld in ("com", "net", "org") for n in range(10, 20))
    source, target = tmp_path / "map.ukvs", tmp_path / "small.ukvs"
    source.write_text(text)
    assert compact_by_budget(source, target, Budget(max_keys=30)).rolled_up == ""
    assert compact_by_budget(source, target, Budget(max_keys=3)).rolled_up == "tlds"
    assert {key.decode() for key in read_map(target)} == {"com,*", "net,*", "org,*"}
    assert compact_by_budget(source, target, Budget(max_keys=1)).rolled_up == "root"
    assert {key.decode(): str(value) for key, value in read_map(target).items()} == {"*": "30/30"}


def test_a_wildcard_of_the_input_stays_covered_and_is_not_counted_twice(tmp_path):
    text = "com,site)/a 3/1\ncom,site)/a/* 50/20\ncom,site)/a/b 4/2\ncom,site)/c 1/1\n"
    assert compact(tmp_path, text, Budget(max_keys=2)) == {"com,site)/a/*": "50/20", "com,site)/c": "1/1"}
    assert compact(tmp_path, text, Budget(max_keys=1)) == {"com,site)/*": "51/21"}


def test_voids_inside_a_wildcard_are_kept_while_they_pay(tmp_path):
    text = "com,site)/* 50/20\ncom,site)/gone/* 0\n"
    assert compact(tmp_path, text, Budget(max_keys=2)) == {"com,site)/*": "50/20", "com,site)/gone/*": "0"}
    assert compact(tmp_path, text, Budget(max_keys=1)) == {"com,site)/*": "50/20"}


def test_json_blocks_of_rolled_up_keys_are_merged(tmp_path):
    text = 'com,site)/a 3/1 {"status": {"200": 3}}\ncom,site)/b 4/1 {"status": {"200": 1, "404": 3}}\n'
    source, target = tmp_path / "map.ukvs", tmp_path / "small.ukvs"
    source.write_text(text)
    compact_by_budget(source, target, Budget(max_keys=1))
    line = target.read_text().splitlines()[-1]
    assert line == 'com,site)/* 7/2 {"status": {"200": 4, "404": 3}}'


def test_json_of_kept_lines_is_untouched_and_of_some_rolled_up_keys_a_lower_bound(tmp_path):
    text = 'com,site)/a 3/1 {"status":{"200": 3}}\n'
    source, target = tmp_path / "map.ukvs", tmp_path / "small.ukvs"
    source.write_text(text + "com,site)/b 4/1\n")
    compact_by_budget(source, target, Budget(max_keys=2))
    assert text in target.read_text()
    compact_by_budget(source, target, Budget(max_keys=1))
    assert target.read_text().splitlines()[-1] == 'com,site)/* 7/2 {"status": {"200": "3+"}}'


def test_unsorted_maps_repeated_keys_and_crlf_are_put_in_order(tmp_path):
    result = compact(tmp_path, "com,b)/ 1\r\ncom,a)/ 2\r\ncom,a)/ 3\r\n", Budget(max_keys=5))
    assert result == {"com,a)/": "5", "com,b)/": "1"}


def test_an_empty_map_stays_empty(tmp_path):
    assert compact(tmp_path, "", Budget(max_keys=5)) == {}
    assert compact(tmp_path, "", Budget(max_keys=5), ["http://site.com/"]) == {}


def test_input_and_output_may_be_the_same_file_in_any_container(tmp_path):
    path = tmp_path / "map.ukvs.zst"
    plain = tmp_path / "map.ukvs"
    plain.write_text(SITE)
    compact_by_budget(plain, path, Budget(max_keys=30))
    compact_by_budget(path, path, Budget(max_keys=4))
    with MementoMap.open(path) as small:
        assert all(small.lookup(line.split()[0]).answer == "yes" for line in SITE.splitlines())


def test_the_header_says_how_it_was_made_and_keeps_the_rest(tmp_path):
    source, target = tmp_path / "map.ukvs", tmp_path / "small.ukvs"
    source.write_text('!id {"uri": "https://archive.example/"}\n!meta {"name": "ours"}\n' + SITE)
    compact_by_budget(source, target, Budget(max_keys=3))
    text = target.read_text()
    assert '!id {"uri": "https://archive.example/"}' in text
    assert '"name": "ours"' in text
    assert '"by": "budget", "max_keys": 3' in text


def test_an_accuracy_is_reached_with_few_keys(tmp_path):
    held = [f"http://site.com/dir{d}/page{p}" for d in range(4) for p in range(10, 20)]
    absent = [f"http://site.com/dir0/absent{n}" for n in range(40)] + ["http://else.org/"] * 20
    result = compact(tmp_path, SITE, Budget(min_accuracy=0.9), held + absent)
    # The directory that people ask wrongly for is listed; the other three need no detail.
    assert {f"com,site)/dir0/page{p}" for p in range(10, 20)} <= set(result)
    assert len(result) <= 14


def test_an_accuracy_needs_a_log_and_a_budget_needs_one_limit(tmp_path):
    with pytest.raises(UsageError, match="known lookups"):
        compact(tmp_path, SITE, Budget(min_accuracy=0.9))
    with pytest.raises(UsageError, match="one budget"):
        Budget()
    with pytest.raises(UsageError, match="one budget"):
        Budget(max_keys=1, max_cost=0.1)
    with pytest.raises(UsageError, match="above zero"):
        Budget(max_keys=0)


def test_a_map_of_voids_is_refused(tmp_path):
    with pytest.raises(RecollectError, match="map of voids"):
        compact(tmp_path, '!meta {"scope": "voids"}\ncom,x)/* 0\n', Budget(max_keys=5))


def test_a_map_by_another_policy_is_asked_by_its_own_keys(tmp_path):
    text = '!meta {"policy": "H2P0"}\n' + "".join(f"com,site{n})/ 1/1\n" for n in range(10, 20))
    source, target = tmp_path / "map.ukvs", tmp_path / "small.ukvs"
    source.write_text(text)
    done = compact_by_budget(source, target, Budget(max_keys=10), lookups=[LogEntry("http://site12.com/deep/page")])
    assert (done.lookups, done.wrong_in_log) == (1, 0.0)


def test_top_level_domains_roll_up_where_a_log_shows_that_it_pays(tmp_path: Path) -> None:
    # Sixty domains fit into sixty keys only as wildcards over all that is requested and not held; one wildcard
    # over all of them leaves keys for voids.
    full = tmp_path / "map.ukvs"
    full.write_text("".join(f"com,d{domain:02})/p{page} 1/1\n" for domain in range(60) for page in range(2)))
    asked = [LogEntry(f"com,d{domain:02})/x{page}") for domain in range(10) for page in range(40)]
    asked += [LogEntry(f"com,e{domain})/") for domain in range(3)]
    done = {
        keys: compact_by_budget(full, tmp_path / f"{keys}.ukvs", Budget(max_keys=keys), lookups=asked)
        for keys in (50, 60, 70)
    }
    assert [done[keys].rolled_up_by_log for keys in (50, 60, 70)] == [False, True, False]
    assert done[50].wrong_in_log >= done[60].wrong_in_log >= done[70].wrong_in_log  # type: ignore[operator]
    assert done[60].wrong_in_log < 0.05
    assert "com,*" in (tmp_path / "60.ukvs").read_text()
    assert compact_by_budget(full, tmp_path / "blind.ukvs", Budget(max_keys=60)).rolled_up == ""


def test_an_accuracy_between_two_optima_needs_a_size_between_them(tmp_path: Path) -> None:
    # Twenty hosts that are all alike, so that one price rolls up all of them and the next none.
    full = tmp_path / "map.ukvs"
    full.write_text("".join(f"com,d{host:02})/p{page} 1/1\n" for host in range(20) for page in range(10)))
    asked = [LogEntry(f"com,d{host:02})/x{page:02}") for host in range(20) for page in range(40)]
    done = compact_by_budget(full, tmp_path / "small.ukvs", Budget(min_accuracy=0.5), lookups=asked)
    assert done.wrong_in_log is not None
    assert done.wrong_in_log <= 0.5
    assert done.keys_out < 150
