"""Pages of people, from templates of `desk/templates`: the small ones here, the forms that lead to a job in
`views_ask`, the page of a job in `views_job`. Pure: no request, no database; the language is the request's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect.desk.http.language import links
from recollect.ui.messages import current
from recollect.ui.pages import Linked, render


class Fields(dict[str, Any]):
    """Values of a form or errors by field; what is not there is empty."""

    def __missing__(self, key: str) -> str:
        return ""


def show(template: str, **values: object) -> str:
    """A page of the desk."""
    return render(f"desk/{template}", Linked(), language_links=links(), **values)


def translated(text: str) -> str:
    """A sentence of an error, with a capital letter, in the language of the visitor if it is in its catalogue."""
    shown = current().gettext(text)
    return shown[:1].upper() + shown[1:]


def problem_page(what: str, why: str, hint: str = "") -> str:
    return show("problem.html", what=translated(what), why=translated(why), hint=translated(hint))


def takedown_page(errors: Mapping[str, str], given: Mapping[str, str], done: bool = False) -> str:
    return show("takedown.html", errors=Fields(errors), given=Fields(given), done=done)
