"""The look of all pages: one style sheet and a few components, for the aggregator, the desk, the watch and `keep`.

Hides: markup. Components take plain values and escape them; only `Html` goes through as it is. Pages work without
script, by keyboard, narrow, in print, in light and dark. The content policy allows only files of the server, so pages
have neither inline styles nor inline scripts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup, escape

from recollect.quantities import counted
from recollect.ui.pages import ASSET_TYPES, HEADERS, Inlined, Linked, asset, render

__all__ = ["ASSET_TYPES", "HEADERS", "asset"]

Html = Markup
"""Markup that is fit to be sent; any other text is escaped."""
Text = str | int | float | Html


def join(parts: Iterable[Text], between: str = "") -> Html:
    return Html(between.join(escape(part) for part in parts))


def tag(name: str, /, *parts: Text, **attributes: str | bool | int | float | None) -> Html:
    """An element; `class_` is class, `_` in a name is a dash, True an attribute without value, None and False none."""
    shown = "".join(_attribute(key, value) for key, value in attributes.items())
    opened = f"<{name}{shown}>"
    return Html(opened) if name in _VOID else Html(f"{opened}{join(parts)}</{name}>")


_VOID = frozenset(("input", "img", "meta", "link", "br"))


def _attribute(key: str, value: str | bool | int | float | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def document(
    title: str,
    *body: Text,
    files: Linked | Inlined = Linked(),  # noqa: B008
    nav: Mapping[str, str] | None = None,
    here: str = "",
    refresh: int = 0,
    scripts: Sequence[str] = (),
    narrow: bool = True,
    footer: Text = "",
) -> str:
    """A whole page, of a server or in a single file.

    `nav` is address -> words, `here` the address it is at; `refresh` reloads without script.
    """
    return render(
        "ui/markup.html",
        files,
        title=title,
        body=join(body),
        nav=nav or {},
        here=here,
        refresh=refresh,
        scripts=scripts,
        narrow=narrow,
        note=footer,
    )


def card(title: Text, *body: Text, level: int = 2, kind: str = "") -> Html:
    head = tag(f"h{level}", title) if title else ""
    return tag("section", head, *body, class_=f"card {kind}".strip())


def notice(*body: Text, bad: bool = False) -> Html:
    return tag("div", *body, class_="notice bad" if bad else "notice", role="status")


def table(
    headers: Sequence[Text],
    rows: Iterable[Sequence[Text]],
    *,
    numbers: Sequence[int] = (),
    caption: str = "",
    stacked: bool = False,
) -> Html:
    """A table that scrolls inside a narrow page; columns of `numbers` are flush right. A `stacked` one does not scroll:
    on a narrow page each row is a list of names and values (the first header has no name there)."""

    def kind(index: int) -> str | None:
        return "number" if index in numbers else None

    def cell_of(index: int, cell: Text) -> Html:
        # A table that is shown as blocks keeps its meaning by roles.
        name = str(headers[index]) if stacked and index else None
        return tag("td", cell, class_=kind(index), data_label=name, role="cell" if stacked else None)

    # A column of buttons has no name: an empty header would be read out as one.
    cells = (tag("th", cell, scope="col", class_=kind(i)) if cell else tag("td") for i, cell in enumerate(headers))
    head = tag("tr", *cells)
    row_role = "row" if stacked else None
    body = [tag("tr", *(cell_of(i, cell) for i, cell in enumerate(row)), role=row_role) for row in rows]
    named = tag("caption", caption, class_="hidden") if caption else ""
    roles = {"class_": "stacked", "role": "table"} if stacked else {}
    inner = tag("table", named, tag("thead", head), tag("tbody", *body), **roles)
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption or "Table")


def facts(pairs: Iterable[tuple[Text, Text]]) -> Html:
    """Names and values."""
    return tag("dl", *(Html(tag("dt", name) + tag("dd", value)) for name, value in pairs))


def figures(pairs: Iterable[tuple[Text, Text]]) -> Html:
    """Large numbers with words below."""
    return tag("ul", *(tag("li", tag("b", number), tag("span", words)) for number, words in pairs), class_="figures")


def progress_bar(share: float, label: str, name: str = "progress") -> Html:
    """A bar; `name` is its id for a script, empty where a page has several."""
    percent = round(100 * share)
    return tag("progress", f"{percent}%", max=100, value=percent, aria_label=label, id=name or None)


_LEAST_BARS = 10  # pictures are as wide as the page: one bar alone would fill it


def bars(counts: Mapping[str, float], label: str) -> Html:
    """One bar for each name, as a picture with a text of the same content."""
    if not counts:
        return Html("")
    width, height, foot = 40, 90, 34
    top = max(counts.values()) or 1
    parts = []
    for index, (name, count) in enumerate(counts.items()):
        tall = max(2.0, height * count / top) if count else 0.0
        x = index * width
        parts.append(
            f'<rect x="{x + 5}" y="{16 + height - tall:.1f}" width="{width - 10}" height="{tall:.1f}" rx="3"/>'
        )
        parts.append(f'<text x="{x + width / 2}" y="{12 + height - tall:.1f}">{short(count)}</text>')
        parts.append(f'<text x="{x + width / 2}" y="{height + foot}">{escape(str(name))}</text>')
    words = ", ".join(f"{name}: {count:,}" for name, count in counts.items())
    return Html(
        f'<svg class="bars" viewBox="0 0 {width * max(len(counts), _LEAST_BARS)} {height + foot + 6}" role="img" '
        f'aria-label="{escape(label)}: {escape(words)}">{"".join(parts)}</svg>'
    )


def areas(
    moments: Sequence[float],
    layers: Mapping[str, Sequence[float]],
    kinds: Sequence[str],
    label: str,
    ends: Sequence[str],
) -> Html:
    """Layers on top of each other over time, each with a class of `kinds`; `ends` are the words at both ends.

    Values hold until the next moment. Of a single moment the picture is a bar.
    """
    if not moments:
        return Html("")
    width, height, left, top = 760.0, 240.0, 60.0, 14.0
    totals = [sum(values) for values in zip(*layers.values(), strict=True)]
    most = max(totals) or 1.0
    first, span = moments[0], (moments[-1] - moments[0]) or 1.0
    xs = [left + (width - left) * (moment - first) / span for moment in moments]
    xs = [*xs, width] if len(xs) == 1 else xs
    below = [0.0] * len(moments)
    parts = []
    for kind, (name, values) in zip(kinds, layers.items(), strict=True):
        above = [low + value for low, value in zip(below, values, strict=True)]
        if any(values):
            path = " ".join([*_steps(xs, above, top, height, most), *reversed(_steps(xs, below, top, height, most))])
            parts.append(f'<polygon class="fill-{kind}" points="{path}"><title>{escape(name)}</title></polygon>')
        below = above
    for share in (0.0, 0.5, 1.0):
        y = top + height * (1 - share)
        parts.append(f'<line x1="{left}" x2="{width}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="end" x="{left - 6}" y="{y + 4:.1f}">{short(most * share)}</text>')
    parts.append(f'<text x="{left}" y="{top + height + 22}">{escape(ends[0])}</text>')
    parts.append(f'<text class="end" x="{width}" y="{top + height + 22}">{escape(ends[-1])}</text>')
    words = ", ".join(f"{name}: {values[-1]:,.0f}" for name, values in layers.items())
    return Html(
        f'<svg class="areas" viewBox="0 0 {width:.0f} {top + height + 30:.0f}" role="img" '
        f'aria-label="{escape(label)}; at the end {escape(words)}">{"".join(parts)}</svg>'
    )


def _steps(xs: Sequence[float], values: Sequence[float], top: float, height: float, most: float) -> list[str]:
    """The points of a line that changes at each x."""
    points: list[str] = []
    for index, x in enumerate(xs):
        y = top + height * (1 - values[min(index, len(values) - 1)] / most)
        if index:
            before = top + height * (1 - values[index - 1] / most)
            points.append(f"{x:.1f},{before:.1f}")
        points.append(f"{x:.1f},{y:.1f}")
    return points


def key(kinds: Mapping[str, str]) -> Html:
    """What the colours of areas mean: words -> class."""

    def box(kind: str) -> Html:
        rect = f'<rect class="fill-{kind}" width="8" height="8"/>'
        return Html(f'<svg viewBox="0 0 8 8" aria-hidden="true">{rect}</svg>')

    return tag("ul", *(tag("li", box(kind), words) for words, kind in kinds.items()), class_="key")


def short(count: float) -> str:
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if count >= 10 * limit:
            return f"{count / limit:.0f}{unit}"
    return f"{count:,.0f}"


# Forms ---------------------------------------------------------------------------------------------------------------


def field(
    name: str,
    label: str,
    *,
    value: str = "",
    kind: str = "text",
    hint: str = "",
    error: str = "",
    required: bool = False,
    autocomplete: str | None = None,
    placeholder: str | None = None,
    inputmode: str | None = None,
) -> Html:
    """A labelled input; what is wrong with it is said beside it and tied to it."""
    described = " ".join(f"{name}-{part}" for part, text in (("hint", hint), ("error", error)) if text)
    shown = tag(
        "input",
        id=name,
        name=name,
        type=kind,
        value=value,
        required=required,
        autocomplete=autocomplete,
        placeholder=placeholder,
        inputmode=inputmode,
        aria_describedby=described or None,
        aria_invalid="true" if error else None,
        spellcheck="false",
    )
    return tag(
        "div",
        tag("label", label, for_=name),
        tag("p", hint, class_="hint", id=f"{name}-hint") if hint else "",
        shown,
        tag("p", error, class_="error", id=f"{name}-error") if error else "",
        class_="field wrong" if error else "field",
    )


def choice(name: str, legend: str, options: Mapping[str, Text], chosen: str) -> Html:
    """Radio buttons: value -> words."""
    made = [
        tag("label", tag("input", type="radio", name=name, value=value, checked=value == chosen), tag("span", words))
        for value, words in options.items()
    ]
    return tag("fieldset", tag("legend", legend), *made)


def checks(name: str, legend: str, options: Mapping[str, Text], chosen: Sequence[str]) -> Html:
    """Check boxes: value -> words."""
    made = [
        tag("label", tag("input", type="checkbox", name=name, value=value, checked=value in chosen), tag("span", words))
        for value, words in options.items()
    ]
    return tag("fieldset", tag("legend", legend), *made)


def hidden(fields: Mapping[str, str]) -> Html:
    return join(tag("input", type="hidden", name=name, value=value) for name, value in fields.items())


def post(action: str, *body: Text, button: str, plain: bool = False, class_: str | None = None) -> Html:
    """A form that is sent by its one button."""
    press = tag("button", button, class_="plain" if plain else None)
    return tag("form", *body, press, method="post", action=action, class_=class_)


def steps(words: Sequence[str], at: int) -> Html:
    items = [tag("li", word, aria_current="step" if number == at else None) for number, word in enumerate(words)]
    return tag("ol", *items, class_="steps", aria_label="Steps")


# Words for values ----------------------------------------------------------------------------------------------------


def duration(seconds: float) -> str:
    """`less than a minute`, `12 minutes`, `3 hours`, `2 days`: as exact as an estimate is."""
    if seconds < 60:
        return "less than a minute"
    for limit, unit, name in ((5400, 60, "minute"), (2 * 86400, 3600, "hour")):
        if seconds < limit:
            return counted(max(1, round(seconds / unit)), name)
    return counted(round(seconds / 86400), "day")
