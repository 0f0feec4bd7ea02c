"""Pages from templates: the one way from values to HTML.

    from recollect.ui.pages import INLINED, Linked, render

    render("desk/job.html", Linked(), job=view)          # a server's page: links /_/look.css
    render("recovery/report.html", INLINED, report=...)        # a single file: everything inside, a strict policy

A template `PACKAGE/NAME` is the file `recollect/PACKAGE/templates/NAME`. Pages extend `ui/base.html` (blocks `title`,
`main`, `footer`) and take components from `ui/components.html` (`{% import "ui/components.html" as ui %}`). All values
are escaped in `.html`; templates have loops and conditions only. Texts go through `_()` and `ngettext()`, in the
language of `messages.current()`; the filters `number`, `percent`, `size`, `day`, `month`, `moment` and `duration`
write values as that language does. Charts come from `ui/charts.py` and are shown with `ui.chart()`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FunctionLoader, StrictUndefined
from jinja2.ext import InternationalizationExtension
from markupsafe import Markup

from recollect import __version__
from recollect.ui import messages
from recollect.ui.messages import current

PACKAGES = Path(__file__).parent.parent
_CSS, _JS = "text/css; charset=utf-8", "text/javascript; charset=utf-8"
ASSET_TYPES = {
    "look.css": _CSS,
    "page.css": _CSS,
    "page.js": _JS,
    "desk.js": _JS,
    "404.js": _JS,
    "lookup.js": _JS,
    "mementomap.js": _JS,
    "icon.svg": "image/svg+xml",
}
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


@cache
def asset(name: str) -> bytes:
    """A style sheet, script or picture of the pages; names are those of `ASSET_TYPES`."""
    return (Path(__file__).parent / "static" / name).read_bytes()


@dataclass(frozen=True, slots=True)
class Linked:
    """A page of a server, which has its files below `root/_/`; the policy is in `HEADERS`."""

    root: str = ""
    inline: bool = False

    def address(self, name: str) -> str:
        return f"{self.root}/_/{name}"


@dataclass(frozen=True, slots=True)
class Inlined:
    """A page in a single file: style sheets inside, no script, nothing loaded from anywhere."""

    root: str = ""
    inline: bool = True

    def sheet(self, name: str) -> Markup:
        # Nothing of a reader's is in our style sheets; they contain no `</style`.
        return Markup(asset(name).decode())

    def address(self, name: str) -> str:
        return f"data:{ASSET_TYPES[name].partition(';')[0]};base64,{base64.b64encode(asset(name)).decode()}"

    def policy(self, sheets: list[str], frames: bool = False) -> str:
        digests = (base64.b64encode(hashlib.sha256(asset(name)).digest()).decode() for name in sheets)
        allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
        shown = " frame-src 'self' file:;" if frames else ""
        own = "base-uri 'none'; form-action 'none'"
        return f"default-src 'none'; style-src {allowed}; img-src 'self' data:;{shown} {own}"


INLINED = Inlined()


@dataclass(frozen=True, slots=True)
class Brand:
    """Who offers the page, at its head and foot."""

    name: str = "Recollect"
    logo: str = ""
    home: str = "/"
    links: Mapping[str, str] = field(default_factory=dict)  # address -> words, in the footer


def _source(name: str) -> tuple[str, str, None]:
    package, _, rest = name.partition("/")
    path = PACKAGES / package / "templates" / rest
    return path.read_text(encoding="utf-8"), str(path), None


def _number(value: float, digits: int = 0) -> str:
    return current().number(value, digits)


@cache
def environment() -> Environment:
    """Jinja with everything templates may use."""
    made = Environment(
        loader=FunctionLoader(_source),
        autoescape=lambda name: name is None or not name.endswith(".txt"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[InternationalizationExtension],
        auto_reload=False,
    )
    made.policies["ext.i18n.trimmed"] = True
    install = made.install_gettext_callables  # type: ignore[attr-defined]
    install(lambda text: current().gettext(text), lambda *given: current().ngettext(*given), newstyle=True)
    made.filters |= {
        "number": _number,
        "percent": lambda value: current().percent(value),
        "size": lambda value: current().size(value),
        "day": lambda value: current().day(value),
        "month": lambda value: current().month(value),
        "moment": lambda value: current().moment(value),
        "iso": lambda seconds: datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds"),
        "duration": lambda value: current().duration(value),
    }
    made.globals |= {"version": __version__, "languages": messages.languages}
    return made


def render(template: str, files: Linked | Inlined = INLINED, brand: Brand | None = None, /, **values: object) -> str:
    """The page or text that a template makes of values."""
    language = current().language
    page = environment().get_template(template)
    return page.render(files=files, brand=brand or Brand(home=f"{files.root}/"), lang=language, **values)
