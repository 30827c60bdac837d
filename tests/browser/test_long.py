"""A session of many thousand rows: only what is seen is there, every place is reached, and what is new joins on."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.bench.sessions import an_event, fill
from tests.kit import World, wait_until

SESSION = "s-7"
EVENTS = 20_000
ROW = 28
SEEN = """() => {
  const box = scroller.getBoundingClientRect();
  return [...scroller.querySelectorAll(".row")]
    .filter((row) => row.getBoundingClientRect().top >= box.top - 1 && row.getBoundingClientRect().bottom <= box.bottom + 1)
    .map((row) => [Number(row.dataset.seq), Math.round((row.getBoundingClientRect().top - box.top + scroller.scrollTop) / 28)]);
}"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("long"))
    _fill(made)
    made.start()
    yield made
    made.cli("dashboard", "--stop", code=None)
    made.close()


def _fill(world: World) -> None:
    """Appended and folded by hand (see tests/bench/sessions.py): hook by hook it would take minutes."""
    steps = itertools.chain([0], itertools.cycle(range(1, 49)))
    events = [
        an_event(n + 1, 1_760_000_000_000 + n * 500, 7, step, ends=False)
        for n, step in zip(range(EVENTS), steps, strict=False)
    ]
    fill(world, events)


@pytest.fixture
def page(world: World, browser: Any) -> Iterator[Any]:
    told = world.json("dashboard", "--no-open")
    context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=told["address"])
    context.set_default_timeout(20_000)
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(told["link"])
    opened.wait_for_selector("main")
    opened.goto(f"/session/{SESSION}")
    opened.wait_for_selector(".blocks .row")
    yield opened
    context.close()
    assert complaints == []


def whole(world: World) -> list[int]:
    """The numbers of all rows, in order."""
    rows: list[int] = []
    while page := world.view("sessions.rows", id=SESSION, start=rows[-1] + 1 if rows else 1, limit=500)["rows"]:
        rows += [row["seq"] for row in page]
    return rows


def seen(page: Any, top: int) -> list[list[int]]:
    page.evaluate(f"scroller.scrollTop = {top}")
    wait_until(lambda: len(page.evaluate(SEEN)) >= 10, f"rows are seen at {top}")
    return page.evaluate(SEEN)


def test_every_row_is_where_it_belongs_and_few_are_there(world: World, page: Any) -> None:
    rows = whole(world)
    height = page.evaluate("scroller.scrollHeight")
    assert height == pytest.approx(len(rows) * ROW, abs=2)
    for top in (0, 5_000, height // 2, height // 3, 199 * ROW, height - 2_000, height):
        found = seen(page, top)
        assert [rows[place] for _, place in found] == [seq for seq, _ in found], top
        assert page.evaluate("scroller.querySelectorAll('.row').length") <= 1_500


def test_keys_and_details_work_in_the_middle_of_it(page: Any) -> None:
    first = seen(page, 100_000)[0][0]
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.wait_for_selector(".pane .detail")
    assert page.evaluate("Number(scroller.querySelector('.here').dataset.seq)") > first
    chosen = page.evaluate("location.hash")
    page.reload()
    page.wait_for_selector(f"{chosen}.here")
    assert abs(page.evaluate("scroller.scrollTop") - 100_000) < 1_000


def test_a_turn_is_reached_from_the_overview(page: Any) -> None:
    page.locator(".overview a").first.click()
    page.wait_for_selector(".row.here")
    assert page.evaluate("scroller.querySelector('.here').classList.contains('prompt')")


def test_what_is_new_joins_at_the_end_across_blocks(world: World, page: Any) -> None:
    """Far more than two hundred new rows: the last block is cut, and none is missing or twice."""
    page.evaluate("scroller.scrollTop = scroller.scrollHeight")
    agent = world.session(SESSION)
    for n in range(6):
        agent.prompt(f"A new one {n}")
    page.locator(".row", has_text="A new one 5").wait_for()
    for n in range(40):
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
    page.locator(".row", has_text="note 39.29").wait_for()
    rows = whole(world)
    wait_until(lambda: page.evaluate("scroller.scrollHeight") == len(rows) * ROW, "all of them have room")
    for top in (len(rows) * ROW, (len(rows) - 250) * ROW):
        found = seen(page, top)
        assert [rows[place] for _, place in found] == [seq for seq, _ in found]
