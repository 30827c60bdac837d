"""What can be done from the dashboard, with the keyboard and with the mouse; each is an event in the log."""

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.browser.harness import Demo

LIVE = '[data-wire="live"]'
SHOTS = Path(os.environ["HOLDFAST_SHOTS"]) if os.environ.get("HOLDFAST_SHOTS") else None
"""Where pictures are kept for somebody who looks."""


def test_keys(page: Any) -> None:
    page.wait_for_selector(LIVE)
    here = page.locator("main [data-row].here")
    page.keyboard.press("j")
    first = here.get_attribute("id")
    page.keyboard.press("j")
    assert here.get_attribute("id") != first
    page.keyboard.press("k")
    assert here.get_attribute("id") == first
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "q"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.locator("dialog[open]").count() == 1
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog[open]", state="hidden")
    page.keyboard.press("Enter")
    page.wait_for_url("**/session/**")


def test_g_and_a_letter_leads_to_each_screen(page: Any) -> None:
    page.wait_for_selector(LIVE)
    menu = page.eval_on_selector_all(".side li a", "all => all.map((a) => [a.dataset.key, a.textContent.trim()])")
    assert len(menu) >= 9
    for key, title in menu:
        page.keyboard.press("Escape")  # Search waits in its field for what is looked for.
        page.keyboard.press("g")
        with page.expect_navigation():
            page.keyboard.press(key)
        assert page.locator("h1").inner_text().split()[0] in title
        page.wait_for_selector(LIVE)


def test_a_requirement_is_satisfied_and_a_place_paused_from_here(open_page: Callable[..., Any], demo: Demo) -> None:
    page = open_page(f"/gates?project={demo.project('notes-api')}")
    page.wait_for_selector(LIVE)
    row = page.locator("tr", has_text="review_before_commit").first
    row.get_by_role("button", name="Satisfy").click()
    row.get_by_text("satisfied by person").wait_for()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Pause for an hour").click()
    page.get_by_text("paused until").wait_for()
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("paused until").wait_for(state="detached")
    kinds = [event["kind"] for event in demo.json("events", "list", "--limit", "200", project="notes-api")["events"]]
    assert {"gates.satisfied", "gates.paused", "gates.resumed"} <= set(kinds)


def test_looser_settings_wait_until_a_person_accepts_them_here(open_page: Callable[..., Any], demo: Demo) -> None:
    settings = demo.root / "atlas-ui" / ".claude" / "requirements.yaml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("requirements:\n  tide_plan: {manual: false, command_pattern: 'make tide'}\n")
    session, call = str(uuid.uuid4()), {"tool_name": "Bash", "tool_input": {"command": "python3 x.py"}}
    try:
        demo.hook("SessionStart", session, "atlas-ui", mode="start", source="startup")
        demo.hook("PreToolUse", session, "atlas-ui", tool_use_id="call-1", **call)
        settings.write_text("requirements: {}\n")  # by the command that runs
        demo.hook("PostToolUse", session, "atlas-ui", tool_use_id="call-1", tool_response={"stdout": ""}, **call)
        page = open_page(f"/gates?project={demo.project('atlas-ui')}")
        page.wait_for_selector(LIVE)
        banner = page.locator(".banner", has_text="tide_plan: is gone")
        banner.wait_for()
        page.locator("th", has_text="tide_plan").first.wait_for()
        asked: list[str] = []
        page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.accept()))
        page.screenshot(path=SHOTS / "accept.png", full_page=True) if SHOTS else None
        banner.get_by_role("button", name="Accept the looser settings").click()
        banner.wait_for(state="detached")
        assert "ask for less than what is in force" in asked[0]
        assert page.locator("th", has_text="tide_plan").count() == 0
        assert b"deny" not in demo.hook("PreToolUse", session, "atlas-ui", tool_use_id="c2", tool_name="Bash",
                                        tool_input={"command": "make tide"})  # fmt: skip
    finally:
        settings.unlink()
        demo.hook("SessionEnd", session, "atlas-ui", mode="tell", reason="prompt_input_exit")


def test_a_refusal_is_on_screen_while_it_happens(open_page: Callable[..., Any], demo: Demo) -> None:
    page = open_page("/gates")
    page.wait_for_selector(LIVE)
    session, name = str(uuid.uuid4()), f"src/shop/new{uuid.uuid4().hex[:6]}.py"
    demo.hook("SessionStart", session, mode="start", source="startup", model="claude-opus-5-5")
    edit = {"tool_name": "Write", "tool_input": {"file_path": f"{demo.project('harbor-shop')}/{name}", "content": ""}}
    assert b"deny" in demo.hook("PreToolUse", session, tool_use_id=uuid.uuid4().hex, **edit)
    page.locator("table.refusals tr", has_text=name).get_by_text("plan_first").wait_for()
    page.locator("table.board th", has_text=session[:8]).wait_for()
    demo.hook("SessionEnd", session, mode="tell", reason="prompt_input_exit")
    page.locator("table.board th", has_text=session[:8]).wait_for(state="detached")


