"""The forms that lead to a job: describe the site, see what archives have, confirm. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from recollect.archives.registry import Archive
from recollect.desk.addresses import Reading, understand
from recollect.desk.http.views import Fields, show
from recollect.desk.jobs import Extent
from recollect.ui import charts
from recollect.ui.messages import current

_NOT_KEPT = ("email", "name", "lang", "promise", "exact")
_OF_THE_FORM = ("uri", "at", "from", "to")


@dataclass(frozen=True, slots=True)
class Outage:
    """Archives that did not answer a survey, by name, and when they are asked again."""

    silent: Sequence[str] = ()
    retry_at: float | None = None


def form_page(
    archives: Sequence[Archive], given: Mapping[str, Any], errors: Mapping[str, str], *, uploads: bool = False
) -> str:
    """Where one describes what was lost."""
    names = {archive.id: archive.name or archive.id for archive in archives}
    return show(
        "home.html",
        archives=names,
        uploads=uploads,
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
    outage: Outage = Outage(),  # noqa: B008 - frozen
    typed: str = "",
) -> str:
    """What the archives list, what may come back, and how long it takes; and the form that asks for it. `typed` is what
    was typed, when the whole site is taken instead of a page or a folder of it."""
    archives = found.get("archives", [])
    less = [one for one in _choices(understand(typed), {}) if one["uri"] != uri] if typed else []
    if not found.get("captures"):
        return show("nothing_listed.html", uri=uri, archives=archives, less=less)
    texts = current()
    headers = (texts.gettext("Year"), texts.gettext("Copies"))
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
        archives=archives,
        silent=outage.silent,
        retry_at=outage.retry_at,
        less=less,
        **_ask(fields, errors),
    )


def _ask(fields: Mapping[str, Any], errors: Mapping[str, str]) -> dict[str, Any]:
    """What the form needs that asks for a recovery, with everything that was chosen before."""
    kept = [(k, v) for k, v in fields.items() if isinstance(v, str) and v and k not in _NOT_KEPT]
    return {
        "kept": kept + [("archives", one) for one in fields.get("archives", [])],
        "given": Fields(fields),
        "errors": Fields(errors),
        "other_errors": [text for name, text in errors.items() if name not in ("email", "name")],
        "promise": fields.get("promise", ""),
    }


def unanswered_page(uri: str, fields: Mapping[str, Any], errors: Mapping[str, str], outage: Outage) -> str:
    """Not every archive answered, and those that did list nothing: this is not the answer."""
    return show("unanswered.html", uri=uri, silent=outage.silent, retry_at=outage.retry_at, **_ask(fields, errors))


def question_page(reading: Reading, given: Mapping[str, Any]) -> str:
    """What was typed is not the address of a site as it stands."""
    typed = str(given.get("uri", ""))[:300]
    return show("question.html", typed=typed, question=str(reading.question), choices=_choices(reading, given))


def _choices(reading: Reading, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The ways to go on, each a link with everything else that was chosen."""
    kept = {
        name: str(given[name])
        for name in ("when", "at", "from", "to", "windows_names", "scripts", "own_files")
        if given.get(name)
    }
    made = []
    for one in reading.choices:
        dated = {"when": "at", "at": one.at} if one.at else {}
        fields = {**kept, **dated, "uri": one.uri, "scope": one.extent.value, "exact": "yes"}
        page = one.extent is Extent.PAGE
        made.append({"uri": one.uri, "at": one.at, "page": page, "href": "/survey?" + urlencode(fields)})
    return made


def sent_page(uri: str) -> str:
    return show("sent.html", uri=uri)


def confirm_page(uri: str, token: str) -> str:
    """The page that the link in the mail leads to: one form, and only its button confirms."""
    return show("confirm.html", uri=uri, token=token)
