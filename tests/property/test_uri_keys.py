"""Keys and their tree: the normal form is one, lookup keys are the ancestors, no spelling of an index is lost."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from recollect.errors import BadURI
from recollect.uris import (
    POLICIES,
    ancestors,
    covers,
    key_of_uri,
    lookup_keys,
    policy_key,
    policy_spellings,
    segments,
    spellings,
    surt,
    uri_key,
)

NAMES = st.sampled_from(["com", "x", "a-b", "WWW", "1", "255", "256", "xn--bcher-kva", "*", "!", "ü", "a b"])
HOSTS = st.one_of(
    st.lists(NAMES, min_size=1, max_size=4).map(",".join),
    st.sampled_from(["4,3,2,1", "1.2.3.4", "::1", "[::1]", "com,x,", "fe80::1%25eth0"]),
)
PORTS = st.sampled_from(["", "", ":80", ":8080"])
SEGMENTS = st.sampled_from(["a", "B", "", "a-b", "*", "%2A", "ü", "é x", ".", "..", "x.html", "(y)", "\x00", "#", "~"])
PATHS = st.lists(SEGMENTS, max_size=5).map(lambda parts: "/" + "/".join(parts))
QUERIES = st.sampled_from(["", "?", "?a=1&B=2", "?a)/b", "#x"])
SURTS = st.builds(
    lambda scheme, host, port, path, query: f"{scheme}{host}{port}){path}{query}",
    st.sampled_from(["", "", "http://(", "https://("]),
    HOSTS,
    PORTS,
    PATHS,
    QUERIES,
)
URI_HOSTS = st.sampled_from(
    ["example.com", "www.Example.com", "a.b.c", "1.2.3.4", "[::1]", "bücher.example", "x", "WWW2.example.co.uk"]
)
URI_SEGMENTS = st.sampled_from(["a", "B", "", "ü", "%C3%BC", "%7E", "..", ".", "*", "x%2Fy", "a b", "%", "é"])
URIS = st.builds(
    lambda host, port, path, query: f"http://{host}{port}/{'/'.join(path)}{query}",
    URI_HOSTS,
    PORTS,
    st.lists(URI_SEGMENTS, max_size=5),
    QUERIES,
)


def key_or_none(a_surt: str) -> bytes | None:
    try:
        return uri_key(a_surt.encode())
    except BadURI:
        return None


@given(SURTS)
@example("com,example,,)/")
@example("::1,)/")
def test_the_key_of_a_key_is_that_key(a_surt: str) -> None:
    key = key_or_none(a_surt)
    if key is not None:
        assert uri_key(key) == key
        assert re.fullmatch(rb"[!-)+-~]+\)/(.*[^/])?", key)
        assert b"?" not in key and b"#" not in key


@given(st.binary(max_size=40))
def test_any_bytes_have_a_key_or_a_reason(raw: bytes) -> None:
    try:
        key = uri_key(raw)
    except BadURI as error:
        assert error.why
    else:
        assert uri_key(key) == key


@given(SURTS)
def test_lookup_keys_are_the_key_and_its_ancestors(a_surt: str) -> None:
    key = key_or_none(a_surt)
    if key is None:
        return
    keys = lookup_keys(key)
    assert keys == [key, *ancestors(key)]
    assert keys[-1] == b"*"
    assert len(keys) == len(set(keys)) == 3 + sum(len(part) for part in segments(key))


@given(st.lists(SURTS, max_size=8))
def test_a_wildcard_covers_by_segments_never_by_letters(surts: list[str]) -> None:
    keys = [key for one in surts if (key := key_or_none(one)) is not None]
    for key in keys:
        hosts, path = segments(key)
        for other in keys:
            other_hosts, other_path = segments(other)
            if path:
                under = (other_hosts, other_path[: len(path)]) == (hosts, path)
                host = key.partition(b")")[0]
                assert covers(b"%b)/%b/*" % (host, b"/".join(path)), other) == under
            under_host = other_hosts[: len(hosts)] == hosts
            assert covers(key.partition(b")")[0] + b",*", other) == under_host


@given(SURTS)
def test_segments_are_slices_of_the_key_in_order(a_surt: str) -> None:
    key = key_or_none(a_surt)
    if key is None:
        return
    hosts, path = segments(key)
    at = 0
    for segment in hosts:
        assert key.startswith(segment, at)
        at += len(segment)
        at += key[at : at + 1] == b","
    assert key.startswith(b")/", at)
    assert key[at + 2 :] == b"/".join(path)


def indexed(uri: str) -> list[str]:
    """The SURTs that makers of indexes write for a URI: canonical, as typed, in capitals, as Heritrix does."""
    canonical = surt(uri)
    host, _, rest = canonical.partition(")")
    typed_host, _, typed_path = uri.removeprefix("http://").partition("/")
    typed_path = typed_path.partition("?")[0].partition("#")[0]
    written = [canonical, f"http://({canonical}", f"({host},)/{typed_path}", f"{host})/{typed_path}", canonical.upper()]
    written += [f"{host}){rest.partition('?')[0]}//", f"{host})/{typed_path}/?q", f"{host})/{typed_path.lower()}"]
    name, colon, port = typed_host.rpartition(":") if re.search(r"\d$", typed_host) else (typed_host, "", "")
    if "[" not in typed_host and not re.match(r"[0-9.]+(:|$)", typed_host) and name:
        kept = "" if port in ("", "80") else colon + port
        written.append(f"{','.join(reversed(name.lower().split('.')))}{kept})/{typed_path}")
    return written


@given(URIS)
@example("http://www.example.com/a//b")
@example("http://[::1]:8080/ü")
@example("http://bücher.example:8080/%7Ex/")
def test_however_an_index_spells_a_uri_lookup_tries_its_key(uri: str) -> None:
    tried = spellings(uri)
    assert tried[0] == key_of_uri(uri)
    for written in indexed(uri):
        assert uri_key(written.encode()) in tried, written
        assert uri_key(written.encode()) in spellings(written)


SEGMENTS = st.sampled_from(["/a", "/b.html", "/.", "/..", "/~x", "/A", "/Index.HTML"])
PLAIN_PATHS = st.lists(SEGMENTS, max_size=4).map("".join)


@given(st.sampled_from(["example.com", "www.example.com", "www2.a.b", "x.www.example.org"]), PLAIN_PATHS, QUERIES)
def test_the_short_way_for_plain_uris_finds_what_the_long_way_finds(host: str, path: str, query: str) -> None:
    # Capitals in the scheme change no key, and send a URI the long way.
    assert sorted(spellings(f"http://{host}{path}{query}")) == sorted(spellings(f"HTTP://{host}{path}{query}"))


@given(URIS | SURTS)
def test_slashes_at_the_end_come_last_and_add_nothing_else(text: str) -> None:
    try:
        keys = spellings(text)
    except BadURI:
        return
    roots = [key for key in keys if key.partition(b")")[2] == b"/"]
    bare = [key for key in keys if key in roots or not key.endswith(b"/")]
    assert keys == bare + [key + b"/" for key in bare if key not in roots]


@given(URIS, st.sampled_from(POLICIES))
def test_however_an_index_spells_a_uri_lookup_tries_its_policy_key(uri: str, policy: str) -> None:
    tried = policy_spellings(uri, policy)
    assert tried[0] == policy_key(surt(uri).encode(), policy)
    host, _, rest = surt(uri).partition(")")
    path, question, query = rest.partition("?")
    typed_path = uri.removeprefix("http://").partition("/")[2].partition("?")[0].partition("#")[0]
    for written in (
        f"{host}){rest}",
        f"http://({host},){path}//{question}{query}",
        f"{host})/{typed_path}{question}{query}",
    ):
        assert policy_key(written.encode(), policy) in tried, written


@given(SURTS, st.sampled_from(POLICIES))
def test_policy_keys_are_normal_keys(a_surt: str, policy: str) -> None:
    if key_or_none(a_surt) is None:
        return
    key = policy_key(a_surt.encode(), policy)
    assert key == (policy_key(key, policy) if policy[0] in "HU" else key)
    assert uri_key(key) == (key.partition(b"?")[0] if policy == "URIR" else key)
