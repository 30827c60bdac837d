"""Every one of 5,000 sessions can be reached on the Sessions page: filtered, sorted, page by page, and exported."""

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.harness import missing
from tests.doors.web.conftest import Door, serving
from tests.kit import World, wait_until

COUNT = 5_000
SCROLL_AND_COUNT = """() => {
  window.scrollTo(0, document.body.scrollHeight);
  return document.querySelectorAll("[data-row]").length;
}"""
DAY = 1_790_000_000_000


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    world = World(tmp_path_factory.mktemp("many"))
    try:
        world.start()
        world.ask(op="ingest", events=[_started(n) for n in range(COUNT)])
        with serving(world) as opened:
            yield opened
    finally:
        world.close()


def _started(n: int) -> dict:
    return {
        "kind": "prompt.submitted", "key": f"k{n:031d}", "at": DAY + n * 1000, "session": f"{n:08d}-0000-4000-8000-000000000000",
        "project": f"/srv/p{n % 7}", "agent": ("claude-code", "codex", "gemini")[n % 3],
        "data": {"prompt": f"Task number {n}", "imported": "test"},
    }  # fmt: skip


def listed(page: str) -> list[str]:
    return re.findall(r'id="s-(\d{8})', page)


def test_all_of_them_can_be_reached(many: Door) -> None:
    seen, address = [], "/sessions"
    first = many.page(address)
    assert "1 to 100 of 5,000" in first
    for offset in range(0, COUNT, 1_000):
        seen += listed(many.page(f"/sessions?offset={offset}"))
    assert seen[:2] == ["00004999", "00004998"] and len(set(seen)) == 500
    assert listed(many.page("/sessions?offset=4900"))[-1] == "00000000"


def test_filters_and_text_narrow_it(many: Door) -> None:
    page = many.page("/sessions?agent=codex&project=/srv/p3")
    wanted = [n for n in range(COUNT) if n % 3 == 1 and n % 7 == 3]
    assert f"{len(wanted)} of 5,000" in page
    assert listed(many.page("/sessions?text=number+4321")) == ["00004321"]
    assert "No session fits these filters" in many.page("/sessions?text=nothing-like-it")


def test_the_api_and_ctrl_k_see_the_same(many: Door) -> None:
    told = many.api("sessions/table?text=number%2077&limit=3&sort=started&reverse=true")["data"]
    assert [one["id"][:8] for one in told["sessions"]] == ["00000077", "00000770", "00000771"]
    assert told["total"] == 11


def test_one_is_exported_as_a_file(many: Door) -> None:
    status, body, headers = many.ask(
        "GET", "/sessions/export?id=00000042-0000-4000-8000-000000000000&format=md", **many.as_page
    )
    assert status == 200 and b"Task number 42" in body
    assert headers["content-disposition"] == 'attachment; filename="session-00000042.md"'


def test_an_address_that_is_not_there_is_a_page(many: Door) -> None:
    status, body, _ = many.ask("GET", "/nowhere", **many.as_page, Accept="text/html")
    assert status == 404 and b"There is no such page" in body and b'href="/sessions"' in body


def test_the_icon_counts(many: Door) -> None:
    assert b">3</text>" in many.ask("GET", "/icon.svg?waits=3", **many.as_page)[1]
    assert b"<text" not in many.ask("GET", "/icon.svg", **many.as_page)[1]


def test_several_are_exported_as_one_archive(many: Door) -> None:
    ids = "&".join(f"id={n:08d}-0000-4000-8000-000000000000" for n in (7, 8, 7))
    status, body, headers = many.ask("GET", f"/sessions/export?{ids}&format=jsonl", **many.as_page)
    assert (status, headers["content-disposition"]) == (200, 'attachment; filename="sessions.zip"')
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        texts = [archive.read(name).decode() for name in archive.namelist()]
    assert ["Task number 7" in texts[0], "Task number 8" in texts[1], len(texts)] == [True, True, 2]
    assert many.ask("GET", f"/sessions/export?{ids}&format=exe", **many.as_page)[0] == 422


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_a_browser_scrolls_through_thousands(many: Door, browser: Any) -> None:
    """The next page joins when the end comes near; what is far away is not laid out."""
    page = opened_at(many, browser, "/sessions")
    page.locator(".all-sessions [data-row]").first.wait_for()
    wait_until(lambda: page.evaluate(SCROLL_AND_COUNT) >= 500, "five pages are there")
    drawn = page.eval_on_selector_all("[data-row]", "all => all.map((row) => row.id.slice(2, 10))")
    assert drawn == [f"{n:08d}" for n in range(COUNT - 1, COUNT - 1 - len(drawn), -1)]
    page.locator("[data-pick]").nth(3).check()
    assert page.locator("[data-picked]").inner_text() == "1 selected"
    page.context.close()


def opened_at(many: Door, browser: Any, path: str) -> Any:
    base = f"http://127.0.0.1:{many.port}"
    context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=base)
    context.add_cookies([{"name": many.keys.cookie_name, "value": many.keys.cookie, "url": base}])
    page = context.new_page()
    page.goto(path)
    return page


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_a_view_is_saved_found_again_and_removed(many: Door, browser: Any) -> None:
    page = opened_at(many, browser, "/sessions")
    page.locator(".all-sessions [data-row]").first.wait_for()
    assert page.locator("[data-save]").is_hidden(), "the list of all is no view of one's own"
    page.goto("/sessions?agent=codex&project=/srv/p3")
    page.once("dialog", lambda asked: asked.accept("codex in p3"))
    page.locator("[data-save]").click()
    page.goto("/sessions")
    page.get_by_role("link", name="codex in p3").click()
    page.wait_for_url("**/sessions?agent=codex&project=/srv/p3")
    page.get_by_role("button", name="Remove the view codex in p3").click()
    assert page.get_by_role("link", name="codex in p3").count() == 0
    page.context.close()


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_several_are_picked_and_downloaded(many: Door, browser: Any) -> None:
    page = opened_at(many, browser, "/sessions?text=number+4321")
    page.locator("[data-pick]").check()
    with page.expect_download() as one:
        page.locator("[data-download]").click()
    assert one.value.suggested_filename == "session-00004321.md"
    page.goto("/sessions?agent=codex&project=/srv/p3")
    page.locator("[data-pick-all]").check()
    page.locator("[data-export] select").select_option("jsonl")
    with page.expect_download() as several:
        page.locator("[data-download]").click()
    with zipfile.ZipFile(several.value.path()) as archive:
        assert len(archive.namelist()) == page.locator("[data-pick]:checked").count() > 1
    page.context.close()


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_ctrl_k_finds_pages_commands_and_any_session(many: Door, browser: Any) -> None:
    page = opened_at(many, browser, "/health")
    page.wait_for_selector('[data-wire="live"]')
    page.keyboard.press("Control+k")
    page.keyboard.type("number 1234")
    page.get_by_role("option", name="Task number 1234").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/session/00001234-*")
    page.keyboard.press("Control+k")
    page.keyboard.type("gat")
    kinds = page.get_by_role("option").all_inner_texts()
    assert any("Gates" in text for text in kinds) and any("holdfast gate status" in text for text in kinds)
    page.context.close()
