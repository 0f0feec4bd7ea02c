"""Pages that a host shows in place of a site: a suspended account, an expired domain, a server without a site, works.

Hides: the phrases and shapes of such pages; part of the one judge (`recovery.judge`). Pure. They are not content of
someone else, and the site's files may still be there. A page *about* such things stays a page: phrases count in a short
text, and words that other sites use as well (a bus service is suspended, a garden has maintenance) count only beside
words of hosting or of an outage.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from recollect.recovery.links import Document
from recollect.recovery.verdicts import Verdict

_SHORT = 1_500
"""Characters of text; suspension and maintenance pages say little."""
_DEFAULT_MOST = 6_000
"""Apache's page on Debian has 3,000 characters."""
_WHOLE_TITLE = 90
_MOST_LINKS = 12


def _phrases(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases), re.IGNORECASE)


_SUSPENDED = _phrases(
    r"\b(?:account|web ?site|web ?page|hosting|domain(?: name)?) "
    r"(?:has been |have been |was |is |is currently |currently |temporarily |is temporarily |has been temporarily )?"
    r"(?:suspended|deactivated|disabled by|blocked by (?:the|your) host)",
    r"\b(?:suspended (?:account|web ?site|page|domain|hosting)|(?:site|page|shop|store|blog) suspended)\b",
    r"\bsuspendedpage\b|\bcontact your (?:hosting|web ?hosting|service) provider for more information\b",
    r"\bbandwidth limit (?:has been |was |is )?(?:exceeded|reached)",
    r"\b(?:konto|webseite|website|internetpräsenz|hosting|paket|domain) (?:ist|wurde) (?:vorübergehend )?gesperrt\b",
    r"\b(?:compte|site|hébergement) (?:a été |est )?(?:temporairement )?suspendu",
    r"\b(?:cuenta|sitio|hosting|alojamiento) (?:ha sido |está |se encuentra )?(?:temporalmente )?suspendid[ao]",
    r"\b(?:account|sito|hosting) (?:è stato |è )?sospeso|\b(?:conta|site|hospedagem) (?:foi |está )?suspens[ao]",
    r"\b(?:account|website|hostingpakket) (?:is )?(?:opgeschort|geblokkeerd)\b|\bkonto zostało zawieszone\b",
)
_CUT_OFF = _phrases(
    r"\b(?:web ?site|site|page|blog|shop|store|plan|subscription|package|contract|hosting)\b[^.!?]{0,60}"
    r"\b(?:suspended|disabled|deactivated|terminated|locked|expired|taken (?:offline|down))\b"
)
_OF_HOSTING = _phrases(
    r"\bhosting\b|\bprovider\b|\bbilling\b|\binvoices?\b|\bnon-?payment\b|\bpayments?\b|\bunpaid\b|\boverdue\b|\babuse\b",
    r"\bterms of (?:service|use)\b|\bclient area\b|\bcontrol panel\b|\bcontact support\b|\bsupport team\b",
    r"\b(?:you are|are you) the (?:site |website |account )?owner\b|\bowner of this (?:site|web ?site|account)\b",
    r"\bowner's\b",
)
_DOMAIN_EXPIRED = _phrases(
    r"\b(?:domain(?: name| registration)?|registration|[\w-]+\.[a-z]{2,10}) "
    r"(?:has |have |is )?(?:recently |just )?expired\b",
    r"\bdomain expired\b|\bthis domain (?:name )?(?:is )?(?:pending|awaiting) (?:renewal|deletion)",
    r"\brenew (?:this|your|the) domain\b|\bdomain (?:ist|wurde) (?:abgelaufen|nicht verlängert)\b",
    r"\b(?:nom de )?domaine (?:a |est )?expiré\b|\bdominio (?:ha )?(?:caducado|expirado|scaduto)\b",
)
_HOST_ADDRESS = {
    Verdict.SUSPENDED: _phrases(r"(?:^|[/.])suspended(?:page|account|site)?(?:[./?]|$)|/cgi-sys/suspendedpage"),
    Verdict.DEFAULT_PAGE: _phrases(r"/cgi-sys/defaultwebpage|/(?:iisstart|defaultsite)\.\w+$"),
}
_SERVER = r"(?:apache2?|nginx|openresty|tengine|openlitespeed|litespeed|caddy|lighttpd|centos|tomcat|plesk|xampp)"
_DEFAULT_TITLE = _phrases(
    r"^apache2? .{0,30}(?:default|test|placeholder) page",
    rf"^welcome to (?:{_SERVER}(?: on [\w ]{{2,30}})?|your new (?:website|server))\W*$",
    r"^(?:(?:apache )?http server )?test page (?:for (?:the )?|powered by:? )"
    r"(?:apache|nginx|http server|ssl|centos|fedora|red hat|rocky|alma|oracle)",
    r"^(?:microsoft )?(?:internet information services|iis ?\d*|iis windows(?: server)?)\W*$",
    r"^(?:default (?:web ?site|server|parallels plesk|plesk|home|web|index) page|web server's default page)",
    r"^(?:domain default page|default page|placeholder page)\W*$",
    r"^(?:site|website) (?:not (?:yet )?configured|not published)",
    r"^congratulations?\W+your (?:web ?)?(?:site|server) (?:is|has been)",
    rf"^{_SERVER} works\W*$|^apache tomcat(?:/[\d.]+)?\W*$",
)
_DEFAULT_TEXT = _phrases(
    r"if you see this page,? the (?:nginx|openresty|web) ?(?:web ?)?server is (?:successfully installed|running)",
    r"\bthis is the default (?:welcome |index |home |web )?page (?:of|for|used|from|on) ",
    r"\bthis page is used to test the proper operation of (?:the|an?) (?:apache|nginx|http) ",
    rf"\byou(?:'ve| have) successfully installed (?:the )?{_SERVER}\b",
    r"\byour (?:web ?)?server is (?:now )?(?:working|running)\b",
    r"\b(?:generated|powered|provided) by (?:plesk|directadmin|cpanel|ispconfig|virtualmin|vestacp|hestiacp|webuzo)\b",
    r"\b(?:you see this page because )?there is no web ?site (?:at this address|here|configured)",
    r"\bowner of this web ?site has not (?:put up|uploaded|published) any",
    r"\bdefault index page (?:for|of) (?:a new domain|your (?:web ?)?site)\b|\bupload your (?:web ?site|site) files\b",
)
_WORKS = re.compile(
    r"^it works!?\W*(?:this is the default web ?page for this server\W*)?"
    r"(?:the web server software is running[^.]*\.?)?\W*(?:no content has been added[^.]*\.?)?\W*$",
    re.IGNORECASE,
)
_LISTING = re.compile(r"^(?:index of|directory listing (?:for|of)) /\W*$", re.IGNORECASE)
_MAINTENANCE = _phrases(
    r"\b(?:under|undergoing|down for|closed for|unavailable for|offline for) (?:\w+ ){0,3}maintenance\b"
    r"(?! (?:contract|agreement|plan|and repair))",
    r"\bin maintenance mode\b|\bmaintenance (?:mode|in progress|break)\b|^\W*maintenance(?: page)?\W*$",
    r"\bbriefly unavailable for\b|\b(?:site|website) is (?:currently |temporarily )?being (?:updated|upgraded)\b",
    r"\b(?:performing|doing|carrying out) (?:some |scheduled |routine |planned )?(?:maintenance|upgrades)\b",
    r"\bwartungs(?:arbeiten|modus)\b|\bwird (?:derzeit|gerade|aktuell) gewartet\b|\bin wartung\b",
    r"\b(?:site|page) en maintenance\b|\bmaintenance en cours\b|\ben mantenimiento\b|\btareas de mantenimiento\b",
    r"\bin manutenzione\b|\bem manutenção\b|\bonderhoudswerkzaamheden\b|\bin onderhoud\b|\bw trakcie konserwacji\b",
    r"メンテナンス中|維護中|维护中|점검 중|техническ(?:ие|их) работ",
)
_PERHAPS_MAINTENANCE = _phrases(
    r"\bmaintenance work\b|\b(?:scheduled|routine|planned) maintenance\b|\bmaintenance\b[^.!?]{0,40}\bat the moment\b",
    r"\bwe(?:'ll| will) be (?:right )?back (?:soon|shortly|online)\b|\bbe right back\b",
    r"\bdown for (?:an )?(?:update|upgrade)",
)
_OF_OUTAGES = _phrases(
    r"\b(?:patience|inconvenience|temporarily|unavailable|offline|shortly)\b|\b(?:try|come|check) (?:again|back)\b",
    r"\b(?:site|website|server|page) (?:is|will be)\b",
)


