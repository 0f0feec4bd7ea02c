"""Links to other domains: which of them readers do not see, and which are new on most pages at once."""

from __future__ import annotations

import pytest

from recollect.watch.outside import OutsideLinks, injected, outside_links
from recollect.watch.registration import host_of

LINK = '<a href="https://pills.example/">x</a>'


@pytest.mark.parametrize(
    ("page", "is_hidden"),
    [
        (f"<p>{LINK}", False),
        (f'<p style="display: none">{LINK}', True),
        (f"<p hidden>{LINK}", True),
        (f'<div style="position:absolute;top:-5000px"><p>{LINK}</div>', True),
        (f'<span style="font-size:0">{LINK}</span>', True),
        (f'<style>.k9 {{ position: absolute; left: -9999px }}</style><div class="a k9">{LINK}</div>', True),
        (f"<style>p {{ color: red }} #foot, .off {{ display:none }}</style><ul id=foot><li>{LINK}</ul>", True),
        (f"<style>.off {{ display:none }}</style><div class=offer>{LINK}</div>", False),
        (f"<style>.menu .off {{ display:none }}</style><div class=off>{LINK}</div>", False),
        (f"<style>.wide {{ width: 100px; height: 100% }}</style><div class=wide>{LINK}</div>", False),
        (f"<p hidden>{LINK}</p><p>{LINK}", False),
    ],
)
def test_links_that_readers_do_not_see_are_known(page: str, is_hidden: bool) -> None:
    found = outside_links(page.encode(), "http://club.example/", host_of)
    assert found == OutsideLinks(frozenset({"pills.example"}), frozenset({"pills.example"} if is_hidden else ()))


def test_spam_is_new_on_most_pages_and_hidden_or_of_several_domains() -> None:
    def pages(*domains: str, hidden: bool = False, number: int = 4) -> list[OutsideLinks]:
        links = frozenset(domains)
        return [OutsideLinks(links, links if hidden else frozenset())] * number

    assert injected(pages("partner.example"), ()) == ()
    assert injected(pages("pills.example", hidden=True), ()) == ("pills.example",)
    assert injected(pages("pills.example", hidden=True), ("pills.example",)) == ()
    assert injected(pages("a.example", "b.example", "c.example"), ()) == ("a.example", "b.example", "c.example")
    assert injected(pages("pills.example", hidden=True, number=2), ()) == (), "too few pages"
    assert injected(pages("pills.example", hidden=True), (), unchanged=9) == (), "not on most pages"
