"""Pages that a host shows in place of a site: a suspended account, a web server without a site, maintenance, an error.

Hides: the phrases and shapes of such pages. Pure. They are not content of someone else, and the site's files may still
be there. A phrase counts in the title or in a short text, so that an article about such pages stays an article, and
never on a page that has the links of the site (the caller knows these).
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from recollect.recovery.links import Document
from recollect.watch.states import VisitResult

_SHORT = 1_500
"""Characters of text; suspension and maintenance pages say little."""
_DEFAULT_MOST = 6_000
"""Apache's page on Debian has 3,000 characters."""
_WHOLE_TITLE = 90


def _phrases(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases), re.IGNORECASE)


_SUSPENDED = _phrases(
    r"\b(?:web ?)?(?:hosting |user |this )?(?:account|web ?site|site|hosting|domain|service|shop|store|blog) "
    r"(?:has been |have been |was |is |is currently |currently |temporarily |is temporarily )?"
    r"(?:suspended|deactivated|disabled by|blocked by (?:the|your) host)",
    r"\bsuspended (?:account|web ?site|page|domain|hosting)\b|\bsuspendedpage\b",
    r"\bcontact your (?:hosting|web ?hosting|service) provider for more information\b",
    r"\b(?:konto|webseite|website|internetpräsenz|hosting|paket|domain) (?:ist|wurde) (?:vorübergehend )?gesperrt\b",
    r"\b(?:compte|site|hébergement) (?:a été |est )?(?:temporairement )?suspendu",
    r"\b(?:cuenta|sitio|hosting|alojamiento) (?:ha sido |está |se encuentra )?(?:temporalmente )?suspendid[ao]",
    r"\b(?:account|sito|hosting) (?:è stato |è )?sospeso|\b(?:conta|site|hospedagem) (?:foi |está )?suspens[ao]",
    r"\b(?:account|website|hostingpakket) (?:is )?(?:opgeschort|geblokkeerd)\b|\bkonto zostało zawieszone\b",
)
_DOMAIN_EXPIRED = _phrases(
    r"\b(?:domain(?: name)?|[\w-]+\.[a-z]{2,10}) (?:has |have |is )?(?:recently |just )?expired\b",
    r"\bthis domain (?:name )?(?:is )?(?:pending|awaiting) (?:renewal|deletion)",
    r"\brenew (?:this|your|the) domain\b|\bdomain (?:ist|wurde) (?:abgelaufen|nicht verlängert)\b",
    r"\b(?:nom de )?domaine (?:a |est )?expiré\b|\bdominio (?:ha )?(?:caducado|expirado|scaduto)\b",
)
_ERROR = _phrases(
    r"\berror (?:establishing|connecting to) (?:a |the )?database|\bdatabase (?:connection )?error\b",
    r"\b(?:could not|cannot|can't|unable to|failed to) connect to (?:the |a )?(?:database|mysql|mariadb|postgres)",
    r"\bSQLSTATE\[|\btoo many connections\b",
    r"\b(?:fatal|parse|syntax) error:? .{0,200}\bon line \d+|\buncaught (?:error|exception|pdoexception)\b",
    r"\bthere has been a critical error on (?:this|your) website\b",
    r"\b(?:internal server error|bad gateway|gateway time-?out|service (?:temporarily )?unavailable)\b",
    r"\bapplication error\b|\bserver error in '/' application\b|\btraceback \(most recent call last\)",
    r"\b(?:something went wrong|an unexpected error (?:has )?occurred)\b",
)
_SUSPENDED_ADDRESS = _phrases(r"(?:^|[/.])suspended(?:page|account|site)?(?:[./?]|$)|/cgi-sys/suspendedpage")
_DEFAULT_TITLE = _phrases(
    r"^apache2? .{0,30}(?:default|test|placeholder) page",
    r"^welcome to (?:nginx|openresty|tengine|openlitespeed|caddy|centos|your new (?:website|server))",
    r"^(?:http server )?test page (?:for (?:the )?|powered by )(?:apache|nginx|http server|ssl|centos|fedora|red hat)",
    r"^(?:microsoft )?(?:internet information services|iis ?\d*|iis windows(?: server)?)\W*$",
    r"^it works!?\W*$",
    r"^(?:default (?:web ?site|server|parallels plesk|plesk|home|web) page|web server's default page)",
    r"^(?:domain default page|default page|placeholder page|index of /)\W*$",
    r"^(?:site|website) (?:not (?:yet )?configured|not published)",
    r"^congratulations\W+(?:your (?:site|website|server) (?:is|has been)|you)",
)
_DEFAULT_TEXT = _phrases(
    r"if you see this page,? the (?:nginx|openresty|web) ?(?:web ?)?server is (?:successfully installed|running)",
    r"this is the default (?:welcome )?page used to test the correct operation of",
    r"this page is used to test the proper operation of the (?:apache|nginx|http) ",
    r"^it works!?(?: this is the default web page for this server)?\W*(?:the web server software is running[^.]*\.)?",
    r"you see this page because there is no web ?site at this address",
    r"congratulations! your caddy web server is working",
    r"this is a default index page for a new domain",
)
_MAINTENANCE = _phrases(
    r"\b(?:under|in|undergoing|down for|closed for|unavailable for|offline for) (?:\w+ ){0,3}maintenance\b",
    r"\bmaintenance (?:mode|work|in progress|page|break)\b|\b(?:scheduled|routine|planned) maintenance\b",
    r"\bbriefly unavailable for\b|\bwe(?:'ll| will) be (?:right )?back (?:soon|shortly|online)\b|\bbe right back\b",
    r"\b(?:site|website|shop|store) is (?:currently |temporarily )?(?:being (?:updated|upgraded)|down for)\b",
    r"\bwartungs(?:arbeiten|modus)\b|\bwird (?:derzeit|gerade|aktuell) gewartet\b|\bin wartung\b",
    r"\b(?:site|page) en maintenance\b|\bmaintenance en cours\b|\ben mantenimiento\b|\btareas de mantenimiento\b",
    r"\bin manutenzione\b|\bem manutenção\b|\bonderhoudswerkzaamheden\b|\bin onderhoud\b|\bw trakcie konserwacji\b",
    r"メンテナンス中|維護中|维护中|점검 중|техническ(?:ие|их) работ",
)
_BY_PHRASE = (
    (VisitResult.DOMAIN_EXPIRED, _DOMAIN_EXPIRED),
    (VisitResult.SUSPENDED, _SUSPENDED),
    (VisitResult.MAINTENANCE, _MAINTENANCE),
    (VisitResult.FAILED, _ERROR),
)


