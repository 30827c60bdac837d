"""Now, with the demo's day: who waits is on top, and what happens is on screen while it happens."""

import time
import uuid
from typing import Any

from tests.browser.harness import Demo


def test_the_demo_answers_as_the_day_expects(demo: Demo) -> None:
    assert demo.told["surprises"] == []
    assert demo.told["refused"] >= 8
    assert demo.told["hooks"] > 200


def test_who_waits_for_you_is_on_top(page: Any) -> None:
    words = page.inner_text("main")
    assert 0 < words.index("Waiting for you") < words.index("At work") < words.index("Recently ended")
    first = page.locator("main [data-row]").first
    assert "Fill tags for the old notes" in first.inner_text()
    assert "psql notes" in first.inner_text()


def test_a_hook_is_on_screen_while_it_happens(page: Any, demo: Demo) -> None:
    """The time is printed, not judged: other tests run on the same two cores."""
    page.wait_for_selector('[data-wire="live"]')
    session, title = str(uuid.uuid4()), f"Rename the harbour {uuid.uuid4().hex[:6]}"
    demo.hook("SessionStart", session, mode="start", source="startup", model="claude-opus-5-5")
    began = time.monotonic()
    demo.hook("UserPromptSubmit", session, prompt=title)
    page.get_by_text(title).first.wait_for()
    print(f"on screen {1000 * (time.monotonic() - began):.0f} ms after the hook was started")
    demo.hook("SessionEnd", session, mode="tell", reason="prompt_input_exit")


def test_the_day_is_a_log_like_any_other(demo: Demo) -> None:
    """Nothing is missing from it, and its state is what the log says."""
    assert demo.json("verify")["gaps"] == []
    assert demo.json("rebuild")["differences"] == []
