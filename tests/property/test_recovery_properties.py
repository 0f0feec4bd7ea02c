"""Laws of the recovery's pure parts, over generated inputs."""

from __future__ import annotations

import gzip
import string
import zlib
from datetime import UTC, datetime, timedelta

import brotli
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.errors import BadURI, FormatError
from recollect.recovery.canonical import Rules, canonical, resolve, visit_key
from recollect.recovery.choose import Candidate, DatePreference, in_order
from recollect.recovery.decoding import decoded, effective_encoding
from recollect.recovery.links import css_references, read_document, srcset_uris
from recollect.recovery.plan import Ask, Attempt, Fetch, Holder, decide

paths = st.text(alphabet=string.ascii_letters + "/.%~+ ;=&?#éд\\'\"()*:@!$,-_0123456789", max_size=40)
rules = st.builds(Rules, *[st.booleans()] * 6)


@given(
    st.sampled_from(["http", "https", "HTTP"]),
    st.sampled_from(["a.example", "www.A.example:80", "x.y.z:8080"]),
    paths,
    rules,
)
def test_canonicalization_is_idempotent(scheme: str, host: str, path: str, chosen: Rules) -> None:
    uri = f"{scheme}://{host}/{path}"
    once = canonical(uri, chosen)
    assert canonical(once, chosen) == once
    key = visit_key(uri, chosen)
    assert visit_key(key, chosen) == key
    assert visit_key(once, chosen) == key
    assert key.isascii() and not any(c.isspace() for c in key) and "#" not in key


@given(st.text(max_size=60), rules)
def test_any_text_is_a_url_or_refused(text: str, chosen: Rules) -> None:
    try:
        key = visit_key(text, chosen)
    except BadURI:
        return
    assert key.startswith(("http://", "https://"))


@given(st.text(max_size=60))
def test_a_reference_resolves_to_an_address_or_nothing(reference: str) -> None:
    found = resolve("http://a.example/b/c", reference)
    assert found is None or visit_key(found)


@example(b"\x1f\x8b", "text/xml")
@given(
    st.binary(max_size=400), st.sampled_from(["text/html", "text/css", "text/xml", "image/svg+xml", "text/javascript"])
)
def test_no_bytes_break_a_reader(data: bytes, media_type: str) -> None:
    document = read_document(data, "http://a.example/", media_type)
    assert document is not None
    for link in document.links:
        visit_key(link.uri)


names = st.text(alphabet=string.ascii_lowercase + string.digits + "-_", min_size=1, max_size=8)


@given(st.lists(names, min_size=1, max_size=12, unique=True), st.sampled_from(["a href", "img src", "frame src"]))
def test_every_link_of_a_page_is_found_once_in_order(found: list[str], where: str) -> None:
    tag, attribute = where.split()
    html = "".join(f'<{tag} {attribute}="{name}">' for name in found * 2)
    document = read_document(html.encode(), "http://a.example/d/", "text/html")
    assert document is not None
    assert [link.uri for link in document.links] == [f"http://a.example/d/{name}" for name in found]


@given(st.lists(names, min_size=1, max_size=8), st.lists(st.sampled_from(["", " 2x", " 100w"]), min_size=8, max_size=8))
def test_srcset_gives_back_what_went_in(found: list[str], descriptors: list[str]) -> None:
    value = ", ".join(name + descriptor for name, descriptor in zip(found, descriptors, strict=False))
    assert list(srcset_uris(value)) == found


@given(st.lists(st.tuples(names, st.sampled_from(["url({})", "url( '{}' )", 'url("{}")', "URL({})"])), max_size=8))
def test_css_gives_back_what_went_in(found: list[tuple[str, str]]) -> None:
    css = " ".join(f"a {{ b: {form.format(name)} }} /* url(x) */" for name, form in found)
    assert list(css_references(css)) == [name for name, _ in found]