def host_page(document: Document | None, url: str, status: int) -> tuple[VisitResult, str] | None:
    """Which page of a host this is, and by what it is known; None if it is none of these."""
    if _SUSPENDED_ADDRESS.search(_place(url)):
        return VisitResult.SUSPENDED, f"it leads to {url[:200]}"
    if document is None or document.form != "html":
        return None
    title, text = document.title.strip().replace("\u2019", "'"), document.text.strip().replace("\u2019", "'")
    title = title if len(title) <= _WHOLE_TITLE else ""
    own_links = sum(not link.embedded for link in document.links)
    found = _DEFAULT_TITLE.search(title) or (_DEFAULT_TEXT.search(text) if len(text) < _DEFAULT_MOST else None)
    if found and len(text) < _DEFAULT_MOST and status < 500:
        return VisitResult.DEFAULT_PAGE, f"it says “{_words(found[0])}”"
    if len(text) > _SHORT or own_links > 12:
        return None
    for kind, phrases in _BY_PHRASE:
        if found := phrases.search(title) or phrases.search(text):
            return kind, f"it says “{_words(found[0])}”"
    return None


def _place(url: str) -> str:
    try:
        split = urlsplit(url)
    except ValueError:
        return ""
    return f"{split.netloc.lower()}{split.path.lower()}"


def _words(text: str) -> str:
    return " ".join(text.split())[:120]
