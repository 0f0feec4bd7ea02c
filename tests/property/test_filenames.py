"""File names: safe on every system, never shared, independent of order."""

import re
import unicodedata
from urllib.parse import quote, unquote, urljoin

from hypothesis import example, given
from hypothesis import strategies as st

from recollect.recovery.filenames import MAX_PART, WINDOWS, file_names, relative_link

SEGMENTS = st.one_of(
    st.sampled_from(
        ["a", "A", "a.html", "A.HTML", "index.html", "..", ".", "", "%2e%2e", "..%2f..%2fetc", "con", "CON.txt", "aux",
         "x" * 300, "é", "e\u0301", "%C3%A9", "%E9", "a b", "a%20b", "a:b", "a*b", "a\\b", "nul.", "end. ", "~", "@",
         "a@q", "日本" * 60, "a#", "%00", "x.php", "x.PHP5", "x%2Ephp", "x.php.", "x.asp ", ".htaccess", ".HTpasswd",
         "_redirects", "web.config", "_recollect", "x.cgi", "x.php.png", "a.shtml", "b.PHP.html", "c.pl.d.gif"]
    ),
    st.text(max_size=12).filter(lambda t: not re.search(r"[/?#\[\]]", t)),
)  # fmt: skip
URIS = st.builds(
    lambda host, path, query, slash: (
        f"http://{host}/" + "/".join(path) + ("/" if slash else "") + (f"?{query}" if query is not None else "")
    ),
    st.sampled_from(["x.com", "X.com", "www.x.com", "x.com:8080", "1.2.3.4"]),
    st.lists(SEGMENTS, max_size=5),
    st.one_of(st.none(), st.sampled_from(["id=1", "id=2", "ID=1", "a=/../../b", "q=*", "", "x" * 400])),
    st.booleans(),
)
TYPES = st.sampled_from(["text/html", "image/png", "text/html; charset=x", "application/octet-stream", ""])
PROGRAM = re.compile(r"(?i)\.(php\d?|phtml|phar|aspx?|jsp|cgi|pl|py|rb|shtml|stm)(\.|$)")
SETTINGS = re.compile(r"(?i)\.ht|(_headers|_redirects|_recollect|web\.config)$")
RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?$")


@given(st.dictionaries(URIS, TYPES, max_size=30))
@example({"http://x.com/a": "image/png", "http://x.com/a/b": "image/png"})
@example({"http://x.com/A": "text/html", "http://x.com/a": "text/html", "http://x.com/a.html": "text/html"})
@example({"http://x.com/page.php?id=1": "text/html", "http://x.com/page.php?id=2": "text/html"})
def test_names_are_safe_and_never_shared(resources):
    names = file_names(resources.items())
    assert names == file_names(sorted(resources.items(), reverse=True))
    assert set(names) == set(resources)
    folded = [unicodedata.normalize("NFC", name).casefold() for name in names.values()]
    assert len(set(folded)) == len(folded)
    folders = {"/".join(name.split("/")[:i]) for name in folded for i in range(1, name.count("/") + 1)}
    assert not folders & set(folded)
    for name in names.values():
        parts = name.split("/")
        assert len(parts) >= 2
        for part in parts:
            assert part not in ("", ".", "..")
            assert not re.search(r'[\x00-\x1f<>:"\\|?*]', part)
            assert not part.endswith((".", " "))
            assert not RESERVED.match(part) and not SETTINGS.match(part)
            assert len(part) <= MAX_PART + 10 and len(part.encode()) <= 255
        assert len(name) <= 260 and not PROGRAM.search(name.partition("/")[2]), "a web server could run it"


@given(st.dictionaries(URIS, TYPES, min_size=1, max_size=8))
def test_a_relative_link_leads_from_any_name_to_any_other(resources):
    names = sorted(file_names(resources.items()).values())
    for source in names:
        for target in names:
            landed = urljoin("file:///root/" + quote(source), relative_link(source, target))
            assert unquote(landed) == "file:///root/" + target


def test_the_plain_rule_is_readable():
    names = file_names(
        [
            ("http://x.com/", "text/html"),
            ("http://x.com/about", "text/html"),
            ("http://x.com/img/Logo.png?v=3", "image/png"),
            ("http://x.com/list.php?page=2&sort=up", "text/html"),
            ("http://x.com/caf%C3%A9/", "text/html"),
            ("http://x.com/thumb.php", "image/png"),
            ("http://x.com/thumb.php?id=3", "image/jpeg"),
            ("http://x.com/get.asp?f=x", "application/x-unknown"),
            ("http://x.com/.htaccess", "text/plain"),
        ]
    )
    assert list(names.values()) == [
        "x.com/index.html",
        "x.com/_.htaccess",
        "x.com/about.html",
        "x.com/café/index.html",
        "x.com/get.asp@f=x.bin",
        "x.com/img/Logo.png@v=3.png",
        "x.com/list.php@page=2&sort=up.html",
        "x.com/thumb_php.png",
        "x.com/thumb.php@id=3.jpg",
    ]


@given(st.dictionaries(URIS, TYPES, max_size=30))
@example({"http://x.com/\u00e9": "text/html", "http://x.com/e": "text/html", "http://x.com/E": "text/html"})
def test_names_for_windows_are_short_ascii_and_never_shared(resources):
    names = file_names(resources.items(), rules=WINDOWS)
    assert names == file_names(sorted(resources.items(), reverse=True), rules=WINDOWS)
    folded = [name.lower() for name in names.values()]
    assert len(set(folded)) == len(resources)
    folders = {"/".join(name.split("/")[:i]) for name in folded for i in range(1, name.count("/") + 1)}
    assert not folders & set(folded)
    for name in names.values():
        assert name.isascii() and len(name) <= 130
        for part in name.split("/"):
            assert part and len(part) <= WINDOWS.max_part and not re.search(r'[\x00-\x1f<>:"\\|?*]', part)
            assert not part.endswith((".", " ")) and not RESERVED.match(part) and not SETTINGS.match(part)
        assert not PROGRAM.search(name.partition("/")[2])
