"""What a person may ask for, and what is refused before anything is queued."""

from __future__ import annotations

import pytest

from recollect.desk.jobs import Extent, Refused, Submission, clean_email, clean_uri, parse_submission

ARCHIVES = ["ia", "arquivo"]


@pytest.mark.parametrize(
    ("given", "clean"),
    [
        ("http://lost.example/", "http://lost.example/"),
        ("lost.example", "http://lost.example/"),
        (" HTTPS://Lost.Example/~joe?a=b#part ", "https://Lost.Example/~joe?a=b"),
        ("lost.example:8080/x", "http://lost.example:8080/x"),
        ("http://bücher.example/", "http://bücher.example/"),
    ],
)
def test_addresses_are_taken_as_people_type_them(given: str, clean: str) -> None:
    assert clean_uri(given) == clean


@pytest.mark.parametrize(
    "uri",
    [
        "", "ftp://lost.example/", "javascript:alert(1)", "file:///etc/passwd", "/etc/passwd", "http://",
        "http://user@lost.example/", "http://user:pw@lost.example/", "http://lost.example@127.0.0.1/",
        "http://127.0.0.1/", "http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1/",
        "http://[::1]/", "http://[::ffff:1.2.3.4]/", "http://localhost/", "http://localhost:80/", "http://LOCALHOST./",
        "http://printer.local/", "http://db.internal/", "http://intranet/", "http://a.localhost/",
        "http://lost.example:0/", "http://lost.example:99999/", "http://lost.example:8a/", "http://lo st.example/",
        "http://lost.example/\r\nX: y", "http://lost.example\\@evil/", "http://-a.example/", "http://a..example/",
        "http://" + "a" * 64 + ".example/", "http://1.2.3.4./", "http://１２７.0.0.1/",
    ],
)  # fmt: skip
def test_what_is_not_a_public_web_address_is_refused(uri: str) -> None:
    with pytest.raises(Refused) as refused:
        clean_uri(uri)
    assert refused.value.field == "uri"


@pytest.mark.parametrize("email", ["anna@mail.example", "a.b+c@x-y.example", "x@localhost"])
def test_one_plain_mail_address_is_taken(email: str) -> None:
    assert clean_email(f" {email} ") == email


@pytest.mark.parametrize(
    "email",
    [
        "",
        "anna",
        "a@x, b@y",
        "a@x;b@y",
        "Anna <a@x.example>",
        "a@x\nBcc: b@y",
        "a@@x",
        "a b@x",
        "a@x..y",
        '"a"@x',
        "@x",
    ],
)
def test_anything_but_one_address_is_refused(email: str) -> None:
    with pytest.raises(Refused):
        clean_email(email)


def asked(**fields: object) -> Submission:
    return parse_submission({"uri": "http://lost.example/", "email": "a@b.example", **fields}, ARCHIVES)


def test_spellings_of_one_submission_have_one_fingerprint_and_other_submissions_another() -> None:
    plain = asked()
    assert plain.fingerprint == asked(uri="LOST.example", email="other@b.example", name="Otto").fingerprint
    assert plain.fingerprint == asked(archives=["arquivo", "ia"]).fingerprint
    others = [asked(scope="page"), asked(at="2009"), asked(archives=["ia"]), asked(uri="http://lost.example/a/")]
    others += [asked(**{"from": "2009"}), asked(to="2009")]
    assert len({one.fingerprint for one in [plain, *others]}) == 7


@pytest.mark.parametrize(
    "fields",
    [
        {"scope": "everything"}, {"archives": ["nowhere"]}, {"archives": 7}, {"at": "soon"}, {"at": "2009-02-31"},
        {"from": "2010", "to": "2009"}, {"at": "2009", "from": "2008"}, {"windows_names": "maybe"}, {"emial": "x"},
        {"uri": 7}, {"name": ["x"]},
    ],
)  # fmt: skip
def test_fields_that_cannot_be_meant_are_named(fields: dict[str, object]) -> None:
    with pytest.raises(Refused) as refused:
        asked(**fields)
    assert refused.value.field in {*fields, "to"}


def test_a_whole_submission() -> None:
    one = asked(scope="page", archives="ia", to="2009", windows_names=True, name="Anna\r\nBcc: x")
    assert one.extent is Extent.PAGE
    assert one.archives == ("ia",)
    assert one.dates.end is not None and (one.dates.end.month, one.dates.end.day) == (12, 31)
    assert one.windows_names and "\n" not in one.name and one.site == "lost.example"