def test_a_task_of_ones_own(open_page: Callable[..., Any], demo: Demo) -> None:
    page = open_page("/tasks")
    page.wait_for_selector(LIVE)
    words = f"Paint the jetty {uuid.uuid4().hex[:6]}"
    page.locator("select[name=project]").select_option(label="atlas-ui")
    page.locator("select[name=priority]").select_option("P1")
    page.get_by_label("What", exact=True).fill(words)
    page.get_by_role("button", name="Add").click()
    task = page.locator("details.task", has_text=words)
    task.wait_for()
    task.locator("summary").click()
    task.get_by_role("button", name="Done").click()
    task.wait_for(state="detached")
    assert words not in demo.cli("task", "list", project="atlas-ui")


def test_a_memory_is_pinned_vouched_for_and_forgotten(open_page: Callable[..., Any], demo: Demo) -> None:
    word = f"lighthouse{uuid.uuid4().hex[:6]}"
    demo.cli("memory", "add", f"The {word} is painted red")
    page = open_page("/memory")
    page.wait_for_selector(LIVE)
    memory = page.locator("li.memory", has_text=word)
    memory.get_by_role("button", name="Pin").click()
    memory.get_by_text("pinned").wait_for()
    memory.get_by_role("button", name="Unpin").click()
    memory.get_by_role("button", name="Pin", exact=True).wait_for()
    page.on("dialog", lambda dialog: dialog.accept())
    memory.get_by_role("button", name="Forget").click()
    memory.wait_for(state="detached")
    assert word not in demo.cli("memory", "list")


def test_what_an_agent_said_is_vouched_for(open_page: Callable[..., Any], demo: Demo) -> None:
    demo.cli("memory", "add", "Decimal keeps all digits", session="vat-2")
    page = open_page(f"/memory?project={demo.project('harbor-shop')}")
    page.wait_for_selector(LIVE)
    memory = page.locator("li.memory", has_text="Decimal keeps all digits")
    memory.get_by_role("button", name="Vouch for it").click()
    memory.get_by_text("vouched for").wait_for()


def test_the_slider_shows_the_document_as_it_was(open_page: Callable[..., Any], demo: Demo) -> None:
    page = open_page(f"/state?project={demo.project('harbor-shop')}")
    page.wait_for_selector(LIVE)
    now = page.locator(".doc").text_content()
    assert "src/shop/invoice.py" in now
    page.locator("input[type=range]").focus()
    page.keyboard.press("Home")
    page.locator("summary", has_text="as it was").wait_for()
    assert "src/shop/invoice.py" not in page.locator(".doc").text_content()
    assert "step=0" in page.url
    page.get_by_role("link", name="Now", exact=True).last.click()
    page.wait_for_function("!document.querySelector('details.block summary').textContent.includes('as it was')")


def test_a_used_link_opens_nothing_and_nobody_gets_in_without_one(browser: Any, demo: Demo) -> None:
    link = demo.link
    for expected in (200, 403):
        context = browser.new_context()
        assert context.new_page().goto(link).status == expected
        context.close()
    context = browser.new_context()
    assert context.new_page().goto(demo.address).status == 401
    context.close()


def test_candidates_are_kept_changed_and_dropped_with_one_key_each(open_page: Callable[..., Any], demo: Demo) -> None:
    def say(session: str, text: str) -> None:
        demo.hook("SessionStart", session, mode="start", source="startup")
        demo.hook("UserPromptSubmit", session, prompt=text)
        demo.hook("Stop", session, last_assistant_message="All right.")

    for number in range(3):
        say(f"first-{number}", f"Remember that service{number} listens on port 80{number}")
    page = open_page(f"/memory?project={demo.project('harbor-shop')}")
    page.wait_for_selector(LIVE)
    for number in range(3):
        memory = page.locator("li.memory", has_text=f"service{number} listens").first
        memory.get_by_role("button", name="Pin", exact=True).click()
        memory.get_by_text("pinned", exact=True).wait_for()
    # What contradicts a pinned memory waits for a person.
    for number in range(3):
        say(f"inbox-{number}", f"Remember that service{number} listens on port 90{number}")
    waiting = page.locator("#inbox li.memory")
    waiting.nth(2).wait_for()
    for key in ("y", "d"):
        first = waiting.first.get_attribute("id")
        page.keyboard.press(key)
        page.locator(f"#{first}").wait_for(state="detached")
    page.keyboard.press("c")
    page.keyboard.press("Control+A")
    page.keyboard.type("Everything here is small")
    page.keyboard.press("Enter")
    page.locator("li.memory", has_text="Everything here is small").first.wait_for()
    # The recorded day may have left some of its own.
    for _ in range(waiting.count()):
        first = waiting.first.get_attribute("id")
        page.keyboard.press("d")
        page.locator(f"#inbox #{first}").wait_for(state="detached")
    page.locator("#inbox").wait_for(state="detached")
    kept = demo.json("memory", "list")["observations"]
    assert "Everything here is small" in [one["text"] for one in kept]
