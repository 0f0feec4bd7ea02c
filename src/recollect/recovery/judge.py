"""Is this capture really the page, or something that answered in its place?

The newest capture of a lost site is often a soft 404, a parked domain, another site, a login or an anti-bot
page.

One judge for archived captures (`recovery.examine`, `recovery.acquire`) and live answers (`watch.visit`, `watch.look`).
Hides: the phrases and shapes by which such pages are known. Pure: takes what was read of a document, returns a verdict
with a reason as text and a confidence, which is calibrated on labelled pages: below `DOUBTFUL_FROM` a capture is taken,
from there on it is doubtful, from `REJECTED_FROM` on it is rejected.

Rules are made so that a page *about* errors stays: a phrase counts in a title or near the start of a short text, never
alone in a long article. `same_page` compares two captures, so that what a page always was is not held against it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain

from recollect.recovery.choose import is_document_name
from recollect.recovery.hostpages import host_page
from recollect.recovery.links import Document, document_form
from recollect.recovery.measure import extract_text, similarity
from recollect.recovery.verdicts import Verdict

DOUBTFUL_FROM = 0.5
"""A verdict of this confidence is asked about: the capture gives way to any other, and alone it is kept for review."""
REJECTED_FROM = 0.98
"""A capture with a verdict of this confidence is not kept, not even for review."""


class Rule(StrEnum):
    """What a verdict rests on."""

    FILE_IS_HTML = "file-is-html"
    DOCUMENT_IS_HTML = "document-is-html"
    TITLE_404 = "title-404"
    TITLE_404_LONG = "title-404-long"
    TEXT_404 = "text-404"
    SAME_BYTES = "same-bytes"
    ERROR_TITLE = "error-title"
    ERROR_TEXT = "error-text"
    HOST_PAGE = "host-page"
    PARKED_TEXT = "parked-text"
    PARKED_REFRESH = "parked-refresh"
    ROBOT_TITLE = "robot-title"
    ROBOT_TEXT = "robot-text"
    LOGIN_FORM = "login-form"
    COOKIE_TEXT = "cookie-text"
    TRADE_WORDS = "trade-words"


# The share of right verdicts, (right + 1) / (all + 2), on labelled pages of the half for tuning (`make experiment-judge
# ARGS=--calibrate`); of rules that the half has no page for, an estimate. One rule alone never rejects, but for a file
# that is a page; several of one verdict are taken to be independent.
CONFIDENCE: dict[Rule, float] = {
    Rule.FILE_IS_HTML: 0.99,
    Rule.DOCUMENT_IS_HTML: 0.9,
    Rule.TITLE_404: 0.96,
    Rule.TITLE_404_LONG: 0.9,
    Rule.TEXT_404: 0.89,
    Rule.SAME_BYTES: 0.85,
    Rule.ERROR_TITLE: 0.97,
    Rule.ERROR_TEXT: 0.89,
    Rule.HOST_PAGE: 0.97,
    Rule.PARKED_TEXT: 0.94,
    Rule.PARKED_REFRESH: 0.95,
    Rule.ROBOT_TITLE: 0.93,
    Rule.ROBOT_TEXT: 0.89,
    Rule.LOGIN_FORM: 0.89,
    Rule.COOKIE_TEXT: 0.89,
    Rule.TRADE_WORDS: 0.85,
}


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a capture is not taken."""

    verdict: Verdict
    detail: str
    certain: bool = False  # it cannot be the resource, so it is not kept for review either
    confidence: float = 0.9  # the probability that the verdict is right
    rules: tuple[Rule, ...] = ()


def _by(rule: Rule, verdict: Verdict, detail: str) -> Rejection:
    return Rejection(verdict, detail, confidence=CONFIDENCE[rule], rules=(rule,))


def combined(hits: Iterable[Rejection]) -> Rejection | None:
    """One verdict of all that rules say of one page: the first rule's, surer with every other rule that agrees."""
    all_hits = list(hits)
    if not all_hits:
        return None
    first = all_hits[0]
    agreeing = [hit for hit in all_hits if hit.verdict == first.verdict]
    doubt = math.prod(1 - hit.confidence for hit in agreeing)
    rules = tuple(rule for hit in agreeing for rule in hit.rules)
    certain = first.certain or 1 - doubt >= REJECTED_FROM
    return Rejection(first.verdict, first.detail, certain, min(1 - doubt, 0.999), rules)


def _phrases(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases), re.IGNORECASE)


