"""Rules for web servers that answer the old addresses of a site: nginx, Apache, Caddy, and static hosts.

Hides: each server's syntax, escaping and surprises. Tested by running the servers.

- nginx compares the strings of a `map` without case, and does not start when two are the same then: those become
  regular expressions, which are case-sensitive, and so does one that differs only in case from an address without
  rule. `$uri` is decoded, `$args` is not. `$` in a value would be a variable.
- Caddy takes a matcher that does not begin with `/` for the name of a header, so types have matchers with names.
- Apache matches a decoded path without its first slash, and what a rule puts in its place is decoded once more.
- Both know few media types of today, and not the same ones: the types that are needed are written out.
- A query is matched by its parameters, in any order and with others beside them; more parameters go first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from recollect.recovery.rehost import Rule

# A site on a server: all of its files, and no files of other sites.
POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; form-action 'self'; base-uri 'self'; webrtc 'block'"
)
_NOT_RECOVERED = "/_recollect/not-recovered.html"
TYPES: dict[str, str] = {
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".css": "text/css",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".cjs": "text/javascript",
    ".json": "application/json",
    ".map": "application/json",
    ".webmanifest": "application/manifest+json",
    ".xml": "text/xml",
    ".rss": "application/rss+xml",
    ".atom": "application/atom+xml",
    ".txt": "text/plain",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".gif": "image/gif",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".ico": "image/x-icon",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
    ".ttf": "font/ttf",
    ".otf": "font/otf",
    ".eot": "application/vnd.ms-fontobject",
    ".wasm": "application/wasm",
    ".pdf": "application/pdf",
    ".swf": "application/x-shockwave-flash",
    ".mp3": "audio/mpeg",
    ".m4a": "audio/mp4",
    ".ogg": "audio/ogg",
    ".wav": "audio/wav",
    ".mid": "audio/midi",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
    ".zip": "application/zip",
    ".gz": "application/gzip",
}


# Endings that servers map to programs and to includes.
_RUN = frozenset(
    [
        *("asp", "cgi", "fcgi", "lua", "phar", "php", "php3", "php4", "php5", "php7", "php8", "phps", "pht", "phtml"),
        *("pl", "py", "rb", "sh", "shtml", "shtm", "stm", "var", "asis"),
    ]
)


def _types(endings: Iterable[str]) -> list[tuple[str, str]]:
    """(ending without its dot, media type) of the endings that are there, and of what pages always are."""
    wanted = {*endings, ".html", ".txt"}
    return [(ending[1:], kind) for ending, kind in TYPES.items() if ending in wanted]


def _parameters(query: str) -> list[str]:
    return [part for part in query.split("&") if part]


def _query_pattern(query: str) -> str:
    """A regular expression for a query with these parameters, in any order, others beside them."""
    return "".join(f"(?=(?:.*&)?{_escaped(part)}(?:&|$))" for part in _parameters(query))


def _by_parameters(found: Sequence[Rule]) -> list[Rule]:
    """The rules with a query, those with most parameters first: they say more."""
    return sorted((rule for rule in found if rule.query), key=lambda r: (-len(_parameters(r.query)), r.path, r.query))


def _escaped(text: str) -> str:
    """A text as a regular expression of bytes: letters, digits, `/`, `-` and `_` as they are."""
    raw = text.encode("utf-8", "surrogateescape")
    plain = b"/-_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    return "".join(chr(byte) if byte in plain else f"\\x{byte:02x}" for byte in raw)


def _sent(path: str) -> str:
    """A decoded path as it is sent."""
    return quote(path.encode("utf-8", "surrogateescape"), safe="/@=;,~!$&'()*+:")


# nginx ---------------------------------------------------------------------------------------------------------------


def nginx_rules(found: Sequence[Rule], endings: Iterable[str], host: str, paths: Iterable[str] = ()) -> str:
    """A server of nginx, to be included in its http block. `paths` are the old addresses that need no rule."""
    with_query, plain = _by_parameters(found), [rule for rule in found if not rule.query]
    spellings = Counter(
        [*(f"{rule.path}?{rule.query}".lower() for rule in found), *(f"{path}?".lower() for path in paths)]
    )
    longest = max((len(r.path.encode("utf-8", "replace")) + len(r.query) for r in found), default=0)
    bucket = 64
    while bucket < longest + 64:
        bucket *= 2
    names = [f"{host}", f"www.{host}"] if not host.startswith("www.") else [host, host.removeprefix("www.")]
    types = "".join(f"        {kind} {ending};\n" for ending, kind in _types(endings))
    return f"""# Include this file in the http block of nginx, after you set `root` and `server_name`.
