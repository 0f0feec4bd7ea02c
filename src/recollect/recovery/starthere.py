"""START-HERE: the first page of a recovered folder, for a person who lost a site.

Hides: layout. The figures and sentences are those of `figures` and `sentences`; everything else is fixed text and links
to files that are there. Three ways online, and what to do when the domain has another owner.
"""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from recollect.recovery.alsofound import NAME as ALSO_FOUND
from recollect.recovery.outputs import NO_SCRIPT
from recollect.recovery.report import Report
from recollect.recovery.sentences import Sentence, details, headline, outage, share, text
from recollect.recovery.timeline import FOLDER as CAPTURES
from recollect.recovery.timeline import NAME as TIMELINES

NAME = "START-HERE.html"

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Start here: {site}</title><style>
:root {{ color-scheme: light dark; font: 17px/1.6 system-ui, sans-serif }}
body {{ max-width: 42rem; margin: 2rem auto; padding: 0 1rem }}
li, p {{ overflow-wrap: anywhere }}
</style></head><body>
<h1>{headline}</h1>
<p>{site}: {share}.</p>
{details}
<h2>Look at it</h2>
<ul>
{links}
</ul>
{scripts}
{online}
</body></html>
"""

_ONLINE = """<h2>Put it online again</h2>
<p>The folder <code>rehost/public</code> is the whole site. One of these is enough:</p>
<ol>
<li><b>A web host with a file manager:</b> open its file manager, go to the folder for web pages (often
<code>public_html</code>), and upload everything inside <code>rehost/public</code>.</li>
<li><b>A static host:</b> create a new site there and drop the folder <code>rehost/public</code> on it.</li>
<li><b>Your own server:</b> copy <code>rehost/public</code> to it; <code>rehost/README.txt</code> says which of the
files beside it Apache, nginx or Caddy needs, so that old addresses work again.</li>
</ol>
<p><b>If the domain has another owner now,</b> put the site under another name: all links inside are relative and work
anywhere. Do not send visitors to the old domain; tell sites that link to you the new address. You may ask the registrar
for the date the domain expires, or the new owner for a redirect.</p>"""


_WITHOUT_SCRIPTS = """<p><b>Nothing runs in this copy.</b> Scripts, handlers and plug-ins were taken out of its pages,
so that they cannot call other servers or lead visitors away. Menus, galleries and counters that need a script do not
work. If you miss them, get the copy with scripts: by the choice on the page where you asked for the site, or with
<code>recollect recover --resume FOLDER --scripts</code>. The archived originals, scripts included, are in
<code>recovered.wacz</code>.</p>"""
_WITH_SCRIPTS = """<p><b>The pages keep their scripts.</b> They load nothing from other servers, but old scripts are
programs of others, and some browsers let them lead visitors away. To have nothing run, get the copy without scripts: by
the choice on the page where you asked for the site, or with
<code>recollect recover --resume FOLDER --no-scripts</code>.</p>"""


def start_here_page(report: Report, folders: frozenset[str], *, scripts: bool = True) -> str:
    """The page; `folders` are the outputs that were written (`site`, `kit`, `as-archived` ...)."""
    figures = report.figures
    lines = [*details(figures), *(outage(one) for one in figures.outages)]
    listed = "".join(f"<li>{escape(text(line))}</li>\n" for line in lines)
    return _PAGE.format(
        site=escape(", ".join(report.start)),
        headline=escape(text(Sentence(headline(figures)))),
        share=escape(text(share(figures))),
        details=f"<ul>\n{listed}</ul>" if lines else "",
        links="\n".join(f'<li><a href="{quote(file)}">{words}</a></li>' for file, words in _links(report, folders)),
        scripts=(_WITH_SCRIPTS if scripts else _WITHOUT_SCRIPTS) if folders & {"site", "kit"} else "",
        online=_ONLINE if "kit" in folders else "",
    )


def _links(report: Report, folders: frozenset[str]) -> list[tuple[str, str]]:
    found = [(report.front, "The recovered site, for browsing on this computer")] if report.front else []
    if report.figures.unlinked and "site" in folders:
        found.append((ALSO_FOUND, "Older pages and files that no link leads to"))
    if "no-script" in folders and "site" in folders and report.front:
        found.append((f"{NO_SCRIPT}/{report.front}", "The site without scripts: nothing in it runs"))
    if CAPTURES in folders:
        found.append((TIMELINES, "All captures of each page and file, over the years"))
    if "as-archived" in folders:
        found.append(("as-archived/", "The files exactly as they were archived, to edit and upload"))
    if "markdown" in folders:
        found.append(("markdown/", "The pages as Markdown, for a site generator"))
    found.append(("report.html", "The report: where each file comes from, and what is missing"))
    return found