_NOT_FOUND = "|".join(
    (
        r"not[ -]found|(?:can(?:no|')t|could(?: not|n't)|can not) be found|does(?: not|n't) exist",
        r"no longer (?:available|exists?|here|online)|has (?:been )?(?:re)?moved|(?:is|has) (?:gone|disappeared)",
        r"(?:can(?:no|')t|could(?: not|n't)|can not|unable to|failed to) (?:find|locate)",
        r"nothing (?:was |is )?(?:found|here)",
        r"nicht gefunden|existiert nicht|introuvable|n'existe (?:pas|plus)",
        r"no (?:se ha )?encontrad[ao]|no existe|niet gevonden|bestaat niet|non (?:è stata )?trovat[ao]",
        r"não (?:foi )?encontrad[ao]|hittades inte|finns inte|(?:blev )?ikke fundet|finnes ikke|ikke funnet",
        r"ei löyd|nie znalezion|nie została znaleziona|nenalezen|nem található|не найден|не существует",
        r"見つかりません|存在しません|页面不存在|找不到|찾을 수 없",
    )
)
_THING = (
    r"(?:page|file|document|object|resource|url|address|site|seite|datei|página|pagina|sidan|siden|strona|страница)"
)
_TITLE_404 = _phrases(
    r"^\W*+(?:http )?(?:error|fehler|erreur|status)?\W*+404\b", rf"\b404\b.{{0,120}}(?:{_NOT_FOUND}|error)", _NOT_FOUND
)
_BODY_404 = _phrases(
    r"\bhttp (?:error )?404\b",
    r"^\W*+(?:error\W*+)?404\b",
    r"\berror 404\b",
    rf"{_THING}\b[^.!?]{{0,80}}?(?:{_NOT_FOUND})",
    rf"(?:{_NOT_FOUND})[^.!?]{{0,40}}?{_THING}",
    r"ページが見つかりません|页面不存在|페이지를 찾을 수 없",
)
_SORRY = _phrases(r"sorry|oops|error|unfortunately|leider|désolé|lo sentimos|siamo spiacenti")

