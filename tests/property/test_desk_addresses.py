"""What people type for an address or a date: whatever it is, an answer or a question with usable choices."""

from __future__ import annotations

import calendar
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.desk.addresses import Question, read_date, understand
from recollect.desk.jobs import Extent, clean_uri, parse_submission

LABEL = st.from_regex(r"[a-z][a-z0-9]{2,10}", fullmatch=True)
HOST = st.builds(lambda name, www: f"{www}{name}.example", LABEL, st.sampled_from(("", "www.")))
PATH = st.lists(st.from_regex(r"[a-z]{3,8}", fullmatch=True), min_size=1, max_size=3).map("/".join)
STAMP = st.dates(date(1996, 1, 1), date(2030, 12, 28)).map(lambda day: f"{day:%Y%m%d}120000")


@given(st.text(max_size=300) | st.from_regex(r"(https?:/?/?)?[\w.@/ -]{0,40}"))
def test_no_text_is_a_fault_and_every_choice_is_an_address_that_is_taken(text: str) -> None:
    reading = understand(text)
    for uri in (reading.uri, *(choice.uri for choice in reading.choices)):
        assert not uri or clean_uri(uri) == uri
    assert not (reading.uri and reading.question)


@given(HOST, LABEL)
def test_an_e_mail_address_becomes_a_question_about_its_domain(host: str, name: str) -> None:
    reading = understand(f" {name}@{host} ")
    assert reading.question is Question.EMAIL and [choice.uri for choice in reading.choices] == [f"http://{host}/"]


@given(
    HOST,
    st.sampled_from(
        ("https//", "http//", "http:/", "https:///", "htp://", "htt://", "hhtp://", "http;//", "http:\\\\", "https:", "ttp://",
         "http: //", "//", "://")
    ),
)  # fmt: skip
def test_a_mistyped_scheme_becomes_a_question_with_the_address(host: str, scheme: str) -> None:
    reading = understand(scheme + host)
    found = [choice.uri for choice in reading.choices] or [reading.uri]
    assert f"{host}/" in {uri.partition("://")[2] for uri in found}


@given(
    HOST,
    PATH,
    STAMP,
    st.sampled_from(
        ("https://web.archive.org/web/{}/", "https://arquivo.pt/wayback/{}mp_/", "http://wayback.example/coll/{}id_/",
         "web.archive.org/web/{}*/", "https://archive.example/{}/")
    ),
)  # fmt: skip
def test_an_archive_address_of_any_archive_names_the_lost_site(host: str, path: str, stamp: str, place: str) -> None:
    reading = understand(place.format(stamp) + f"http://{host}/{path}")
    day = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}"
    assert reading.question is Question.ARCHIVED
    assert [(choice.uri, choice.at) for choice in reading.choices] == [
        (f"http://{host}/", ""),
        (f"http://{host}/", day),
    ]
    inside = understand(place.format(stamp) + place.format(stamp) + f"http://{host}/{path}")
    assert inside.choices[0].uri == f"http://{host}/"


@given(HOST, PATH)
def test_a_path_takes_the_whole_site_first_and_offers_less(host: str, path: str) -> None:
    reading = understand(f"http://{host}/{path}.html")
    assert reading.question is Question.PATH and reading.choices[0].uri == f"http://{host}/"
    assert reading.choices[-1] == type(reading.choices[0])(f"http://{host}/{path}.html", Extent.PAGE)
    assert understand(f"http://{host}/~{path}/").uri == f"http://{host}/~{path}/", "a personal page is a site"


@pytest.mark.parametrize(
    "text", ["https://www.facebook.com/band", "instagram.com/me", "https://x.com/me", "m.youtube.com/@me"]
)
def test_a_social_network_is_explained(text: str) -> None:
    assert understand(text).question is Question.SOCIAL


@pytest.mark.parametrize("text", ["bücher.example", "http://www.müller.example", "http://例え.example/"])
def test_letters_of_any_script_are_taken(text: str) -> None:
    assert understand(text).uri


@given(HOST)
def test_a_plain_address_is_taken_as_it_is(host: str) -> None:
    for text in (
        host,
        f"http://{host}",
        f"https://{host}/",
        f"<http://{host}/>.",
        f"“{host}”,",
        f"http://{host}/index.html",
    ):
        reading = understand(text)
        assert reading.question is None and reading.uri.partition("://")[2] == f"{host}/"


@given(st.dates(date(1991, 1, 1), date(2099, 12, 31)))
def test_dates_are_read_in_the_ways_people_write_them(day: date) -> None:
    iso, month = day.isoformat(), f"{day:%Y-%m}"
    name = calendar.month_name[day.month]
    for text in (
        f"{day.day}.{day.month}.{day.year}",
        f"{day.day} {name} {day.year}",
        f"{name} {day.day}, {day.year}",
        iso,
    ):
        assert read_date(text) == iso == read_date(read_date(text))
    assert read_date(f"{day.month}/{day.day}/{day.year}", month_first=True) == iso
    assert read_date(f"{day:%d/%m/%Y}") == iso
    assert read_date(f"{name} {day.year}") == read_date(f"{day:%m/%Y}") == month
    fields = {"uri": "http://a.example/", "email": "a@b.example", "at": f"{day.day}. {name.lower()} {day.year}"}
    assert parse_submission(fields, []).options()["at"].startswith(iso)


@given(st.text(max_size=60))
def test_what_is_no_date_is_none(text: str) -> None:
    assert read_date(text) == "" or date.fromisoformat((read_date(text) + "-01-01")[:10])


@given(LABEL, st.sampled_from(("com", "org", "de", "net")), st.sampled_from(("www ", "www. ", "WWW ", "")))
def test_blanks_and_words_for_dots_are_understood(name: str, ending: str, www: str) -> None:
    host = f"{'www.' if www else ''}{name}.{ending}"
    for text in (f"{www}{name} {ending}", f"{www}{name} dot {ending}", f"{www}{name} (punkt) {ending}"):
        reading = understand(text)
        shown = [reading.uri, *(choice.uri for choice in reading.choices)]
        assert f"http://{host}/" in [one.lower() for one in shown], (text, shown)
    assert (
        understand(f"{name}。{ending}").uri
        == understand(f"{name}\u200b.{ending}\ufeff").uri
        == f"http://{name}.{ending}/"
    )


@given(HOST, HOST)
def test_several_addresses_are_a_question(one: str, other: str) -> None:
    for text in (f"{one}, {other}", f"{one} {other}", f"http://{one}/; https://{other}/page"):
        reading = understand(text)
        if one != other:
            assert reading.question is Question.SEVERAL and len(reading.choices) == 2, text


@given(HOST, st.sampled_from(("https://https://", "http://http://", "http://https//", "ftp://", "view-source:http://")))
def test_a_scheme_too_many_or_of_something_else_is_a_question(host: str, scheme: str) -> None:
    reading = understand(scheme + host)
    assert reading.question is Question.MISTYPED and [c.uri.partition("://")[2] for c in reading.choices] == [
        f"{host}/"
    ]


@given(HOST, st.sampled_from(("archive.is/", "https://archive.ph/newest/", "https://archive.example/wayback/")))
def test_an_archive_address_without_a_time_names_the_site(host: str, archive: str) -> None:
    reading = understand(f"{archive}http://{host}/page")
    assert reading.question is Question.ARCHIVED and reading.choices[0].uri == f"http://{host}/"
