"""What a person means by what they typed into the field for the lost site's address, or into one for a date. Pure.

Hides: the ways in which people write addresses. `understand` never raises for a text: it reads an address as it is, or
returns a question with choices, each of which is an address that `clean_uri` takes. Archive addresses of any Wayback
software are recognised by their shape, not by a list of archives.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from recollect.desk.jobs import Extent, Refused, clean_uri

_LONGEST = 4000
_WRAPPING = "<>()[]{}\"'`“”„‘’«»‹›"
_PUNCTUATION = ".,;:!"
_EMAIL = re.compile(r"(?:mailto:)?[^\s@/:?#]{1,64}@([^\s@/:?#]{1,253})", re.IGNORECASE)
_SCHEME = re.compile(r"[htps]{2,7}[\s:;.,]{0,3}[/\\]{1,4}(?=[^\s/\\])|https?[:;]\s*(?=[^\s/\\:;])", re.IGNORECASE)
_GOOD_SCHEME = re.compile(r"https?://(?=[^/])", re.IGNORECASE)
# /web/20090601000000/http://…, /wayback/2009*/…, /20090601id_/…, archive.today's /2009.06.01-120000/…
_ARCHIVED = re.compile(
    r"/(?:(\d{4,14})(?:[a-z]{2}_|\*)?|(\d{4}\.\d\d\.\d\d)-\d{6}|\*)/((?:https?:/{1,2})?[^/\s].*)",
    re.IGNORECASE | re.DOTALL,
)
_SEARCH = re.compile(r"(?:^|\.)(?:google|bing|duckduckgo|yahoo|yandex|startpage|ecosia)\.[a-z.]{2,6}$")
_SOCIAL = re.compile(
    r"(?:^|\.)(?:facebook|fb|instagram|twitter|x|tiktok|linkedin|pinterest|youtube|myspace|threads|snapchat|vk|xing|"
    r"bebo|friendster|reddit|discord|t|youtu)\.(?:com|net|me|be|ru|gg)$"
)
_NOT_SOCIAL = frozenset(("t.com", "x.net", "t.net", "x.me", "x.be", "t.be", "t.ru", "x.ru", "x.gg", "t.gg"))
_MAIL_HOSTS = re.compile(
    r"(?:^|\.)(?:gmail|googlemail|yahoo|hotmail|outlook|live|aol|icloud|gmx|web|proton|protonmail|mail|t-online)\.[a-z.]{2,6}$"
)
_ENDINGS = (".com", ".org", ".net")
# Dots and slashes of other keyboards; what is pasted along and cannot be seen.
_KEYS = str.maketrans(
    {
        "。": ".",
        "．": ".",
        "｡": ".",
        "：": ":",
        "／": "/",
        "＠": "@",
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad"),
    }
)
_DOT_WORDS = re.compile(
    r"\s*[(\[]\s*(?:dot|punkt|punto|ponto)\s*[)\]]\s*|\s+(?:dot|punkt|punto|ponto)\s+", re.IGNORECASE
)
_OTHER_SCHEME = re.compile(r"(?:ftps?|gopher|feed|view-source|wss?|file):(?://)?(?=[^/\s])", re.IGNORECASE)
# HOST/http://…, HOST/newest/http://…: archive.today and others without a timestamp.
_WRAPPED = re.compile(r"[^/\s]+/(?:[\w-]+/){0,2}(https?:/{1,2}[^/\s].*)", re.IGNORECASE | re.DOTALL)
_LAST_WORD = re.compile(r"(?:com|org|net|info|edu|gov|biz|name|eu|[a-z]{2})", re.IGNORECASE)


class Question(StrEnum):
    """What is asked before archives are."""

    EMAIL = "email"
    """An e-mail address was typed; perhaps its domain is meant."""
    MISTYPED = "mistyped"
    """Something that becomes an address by a small correction."""
    ARCHIVED = "archived"
    """The address of a copy in an archive, which names the lost site."""
    SEARCH = "search"
    """The address of a search engine's result."""
    SOCIAL = "social"
    """A page of a social network: little of it is ever saved."""
    PATH = "path"
    """A page or a folder of a site: the whole site is taken."""
    SEVERAL = "several"
    """More than one address."""
    NAME = "name"
    """A word without an ending such as .com."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to go on: an address, how much of it, and a date that was part of what was typed."""

    uri: str
    extent: Extent = Extent.SITE
    at: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was understood: an address, or a question with choices; neither when it is not an address."""

    uri: str = ""
    question: Question | None = None
    choices: tuple[Choice, ...] = ()


def understand(text: str) -> Reading:
    """Read what was typed as the address of a lost site."""
    typed = " ".join(text[:_LONGEST].translate(_KEYS).split())
    typed = _DOT_WORDS.sub(".", typed).lstrip(_WRAPPING + " ").rstrip(_WRAPPING + _PUNCTUATION + " ")
    for read in (_email, _archived, _search, _social, _several, _plain, _mistyped, _name):
        reading = read(typed)
        if reading is not None:
            return reading
    return Reading()


def _uri(text: str) -> str:
    """An address as `clean_uri` takes it; empty for what it refuses."""
    try:
        return clean_uri(re.sub(r"[\s\\]", lambda found: quote(found.group()), text))
    except Refused:
        return ""


def _reading(question: Question, choices: Sequence[Choice]) -> Reading | None:
    kept = tuple(dict.fromkeys(choice for choice in choices if choice.uri))
    return Reading(question=question, choices=kept) if kept else None


def _root(uri: str) -> str:
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{re.split(r'[/?#]', rest, maxsplit=1)[0]}/"


def _email(typed: str) -> Reading | None:
    found = _EMAIL.fullmatch(typed)
    if found is None:
        return None
    host = found.group(1).rstrip(".")
    choices = [] if _MAIL_HOSTS.search(host.lower()) else [Choice(_uri(f"http://{host}/"))]
    return Reading(question=Question.EMAIL, choices=tuple(choice for choice in choices if choice.uri))


def _archived(typed: str) -> Reading | None:
    """The innermost address of a copy: copies of copies exist."""
    inner, at = typed, ""
    for _ in range(5):
        rest = _GOOD_SCHEME.sub("", inner, count=1)
        if "/" not in rest or (found := _ARCHIVED.search(rest, rest.index("/"))) is None:
            break
        target = re.sub(r"^(https?):/+", r"\1://", found.group(3), flags=re.IGNORECASE)
        if not _GOOD_SCHEME.match(target) and "." not in target.partition("/")[0]:
            break
        inner, at = target, _day(found.group(1) or (found.group(2) or "").replace(".", ""))
    outer = []
    if inner == typed:
        scheme = _GOOD_SCHEME.match(typed)
        wrapped = _WRAPPED.fullmatch(typed[scheme.end() :] if scheme else typed)
        if wrapped is None:
            return None
        inner, outer = re.sub(r"^(https?):/+", r"\1://", wrapped.group(1), flags=re.IGNORECASE), [_uri(typed)]
    uri = _uri(inner) or _uri(unquote(inner))
    whole = _root(uri) if uri else ""
    choices = [Choice(whole), Choice(whole, at=at)] if at else [Choice(whole)]
    return _reading(Question.ARCHIVED, [*choices, *(Choice(_root(one)) for one in outer if one and uri)])


def _day(stamp: str) -> str:
    """A date from the first digits of a timestamp, as precise as they are; empty for what is not a date."""
    month, day = int(stamp[4:6] or 1), int(stamp[6:8] or 1)
    if not (stamp and "1990" <= stamp[:4] <= "2100" and 1 <= month <= 12):
        return ""
    if not 1 <= day <= monthrange(int(stamp[:4]), month)[1]:
        return ""
    return "-".join(part for part in (stamp[:4], stamp[4:6], stamp[6:8]) if part)


def _search(typed: str) -> Reading | None:
    if not _GOOD_SCHEME.match(typed):
        return None
    try:
        parts = urlsplit(typed)
        host = parts.hostname or ""
    except ValueError:
        return None
    if not _SEARCH.search(host):
        return None
    inside = [_uri(value) for _, value in parse_qsl(parts.query) if _GOOD_SCHEME.match(value)]
    return _reading(Question.SEARCH, [Choice(_root(uri)) for uri in inside if uri])


def _social(typed: str) -> Reading | None:
    uri = _uri(typed)
    host = uri.partition("://")[2].partition("/")[0].partition(":")[0].lower().removeprefix("www.")
    if not uri or host in _NOT_SOCIAL or not _SOCIAL.search(host):
        return None
    return _reading(Question.SOCIAL, [Choice(uri), Choice(uri, Extent.PAGE)])


def _several(typed: str) -> Reading | None:
    """Addresses with blanks, commas or semicolons between them."""
    parts = [part for part in re.split(r"[\s,;]+", typed) if part][:10]
    sites = [_root(uri) for part in parts if re.search(r"\w\.\w", part) and (uri := _uri(part.strip(_PUNCTUATION)))]
    if len(dict.fromkeys(sites)) < 2 or len(sites) < len([part for part in parts if "." in part]):
        return None
    return _reading(Question.SEVERAL, [Choice(site) for site in sites])


def _plain(typed: str) -> Reading | None:
    if _SCHEME.match(typed) and not _GOOD_SCHEME.match(typed):
        return None
    uri = _uri(typed)
    if not uri or "." not in uri.partition("://")[2].partition("/")[0].strip("."):
        return None
    path = uri.partition("://")[2].partition("/")[2]
    # A personal page on a shared host is a site of its own: /~anna/.
    if not path or re.fullmatch(r"(?:index|default|home)\.\w{3,5}", path, re.IGNORECASE):
        return Reading(_root(uri) if path else uri)
    if path.startswith(("~", "%7E", "%7e")):
        return Reading(uri)
    below = uri if uri.endswith("/") else uri[: uri.rindex("/") + 1]
    choices = [Choice(_root(uri)), *([Choice(below)] if below != _root(uri) else []), Choice(uri, Extent.PAGE)]
    return _reading(Question.PATH, choices)


def _mistyped(typed: str) -> Reading | None:
    """An address after a small correction: its scheme, blanks and commas for dots, a slash at its beginning."""
    typed = _OTHER_SCHEME.sub("", typed, count=1)
    scheme = _SCHEME.match(typed)
    rest = typed[scheme.end() :] if scheme else re.sub(r"^[:/\\;.,\s]+", "", typed)
    while again := _SCHEME.match(rest):  # http://https://
        scheme, rest = again, rest[again.end() :]
    kind = "https" if scheme and "s" in scheme.group().lower().partition("p")[2] else "http"
    host, slash, path = rest.replace("\\", "/").partition("/")
    host = re.sub(r"^(w{2,4})[.,\s]+", "www.", host, flags=re.IGNORECASE)
    spaced = re.sub(r"\s*([.,;])\s*|\s+", lambda found: "." if found.group(1) else "", host)
    words = re.split(r"[\s.,;]+", host)
    # "www example com": the blanks are dots.
    dotted = len(words) > 1 and " " in host and _LAST_WORD.fullmatch(words[-1])
    choices = [
        Choice(_root(uri))
        for candidate in ([".".join(words)] if dotted else [spaced, host.replace(" ", "-")])
        if (uri := _uri(f"{kind}://{candidate}{slash}{path}"))
    ]
    return _reading(Question.MISTYPED, [choice for choice in choices if "." in choice.uri[8:].strip("./")])


def _name(typed: str) -> Reading | None:
    """A word or some words without an ending: the usual endings."""
    words = re.findall(r"[\w-]+", typed.lower())
    if not words or len(words) > 4 or not re.fullmatch(r"[\w\s-]+", typed):
        return None
    name = "".join(words)
    return _reading(Question.NAME, [Choice(_uri(f"http://{name}{ending}/")) for ending in _ENDINGS])


# Dates ---------------------------------------------------------------------------------------------------------------

_MONTHS: dict[str, int] = {}
for _number, _names in enumerate(
    (
        "january janeiro enero januar jänner janvier gennaio januari jan ene",
        "february fevereiro febrero februar février febbraio februari feb fev",
        "march março marco marzo märz maerz mars maart mar mrz",
        "april abril avril aprile apr abr avr",
        "may maio mayo mai maggio mei mag",
        "june junho junio juni juin giugno jun giu",
        "july julho julio juli juillet luglio jul lug",
        "august agosto août aout augustus aug ago",
        "september setembro septiembre septembre settembre sep sept set",
        "october outubro octubre oktober octobre ottobre oct out okt ott",
        "november novembro noviembre novembre nov",
        "december dezembro diciembre dezember décembre dicembre dec dez dic",
    ),
    1,
):
    for _name_of_month in _names.split():
        _MONTHS[_name_of_month] = _number

_NUMBERS = re.compile(r"(\d{1,4})(?:\s*+[./-]\s*+|\s++)(\d{1,2})(?:(?:\s*+[./-]\s*+|\s++)(\d{1,4}))?\.?")
_SHORT = re.compile(r"(\d{1,2})\s*[./-]\s*(\d{4})")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th|er|º|ª|\.)(?=\W|$)", re.IGNORECASE)
_SMALL_WORDS = frozenset(("de", "del", "of", "the", "le", "am", "im", "around", "um", "ca", "em"))


def read_date(text: str, *, month_first: bool = False) -> str:
    """A date as people write it (1.6.2009, 06/2009, June 1, 2009, 1 de junho de 2009) as 2009-06-01, 2009-06 or 2009;
    empty for what is none. `month_first` reads 6/1/2009 as the first of June, as in the United States."""
    typed = " ".join(text[:100].split()).strip(" .,")
    if re.fullmatch(r"\d{4}", typed):
        return _checked(int(typed))
    if found := _SHORT.fullmatch(typed):
        return _checked(int(found.group(2)), int(found.group(1)))
    if found := _NUMBERS.fullmatch(typed):
        return _of_numbers(found.groups(), month_first and "." not in typed)
    return _of_words(typed)


def _of_numbers(groups: Sequence[str | None], month_first: bool) -> str:
    first, second, third = (int(group) if group else None for group in groups)
    if len(groups[0] or "") == 4:
        return _checked(first, second, third)
    if third is None or len(groups[2] or "") != 4:
        return ""
    day, month = (second, first) if month_first and (first or 0) <= 12 else (first, second)
    if (month or 0) > 12:  # only the other order is a date
        day, month = month, day
    return _checked(third, month, day)


def _of_words(typed: str) -> str:
    words = [word for word in re.split(r"[\s,./-]+", _ORDINAL.sub("", typed.lower())) if word not in _SMALL_WORDS]
    months = [_MONTHS[word] for word in words if word in _MONTHS]
    numbers = [word for word in words if word.isascii() and word.isdigit()]
    years = [int(word) for word in numbers if len(word) == 4]
    days = [int(word) for word in numbers if len(word) <= 2]
    if len(months) != 1 or len(years) != 1 or len(days) > 1 or len(words) != 2 + len(days):
        return ""
    return _checked(years[0], months[0], *days)


def _checked(year: int | None, month: int | None = None, day: int | None = None) -> str:
    from datetime import date

    try:
        date(year or 0, month or 1, day or 1)
    except ValueError:
        return ""
    parts = [f"{year:04d}", *(f"{part:02d}" for part in (month, day) if part is not None)]
    return "-".join(parts)