_PARKED = _phrases(
    r"domain (?:name )?(?:is|may be|might be) (?:for sale|available|parked)|domain for sale|buy this domain",
    r"(?<![\w-])[\w-]++\.[a-z]{2,10} (?:is|may be|might be) (?:for sale|parked|available for purchase)\b",
    r"this (?:web ?page|domain|site) is parked|parked (?:free|by|domain)",
    r"domain has been registered",
    r"inquire about this domain|make an offer on this domain|future home of something quite cool",
    r"sedo(?:parking)?\.com|sedo domain parking|parkingcrew|bodis\.com|hugedomains|afternic|dan\.com/buy",
    r"sponsored (?:listings|links) (?:displayed|for|related) |related searches:? .{0,200}privacy policy$",
    r"diese domain (?:steht|ist) (?:zum verkauf|geparkt)|ce (?:nom de )?domaine est (?:à vendre|en vente)",
    r"dominio (?:in vendita|en venta)|deze domeinnaam is te koop",
    r"website (?:is )?(?:coming soon|not configured)[^.]{0,60}(?:hosting|registrar|domain)",
)
_ANTI_BOT_TITLE = _phrases(
    r"^(?:just a moment|attention required|access denied|please wait|one moment|security check|ddos protection)",
    r"^(?:robot check|are you (?:a )?(?:human|robot)|human verification|pardon our interruption|bot verification)",
    r"^(?:captcha|verify(?:ing)? you are human)",
)
_ANTI_BOT = _phrases(
    r"checking (?:your browser|if the site connection is secure)|enable javascript and cookies to continue",
    r"ddos protection by|verify(?:ing)? (?:that )?you are (?:a |not a )?(?:human|robot)|unusual traffic from your",
    r"incapsula incident id|request unsuccessful\. incapsula|complete the (?:security check|captcha)",
    r"performance & security by cloudflare|you have been blocked|automated (?:requests|queries|access)",
    r"prove (?:that )?you are (?:a |not a )?(?:human|robot|bot)|access to this page has been denied|bot detection",
    r"reference #[0-9a-f.]{8,}",
)
_SERVER_ERROR_TITLE = _phrases(
    r"^\W*+(?:http )?(?:error|fehler|erreur)?\W*+(?:500|501|502|503|504|403|401)\b(?:\W|$)",
    r"^(?:internal server error|service (?:temporarily )?unavailable|bad gateway|gateway time-?out|forbidden)\W*+$",
    r"^(?:database error|site offline|fatal error|runtime error|server error|application error)\b",
)
_SERVER_ERROR = _phrases(
    r"internal server error|service (?:is )?(?:temporarily )?unavailable|bad gateway|gateway time-?out",
    r"error (?:establishing|connecting to) (?:a |the )?database",
    r"(?:could not|can't|cannot|unable to|failed to) connect to (?:the |a )?(?:mysql|mariadb|postgres|database)",
    r"(?:fatal|parse|catchable) error: .{5,200} on line \d+|warning: \w+\(\).{0,200} on line \d+",
    r"server error in '[^']*' application|microsoft ole db provider for|odbc (?:driver|microsoft access)",
    r"traceback \(most recent call last\)|java\.lang\.\w+exception|you (?:don't|do not) have permission to access",
    r"too many connections|the server encountered an (?:internal|unexpected)|SQLSTATE\[|database (?:connection )?error",
    r"uncaught (?:error|exception|pdoexception)|there has been a critical error on (?:this|your) website",
    r"application error|an unexpected error (?:has )?occurred",
)
_LOGIN = _phrases(
    r"\b(?:log ?-?in|sign ?-?in|log ?-?on|authentication required)\b",
    r"\b(?:anmelden|anmeldung|connexion|iniciar sesión|accedi|inloggen)\b",
)
# A title that only states an error, apart from the name of the site.
_ERROR_TITLE = _phrases(
    r"(?:http )?(?:error|fehler|erreur|status)?\W*+404\W*+(?:error|fehler)?\W*+"
    r"(?:(?:page|file|document) )?(?:not found)?\W*+",
    rf"(?:sorry|oops|error)?\W*+(?:the |this |diese |la |cette )?(?:requested )?{_THING}?\W*+"
    rf"(?:you \w++ )?(?:was |is |has |could )?(?:{_NOT_FOUND})\W*+",
)
_TITLE_PARTS = re.compile(
    r"(?<!\s)\s++[|\u2013\u2014\u00bb\u00b7-]\s++|(?<!\s)\s*+[|\u00bb\u00b7]\s*+|(?<=\s)[|\u00bb\u00b7]\s*+|:\s++"
)
_COOKIES = _phrases(
    r"(?:accept|agree to|consent to|allow|enable) (?:the use of |our |all )?cookies "
    r"(?:to|before|in order to) (?:continue|proceed|enter|view|access)",
    r"(?:before you (?:continue|enter|proceed))[^.]{0,80}(?:cookie|consent|privacy)",
    r"cookies? (?:are|is) (?:required|disabled)|please enable cookies",
    r"your browser (?:does not accept|blocks) cookies",
    r"we (?:and our (?:\d+ )?partners )?(?:value|care about) your privacy",
    r"(?:cookies akzeptieren|zustimmen) und (?:weiter|fortfahren)|accepter (?:les cookies )?(?:et|pour) continuer",
)
_LOGIN_PATH = _phrases(r"log[-_]?(?:in|on)|sign[-_]?in|auth|account|admin|session|member|user")
# Words of the trades that take over dropped domains. Several different ones, also in the title, are needed.
_SPAM = _phrases(
    r"casino|slots?\b|gacor|togel|judi|poker|betting|sportsbook|bandar|toto\b|situs|sbobet|pragmatic",
    r"viagra|cialis|levitra|pharmacy online|payday|cash advance|essay writing|replica watch|louis vuitton",
    r"escort|xxx|porn|crypto|カジノ|激安|ブランド|偽物|百家乐|彩票|娱乐城|赌场",
)
# Other names of a front page, which may well lead to it.
_FRONT = _phrases(r"/(?:index|default|home|main|welcome|start)(?:\.\w+)?/?$")
_FILE = _phrases(
    r"\.(?:gif|jpe?g|png|bmp|ico|webp|avif|css|js|mjs|swf|flv|mp[34]|m4a|avi|mov|wmv|webm|ogg|wav|mid)$",
    r"\.(?:pdf|zip|gz|tgz|rar|7z|exe|docx?|xlsx?|pptx?|ps|eps|woff2?|ttf|eot|otf)$",
)

_SOME_TEXT = 200  # characters; a rendered document has more
_SHORT = 1_500  # characters; a real page with so little text and such a phrase is rarer than an error page
_LONG = 6_000
_LITTLE = 600  # a form with its labels, a menu and a footer
_ALIKE = 0.5  # share of words two captures of one page have in common
_FEW_WORDS = 8
_SAME_PAGE = 0.9