map_hash_bucket_size {bucket};
map_hash_max_size {max(2048, 4 * len(found))};
geo $recollect_dollar {{ default "$"; }}
# Old addresses with a query, then those without: the file that answers them, or where they lead.
map $uri?$args $recollect_query_redirect {{
    default "";
{_nginx_queries((r for r in with_query if r.redirect), spellings)}}}
map $uri?$args $recollect_query_file {{
    default "";
{_nginx_queries((r for r in with_query if not r.redirect), spellings)}}}
map $uri $recollect_redirect {{
    default "";
{_nginx_paths([r for r in plain if r.redirect], spellings)}}}
map $uri $recollect_file {{
    default "";
{_nginx_paths([r for r in plain if not r.redirect], spellings)}}}
server {{
    listen 80;
    server_name {" ".join(names)};
    root /var/www/{host};  # where the content of public/ is
    index index.html;
    types {{
{types}    }}
    default_type application/octet-stream;
    add_header Content-Security-Policy "{POLICY}";
    error_page 404 {_NOT_RECOVERED};
    location ~ /\\.ht {{ return 404; }}
    if ($recollect_query_redirect) {{ return 301 $recollect_query_redirect; }}
    if ($recollect_query_file) {{ rewrite ^ $recollect_query_file break; }}
    if ($recollect_redirect) {{ return 301 $recollect_redirect; }}
    if ($recollect_file) {{ rewrite ^ $recollect_file break; }}
    location / {{ try_files $uri $uri/index.html =404; }}
}}
"""


def _nginx_queries(found: Iterable[Rule], spellings: Mapping[str, int]) -> str:
    lines = list(found)
    text = "".join(
        f"    {_nginx_word(f'{rule.path}?{rule.query}')} {_nginx_value(rule.target)};\n"
        for rule in lines
        if spellings[f"{rule.path}?{rule.query}".lower()] == 1 and rule.path == _clean(rule.path)
    )
    # nginx tries strings first, then these in order.
    for rule in lines:
        text += f'    "~^{_escaped(rule.path)}\\?{_query_pattern(rule.query)}" {_nginx_value(rule.target)};\n'
    return text


def _nginx_paths(found: Sequence[Rule], spellings: Mapping[str, int]) -> str:
    # A redirect to another case of its own path would match what it leads to.
    own = {rule.path for rule in found if rule.redirect and rule.target.lower() == _sent(rule.path).lower()}
    lines = []
    for rule in found:
        alone = spellings[f"{rule.path}?".lower()] == 1 and rule.path not in own and rule.path == _clean(rule.path)
        key = _nginx_word(rule.path) if alone else f'"~^{_escaped(rule.path)}$"'
        lines.append(f"    {key} {_nginx_value(rule.target)};\n")
    return "".join(lines)


def _clean(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]", "", text)


def _nginx_word(text: str) -> str:
    """A quoted word that nginx takes literally."""
    safe = _clean(text).replace("\\", "\\\\").replace('"', '\\"')
    # A source that begins with ~ would be a regular expression, one with a backslash in front is not.
    return f'"\\{safe}"' if safe.startswith("~") else f'"{safe}"'


def _nginx_value(text: str) -> str:
    return _nginx_word(text).replace("$", "${recollect_dollar}")


# Apache --------------------------------------------------------------------------------------------------------------


def apache_rules(found: Sequence[Rule], endings: Iterable[str], folders: Collection[str] = ()) -> str:
    """A .htaccess file for the root of the site. `folders` are those of the site, decoded, with `/` in front."""
    lines = ["# Old addresses, for Apache 2.4. In the root of the site, as .htaccess.", "AddDefaultCharset Off"]
    lines += [f"AddType {kind} .{ending}" for ending, kind in _types(endings)]
    # Archived bytes never run, whatever the server's own configuration maps to programs and includes.
    known = sorted({*_RUN, *(ending for ending, _ in _types(endings))})
    lines += [
        "<IfModule mod_mime.c>",
        f"    RemoveHandler {' '.join(f'.{ending}' for ending in known)}",
        f"    RemoveOutputFilter {' '.join(f'.{ending}' for ending in known)}",
        "</IfModule>",
        '<FilesMatch ".">',
        "    SetHandler default-handler",
        "</FilesMatch>",
    ]
    lines += [
        f"ErrorDocument 404 {_NOT_RECOVERED}",
        "<IfModule mod_headers.c>",
        f'    Header set Content-Security-Policy "{POLICY}"',
        "</IfModule>",
        "<IfModule mod_rewrite.c>",
        "RewriteEngine On",
    ]
    shared = any(not rule.query and rule.path in folders for rule in found)
    if shared:
        # Apache would redirect to the folder before any rule is asked.
        lines += ["# A page has the name of a folder: /list beside /list/item.", "DirectorySlash Off"]
        lines += ["RewriteOptions AllowNoSlash"]
    lines.append(r'RewriteRule "(?:^|/)\.ht" "-" [R=404,END]')
    for rule in [*_by_parameters(found), *(rule for rule in found if not rule.query)]:
        if rule.query:
            lines.append(f'RewriteCond %{{QUERY_STRING}} "^{_query_pattern(rule.query)}"')
        pattern = f"^{_escaped(rule.path.lstrip('/'))}$"
        flags = "[R=301,END,NE,QSD]" if rule.redirect else "[END,NE,QSD]"
        lines.append(f'RewriteRule "{pattern}" "{_apache_target(rule)}" {flags}')
    if shared:
        lines += ["RewriteCond %{REQUEST_FILENAME} -d", 'RewriteRule "^(.*[^/])$" "/$1/" [R=301,END]']
    return "\n".join([*lines, "</IfModule>"]) + "\n"


def _apache_target(rule: Rule) -> str:
    target = rule.target if rule.redirect else _sent(rule.target).lstrip("/")
    safe = _clean(target).replace("\\", "\\\\").replace("%", "\\%").replace("$", "\\$").replace('"', '\\"')
    return safe.replace(" ", "\\%20")


# Caddy ---------------------------------------------------------------------------------------------------------------


def caddy_rules(found: Sequence[Rule], endings: Iterable[str], host: str) -> str:
    """A Caddyfile for the site."""
    lines = []
    for rule in _by_parameters(found):
        lines.append(_caddy_line(f"~^{_re2(rule.path)}\\?{_caddy_query(rule.query)}$", rule))
    lines += [_caddy_line(f"~^{_re2(rule.path)}\\?.*$", rule) for rule in found if not rule.query]
    types = "".join(
        f"\t\t@{ending} path *.{ending}\n\t\theader @{ending} Content-Type {kind}\n" for ending, kind in _types(endings)
    )
    return f"""# Set the address (`{host}` gets a certificate automatically) and `root`, the content of public/.
