"""Each screen with the demo's day, in both themes and at both widths."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser import looks
from tests.browser.harness import Demo
from tests.browser.places import SHOWN, address
from tests.kit import wait_until

SAYS = {
    "answer": ("Allow this?", "psql notes -f build/backfill.sql"),
    "now": ("Waiting for you", "Fill tags for the old notes", "psql notes -f build/backfill.sql"),
    "sessions": ("Fill tags for the old notes",),
    "session": ("The receipt page shows no VAT", "Read the failed UAT run"),
    "moment": ("State after this event", "Open gates"),
    "event": ("denied", "requirement is open"),
    "gates": ("tests_green", "Refused lately", "paused until"),
    "why": ("What resolves it", "requirement is open"),
    "tasks": ("P0", "1 test failing", "backfill of tags", "places for the scale bar", "blocks commit"),
    "state": ("feature/vat", "CURRENT_STATE", "moment"),
    "uat": ("checkout-flow", "passed", "failed"),
    "run": ("failed → passed", "The receipt shows the VAT", "Put two ropes into the cart"),
    "search": ("cart.py",),
    "memory": ("keep money in Decimal", "Injected context", "Forget"),
    "activity": ("harbor-shop",),
    "cost": ("Cost",),
    "health": ("hook",),
}
WIDTHS = (400, 2560)


@pytest.mark.parametrize("name", SHOWN)
def test_a_screen(name: str, open_page: Callable[..., Any], demo: Demo) -> None:
    """What it says; axe finds nothing in both themes; no sideways scrolling at both widths."""
    page = open_page(address(name, demo))
    page.wait_for_selector('[data-wire="live"]')
    # A script draws the rows of a session after the page is there.
    wait_until(lambda: all(said.lower() in page.inner_text("body").lower() for said in SAYS[name]), f"{name} says it")
    assert looks.nameless(page) == []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        assert looks.violations(page) == [], theme
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert looks.too_wide(page) == [], width
    page.set_viewport_size({"width": 400, "height": 900})
    assert looks.weak_contrast(page) == []


@pytest.mark.parametrize("name", SHOWN)
def test_a_screen_without_scripts(name: str, open_page: Callable[..., Any], demo: Demo) -> None:
    page = open_page(address(name, demo), java_script_enabled=False)
    words = page.inner_text("body")
    assert [said for said in SAYS[name] if said.lower() not in words.lower()] == []
    page.locator(".side li a").first.click()
    assert page.locator("h1").inner_text() == "Now"


def test_pictures_of_a_run_are_shown(open_page: Callable[..., Any], demo: Demo) -> None:
    page = open_page(address("run", demo))
    shown = page.locator(".shots img")
    assert shown.count() == 2
    shown.first.scroll_into_view_if_needed()
    sizes = [page.request.get(shown.nth(n).get_attribute("src")).body() for n in (0, 1)]
    assert sizes[0] != sizes[1], "each run keeps its own"
    page.wait_for_function(
        "[...document.querySelectorAll('.shots img')].every((i) => i.complete && i.naturalWidth === 800)"
    )