def judge(
    document: Document | None, uri: str, media_type: str, *, repeats: int = 0, content: bytes = b""
) -> Rejection | None:
    """None for a good capture. `repeats` is how many other URLs of the site the listings give the very same bytes."""
    if _is_html_instead(uri, media_type, content):
        return _instead_of_a_file(document, uri, repeats)
    if document is None or document.form != "html":
        return None
    return _of_page(document, uri, repeats)


def _instead_of_a_file(document: Document | None, uri: str, repeats: int) -> Rejection:
    """HTML at the address of a file: an error, or, at that of a document, its text as an archive rendered it."""
    readable = document is not None and document.form == "html" and len(document.text) >= _SOME_TEXT
    if document is not None and readable and is_document_name(uri) and not repeats and not _of_page(document, uri, 0):
        return _by(Rule.DOCUMENT_IS_HTML, Verdict.RENDERING, "an HTML rendering of a document, not the document itself")
    return replace(_by(Rule.FILE_IS_HTML, Verdict.SOFT_404, "an HTML page where a file was expected"), certain=True)


def _of_page(document: Document, uri: str, repeats: int) -> Rejection | None:
    title = _plain(document.title)
    document = replace(document, title=title, text=_plain(document.text).removeprefix(title).lstrip())
    return combined(
        chain(
            _anti_bot(document),
            _host_page(document, uri),
            _parked(document),
            _soft_404(document, repeats),
            _error_page(document),
            _login(document, uri),
            _cookie_wall(document, uri),
            _hijacked(document),
        )
    )


def _plain(text: str) -> str:
    """With straight apostrophes, as the phrases have them."""
    return text.replace("\u2019", "'").replace("\u02bc", "'")


def _is_html_instead(uri: str, media_type: str, content: bytes) -> bool:
    path = re.split(r"[?#]", uri, maxsplit=1)[0]
    return bool(_FILE.search(path)) and document_form(media_type, path, content[:1024]) == "html" and "?" not in uri


def _soft_404(document: Document, repeats: int) -> Iterator[Rejection]:
    title, text = document.title, document.text
    if len(title) < 120 and _TITLE_404.search(title) and _is_error_title(title, text, repeats):
        rule = Rule.TITLE_404 if len(text) < _SHORT else Rule.TITLE_404_LONG
        yield _by(rule, Verdict.SOFT_404, f"its title says “{_words(title)}”")
    found = _BODY_404.search(text[:600])
    if found and (len(text) < _SHORT or (repeats >= 2 and len(text) < _LONG)):
        yield _by(Rule.TEXT_404, Verdict.SOFT_404, f"it says “{_words(found[0])}”")
    if repeats >= 4 and len(text) < _SHORT and _SORRY.search(title + " " + text[:300]):
        yield _by(Rule.SAME_BYTES, Verdict.SOFT_404, f"{repeats} other pages of the site have the very same bytes")


def _error_page(document: Document) -> Iterator[Rejection]:
    """A fault of a server or a program, sent as a page."""
    if len(document.text) >= _SHORT:
        return
    if found := _SERVER_ERROR_TITLE.search(document.title):
        yield _by(Rule.ERROR_TITLE, Verdict.ERROR_PAGE, f"its title says “{_words(found[0])}”")
    if found := _SERVER_ERROR.search(document.text[:600]):
        yield _by(Rule.ERROR_TEXT, Verdict.ERROR_PAGE, f"it says “{_words(found[0])}”")


def _is_error_title(title: str, text: str, repeats: int) -> bool:
    """A short page under such a title is an error page. A longer one is, when the title says nothing else: an article
    about such errors has more to say than that."""
    if len(text) < _SHORT or (repeats >= 2 and len(text) < _LONG):
        return True
    parts = [part.strip() for part in _TITLE_PARTS.split(title) if part.strip()]
    return len(text) < _LONG and any(_ERROR_TITLE.fullmatch(part) for part in parts)


def _parked(document: Document) -> Iterator[Rejection]:
    text = document.text
    found = _PARKED.search(document.title) or (_PARKED.search(text) if len(text) < _LONG else None)
    if found is not None:
        yield _by(Rule.PARKED_TEXT, Verdict.PARKED, f"it says “{_words(found[0])}”")
    if document.refresh and re.search(r"sedo|parking|hugedomains|afternic", document.refresh, re.I):
        yield _by(Rule.PARKED_REFRESH, Verdict.PARKED, f"it sends on to {document.refresh[:100]}")


def _host_page(document: Document, uri: str) -> Iterator[Rejection]:
    if found := host_page(document, uri):
        yield _by(Rule.HOST_PAGE, *found)


