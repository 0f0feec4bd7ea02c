"""The re-hosting kit: a folder to upload, and rules for web servers so that the old addresses work again.

Hides: the layout for a web server, and which old address is answered by which file. In `OUT/rehost/`:

    public/            the whole site, upload-ready: `index.html` at its root, other hosts in `_recollect/hosts/`
    public/.htaccess, public/_redirects, public/_headers      rules for Apache and for static hosts, in their places
    nginx.conf, Caddyfile, htaccess                           rules to copy into a server's configuration
    redirects.tsv      every old address: its kind (file or redirect), the address, where it leads
    README.txt

Original URLs stay what they were: a request for `/page.php?id=2` is answered with the file kept for it, in whatever
order its parameters come and whatever parameters were added. Links are relative, so `public/` also works without any
rule and below any address. A page whose file lies in another folder than its address is answered by a redirect,
because its relative links would not fit otherwise.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes, urlsplit

from recollect.recovery.alsofound import NAME as ALSO_FOUND
from recollect.recovery.alsofound import also_found_page
from recollect.recovery.canonical import visit_key
from recollect.recovery.figures import front_is_back, unlinked_resources
from recollect.recovery.filenames import ANY_SYSTEM, DOWNLOADS, NameRules, file_names, host_folder
from recollect.recovery.hosting import apache_rules, caddy_rules, headers_file, nginx_rules, redirects_file
from recollect.recovery.ownfiles import OwnFiles
from recollect.recovery.restore import Layout, MissingLinks, OutsideLinks, restore
from recollect.recovery.store import Store

FOLDER = "rehost"
PUBLIC = "public"
_ELSEWHERE = f"{PUBLIC}/_recollect/hosts"
_NOT_RECOVERED = f"{PUBLIC}/_recollect/not-recovered.html"
_ALSO_FOUND = f"{PUBLIC}/_recollect/{ALSO_FOUND}"

_README = """How to put this site on the web again

The folder public/ is the whole site: everything it needs is inside. Upload what is in it to the root of your web space.
That is enough: all links between the pages work. To answer the old addresses too (such as /page.php?id=2):

  Apache            nothing more to do: public/.htaccess has the rules (htaccess is a copy of it, to see and change)
  nginx             include nginx.conf in the http block, after you set `root` and `server_name` in it
  Caddy             use Caddyfile, after you set the address and `root` in it
  static hosts      nothing more to do: public/_redirects and public/_headers have the rules

public/_recollect/also-found.html, where it exists, has the pages and files that archives list and no link leads to.

redirects.tsv lists every old address: its kind (file or redirect), the address, where it leads. Use it for any other
server, or to import the site into a content management system.

The pages load nothing from other servers: a Content-Security-Policy keeps them from it. Take it out of the pages, and
of .htaccess, _headers, nginx.conf or Caddyfile, when you want to embed something from elsewhere again.
"""

_NOTHING_RUNS_APACHE = """# Nothing in this folder is run: these are files that people download.
SetHandler default-handler
ForceType application/octet-stream
Options -ExecCGI
"""
_NOTHING_RUNS_IIS = """<?xml version="1.0" encoding="utf-8"?>
<configuration><system.webServer><handlers accessPolicy="Read" /></system.webServer></configuration>
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """One old address of the site's host: answered by a file, or redirected. Paths are decoded, below the root."""

    path: str  # decoded path, with `/` in front
    query: str  # as it was, "" for none
    target: str  # file below the root (decoded, with `/` in front), or where a redirect leads (as sent)
    redirect: bool = False


def write_kit(
    store: Store,
    files: OwnFiles,
    *,
    missing: MissingLinks = "neutral",
    outside: OutsideLinks = "robust",
    name_rules: NameRules = ANY_SYSTEM,
    scripts: bool = True,
) -> dict[str, str]:
    """Write the kit; returns URI -> file below `rehost/`."""
    resources = list(store.recovered(redirects=False))
    is_main = main_test(store)
    names = file_names(
        ((resource.uri, resource.media_type) for resource in resources),
        lambda uri: PUBLIC if is_main(uri) else f"{_ELSEWHERE}/{host_folder(uri, name_rules)}",
        name_rules,
    )
    if not names:
        return {}
    placed = {uri: f"{FOLDER}/{name}" for uri, name in names.items()}
    layout = Layout(placed, f"{FOLDER}/{_NOT_RECOVERED}")
    done = restore(store, store.out_dir, files=files, layout=layout, missing=missing, outside=outside, scripts=scripts)
    placed, names = done.names, {uri: names[uri] for uri in done.names}
    write_also_found(store, files, placed, f"{FOLDER}/{_ALSO_FOUND}")
    found, as_they_are = rules(store, names)
    host = urlsplit(store.start[0]).hostname or "site" if store.start else "site"
    endings = {posixpath.splitext(name)[1].lower() for name in names.values()}
    apache = apache_rules(found, endings, _folders(names.values()))
    texts = {
        "redirects.tsv": _table(store, names),
        "nginx.conf": nginx_rules(found, endings, host, as_they_are),
        "Caddyfile": caddy_rules(found, endings, host),
        "htaccess": apache,
        f"{PUBLIC}/.htaccess": apache,
        f"{PUBLIC}/_redirects": redirects_file(found),
        f"{PUBLIC}/_headers": headers_file(endings),
        "README.txt": _README,
    }
    if any(name.startswith(f"{PUBLIC}/{DOWNLOADS}/") for name in names.values()):
        texts[f"{PUBLIC}/{DOWNLOADS}/.htaccess"] = _NOTHING_RUNS_APACHE
        texts[f"{PUBLIC}/{DOWNLOADS}/web.config"] = _NOTHING_RUNS_IIS
    if f"{PUBLIC}/robots.txt" not in names.values():
        texts[f"{PUBLIC}/robots.txt"] = "User-agent: *\nAllow: /\n"
    if f"{FOLDER}/{_NOT_RECOVERED}" not in files.written:
        texts[_NOT_RECOVERED] = "<!DOCTYPE html>\n<meta charset='utf-8'><title>Not found</title><p>Not found.\n"
    for name, text in texts.items():
        files.write(f"{FOLDER}/{name}", text.encode("utf-8", "surrogateescape"))
    return names