codings = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@given(st.binary(max_size=2000), st.sampled_from(sorted(codings)))
def test_content_encodings_come_off(data: bytes, coding: str) -> None:
    packed = codings[coding](data)
    assert effective_encoding(coding, packed) == coding or not data
    assert decoded(packed, coding) == data


@given(st.binary(min_size=1, max_size=300), st.sampled_from(sorted(codings)))
def test_damaged_encodings_are_an_error_or_cut_short_never_a_crash(data: bytes, coding: str) -> None:
    for damaged in (data, codings[coding](data)[:-1]):
        try:
            decoded(damaged, coding)
        except FormatError:
            continue


def test_a_bomb_is_refused_in_every_coding() -> None:
    for coding, pack in codings.items():
        bomb = pack(bytes(5_000_000))
        try:
            decoded(bomb, coding, limit=1_000_000)
        except FormatError as error:
            assert "more than" in str(error)
        else:
            raise AssertionError(coding)


moments = st.integers(0, 4000).map(lambda days: datetime(2005, 1, 1, tzinfo=UTC) + timedelta(days=days))
candidates = st.lists(
    st.builds(
        Candidate,
        archive=st.sampled_from("abc"),
        uri=st.sampled_from(["http://x.example/p", "https://x.example/p"]),
        captured_at=moments,
        status=st.sampled_from([200, 200, 200, 301, 302, 404, 503, None]),
        digest=st.sampled_from(["", "D1", "D2", "D3"]),
        altered=st.booleans(),
    ),
    max_size=12,
    unique_by=lambda c: (c.archive, c.uri, c.captured_at),
)
preferences = st.builds(DatePreference, at=st.none() | moments, most_recent=st.booleans())


@given(candidates, preferences, st.none() | moments, st.randoms(use_true_random=False))
def test_the_order_of_captures_does_not_depend_on_how_they_come(
    found: list[Candidate], dates: DatePreference, near: datetime | None, rng: object
) -> None:
    order = in_order(found, dates, near=near)
    mixed = list(found)
    rng.shuffle(mixed)  # type: ignore[attr-defined]
    assert in_order(mixed, dates, near=near) == order
    assert all(c.status in (200, 301, 302, None) for c in order)


@given(candidates, preferences, st.data(), st.sets(st.sampled_from("abc")), st.booleans())
def test_a_plan_ends_tries_each_capture_once_and_finds_what_is_available(
    found: list[Candidate], dates: DatePreference, data: st.DataObject, covering: set[str], ask_first: bool
) -> None:
    """Played against archives that answer at random: the brute force is all captures, tried in any order."""
    holders = [Holder(name, covered=name in covering) for name in "abc"]
    listed = [c for c in found if c.archive in covering]
    attempts: list[Attempt] = []
    good = {c for c in found if c.status in (200, None) and data.draw(st.booleans(), label=f"{c} is good")}
    had = None
    for _ in range(40):
        step = decide(listed, attempts, holders, dates, ask_first=ask_first)
        assert step == decide(list(reversed(listed)), attempts, holders, dates, ask_first=ask_first)
        if isinstance(step, Ask):
            assert step.archive not in covering
            attempts.append(Attempt(step.archive, "http://x.example/p", None, "answered"))
            listed += [c for c in found if c.archive == step.archive]
        elif isinstance(step, Fetch):
            candidate = step.candidate
            key = (candidate.archive, candidate.uri, candidate.captured_at)
            assert key not in {(a.archive, a.uri, a.captured_at) for a in attempts}
            if candidate in good:
                had = candidate
                break
            attempts.append(Attempt(*key, "failed"))
        else:
            break
    else:
        raise AssertionError("no end")
    assert (had is not None) == bool(good)


@given(st.text(alphabet="/.ab?#=", max_size=20))
def test_joining_is_as_the_standard_library_has_it(reference: str) -> None:
    from urllib.parse import urldefrag, urljoin

    base = "http://a.example/b/c?d"
    found = resolve(base, reference)
    if found is not None:
        assert visit_key(found) == visit_key(urldefrag(urljoin(base, reference)).url)