http://{host} {{
\troot * /var/www/{host}
\tmap {{http.request.uri.path}}?{{http.request.uri.query}} {{recollect_file}} {{recollect_redirect}} {{
{"".join(lines)}\t\tdefault "" ""
\t}}
\t@redirect not vars {{recollect_redirect}} ""
\tredir @redirect {{recollect_redirect}} 301
\theader Content-Security-Policy "{POLICY}"
\t# In this order: a file has the type of its own name, not that of its old address.
\troute {{
\t\t@file not vars {{recollect_file}} ""
\t\trewrite @file {{recollect_file}}
{types}\t\t@hidden path */.ht*
\t\trespond @hidden 404
\t\tfile_server
\t}}
\thandle_errors {{
\t\trewrite * {_NOT_RECOVERED}
\t\tfile_server
\t}}
}}
"""


def _re2(text: str) -> str:
    """A text as a regular expression of characters; a byte that is not UTF-8 is any character there."""
    return "".join("." if "\ud800" <= c <= "\udfff" else c if c.isalnum() or c in "/-_" else _hex(c) for c in text)


def _hex(char: str) -> str:
    """Without braces, which would be a placeholder of Caddy's."""
    return f"\\x{ord(char):02x}" if ord(char) < 0x80 else char


def _caddy_query(query: str) -> str:
    """Go's regular expressions cannot look ahead: the parameters in their order, with others between them."""
    return "(?:.*&)?" + "(?:&|&.*&)".join(_re2(part) for part in _parameters(query)) + "(?:&.*)?"


def _caddy_line(pattern: str, rule: Rule) -> str:
    # Caddy takes the path of a rewrite as it is, not as it would be sent; `$` names a group. Names of files have no
    # braces, which name a placeholder, and no quotes.
    target = _clean(rule.target).replace("$", "$$").replace("{", "%7B").replace("}", "%7D").replace('"', "%22")
    first, second = ("", target) if rule.redirect else (target, "")
    return f'\t\t"{pattern}" "{first}" "{second}"\n'


# Static hosts --------------------------------------------------------------------------------------------------------


def redirects_file(found: Sequence[Rule]) -> str:
    """`_redirects`, as Netlify, Cloudflare Pages and others read it; rules with a query are Netlify's."""
    lines = []
    for rule in [*_by_parameters(found), *(rule for rule in found if not rule.query)]:
        query = "".join(f" {part}" for part in _parameters(rule.query) if "=" in part)
        if rule.query and not query:
            continue
        target = _clean(rule.target if rule.redirect else _sent(rule.target)).replace(" ", "%20")
        lines.append(f"{_sent(rule.path)}{query} {target} {301 if rule.redirect else 200}\n")
    return "".join(lines)


def headers_file(endings: Iterable[str]) -> str:
    """`_headers` for the same hosts: media types that they may not know, and the policy."""
    text = f"/*\n  Content-Security-Policy: {POLICY}\n"
    known = {"mjs", "cjs", "webmanifest", "avif", "wasm"}
    return text + "".join(f"/*.{end}\n  Content-Type: {kind}\n" for end, kind in _types(endings) if end in known)
