"""Pages of people, from templates of `desk/templates`: the small ones here, the forms that lead to a job in
`views_ask`, the page of a job in `views_job`. Pure: no request, no database; the language is the request's.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from recollect.desk import promises
from recollect.desk.http.language import links
from recollect.desk.settings import DeskSettings
from recollect.ui.messages import current
from recollect.ui.pages import Brand, Linked, render


class Fields(dict[str, Any]):
    """Values of a form or errors by field; what is not there is empty."""

    def __missing__(self, key: str) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Operator:
    """Who offers the service, as pages show it."""

    brand: Brand = Brand()  # noqa: RUF009 - frozen
    colour: str = ""
    footer: str = ""
    mail_trouble: bool = False
    """The mail server does not answer now."""


operator: ContextVar[Operator] = ContextVar("operator", default=Operator())  # noqa: B039 - frozen


def operator_of(settings: DeskSettings) -> Operator:
    """The operator of the settings; the languages are the request's."""
    texts = current()
    links = {"/privacy": texts.gettext("Privacy")} | (
        {"/imprint": texts.gettext("Imprint")} if settings.imprint else {}
    )
    logo = "/_/operator-logo" if settings.operator_logo else ""
    brand = Brand(settings.operator_name or Brand().name, logo, links=links)
    return Operator(brand, settings.operator_colour, settings.footer)


def show(template: str, **values: object) -> str:
    """A page of the desk."""
    who = operator.get()
    sheets = ["look.css", *(["operator.css"] if who.colour else [])]
    page = {"language_links": links(), "sheets": sheets, "footer_text": who.footer, "mail_down": who.mail_trouble}
    return render(f"desk/{template}", Linked(), who.brand, **page, **values)


def privacy_page(settings: DeskSettings) -> str:
    """How a person's data is treated, by the settings."""
    times = {name: getattr(settings, name) for name in ("pending_for", "forget_after", "keep_for", "tell_for")}
    contact = settings.contact or settings.operator_address
    return show("privacy.html", promise=promises.mails(settings), contact=contact, text=settings.privacy, **times)


def imprint_page(settings: DeskSettings) -> str:
    return show("imprint.html", text=settings.imprint, contact=settings.contact or settings.operator_address)


def translated(text: str) -> str:
    """A sentence of an error, with a capital letter, in the language of the visitor if it is in its catalogue."""
    shown = current().gettext(text)
    return shown[:1].upper() + shown[1:]


def problem_page(what: str, why: str, hint: str = "") -> str:
    return show("problem.html", what=translated(what), why=translated(why), hint=translated(hint))


def takedown_page(errors: Mapping[str, str], given: Mapping[str, str], done: bool = False) -> str:
    return show("takedown.html", errors=Fields(errors), given=Fields(given), done=done)
