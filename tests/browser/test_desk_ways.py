"""The ways of a library that offers the desk and of an owner whose domain a casino bought: with the keyboard only, in
two languages, on a wide light and a narrow dark screen; axe finds nothing on any page of the way.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from desk_world import RunningDesk, end, running_desk, start, until
from fake_archive import Fake, served
from recollect.recovery.sentences import WORDS, Headline
from recollect.ui.messages import using
from smtp_server import answering
from web_servers import free_port

pytestmark = pytest.mark.xdist_group("desk-ways")
SCREENS = [("en-GB", 1300, "light"), ("de-DE", 400, "dark")]
CASINO = "<title>Lucky Casino</title><p>Play slots, roulette and poker online. Bonus for new players. A jackpot a day."


@dataclass
class Person:
    """Someone at a browser who uses the keyboard only."""

    page: Any
    language: str
    axe: str

    def words(self, text: str) -> str:
        with using(self.language) as texts:
            return texts.gettext(text)

    def look(self, heading: str, seconds: float = 60) -> None:
        """Wait for a page by its exact heading; it fits the screen, has the language, and axe finds nothing."""
        self.page.get_by_role("heading", name=heading, exact=True, level=1).wait_for(timeout=1000 * seconds)
        assert self.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), heading
        self.page.evaluate(self.axe + "\n;0")
        found = self.page.evaluate("axe.run()")["violations"]
        assert [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found] == [], heading

    def tab_to(self, words: str, presses: int = 150) -> None:
        """Press Tab until the focus is on the field with this label, or the link or button with these words."""
        for _ in range(presses):
            self.page.keyboard.press("Tab")
            if (
                self.page.evaluate("""() => { const at = document.activeElement;
                  return (at.labels && at.labels.length ? at.labels[0].textContent : at.textContent).trim() }""")
                == words
            ):
                return
        raise AssertionError(f"the keyboard does not reach {words!r}")

    def press(self, words: str) -> None:
        self.tab_to(words)
        self.page.keyboard.press("Enter")

    def type(self, label: str, text: str) -> None:
        self.tab_to(label)
        self.page.keyboard.type(text)


@pytest.fixture(params=SCREENS, ids=lambda one: f"{one[0]}-{one[1]}-{one[2]}")
def person(request: pytest.FixtureRequest, browser: Any) -> Iterator[Person]:
    locale, width, scheme = request.param
    package = pytest.importorskip("axe_playwright_python")
    axe = (Path(package.__file__).parent / "axe.min.js").read_text()
    context = browser.new_context(
        bypass_csp=True, locale=locale, color_scheme=scheme, viewport={"width": width, "height": 900}
    )
    yield Person(context.new_page(), locale[:2], axe)
    context.close()


def archives(folder: Path, fake: Fake, stack: Any) -> Path:
    archive = stack.enter_context(served(fake))
    path = folder / "archives.json"
    path.write_text(json.dumps([{"id": "one", "name": "The Archive", "cdx": archive.cdx, "raw": archive.raw}]))
    return path


@pytest.fixture
def stack() -> Iterator[Any]:
    from contextlib import ExitStack

    with ExitStack() as made:
        yield made


def ask_for(person: Person, desk: RunningDesk, site: str, address: str) -> None:
    """The forms, up to the page that says to look into the mail."""
    person.page.goto(desk.base)
    person.look(person.words("Get a lost website back"))
    person.type(person.words("Address of the lost site"), site)
    person.page.keyboard.press("Enter")
    person.look(person.words("What the archives have"))
    person.type(person.words("Your e-mail address"), address)
    person.page.keyboard.press("Enter")
    person.look(person.words("Look into your mail"))


def confirm(person: Person, mail: str) -> None:
    [link] = re.findall(r"https?://\S+", mail)
    person.page.goto(link)
    person.look(person.words("Please confirm"))
    person.press(person.words("Yes, get it back"))


def boats() -> Fake:
    """A club's site of 2008 to 2012, sold with all its addresses to a casino in 2019."""
    fake, host = Fake(), "http://rowing.example"
    links = "".join(f"<a href='/{name}'>{name}</a>" for name in ("boats", "crew", "regatta", "harbour", "poem"))
    for year in ("2008", "2010", "2012"):
        stamp = f"{year}0401000000"
        fake.add(
            f"{host}/", f"<title>Rowing club</title><p>Boats, oars and the river. Season {year}.</p>{links}", stamp
        )
        for name in ("boats", "crew", "regatta", "harbour"):
            words = f"<p>The {name} of our rowing club by the river, with oars, boats and a crew. {year}</p>"
            fake.add(f"{host}/{name}", f"<title>Rowing club: {name}</title>{words}<a href='/'>home</a>", stamp)
    fake.add(f"{host}/poem", "<title>Not found</title><p>A poem about a boat.", "20100401000000")
    for year in ("2019", "2020", "2021"):
        for name in ("", "boats", "crew", "regatta", "harbour"):
            fake.add(f"{host}/{name}", CASINO, f"{year}0601000000")
    return fake


