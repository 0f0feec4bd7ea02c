"""Outputs that a person can use: files as archived, Markdown for a site generator, START-HERE, robust links."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import needs
from recollect.errors import UsageError
from recollect.recovery.outputs import OUTPUTS, Outputs, write_outputs
from stores import fill

START = "http://lost.example/"
HOME = b"""<html><head><title>Choir: "home"</title></head><body background="/i/bg.png"><h1>Choir &amp; friends</h1>
<p>We <b>sing</b> on <i>Mondays</i>, see <a href="/news/">news</a> and <a href="http://other.org/page">others</a>.
<p>1. not a list * nor stars <br>second line
<ul><li>one<li>two <a href="song.php?id=2">song</a><ul><li>inner</ul></ul>
<pre>a  &lt; b\n`x`</pre><img src="/i/a.png" alt="us [all]"><img src="gone.png" alt="lost picture">
<script>alert(1)</script><a href="javascript:alert(1)">bad</a><table><tr><td>cell</td></tr></table></body></html>"""
SITE = [
    (START, "text/html", HOME),
    (f"{START}news/", "text/html", b"<title>News</title><h2>News</h2><p><a href='/'>home</a>"),
    (f"{START}song.php?id=2", "text/html", b"<title>Song</title><p>la"),
    (f"{START}i/a.png", "image/png", b"\x89PNG a"),
    (f"{START}i/bg.png", "image/png", b"\x89PNG bg"),
    (f"{START}s.css", "text/css", b"a{b:url(/i/a.png)}"),
    ("http://cdn.net/x.png", "image/png", b"\x89PNG x"),
]


def write(folder: Path, outputs: Outputs) -> Path:
    with fill(folder, SITE, start=START) as store:
        write_outputs(store, outputs, lambda _p: None)
    return folder


def test_as_archived_files_are_identical_and_of_one_host(tmp_path: Path) -> None:
    out = write(tmp_path / "site", Outputs().only(["as-archived"])) / "as-archived"
    files = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert files["index.html"] == HOME and files["s.css"] == SITE[5][2] and files["i/a.png"] == b"\x89PNG a"
    assert files["news/index.html"] == SITE[1][2] and len(files) == 6
    assert not (tmp_path / "site/lost.example").exists() and not (tmp_path / "site/rehost").exists()


def test_markdown_has_front_matter_local_pictures_and_links_between_pages(tmp_path: Path) -> None:
    out = write(tmp_path / "site", Outputs().only(["markdown"])) / "markdown"
    home = (out / "index.md").read_text()
    head, _, body = home.removeprefix("---\n").partition("\n---\n")
    assert 'title: "Choir: \\"home\\""' in head and f"original_url: {START}" in head and "\ndate: " in head
    assert "# Choir & friends" in body and "We **sing** on *Mondays*" in body
    assert "[news](<news/index.md>)" in body and "[others](<http://other.org/page>)" in body
    assert "![us \\[all\\]](<i/a.png>)" in body and "lost picture" in body and (out / "i/a.png").is_file()
    assert "1\\. not a list \\* nor stars" in body
    assert "alert" not in body and "javascript" not in body and "a  < b\n`x`" in body
    assert "-   two [song](<song.php@id=2.md>)" in body and "    -   inner" in body and "cell" in body


def test_a_site_generator_builds_the_markdown_without_a_broken_link(tmp_path: Path) -> None:
    needs.wheel("MkDocs")
    out = write(tmp_path / "site", Outputs().only(["markdown"])) / "markdown"
    (tmp_path / "mkdocs.yml").write_text(f"site_name: Choir\ndocs_dir: {out}\nsite_dir: {tmp_path / 'built'}\n")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", str(tmp_path / "mkdocs.yml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    built = (tmp_path / "built/index.html").read_text()
    assert "<strong>sing</strong>" in built and 'href="news/"' in built and 'src="i/a.png"' in built


def test_links_to_other_sites_have_a_way_on(tmp_path: Path) -> None:
    robust = (write(tmp_path / "a", Outputs().only(["site"])) / "lost.example/index.html").read_text()
    assert 'data-originalurl="http://other.org/page"' in robust and 'data-versiondate="' in robust
    assert "data-originalurl" not in (tmp_path / "a/lost.example/news/index.html").read_text()
    unchanged = replace(Outputs().only(["site"]), outside="keep")
    kept = (write(tmp_path / "b", unchanged) / "lost.example/index.html").read_text()
    assert "data-originalurl" not in kept and 'href="http://other.org/page"' in kept


def test_start_here_leads_to_what_was_written_and_says_how_to_go_online(tmp_path: Path) -> None:
    folder = write(tmp_path / "site", Outputs())
    text = (folder / "START-HERE.html").read_text()
    links = [part.partition('"')[0] for part in text.split('href="')[1:]]
    assert links == ["lost.example/index.html", "report.html", *links[2:]] or "lost.example/index.html" in links
    assert all((folder / link).exists() for link in links)
    assert text.count("<li><b>") == 3 and "another owner" in text


def test_outputs_are_chosen_by_name_and_survive_the_journal() -> None:
    for name in OUTPUTS:
        chosen = Outputs().only([name])
        assert chosen.chosen == {name} and Outputs.from_json(chosen.to_json()) == chosen
    with pytest.raises(UsageError, match="not an output"):
        Outputs().only(["site", "pdf"])
