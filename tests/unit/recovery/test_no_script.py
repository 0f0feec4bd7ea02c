"""Copies in which nothing runs: what is taken out of a page, and what is shown instead."""

from __future__ import annotations

import re
from pathlib import Path

import lxml.html
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.recovery.noscript import is_program, without_scripts
from recollect.recovery.outputs import Outputs, write_outputs
from stores import fill

START = "http://lost.example/"


def changed(markup: str, content_type: str = "text/html; charset=utf-8") -> str:
    return without_scripts(markup.encode(), content_type).decode()


def programs(markup: str) -> list[str]:
    """What runs in a page, as an independent parser reads it."""
    page = lxml.html.fromstring(f"<html><body>{markup}</body></html>")
    found = []
    for element in page.iter():
        if not isinstance(element.tag, str):
            continue
        if element.tag.rpartition(":")[2] in ("script", "applet", "embed", "object"):
            found.append(element.tag)
        for name, value in element.attrib.items():
            bare = re.sub(r"[\x00-\x20]", "", value).lower()
            if name.lower().startswith("on") or bare.startswith(("javascript:", "vbscript:")):
                found.append(f"{element.tag} {name}={value}")
    return found


@pytest.mark.parametrize(
    "markup",
    [
        "<script>a()</script>",
        "<SCRIPT SRC=x.js></SCRIPT>",
        "<script>never closed",
        "<svg><script>a()</script><script href='x.js'/></svg>",
        "<p onclick=a()>x</p>",
        "<p title=x/ONCLICK='a()'onfocus=\"b()\"tabindex=1>x</p>",
        "<a href='javascript:a()'>x</a>",
        "<a href=' jAvA\tscript:a()'>x</a>",
        "<a href='&#106;avascript&colon;a()'>x</a>",
        "<form action=vbscript:a><button formaction=javascript:a()>x</button></form>",
        "<iframe src=javascript:a()></iframe>",
        "<iframe srcdoc='<script>a()</script><p onclick=a()>&eacute;'></iframe>",
        "<object data=a.swf><param name=movie value=a.swf><embed src=a.swf>x</object>",
        "<applet code=A.class>x</applet>",
        "<embed src=a.swf?x=.png>",
        "<object classid=clsid:1></object>",
        "<<script></script>script>a()</script>",
        "<scr<script>ipt>a()</scr</script>ipt>",
        "<img src=x onerror=a()//>",
        "<svg><a><animate attributeName=href values='x;javascript:a()' /></a></svg>",
        "<svg><set attributeName=onclick to=a() /></svg>",
        "<meta http-equiv=refresh content='0;url=javascript:a()'>",
        "<a href='data:text/html,<script>a()</script>'>x</a>",
    ],
)
def test_nothing_that_runs_is_left(markup: str) -> None:
    text = changed(markup)
    assert programs(text) == []
    assert "script:" not in text.lower().replace("&#", "") and "<script" not in text.lower()
    assert "data:text/html" not in text


def test_what_shows_is_left() -> None:
    kept = "<p class=x title='on top'>on = 3</p><img src=a.png alt='onload'><video src=a.mp4></video><embed src=a.mp4>"
    assert changed(kept) == kept
    assert changed("<object data='i/a.png?x'>old</object>") == "<object data='i/a.png?x'>old</object>"


def test_the_page_shows_what_it_has_for_browsers_without_scripts() -> None:
    text = changed(
        "<noscript><meta http-equiv=refresh content='0;url=nojs.html'><img src=a.png></noscript>"
        "<meta http-equiv=refresh content='9;url=next.html'>"
    )
    assert "<img src=a.png>" in text and "<noscript" not in text
    assert "nojs.html" not in text and "next.html" in text


def test_images_that_a_script_would_have_loaded_are_in_their_places() -> None:
    assert '<img src="b.png" data-src=b.png' in changed("<img data-src=b.png>")
    blank = "data:image/gif;base64,R0lGODlhAQABAAAAACw="
    assert 'src="b.png"' in changed(f"<img src='{blank}' data-original='b.png'>")
    assert changed("<img src=c.png data-src=b.png>") == "<img src=c.png data-src=b.png>"
    assert 'src="http' not in changed("<img data-src=http://elsewhere.test/b.png>")


