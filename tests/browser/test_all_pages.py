"""Every page with little, normal and extreme data: nothing scrolls sideways, nothing is cut off, axe finds nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install playwright)")
from recollect.ui.messages import using  # noqa: E402
from sample_pages import pages  # noqa: E402
from screenshots import served  # noqa: E402

pytestmark = pytest.mark.xdist_group("desk-browser")
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8ffff3f0005fe02fe0def46b8"
    "0000000049454e44ae426082"
)
# Elements whose content is wider than they are, and that do not scroll.
CUT = """() => [...document.querySelectorAll("main *")]
  .filter((one) => !one.closest("svg, .scroll, pre, input, .hidden")
  && one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0 && getComputedStyle(one).display !== "inline"
  && getComputedStyle(one).overflowX !== "visible").map((one) => one.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize(("language", "width", "scheme"), [("de", 400, "dark"), ("en", 1300, "light")])
def test_every_page_fits_and_is_accessible(browser: Any, language: str, width: int, scheme: str) -> None:
    package = pytest.importorskip("axe_playwright_python")
    axe = (Path(package.__file__).parent / "axe.min.js").read_text()
    with using(language):
        bodies = {f"/{name}": body for name, body in pages()}
    assert max(len(body) for body in bodies.values()) < 1_000_000
    server = served(bodies, PNG)
    context = browser.new_context(bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 800})
    # A page that waits would reload itself.
    context.route("**/*.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
    page = context.new_page()
    found: dict[str, list[str]] = {}
    try:
        for path in bodies:
            page.goto(f"http://127.0.0.1:{server.server_address[1]}{path}")
            wrong = ["wider than the screen"] * page.evaluate("document.documentElement.scrollWidth > innerWidth")
            wrong += page.evaluate(CUT)
            page.evaluate(axe + "\n;0")
            wrong += [
                f"{one['id']}: {one['nodes'][0]['html'][:150]}" for one in page.evaluate("axe.run()")["violations"]
            ]
            if wrong:
                found[path] = wrong
    finally:
        context.close()
        server.shutdown()
    assert found == {}
