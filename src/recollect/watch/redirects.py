"""Rules for web servers that lead links to lost pages elsewhere.

Hides: each server's syntax and escaping. Pure. The rules are parts to add to the configuration of a live site, so they
name the lost addresses and nothing else. An address is compared as it is sent, its query included.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote, urlsplit

from recollect.watch.pageloss import Redirect, Target

_SAFE = "/:?#[]@!&'()*+,;=%~-._"
_PERMANENT, _TEMPORARY = 301, 302
"""A page that moved has a new address; a copy in an archive stands in until the page is back."""


def _sent(redirect: Redirect) -> str:
    split = urlsplit(redirect.uri)
    return quote((split.path or "/") + (f"?{split.query}" if split.query else ""), safe=_SAFE)


def _target(redirect: Redirect) -> str:
    return quote(redirect.target, safe=_SAFE)


def _status(redirect: Redirect) -> int:
    return _PERMANENT if redirect.kind is Target.MOVED else _TEMPORARY


def nginx_redirects(redirects: Sequence[Redirect]) -> str:
    """For the http block (the maps), and for the server block (the two lines at the end)."""
    lines = ["# In the http block:"]
    for status in (_PERMANENT, _TEMPORARY):
        rows = [one for one in redirects if _status(one) == status]
        lines += [f"map $request_uri $recollect_{status} {{", '    default "";']
        lines += [f'    "~^{_pattern(_sent(one))}$" "{_target(one)}";' for one in rows]
        lines.append("}")
    lines += ["# In the server block of the site, without the # in front:"]
    lines += [f"# if ($recollect_{status}) {{ return {status} $recollect_{status}; }}" for status in (301, 302)]
    return "\n".join(lines) + "\n"


def _pattern(text: str) -> str:
    """A regular expression for exactly this text, in a quoted string of nginx."""
    return re.escape(text).replace("\\/", "/").replace('"', '\\"')


def apache_redirects(redirects: Sequence[Redirect]) -> str:
    """For .htaccess, or the configuration of the site."""
    lines = ["<IfModule mod_rewrite.c>", "RewriteEngine On"]
    for one in redirects:
        lines.append(f'RewriteCond %{{THE_REQUEST}} "^[A-Z]+ {_pattern(_sent(one))} HTTP/"')
        lines.append(f'RewriteRule "^" "{_target(one).replace("%", chr(92) + "%")}" [R={_status(one)},L,NE,QSD]')
    return "\n".join([*lines, "</IfModule>"]) + "\n"


def netlify_redirects(redirects: Sequence[Redirect]) -> str:
    """`_redirects` of static hosts; addresses with a query are left out, since hosts differ in how they match them."""
    rows = (one for one in redirects if "?" not in _sent(one))
    return "".join(f"{_sent(one)} {_target(one)} {_status(one)}\n" for one in rows)


def table(redirects: Sequence[Redirect]) -> str:
    """Lost address, its kind of target and the target, with tabs between."""
    return "".join(f"{one.uri}\t{one.kind}\t{one.target}\n" for one in redirects)
