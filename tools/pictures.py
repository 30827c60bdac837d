"""`make pictures`: each screen of the dashboard with the demo's day, as docs/pictures/*.png. `… pictures.py gates now` makes some."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser.harness import CHROMIUM, FLAGS, Demo, missing, start_demo  # noqa: E402

FOLDER = ROOT / "docs" / "pictures"
WIDE, NARROW = (1280, 800), (400, 800)
MOST_BYTES = 2_000_000


@dataclass(frozen=True)
class Picture:
    name: str
    path: str
    dark: bool = False
    size: tuple[int, int] = WIDE
    click: str = ""
    """Something to click first."""


def pictures(demo: Demo) -> Iterator[Picture]:
    shop = demo.project("harbor-shop")
    session = next(
        one["id"]
        for one in demo.json("sessions", "list", "--all")["sessions"]
        if one["title"].startswith("The receipt")
    )
    runs = [one["id"] for one in demo.json("uat", "list")["runs"]]
    yield Picture("now", "/")
    yield Picture("now-dark", "/", dark=True)
    yield Picture("now-narrow", "/", size=NARROW)
    yield Picture("session", f"/session/{session}")
    yield Picture("session-dark", f"/session/{session}", dark=True)
    yield Picture("gates", "/gates")
    yield Picture("gates-dark", "/gates", dark=True)
    yield Picture("tasks", "/tasks")
    yield Picture("state", f"/state?project={shop}")
    yield Picture("uat", f"/uat/{runs[0]}")
    yield Picture("uat-compare", f"/uat/{runs[0]}?with={runs[1]}")
    yield Picture("search", f"/search?q=vat&project={shop}")
    yield Picture("memory", "/memory")
    yield Picture("activity", "/activity")
    yield Picture("health", "/health")


def main() -> None:
    if why := missing():
        raise SystemExit(f"make pictures: {why}")
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(exist_ok=True)
    demo = start_demo()
    try:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            taken = [_take(browser, demo, one) for one in pictures(demo) if _wanted(one)]
            browser.close()
    finally:
        demo.end()
    whole = sum(path.stat().st_size for path in FOLDER.glob("*.png"))
    print(f"{sum(taken)} pictures, {whole / 1e6:.2f} MB in {FOLDER.relative_to(ROOT)}")
    if whole > MOST_BYTES:
        raise SystemExit(f"more than {MOST_BYTES} bytes: leave some out")


def _wanted(picture: Picture) -> bool:
    return not sys.argv[1:] or any(picture.name.startswith(word) for word in sys.argv[1:])


def _take(browser: Any, demo: Demo, picture: Picture) -> bool:
    width, height = picture.size
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if picture.dark else "light",
        base_url=demo.address, reduced_motion="reduce",
    )  # fmt: skip
    page = context.new_page()
    page.goto(demo.link)
    page.wait_for_selector("main")
    answer = page.goto(picture.path)
    if answer.status == 200:
        page.wait_for_selector('[data-wire="live"]')
        page.wait_for_timeout(300)
        page.screenshot(path=FOLDER / f"{picture.name}.png")
    else:
        print(f"{picture.name}: {answer.status}")
    context.close()
    return answer.status == 200


if __name__ == "__main__":
    main()
