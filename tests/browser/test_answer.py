"""An agent's question, answered on a page as wide as a phone, and by a link that needs no key."""

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.harness import Demo
from tests.kit import NATIVE_HOOK, wait_until

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
QUESTION = {"question": "Which colour?", "header": "Colour", "multiSelect": False,
            "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]}  # fmt: skip


class Asking:
    def __init__(self, demo: Demo, tool: str, given: dict[str, Any]) -> None:
        self.demo, self.session = demo, str(uuid.uuid4())
        cwd = demo.project("harbor-shop")
        demo.hook("SessionStart", self.session, mode="start", source="startup")
        demo.hook("UserPromptSubmit", self.session, prompt="Tidy the harbour <b>now</b>")
        self.process = subprocess.Popen(
            [NATIVE_HOOK, "wait", "claude-code", "PermissionRequest"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=demo.env, cwd=cwd,
        )  # fmt: skip
        payload = {"session_id": self.session, "transcript_path": f"{demo.root}/{self.session}.jsonl", "cwd": cwd,
                   "hook_event_name": "PermissionRequest", "tool_name": tool, "tool_input": given}  # fmt: skip
        assert self.process.stdin
        self.process.stdin.write(json.dumps(payload).encode())
        self.process.stdin.close()
        wait_until(lambda: self.session in demo.cli("notify", "list"), "it asks")

    def decision(self) -> dict[str, Any]:
        assert self.process.stdout
        told = json.loads(self.process.stdout.read())
        assert self.process.wait(10) == 0
        decision: dict[str, Any] = told["hookSpecificOutput"]["decision"]
        return decision


@pytest.fixture
def asking(demo: Demo) -> Iterator[Callable[..., Asking]]:
    made: list[Asking] = []

    def ask(tool: str, **given: Any) -> Asking:
        made.append(Asking(demo, tool, given))
        return made[-1]

    yield ask
    for one in made:
        one.process.kill()
        one.process.wait()
        demo.hook("SessionEnd", one.session, mode="tell", reason="other")


def fits(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def test_a_permission_is_allowed_from_a_phone(open_page: Any, asking: Any) -> None:
    asked = asking("Bash", command="rm -rf build && echo '<script>alert(1)</script>'", description="tidy")
    page = open_page("/", **PHONE)
    page.locator(f'a[href="/answer/{asked.session}"]').click()
    page.get_by_role("button", name="Allow once").wait_for()
    words = page.inner_text("main")
    assert "rm -rf build && echo '<script>alert(1)</script>'" in words
    assert "Tidy the harbour <b>now</b>" in words
    assert fits(page)
    assert page.get_by_role("button", name="Allow once").bounding_box()["height"] >= 44
    page.get_by_role("button", name="Allow once").click()
    assert asked.decision() == {"behavior": "allow"}


def test_a_permission_is_denied_with_a_reason(open_page: Any, asking: Any) -> None:
    asked = asking("Bash", command="git push")
    page = open_page(f"/answer/{asked.session}", **PHONE)
    page.get_by_label("Why not").fill("only after the review")
    page.get_by_role("button", name="Deny").click()
    assert asked.decision() == {"behavior": "deny", "message": "only after the review"}


def test_a_question_is_answered(open_page: Any, asking: Any) -> None:
    asked = asking("AskUserQuestion", questions=[QUESTION])
    page = open_page(f"/answer/{asked.session}", **PHONE)
    page.get_by_label("Blue").check()
    page.get_by_role("button", name="Send the answer").click()
    decision = asked.decision()
    assert decision["behavior"] == "allow"
    assert decision["updatedInput"] == {"questions": [QUESTION], "answers": {"Which colour?": "Blue"}}
