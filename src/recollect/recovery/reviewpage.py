"""The local page on which a person decides about doubtful pages: what it shows, and what its form says.

Hides: markup. Pure except for reading the store. The page runs no script. A doubtful page is in a frame with `sandbox`,
and everything that was recovered is sent with a policy that allows pictures and styles only: recovered content is
foreign, and never runs in the origin that takes decisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from recollect.quantities import counted
from recollect.recovery.preview import Reply, reply
from recollect.recovery.review import FRAME_POLICY, Decision, DoubtfulPage, doubtful_pages, page_for_review
from recollect.recovery.store import Store

PATH = "/_recollect/review"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'; form-action 'self'; frame-ancestors 'none'"
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
article { border-top: 1px solid #8884; padding: 1rem 0 }
h2 { font-size: 1.1rem; overflow-wrap: anywhere; margin: .25rem 0 }
iframe { width: 100%; height: 24rem; border: 1px solid #8888; background: #fff }
label { margin-right: 1.5rem }
button { font: inherit; padding: .5rem 1.5rem }
small { opacity: .75 }
"""
WORDS = {
    "soft-404": "an error page",
    "error-page": "an error of the server",
    "parked": "a domain for sale",
    "hijacked": "a page of another owner",
    "foreign": "a page of another site",
    "login": "a login",
    "cookie-wall": "a demand to accept cookies",
    "anti-bot": "a check for robots",
    "rendering": "a text version that an archive made of a document",
    "leads-nowhere": "a front page without links into the site",
}


def answer(folder: Path, target: str, token: str) -> Reply:
    """The answer to a request for the page, for a doubtful page, or for what that embeds."""
    if target == PATH:
        return _html(review_page(doubtful_pages(folder), token), _POLICY)
    if target.startswith(f"{PATH}/"):
        number = target.removeprefix(f"{PATH}/")
        known = number.isdecimal() and 1 <= int(number) <= len(doubtful_pages(folder))
        return _html(page_for_review(folder, int(number)), FRAME_POLICY) if known else _html(b"", FRAME_POLICY, 404)
    with Store.open(folder) as store:
        found = reply(store, target)
    kept = tuple((name, value) for name, value in found.headers if name != "Content-Security-Policy")
    return Reply(found.status, (*kept, ("Content-Security-Policy", FRAME_POLICY)), found.body)


def _html(body: bytes, policy: str, status: int = 200) -> Reply:
    headers = (
        ("Content-Type", "text/html; charset=utf-8" if policy is _POLICY else "text/html"),
        ("Content-Length", str(len(body))),
        ("Content-Security-Policy", policy),
        ("Cache-Control", "no-store"),
        ("Referrer-Policy", "no-referrer"),
    )
    return Reply(status, headers, body)


def review_page(pages: Sequence[DoubtfulPage], token: str) -> bytes:
    """The page: each doubtful page with its address, date and reason, in a frame, and two choices."""
    head = (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>Pages to review</title><style>{_STYLE}</style></head><body>"
    )
    if not pages:
        return f"{head}<h1>Nothing to review</h1><p>Every page is decided.</p></body></html>\n".encode()
    articles = "".join(_article(page) for page in pages)
    return (
        f"{head}<h1>{counted(len(pages), 'page')} to review</h1>"
        "<p>Are these pages yours? What you leave open stays as it is. A choice holds for similar pages, too.</p>"
        f"<form method='post' action='{PATH}'><input type='hidden' name='token' value='{escape(token)}'>"
        f"{articles}<p><button>Save, and build the site again</button></p></form></body></html>\n"
    ).encode()


def _article(page: DoubtfulPage) -> str:
    name = f"page-{page.number}"
    like = f" {counted(len(page.similar), 'similar page')} will follow." if page.similar else ""
    sure = f", {page.confidence:.0%} sure" if page.confidence is not None else ""
    choices = "".join(
        f"<label><input type='radio' name='{name}' value='{value}'> {label}</label>"
        for value, label in ((Decision.MINE, "Mine"), (Decision.NOT_MINE, "Not mine"))
    )
    return (
        f"<article><h2>{escape(page.uri)}</h2><p>Captured {page.captured_at:%d %B %Y}. Looks like "
        f"{escape(WORDS.get(page.verdict, page.verdict))}{sure}. <small>{escape(page.reason)}.{like}</small></p>"
        f"<iframe sandbox loading='lazy' title='{escape(page.uri)}' src='{PATH}/{page.number}'></iframe>"
        f"<input type='hidden' name='uri-{page.number}' value='{escape(page.uri)}'>"
        f"<p role='radiogroup' aria-label='{escape(page.uri)}'>{choices}</p></article>"
    )


def decisions_of(folder: Path, fields: Mapping[str, Sequence[str]]) -> dict[str, Decision]:
    """What the form says, for pages that are still doubtful."""
    known = {page.uri for page in doubtful_pages(folder)}
    chosen: dict[str, Decision] = {}
    for name, values in fields.items():
        number = name.removeprefix("page-")
        uri = (fields.get(f"uri-{number}") or [""])[0]
        if name.startswith("page-") and uri in known and values[0] in tuple(Decision):
            chosen[uri] = Decision(values[0])
    return chosen