def host_page(document: Document | None, uri: str) -> tuple[Verdict, str] | None:
    """Which page of a host this is, and by what it is known; None if it is none of these."""
    for address in (uri, document.refresh or "" if document is not None else ""):
        for verdict, pattern in _HOST_ADDRESS.items():
            if pattern.search(_place(address)):
                return verdict, f"it leads to {address[:200]}"
    if document is None or document.form != "html":
        return None
    title, text = document.title.strip(), document.text.strip()
    title = title if len(title) <= _WHOLE_TITLE else ""
    links = sum(not link.embedded and "?C=" not in link.uri for link in document.links)
    if len(text) < _DEFAULT_MOST and links <= _MOST_LINKS + 12 and (words := _default_page(title, text, links)):
        return Verdict.DEFAULT_PAGE, f"it says “{words}”"
    if len(text) > _SHORT or links > _MOST_LINKS:
        return None
    return _by_phrase(title, text)


def _default_page(title: str, text: str, links: int) -> str:
    """The words by which a page of a web server without a site is known; empty if it is none."""
    found = _DEFAULT_TITLE.search(title) or _DEFAULT_TEXT.search(text)
    if found is None and (_WORKS.match(title) or not title) and _WORKS.match(text.removeprefix(title).strip() or title):
        found = _WORKS.match(title or text)
    if found is None and links <= 2:  # a listing with files is a site
        found = _LISTING.search(title)
    return _words(found[0]) if found else ""


def _by_phrase(title: str, text: str) -> tuple[Verdict, str] | None:
    both = f"{title}\n{text}"
    pairs = (
        (Verdict.DOMAIN_EXPIRED, _DOMAIN_EXPIRED, None),
        (Verdict.SUSPENDED, _SUSPENDED, None),
        (Verdict.SUSPENDED, _CUT_OFF, _OF_HOSTING),
        (Verdict.MAINTENANCE, _MAINTENANCE, None),
        (Verdict.MAINTENANCE, _PERHAPS_MAINTENANCE, _OF_OUTAGES),
    )
    for verdict, phrases, beside in pairs:
        found = phrases.search(title) or phrases.search(text)
        if found and (beside is None or beside.search(both)):
            return verdict, f"it says “{_words(found[0])}”"
    return None


def _place(url: str) -> str:
    try:
        split = urlsplit(url)
    except ValueError:
        return ""
    return f"{split.netloc.lower()}{split.path.lower()}"


def _words(text: str) -> str:
    return " ".join(text.split())[:120]
