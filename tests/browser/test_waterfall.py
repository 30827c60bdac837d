"""The bars of a session: zoomed by a drag and by keys, labelled with times; the overview frames what is in view."""

import re
from collections.abc import Callable
from typing import Any

from tests.browser.harness import Demo
from tests.browser.places import address
from tests.kit import wait_until

CLOCK = re.compile(r"\d\d:\d\d:\d\d")
LEAST_BAR = 6.0


def drag(page: Any, fro: tuple[float, float], to: tuple[float, float]) -> None:
    page.mouse.move(*fro)
    page.mouse.down()
    page.mouse.move(*to, steps=6)
    page.mouse.up()


def test_a_drag_zooms_and_keys_go_on(open_page: Callable[..., Any], demo: Demo) -> None:
    page = open_page(address("session", demo))
    factor, times = page.locator("[data-zoom]"), page.locator("[data-times] span")
    bars = page.locator(".row:not(.turn-head) .w:has(rect.b)")
    bars.first.wait_for()
    wait_until(lambda: all(CLOCK.search(text) for text in times.all_inner_texts()), "the axis has times")
    whole = times.all_inner_texts()
    assert min(box["width"] for bar in page.locator("rect.b").all() if (box := bar.bounding_box())) >= LEAST_BAR
    box = bars.nth(2).bounding_box()
    drag(page, (box["x"] + 20, box["y"] + 8), (box["x"] + 100, box["y"] + 30))
    assert float(factor.inner_text().removesuffix("×")) > 2
    assert times.all_inner_texts() != whole
    assert page.locator("#pane").is_hidden(), "the click that ends a drag chooses nothing"
    before = factor.inner_text()
    page.keyboard.press("+")
    assert factor.inner_text() != before
    left = times.first.inner_text()
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert times.first.inner_text() >= left
    page.keyboard.press("0")
    assert (factor.inner_text(), times.all_inner_texts()) == ("1×", whole)


def test_the_overview_frames_what_is_in_view_and_moves_it(open_page: Callable[..., Any], demo: Demo) -> None:
    page = open_page(address("session", demo), viewport={"width": 1280, "height": 560})
    frame, map_ = page.locator("[data-frame]"), page.locator("[data-minimap]")
    page.locator(".turn-head").first.wait_for()
    scrolled = "document.getElementById('scroller').scrollTop"
    page.evaluate("document.getElementById('scroller').scrollTop = 0")
    wait_until(
        lambda: frame.is_visible() and frame.bounding_box()["x"] < map_.bounding_box()["x"] + 40,
        "the frame is at the start",
    )
    box = map_.bounding_box()
    drag(page, (box["x"] + 20, box["y"] + 40), (box["x"] + box["width"] - 5, box["y"] + 40))
    wait_until(lambda: page.evaluate(scrolled) > 0, "the tree has moved")
    wait_until(lambda: frame.bounding_box()["x"] > box["x"] + 40, "the frame went along")


def test_a_link_leads_to_any_row(open_page: Callable[..., Any], demo: Demo) -> None:
    page = open_page(address("session", demo))
    rows = page.locator(".row[data-seq]:not(.turn-head)")
    rows.first.wait_for()
    seq = rows.nth(3).get_attribute("data-seq")
    page.goto(f"{address('session', demo)}?again=1#e{seq}")
    page.locator(f"#e{seq}.here").wait_for()
    page.locator("#pane .detail").wait_for()