def write_also_found(store: Store, files: OwnFiles, names: Mapping[str, str], name: str) -> None:
    """Write the page of what no link leads to, where there is anything."""
    found = unlinked_resources(store, store.recovered(redirects=False))
    if found:
        files.write(name, also_found_page(found, names, name, front=front_is_back(store)).encode())


def main_test(store: Store) -> Callable[[str], bool]:
    host = _host(store.start[0], store) if store.start else ""
    return lambda uri: _host(uri, store) == host


def _host(uri: str, store: Store) -> str:
    return visit_key(uri, store.rules).partition("://")[2].partition("/")[0]


def _folders(names: Iterable[str]) -> set[str]:
    """Every folder below the root, with `/` in front."""
    found: set[str] = set()
    for name in names:
        parts = name.split("/")[1:]
        found.update("/" + "/".join(parts[:end]) for end in range(1, len(parts)))
    return found


def _table(store: Store, names: dict[str, str]) -> str:
    rows = [("file", uri, names[uri]) for uri in sorted(names)]
    rows += [("redirect", r.uri, r.redirect_to) for r in store.recovered() if r.redirect_to is not None]
    return "".join("\t".join(row) + "\n" for row in rows)


def rules(store: Store, names: dict[str, str]) -> tuple[list[Rule], list[str]]:
    """Every old address of the site's own host that is not simply its file, in order; and the paths that are."""
    is_main = main_test(store)
    found: dict[tuple[str, str], Rule | None] = {}
    for uri, target in _addresses(store, names):
        if not is_main(uri):
            continue
        path, query = _request(uri)
        found.setdefault((path, query), _file_rule(path, query, "/" + names[target].partition("/")[2]))
    for resource in store.recovered():
        if resource.redirect_to is None or not is_main(resource.uri):
            continue
        path, query = _request(resource.uri)
        target = _location(resource.redirect_to) if is_main(resource.redirect_to) else resource.redirect_to
        if target != _location(resource.uri):
            found.setdefault((path, query), Rule(path, query, target, redirect=True))
    needed = [rule for _, rule in sorted(found.items(), key=lambda item: item[0]) if rule is not None]
    return needed, sorted(path for (path, _), rule in found.items() if rule is None)


def _addresses(store: Store, names: dict[str, str]) -> Iterable[tuple[str, str]]:
    """(old address, address whose file answers it): every resource, and what was learned to be the same."""
    # Servers do not tell `/a%2Fb` from `/a/b`: the plain address goes first.
    yield from ((uri, uri) for uri in sorted(names, key=lambda uri: ("%2f" in uri.lower(), uri)))
    # An address in the spelling of its key: `/` of a site captured as `/index.html`, `/topic.php?t=3` of one that
    # was captured with a session id.
    yield from ((visit_key(uri, store.rules), uri) for uri in sorted(names))
    for key, target, _ in store.aliases():
        resource = store.resolve(target)
        if resource is not None and resource.uri in names:
            yield key, resource.uri


def _request(uri: str) -> tuple[str, str]:
    split = urlsplit(uri)
    path = unquote_to_bytes(split.path or "/").decode("utf-8", "surrogateescape")
    return path, split.query


def _location(uri: str) -> str:
    split = urlsplit(uri)
    return (split.path or "/") + (f"?{split.query}" if split.query else "")


def _file_rule(path: str, query: str, file: str) -> Rule | None:
    folder = path[: path.rindex("/") + 1]
    if file[: file.rindex("/") + 1] != folder:
        return Rule(path, query, quote(file, safe="/@=;,~!$&'()*+:"), redirect=True)
    if not query and (file == path or (path.endswith("/") and file == path + "index.html")):
        return None
    return Rule(path, query, file)
