"""Pictures of every page: `make screenshots`, or `python scripts/screenshots.py [NAME ...] [--lang de] [--docs]`.

Renders each page with little, normal and extreme data, at 1300, 768 and 400 px, light, dark and in print, into
build/screenshots, with a contact sheet (index.html). Pages are made by the functions that servers and commands call,
with generated data; pictures of recovered pages are of a generated site. Says which pages are wider than their screen.
With --docs it writes the pictures of docs/images instead, in JPEG of some 50 kB each.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

sys.path.insert(0, str(Path(__file__).parent))
from recollect.desk.pictures import chromium
from recollect.ui.messages import using
from recollect.ui.pages import ASSET_TYPES, asset
from sample_pages import SITE, pages

WIDTHS = (1300, 768, 400)
LOOKS = ("light", "dark", "print")
OUT = Path("build/screenshots")
DOCS = Path(__file__).parent.parent / "docs" / "images"
# Pictures of the documentation -> page, width, height and look.
SHOWN = {
    "desk-form": ("desk-home-normal", 900, 620, "light"),
    "desk-waiting": ("desk-job-running-normal", 900, 620, "light"),
    "desk-result": ("desk-result-normal", 1100, 760, "light"),
    "desk-phone": ("desk-result-normal", 400, 760, "dark"),
}
_WIDE = "document.documentElement.scrollWidth > window.innerWidth"


def served(bodies: dict[str, str], picture: bytes) -> ThreadingHTTPServer:
    """A server of pages, their files, and one picture for every address that ends in .png."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            name = path.rpartition("/")[2]
            if path.endswith(".png"):
                kind, body = "image/png", picture
            elif name in ASSET_TYPES:
                kind, body = ASSET_TYPES[name], asset(name)
            else:
                kind, body = "text/html; charset=utf-8", bodies.get(path, SITE).encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def shots(browser: Browser, base: str, names: list[str]) -> Iterator[tuple[str, str]]:
    """(file, what is wrong with it or empty) of every page in every look."""
    for look in LOOKS:
        for width in WIDTHS:
            scheme = "dark" if look == "dark" else "light"
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=True
            )
            page = context.new_page()
            page.emulate_media(media="print" if look == "print" else "screen")
            for name in names:
                page.goto(f"{base}/{name}", wait_until="load")
                file = f"{name}-{width}-{look}.png"
                page.screenshot(path=OUT / file, full_page=True)
                yield file, "wider than the screen" if page.evaluate(_WIDE) else ""
            context.close()


def write_docs(browser: Browser, base: str) -> None:
    """The pictures of docs/images: the top of each page, as a visitor sees it first."""
    for name, (shown, width, height, scheme) in SHOWN.items():
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(f"{base}/{shown}", wait_until="load")
        page.screenshot(path=DOCS / f"{name}.jpg", type="jpeg", quality=60)
        context.close()


def contact_sheet(files: list[str]) -> str:
    from recollect.ui.pages import INLINED, environment

    template = environment().from_string(
        '{% extends "ui/base.html" %}{% import "ui/components.html" as ui %}{% block main %}<h1>{{ title }}</h1>'
        "{{ ui.gallery(pictures) }}{% endblock %}"
    )
    pictures = [{"src": name, "href": name, "alt": name, "words": name} for name in files]
    from recollect.ui.pages import Brand

    return template.render(files=INLINED, brand=Brand(), lang="en", title="Every page", pictures=pictures)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only pages whose name begins so")
    parser.add_argument("--lang", default="en")
    parser.add_argument("--widths", default="")
    parser.add_argument("--looks", default="")
    parser.add_argument("--docs", action="store_true", help="write the pictures of docs/images, and nothing else")
    given = parser.parse_args()
    global WIDTHS, LOOKS
    WIDTHS = tuple(int(one) for one in given.widths.split(",")) if given.widths else WIDTHS
    LOOKS = tuple(given.looks.split(",")) if given.looks else LOOKS
    OUT.mkdir(parents=True, exist_ok=True)
    with using(given.lang):
        bodies = {f"/{name}": body for name, body in pages() if name.startswith(tuple(given.names or [""]))}
    wrong = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        server = served(bodies, b"")
        base = f"http://127.0.0.1:{server.server_address[1]}"
        page = browser.new_page(viewport={"width": 1024, "height": 768})
        page.goto(f"{base}/site")
        picture = page.screenshot()
        server.shutdown()
        server = served(bodies, picture)
        base = f"http://127.0.0.1:{server.server_address[1]}"
        files: list[str] = []
        if given.docs:
            write_docs(browser, base)
            server.shutdown()
            print(f"{DOCS}: {len(SHOWN)} pictures")
            return 0
        for file, fault in shots(browser, base, [path[1:] for path in bodies]):
            files.append(file)
            if fault:
                wrong += 1
                print(f"{file}: {fault}", file=sys.stderr)
        server.shutdown()
    (OUT / "index.html").write_text(contact_sheet(sorted(files)))
    print(f"{OUT}/index.html: {len(files)} pictures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