@pytest.mark.parametrize("charset", ["utf-8", "windows-1251", "utf-16", "shift_jis"])
def test_text_of_any_charset_stays(charset: str) -> None:
    letters = {"shift_jis": "日本", "windows-1251": "привет"}.get(charset, "привет日本")
    page = f"<p onclick=a()>{letters}</p><script>{letters}</script>"
    page += f"<iframe srcdoc='<b onclick=a()>{letters}</b>'></iframe>"
    text = without_scripts(page.encode(charset), f"text/html; charset={charset}").decode(charset)
    assert f"<p >{letters}</p>" in text and "onclick" not in text and "<script" not in text
    inner = lxml.html.fromstring(text).xpath("//iframe/@srcdoc")[0]
    assert inner == f"<b >{letters}</b>"


PIECES = ["<", ">", "/", "script", "<script>", "</script>", "<!--", "-->", "<noscript>", "</noscript>", "<svg>",
          "</svg>", "<style>", "</style>", "<img src=x ", "onerror=", "a()", '"', "'", " ", "=", "<iframe srcdoc=",
          "javascript:", "<a href=", "<object>", "<embed ", "x", "<title>", "</title>", "<textarea>",
          "</textarea>"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_no_mixture_of_pieces_runs(markup: str) -> None:
    text = changed(markup)
    assert not re.search(r"<(?:script|object|embed|applet)[\s/>]", text, re.I)


def test_files_that_are_scripts_are_left_out_and_links_to_them_say_so(tmp_path: Path) -> None:
    site = [
        (START, "text/html", b"<a href=/tool.js>my tool</a><script src=/tool.js></script><a href=/x.hta>x</a>"),
        (f"{START}tool.js", "application/x-javascript", b"run()"),
        (f"{START}x.hta", "text/plain", b"<script>run()</script>"),
        (f"{START}app", "text/javascript; charset=utf-8", b"run()"),
    ]
    with fill(tmp_path, site, start=START) as store:
        outputs = Outputs().only(["site", "kit", "no-script"])
        write_outputs(store, outputs, lambda _p: None)
    assert (tmp_path / "lost.example/tool.js").is_file()  # the site itself keeps them
    copy = tmp_path / "no-script"
    names = sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file())
    assert names == ["lost.example/index.html", "not-recovered.html"]
    page = (copy / "lost.example/index.html").read_text()
    assert "<script" not in page and "../not-recovered.html#http" in page
    assert "a script: this copy has none" in (copy / "not-recovered.html").read_text()
    start = (tmp_path / "START-HERE.html").read_text()
    assert 'href="no-script/lost.example/index.html"' in start and "keep their scripts" in start


def test_a_kit_without_scripts_has_no_rule_for_one(tmp_path: Path) -> None:
    site = [(START, "text/html", b"<script src=/a.php?b></script>"), (f"{START}a.php?b", "text/javascript", b"run()")]
    with fill(tmp_path, site, start=START) as store:
        write_outputs(store, Outputs(warc=False, wacz=False, scripts=False), lambda _p: None)
    for path in tmp_path.rglob("*"):
        assert not path.name.endswith(".js")
        if path.is_file() and "public" in path.parts and path.suffix == ".html":
            assert "<script" not in path.read_text()
    assert "a.php" not in (tmp_path / "rehost/redirects.tsv").read_text()
    assert "Nothing runs in this copy" in (tmp_path / "START-HERE.html").read_text()


def test_scripts_are_known_by_their_types_and_names() -> None:
    assert is_program("text/javascript; charset=x", "a") and is_program("Application/X-JavaScript", "a")
    assert is_program("text/plain", "a/b.VBS") and is_program("application/wasm", "x")
    assert not is_program("text/html", "a.html") and not is_program("application/json", "a.json")
