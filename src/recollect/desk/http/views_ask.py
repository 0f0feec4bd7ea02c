"""The forms that lead to a job: describe the site, see what archives have, confirm. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recollect.archives.registry import Archive
from recollect.desk.http.views import Fields, show
from recollect.ui import charts
from recollect.ui.messages import current

_OF_THE_FORM = ("uri", "at", "from", "to")


def form_page(archives: Sequence[Archive], given: Mapping[str, Any], errors: Mapping[str, str]) -> str:
    """Where one describes what was lost."""
    names = {archive.id: archive.name or archive.id for archive in archives}
    return show(
        "home.html",
        archives=names,
        chosen_archives=given.get("archives") or list(names),
        given=Fields(given),
        errors=Fields(errors),
        other_errors=[text for name, text in errors.items() if name not in _OF_THE_FORM],
        more_open=any(name != "uri" for name in errors) or (given.get("when") or "newest") != "newest",
    )


def survey_wait_page(uri: str) -> str:
    return show("survey_wait.html", uri=uri)


def survey_page(
    uri: str,
    found: Mapping[str, Any],
    estimate: Mapping[str, float],
    fields: Mapping[str, Any],
    errors: Mapping[str, str],
) -> str:
    """What the archives list, what may come back, and how long it takes; and the form that asks for it."""
    archives = found.get("archives", [])
    if not found.get("captures"):
        return show("nothing_listed.html", uri=uri, archives=archives)
    texts = current()
    headers = (texts.gettext("Year"), texts.gettext("Copies"))
    kept = [(k, v) for k, v in fields.items() if isinstance(v, str) and v and k not in ("email", "name", "lang")]
    return show(
        "survey.html",
        uri=uri,
        resources=int(found.get("resources", 0)),
        captures=int(found["captures"]),
        last_good=found.get("last_good"),
        size=found.get("estimate", {}).get("bytes"),
        chart=charts.columns(charts.years(found["per_year"]), texts.gettext("Copies per year"), headers),
        waiting=float(estimate.get("waiting", 0)),
        working=float(found.get("estimate", {}).get("seconds", 0)),
        kept=kept + [("archives", one) for one in fields.get("archives", [])],
        archives=archives,
        given=Fields(fields),
        errors=Fields(errors),
        other_errors=[text for name, text in errors.items() if name not in ("email", "name")],
    )


def sent_page(uri: str) -> str:
    return show("sent.html", uri=uri)


def confirm_page(uri: str, token: str) -> str:
    """The page that the link in the mail leads to: one form, and only its button confirms."""
    return show("confirm.html", uri=uri, token=token)
