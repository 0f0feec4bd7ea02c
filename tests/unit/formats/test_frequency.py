import pytest

from recollect.errors import FormatError
from recollect.formats.frequency import MAX_COUNT, UNKNOWN, VOID, Count, Frequency, merge


@pytest.mark.parametrize(
    "text", ["54321/20000", "10000+", "2500~/900", "300+/20-", "/50", "/", "0", "0/20", "200-/150~", "/50+", "0+", "0~"]
)
def test_canonical_text_comes_back_as_it_was(text):
    assert str(Frequency.parse(text)) == text
    assert Frequency.parse(text.encode()) == Frequency.parse(text)


@pytest.mark.parametrize(
    ("text", "canonical"), [("200/", "200"), ("007", "7"), ("-", "/"), ("0-", "0"), ("5/00", "5/0"), ("0-/3", "0/3")]
)
def test_other_spellings_are_read_and_written_canonically(text, canonical):
    assert str(Frequency.parse(text)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "x",
        "5x",
        "+",
        "~",
        "5++",
        "5/5/5",
        "5 /5",
        "-5",
        "+5",
        "5.0",
        "1e3",
        "1,000",
        "//",
        "٣",
        "5\n",
        "5/\n",
        "\0",
    ],
)
def test_what_is_not_a_frequency_is_refused(text):
    with pytest.raises(FormatError, match="bad frequency"):
        Frequency.parse(text)


def test_a_count_that_other_programs_could_not_read_is_refused():
    assert Frequency.parse(str(MAX_COUNT)).uri_m.value == MAX_COUNT
    for text in (str(MAX_COUNT + 1), "9" * 5000, "1/" + "9" * 30):
        with pytest.raises(FormatError):
            Frequency.parse(text)


@pytest.mark.parametrize(
    ("text", "held"),
    [("0", False), ("0/20", False), ("0-", False), ("/", None), ("0+", True), ("0~", True), ("/5", True), ("1", True)],
)
def test_what_a_frequency_says_about_holding(text, held):
    frequency = Frequency.parse(text)
    assert frequency.held is held
    assert frequency.is_void is (held is False)


@pytest.mark.parametrize(
    ("first", "second", "total"),
    [
        ("5/2", "7/3", "12/5"),
        ("5+", "7", "12+"),
        ("5+", "7+", "12+"),
        ("5-", "7", "12-"),
        ("5-", "7-", "12-"),
        ("5+", "7-", "12~"),
        ("5~", "7", "12~"),
        ("5~", "7+", "12~"),
        ("/3", "7/2", "7+/5"),
        ("/", "7-", "7~"),
        ("/", "/", "/"),
        ("5/", "7/3", "12/3+"),
        ("0", "7/3", "7/3"),
        ("0/20", "7/3", "7/3"),
        ("0/20", "0/3", "0/23"),
        ("0", "0/3", "0/3+"),
        ("0", "/", "/"),
        ("5/0", "7/3", "12/3"),
    ],
)
def test_disjoint_sums(first, second, total):
    f, g = Frequency.parse(first), Frequency.parse(second)
    assert str(f + g) == str(g + f) == total


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ("5/2", "7/3", "12/3+"),
        ("5/2", "7/0", "12/2"),
        ("5/2", "0", "5/2"),
        ("5/2", "7", "12/2+"),
        ("5/2+", "7/3", "12/3+"),
        ("5/2-", "7/3-", "12/5-"),
        ("5/2-", "7/3", "12/3+"),
        ("5/2-", "7/3+", "12/3+"),
        ("5/2-", "7", "12"),
        ("5/2~", "7/3", "12/3~"),
        ("5/2~", "7/3-", "12/2~"),
        ("5/2~", "7", "12/2~"),
        ("0/20", "0/30", "0/30+"),
        ("0/20", "5/3", "5/3"),
        ("/", "5/3", "5+/3+"),
    ],
)
def test_merges_of_profiles_that_may_share_uris(first, second, both):
    f, g = Frequency.parse(first), Frequency.parse(second)
    assert str(merge(f, g)) == str(merge(g, f)) == both


def test_sums_beyond_64_bits_stay_true_and_readable():
    most = Frequency.exact(MAX_COUNT)
    assert str(most + most) == f"{MAX_COUNT}+"
    assert (Count(MAX_COUNT, "-") + Count(1, "-")).value is None


def test_names_for_nothing_and_not_known():
    assert str(VOID) == "0"
    assert str(UNKNOWN) == "/"
    assert str(Frequency.exact(3)) == "3"
    assert str(Frequency.exact(3, 2)) == "3/2"