def test_an_owner_whose_domain_a_casino_bought(person: Person, tmp_path: Path, stack: Any) -> None:
    path = archives(tmp_path, boats(), stack)
    desk = stack.enter_context(running_desk(tmp_path / "desk", path, RECOLLECT_DESK_PICTURES="0"))
    ask_for(person, desk, "rowing.example", "crew@mail.example")
    confirm(person, desk.mail("crew@mail.example", "rowing.example").get_content())
    page = person.page
    page.get_by_role("heading", name=person.words("The life of the site")).wait_for(timeout=90_000)
    person.look(person.words(str(WORDS[Headline.MOST])))
    with using(person.language) as texts:
        told = texts.gettext(
            "Yours until %(last)s at least; %(month)s is the first copy of another owner. Pages that belong to "
            "another owner were left out; look through the pages marked doubtful."
        )
        told %= {"last": texts.month("2012-04-01"), "month": texts.month("2019-06-01")}
        assert page.get_by_text(told, exact=True).is_visible()
    colours = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll("svg rect[class^=span-]")]
             .filter((one) => one.checkVisibility())
             .map((one) => [one.getAttribute("class"), getComputedStyle(one).fill]))"""
    )
    assert set(colours) == {"span-good", "span-bad"} and colours["span-good"] != colours["span-bad"]
    assert page.get_by_text(person.words("Are these pages yours?"), exact=True).is_visible()
    for _ in range(150):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.type") == "radio":
            break
    page.keyboard.press("ArrowDown")  # from "I do not know" to the first
    assert page.evaluate("document.activeElement.value") == "mine"
    person.press(person.words("Build the site again from my answers"))
    page.get_by_text(
        person.words("Thank you. We build the site again from your answers; this takes some minutes.")
    ).wait_for()
    job = re.findall(r"/jobs/(\w+)\?token=([\w-]+)", page.url)[0]

    def rebuilt() -> bool:
        view = desk.ask("GET", f"/api/jobs/{job[0]}?token={job[1]}").json
        return not view["rebuilding"] and not view["doubtful"]

    until(rebuilt, 60)
    page.reload()
    person.look(page.get_by_role("heading", level=1).inner_text())
    assert page.get_by_text(person.words("Are these pages yours?")).count() == 0
    result = desk.ask("GET", f"/api/jobs/{job[0]}/result.zip?token={job[1]}").body
    with ZipFile(io.BytesIO(result)) as packed:
        texts_of = {name: packed.read(name) for name in packed.namelist() if name.startswith("rowing.example/")}
    assert any("poem" in name for name in texts_of) and not any(b"Casino" in text for text in texts_of.values())


def test_a_library_that_offers_the_desk(person: Person, tmp_path: Path, stack: Any) -> None:
    fake = Fake()
    fake.add("http://choir.example/", "<title>Choir</title><p>We sing on Mondays.</p><a href=/songs>songs</a>")
    fake.add("http://choir.example/songs", "<title>Songs</title><p>Forty songs.</p>")
    port = free_port()
    (tmp_path / "logo.svg").write_text(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'><rect width='9' height='9'/></svg>"
    )
    branding = {
        "OPERATOR_NAME": "City Library", "OPERATOR_COLOUR": "#204060", "IMPRINT": "City Library, 1 Main Street",
        "OPERATOR_LOGO": str(tmp_path / "logo.svg"), "PRIVACY": "Ask our officer.", "FOOTER": "Open from nine to five",
        "PICTURES": "0", "HEARTBEAT": "1",
    }  # fmt: skip
    settings = {f"RECOLLECT_DESK_{name}": value for name, value in branding.items()}
    flags = ["--workers", "0", "--smtp", f"127.0.0.1:{port}", "--from-address", "desk@library.example"]
    path = archives(tmp_path, fake, stack)
    desk = stack.enter_context(running_desk(tmp_path / "desk", path, *flags, **settings))
    page = person.page
    # Visitors see whose service it is, and that mail is down.
    ask_for(person, desk, "choir.example", "singer@mail.example")
    assert page.get_by_text("Open from nine to five").is_visible() and page.locator("header img").is_visible()
    assert page.locator("header").get_by_text("City Library").is_visible()
    until(lambda: desk.ask("GET", "/ready").json["mail"] is False, 20)
    page.reload()
    down = "Our mail server does not answer at present. Your mail comes as soon as it does; you need not ask again."
    assert page.get_by_text(person.words(down), exact=True).is_visible()
    person.press(person.words("Imprint"))
    person.look(person.words("Imprint"))
    assert page.get_by_text("City Library, 1 Main Street").is_visible()
    person.press(person.words("Privacy"))
    person.look(person.words("How we treat your data"))
    assert page.get_by_text("Ask our officer.").is_visible()
    # The operator logs in, and starts a worker of another machine with the one command of the page.
    page.goto(f"{desk.base}/admin/workers")
    person.type("Password", (desk.folder / "admin.password").read_text().strip())
    page.keyboard.press("Enter")
    person.look("Jobs")
    person.press("Workers")
    person.look("Workers")
    person.type("Name of the machine", "north")
    page.keyboard.press("Enter")
    page.locator("pre").nth(1).wait_for()
    shown = page.locator("pre").nth(1).inner_text()
    token, words, address = re.findall(r"RECOLLECT_WORKER_TOKEN=(\S+) recollect (.+) --desk (\S+)", shown)[0]
    command = [*words.split(), "--desk", address, "--work", str(tmp_path / "work")]
    worker, _, _ = start(command, "waits for jobs", RECOLLECT_WORKER_TOKEN=token)
    stack.callback(end, worker)
    # Mail is back: the operator finds the mail by its address, and sends it again.
    with answering("250 OK", port=port) as (_, got):
        page.goto(f"{desk.base}/admin/mails")
        person.type("E-mail address, site or id", "singer@")
        page.keyboard.press("Enter")
        person.look("Mails")
        if not got:
            person.press("Send again")
        until(lambda: bool(got), 30)
        confirm(person, got[0].content.decode())
        page.get_by_role("heading", name=person.words(str(WORDS[Headline.WHOLE])), exact=True, level=1).wait_for(
            timeout=90_000
        )
    place = page.url
    # The job is found by its site; deleting is asked once more, and its owner gets words.
    page.goto(f"{desk.base}/admin")
    person.type("E-mail address, site or id", "choir.ex")
    page.keyboard.press("Enter")
    person.look("Jobs")
    job = re.findall(r"/jobs/(\w+)", place)[0]
    page.goto(f"{desk.base}/admin/jobs/{job}")
    person.look("http://choir.example/")
    assert page.get_by_text("The Archive").count() or page.get_by_text("one: listing complete").count()
    person.press("Delete")
    person.look("Delete this job?")
    assert desk.operator("GET", "/api/jobs?q=choir").json["jobs"]
    person.press("Delete it")
    person.look("Jobs")
    assert desk.operator("GET", "/api/jobs?q=choir").json["jobs"] == []
    page.goto(place)
    words = person.words("the operator of this service removed this request")
    person.look(words[:1].upper() + words[1:])
