"""The re-hosting kit: what a webmaster needs so that the old addresses work again on a new server.

Hides: the syntax of nginx and Apache, and their escaping. In `OUT/rehost/`: `redirects.tsv` (each old address and where
it leads), `nginx.conf` and `htaccess` (rules for the files the recovery wrote), `robots.txt`, `README.txt`. Original
URLs stay what they were: a request for `/page.php?id=2` is answered with the file kept for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from recollect.recovery.store import Store

_README = """How to put this site on the web again

1. Copy the folder {host}/ to your server.
2. nginx: copy rehost/nginx.conf's two parts to your configuration and set `root`.
   Apache: copy rehost/htaccess to {host}/.htaccess.
3. redirects.tsv lists every old address: its kind (file or redirect), the address, where it leads.
   Use it for any other server, or to import the site into a content management system.
robots.txt allows everything; change it if the site is not to be indexed yet.
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """One old address: answered by a file, or redirected."""

    kind: str
    uri: str
    request: str
    target: str


def rules(store: Store, names: dict[str, str]) -> list[Rule]:
    """Every old address of the site in order, with the file or the address it leads to."""
    found = [Rule("file", uri, _request(uri), names[uri]) for uri in sorted(names)]
    for resource in store.recovered():
        if resource.redirect_to is not None:
            found.append(Rule("redirect", resource.uri, _request(resource.uri), resource.redirect_to))
    return found


def write_kit(store: Store, names: dict[str, str], folder: Path) -> None:
    """Write the kit into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    found = rules(store, names)
    host = urlsplit(store.start[0]).hostname or "site" if store.start else "site"
    texts = {
        "redirects.tsv": "".join(f"{r.kind}\t{r.uri}\t{r.target}\n" for r in found),
        "nginx.conf": _nginx(found),
        "htaccess": _apache(found),
        "robots.txt": "User-agent: *\nAllow: /\n",
        "README.txt": _README.format(host=host),
    }
    for name, text in texts.items():
        temporary = folder / f".{name}.tmp"
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(folder / name)


def _request(uri: str) -> str:
    split = urlsplit(uri)
    return (split.path or "/") + (f"?{split.query}" if split.query else "")


def _file_path(rule: Rule) -> str:
    """The file below its host's folder, as a URL path."""
    return "/" + quote(rule.target.split("/", 1)[1])


def _nginx(found: list[Rule]) -> str:
    lines = ["# In the http block:", "map $request_uri $recollect_file {", '    default "";']
    lines += [
        f"    {_nginx_word(rule.request)} {_nginx_word('/' + rule.target.split('/', 1)[1])};"
        for rule in found
        if rule.kind == "file" and _file_path(rule) != rule.request
    ]
    lines += ["}", "map $request_uri $recollect_redirect {", '    default "";']
    lines += [f"    {_nginx_word(r.request)} {_nginx_word(r.target)};" for r in found if r.kind == "redirect"]
    lines += [
        "}",
        "",
        "# In the server block:",
        "if ($recollect_redirect) { return 301 $recollect_redirect; }",
        "if ($recollect_file) { rewrite ^ $recollect_file? break; }",
        "index index.html;",
    ]
    return "\n".join(lines) + "\n"


def _nginx_word(text: str) -> str:
    """A quoted word that nginx takes literally; `$` cannot be escaped in it, so it is percent-encoded."""
    safe = re.sub(r"[\x00-\x1f\x7f]", "", text).replace("\\", "\\\\").replace('"', '\\"').replace("$", "%24")
    # A map's source that begins with ~ would be a regular expression.
    return f'"\\{safe}"' if safe.startswith("~") else f'"{safe}"'


def _apache(found: list[Rule]) -> str:
    lines = ["RewriteEngine On"]
    for rule in found:
        split = urlsplit(rule.uri)
        path = re.escape((split.path or "/").lstrip("/"))
        target = rule.target if rule.kind == "redirect" else _file_path(rule)
        if rule.kind == "file" and target == rule.request:
            continue
        if split.query:
            lines.append(f'RewriteCond %{{QUERY_STRING}} "^{_apache_word(re.escape(split.query))}$"')
        flags = "[R=301,L,NE,QSD]" if rule.kind == "redirect" else "[L,NE,QSD]"
        lines.append(
            f'RewriteRule "^{_apache_word(path)}$" "{_apache_word(target.replace("%", chr(92) + "%"))}" {flags}'
        )
    return "\n".join(lines) + "\n"


def _apache_word(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]", "", text).replace('"', '\\"')