def _anti_bot(document: Document) -> Iterator[Rejection]:
    if len(document.text) > _LONG:
        return
    found = _ANTI_BOT.search(document.text[:2000])
    if _ANTI_BOT_TITLE.search(document.title) and (found or len(document.text) < 400):
        yield _by(Rule.ROBOT_TITLE, Verdict.ANTI_BOT, f"its title says “{_words(document.title)}”")
    if found and len(document.text) < _SHORT:
        yield _by(Rule.ROBOT_TEXT, Verdict.ANTI_BOT, f"it says “{_words(found[0])}”")


def _login(document: Document, uri: str) -> Iterator[Rejection]:
    if not document.has_password or _LOGIN_PATH.search(uri.partition("://")[2].partition("/")[2]):
        return
    if len(document.text) < _LITTLE and (_LOGIN.search(document.title) or _LOGIN.search(document.text)):
        detail = f"it asks for a password, and says little else: “{_words(document.title)}”"
        yield _by(Rule.LOGIN_FORM, Verdict.LOGIN, detail)


def _cookie_wall(document: Document, uri: str) -> Iterator[Rejection]:
    """Only a demand to accept cookies; a banner above a page's own text is not one."""
    if len(document.text) >= _SHORT or re.search(r"cookie|privacy|consent", uri, re.IGNORECASE):
        return
    found = _COOKIES.search(document.title + " " + document.text)
    rest = len(document.text) - (len(found[0]) if found else 0)
    if found and rest < _LITTLE:
        yield _by(Rule.COOKIE_TEXT, Verdict.COOKIE_WALL, f"it says “{_words(found[0])}”")


def _hijacked(document: Document) -> Iterator[Rejection]:
    in_title = {word.lower() for word in _SPAM.findall(document.title)}
    in_text = {word.lower() for word in _SPAM.findall(document.text)}
    if in_title and len(in_text | in_title) >= 3:
        some = ", ".join(sorted(in_text | in_title)[:4])
        yield _by(Rule.TRADE_WORDS, Verdict.HIJACKED, f"content of another site: {some}")


def judge_redirect(
    source: str, target: str, *, target_in_scope: bool, target_is_home: bool, has_content: bool = False
) -> Rejection | None:
    """A redirect that leaves the site, or leads from a deep page to the front page or a login, is not content.

    Other names of the front page may lead to it, unless there are captures with content of their own (`has_content`).
    """
    path = target.partition("://")[2].partition("/")[2]
    if not target_in_scope:
        return Rejection(Verdict.REDIRECTED_AWAY, f"it sends on to {target[:200]}")
    if target_is_home and (has_content or not _FRONT.search(source.partition("?")[0])):
        return Rejection(Verdict.REDIRECTED_AWAY, "it sends on to the front page")
    if re.search(r"\b(?:404|not-?found|error)\b", path.partition("?")[0], re.I):
        return Rejection(Verdict.SOFT_404, f"it sends on to an error page, {target[:200]}")
    if re.search(r"(?:^|/)(?:cookie-?(?:wall|consent)|consent)\b", path, re.I):
        return Rejection(Verdict.COOKIE_WALL, f"it sends on to {target[:200]}")
    if re.search(r"(?:^|/)(?:log-?in|sign-?in|logon)\b", path, re.I) and not _LOGIN_PATH.search(
        source.partition("://")[2]
    ):
        return Rejection(Verdict.LOGIN, f"it sends on to {target[:200]}")
    return None


def is_error_page_of(page: bytes, impossible: bytes, front: bytes, media_type: str) -> bool:
    """Whether a page is what the site sends for an address that cannot exist: the same bytes, or nearly the same text,
    which is not that of the front page."""
    if page == impossible:
        return True
    if "html" not in media_type:
        return False
    first, second, home = (extract_text(content, media_type) for content in (page, impossible, front))
    if not first or not second:
        return False
    return similarity(first, second) >= _SAME_PAGE and similarity(second, home or "") < _SAME_PAGE


def same_page(one: Document, other: Document) -> bool:
    """Do two captures show the same page, of whatever dates? Half of their different words are the same.

    The words that made a capture suspect are in its text too, so a page that always had them is alike.
    """
    left, right = (set(re.findall(r"\w+", f"{d.title} {d.text}".lower())) for d in (one, other))
    if min(len(left), len(right)) < _FEW_WORDS:
        return left == right and bool(left)
    return len(left & right) >= _ALIKE * len(left | right)


def _words(text: str) -> str:
    return " ".join(text.split())[:80]
