"""A session of 100,000 events: only what is seen is there, every place is reached, turns fold, and what is new joins on."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.app import build_app
from holdfast.core.event import Event
from tests.bench.sessions import an_event, fill
from tests.kit import World, wait_until

SESSION = "s-7"
FOLDED, EVENTS = 6_000, 100_000
"""The first ones make turns; all the others lie in the last turn, which is as long as a turn can be."""
ROW = 28
SEEN = """() => {
  const box = scroller.getBoundingClientRect();
  return [...scroller.querySelectorAll("[data-seq]")]
    .filter((row) => row.getBoundingClientRect().top >= box.top - 1 && row.getBoundingClientRect().bottom <= box.bottom + 1)
    .map((row) => [Number(row.dataset.seq), Math.round((row.getBoundingClientRect().top - box.top + scroller.scrollTop) / 28)]);
}"""


def made_events() -> Iterator[Event]:
    steps = itertools.chain([0], itertools.cycle(range(1, 49)))
    for n, step in zip(range(FOLDED), steps, strict=False):
        yield an_event(n + 1, 1_760_000_000_000 + n * 500, 7, step, ends=False, call=n // 2)
    for n in range(FOLDED, EVENTS):
        yield an_event(n + 1, 1_760_000_000_000 + n * 500, 7, 3, ends=False, call=n)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("long"))
    events = made_events()
    fill(made, itertools.islice(events, FOLDED))
    store = build_app(made.paths.prepare()).store
    while batch := list(itertools.islice(events, 20_000)):
        with store.transaction():
            store.append(batch)
    store.close()
    made.start()
    yield made
    made.cli("dashboard", "--stop", code=None)
    made.close()


@pytest.fixture(scope="module")
def rows() -> list[int]:
    """The numbers of all rows, in order: calls are shown where they end."""
    return [event.seq for event in made_events() if event.kind != "tool.started"]


@pytest.fixture(scope="module")
def context(world: World, browser: Any) -> Iterator[Any]:
    told = world.json("dashboard", "--no-open")
    made = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=told["address"])
    made.set_default_timeout(20_000)
    page = made.new_page()
    page.goto(told["link"])
    page.wait_for_selector("main")
    page.close()
    yield made
    made.close()


@pytest.fixture
def page(context: Any) -> Iterator[Any]:
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(f"/session/{SESSION}")
    opened.wait_for_selector(".blocks .row")
    yield opened
    opened.close()
    assert complaints == []


def seen(page: Any, top: int) -> list[list[int]]:
    page.evaluate(f"scroller.scrollTop = {top}")
    wait_until(lambda: len(page.evaluate(SEEN)) >= 10, f"rows are seen at {top}")
    return page.evaluate(SEEN)


def test_every_row_is_where_it_belongs_and_few_are_there(page: Any, rows: list[int]) -> None:
    page.get_by_role("button", name="Unfold all").click()
    height = page.evaluate("scroller.scrollHeight")
    # The head of what came before the first turn is a line of its own; the daemon may have closed an old session.
    assert 0 <= height - (len(rows) + 1) * ROW <= 4 * ROW
    for top in (0, 5_000, height // 2, height // 3, height - 2_000, height):
        found = seen(page, top)
        assert [rows[place - 1] for seq, place in found if seq <= EVENTS] == [s for s, _ in found if s <= EVENTS], top
        assert page.evaluate("scroller.querySelectorAll('.row').length") <= 1_500


def test_turns_fold_and_unfold(page: Any) -> None:
    heads = page.locator(".turn-head")
    page.get_by_role("button", name="Fold all", exact=True).click()
    folded = page.evaluate("scroller.scrollHeight")
    page.evaluate("scroller.scrollTop = 0")
    page.locator("#start").wait_for()
    assert page.locator(".blocks .rows").count() == 0
    heads.nth(1).get_by_role("button").click()
    page.locator('.rows[data-turn="1"] .row.tool').first.wait_for()
    assert page.evaluate("scroller.scrollHeight") > folded
    page.locator('.rows[data-turn="1"] .row.tool').first.click()
    page.wait_for_selector(".pane .detail")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("scroller.scrollHeight") == folded
    assert page.evaluate("scroller.querySelector('.here').classList.contains('turn-head')")


def test_keys_details_and_the_address_of_a_row(page: Any) -> None:
    page.get_by_role("button", name="Unfold all").click()
    first = seen(page, 100_000)[0][0]
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.wait_for_selector(".pane .detail")
    assert page.evaluate("Number(scroller.querySelector('.here').dataset.seq)") > first
    chosen = page.evaluate("location.hash")
    page.reload()
    page.wait_for_selector(f"{chosen}.here")
    page.keyboard.press("Escape")
    assert page.locator(".pane").is_hidden()


def test_a_turn_is_reached_from_the_overview_and_bars_zoom(page: Any) -> None:
    page.locator(".overview a").first.click()
    page.wait_for_selector(".turn-head.here")
    page.get_by_role("button", name="Zoom in").click()
    assert page.evaluate("scroller.style.getPropertyValue('--zoom')") == "2"
    assert page.locator("[data-zoom]").inner_text() == "2×"


def test_a_replay_shows_the_state_of_the_moment(world: World, page: Any) -> None:
    page.get_by_role("button", name="Replay", exact=True).click()
    page.wait_for_selector(".moment")
    for n in (2, 3, 4):
        page.get_by_role("button", name="Step forward").click()
        page.locator("[data-where]", has_text=f"{n} of").wait_for()
    shown = int(page.locator(".moment").get_attribute("data-seq"))
    told = world.view("sessions.moment", id=SESSION, seq=shown)
    assert told["counts"]["tools"] == told["document"]["tools"] == 2
    facts = page.locator(".moment .facts").inner_text().split()
    assert facts[facts.index("Tools") + 1] == "2"
    assert page.evaluate("scroller.querySelectorAll('.row.later').length") > 0
    page.keyboard.press("Escape")
    assert page.evaluate("scroller.querySelectorAll('.row.later').length") == 0


def test_what_is_new_joins_at_the_end_across_blocks(world: World, page: Any) -> None:
    """Far more than two hundred new rows: none is missing or twice."""
    page.get_by_role("button", name="Unfold all").click()
    page.evaluate("scroller.scrollTop = scroller.scrollHeight")
    agent = world.session(SESSION)
    agent.prompt("A new one")
    page.locator(".row", has_text="A new one").first.wait_for()
    for n in range(10):
        world.ask(
            op="ingest",
            events=[
                {
                    "key": f"{n:016x}{k:016x}",
                    "kind": "notification",
                    "at": 1_770_000_000_000 + n,
                    "session": SESSION,
                    "data": {"message": f"note {n}.{k}"},
                }
                for k in range(30)
            ],
        )
    page.locator(".row", has_text="note 9.29").wait_for()
    page.evaluate("scroller.scrollTop = scroller.scrollHeight")
    expected = (world.view("sessions.outline", id=SESSION)["rows"] + 1) * ROW
    wait_until(lambda: page.evaluate("scroller.scrollHeight") == expected, "all of them have room")
    drawn = page.evaluate(NOTES)
    assert len(drawn) == len(set(drawn)) > 20
    assert drawn == sorted(drawn)


NOTES = """() => [...scroller.querySelectorAll(".rows [data-seq]")].filter((row) => row.innerText.includes("note "))
  .map((row) => Number(row.dataset.seq))"""
