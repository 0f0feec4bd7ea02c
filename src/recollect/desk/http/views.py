"""What all pages of people share, and the small pages. Pure: no request, no database.

Hides: words and layout. Everything that came from outside is escaped by the components of `look`. The forms that lead
to a job are in `views_ask`, the page of a job in `views_job`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from recollect.ui.look import Html, card, document, field, post, tag

NAV = {"/": "Get a site back", "/takedown": "Take a site down"}
STEPS = ("Describe it", "See what there is", "Confirm by mail", "Download")


def moment(seconds: float | None) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%d %B %Y, %H:%M} UTC" if seconds is not None else ""


def day(seconds: float | None) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%d %B %Y}" if seconds is not None else ""


def page(
    title: str, *body: Any, here: str = "", refresh: int = 0, scripts: Sequence[str] = (), narrow: bool = True
) -> str:
    return document(title, *body, nav=NAV, here=here, refresh=refresh, scripts=scripts, narrow=narrow)


def try_this(uri: str) -> Html:
    """What helps when the archives have nothing."""
    host = uri.partition("://")[2].partition("/")[0]
    other = host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"
    return card(
        "What you can still try",
        tag(
            "ul",
            tag("li", "Check the spelling of the address, above all its ending (.com, .net, .org)."),
            tag("li", "Try the address of the whole site instead of one page: ", ask_link(f"http://{host}/")),
            tag("li", "Try it with or without www: ", ask_link(f"http://{other}/")),
            tag("li", "If the site had other addresses in earlier years, try those."),
            tag("li", "Search engines, friends and your own old computers may have single pages."),
        ),
    )


def ask_link(uri: str) -> Html:
    return tag("a", uri, href="/survey?" + urlencode({"uri": uri}))


def problem_page(what: str, why: str, hint: str = "") -> str:
    return page(
        what,
        tag("h1", what),
        card(
            "",
            tag("p", why) if why else "",
            tag("p", hint) if hint else "",
            tag("p", tag("a", "Back to the start", href="/")),
        ),
    )


def takedown_page(errors: Mapping[str, str], given: Mapping[str, str], done: bool = False) -> str:
    if done:
        return page(
            "Thank you", tag("h1", "Thank you"), card("", tag("p", "The operator of this service reads your request."))
        )
    reason = tag(
        "div",
        tag("label", "Why should it not be recovered here?", for_="reason"),
        tag("textarea", given.get("reason", ""), id="reason", name="reason", rows="5", required=True),
        class_="field",
    )
    body = post(
        "/takedown",
        field(
            "uri",
            "Address of the site",
            value=given.get("uri", ""),
            required=True,
            inputmode="url",
            error=errors.get("uri", ""),
        ),
        field(
            "email",
            "Your e-mail address",
            value=given.get("email", ""),
            kind="email",
            required=True,
            autocomplete="email",
            error=errors.get("email", ""),
        ),
        reason,
        button="Send",
    )
    return page(
        "Take a site down",
        tag("h1", "Take a site down"),
        tag("p", "Is it your site, and you do not want it to be recovered here? Tell the operator of this service."),
        card("", body),
        here="/takedown",
    )
