"""The open page's channel: a hidden page shows the browser's own notification, takes it back, and shows none in front."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.harness import Demo
from tests.browser.test_answer import asking  # noqa: F401 - a fixture
from tests.kit import wait_until

# The browser's own, and what became of it. A page of a test is always in front, so it is said to be hidden.
WATCH = """
const Own = window.Notification;
window.notes = [];
window.Notification = class extends Own {
  constructor(title, more) { super(title, more); this.about = `${title}: ${more.body}`; notes.push(this.about); }
  close() { super.close(); notes.splice(notes.indexOf(this.about), 1); }
};
let away = false;
Object.defineProperty(document, "hidden", { get: () => away });
window.look = (elsewhere) => { away = elsewhere; document.dispatchEvent(new Event("visibilitychange")); };
"""


@pytest.fixture
def page_rule(demo: Demo) -> Iterator[None]:
    """Other tests look at the dashboard meanwhile, so it counts for somebody who looks, too."""
    file = Path(demo.env["HOLDFAST_CONFIG"]) / "settings.yaml"
    before = file.read_text() if file.exists() else ""
    assert "attention:" not in before
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{before}\nattention:\n  rules: [{{channels: [page], while_looking: true}}]\n")
    wait_until(lambda: "page" in demo.json("notify", "list")["channels"], "the daemon has read it")
    yield
    file.write_text(before)


def test_a_hidden_page_notifies_and_takes_it_back(open_page: Any, asking: Any, page_rule: None) -> None:  # noqa: F811
    page = open_page("/gates", permissions=["notifications"])
    page.context.add_init_script(WATCH)
    page.goto("/")
    page.evaluate("look(true)")
    asked = asking("Bash", command="make migrate")
    about = "claude-code permission: make migrate"
    wait_until(lambda: about in page.evaluate("notes"), "it is shown")
    open_page(f"/answer/{asked.session}").get_by_role("button", name="Allow once").click()
    wait_until(lambda: about not in page.evaluate("notes"), "it is taken back")
    assert asked.decision() == {"behavior": "allow"}

    page.evaluate("look(false)")
    asking("Bash", command="make seed")
    wait_until(lambda: _sent(asked.demo, "make seed"), "it is sent to open pages")
    assert page.evaluate("notes") == []
    page.evaluate("look(true)")
    page.evaluate("look(false)")
    assert page.evaluate("notes") == []


def _sent(demo: Demo, text: str) -> bool:
    return any("page" in one["sent"] for one in demo.json("notify", "list")["needs"] if one["text"] == text)
