"""Stored scripts, escape codes, direction marks, a megabyte on one line, hostile names in every field: all of it is text."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from holdfast.doors.web import oak_payloads
from holdfast.doors.web.pages import sanitise_value
from tests.browser import hostile, looks
from tests.kit import World, git, wait_until

CLEAN = {"pwned": None, "handlers": [], "scripts": 0, "foreign": [], "hidden": 0}
LONG = "M" * (1 << 20)


class Hostile:
    """A state directory that has seen the worst, and a dashboard on it."""

    def __init__(self, root: Path) -> None:
        self.world = World(root)
        self.project = root / '<img src=x onerror="window.pwned=1"> \u202egnp'
        self.project.mkdir()
        self.world.project = self.project
        git(self.project, "init", "-q")
        (self.project / "<b>.py").write_text("x = 1\n")
        git(self.project, "add", ".")
        git(self.project, "commit", "-qm", "<script>window.pwned=1</script>")
        git(self.project, "checkout", "-q", "-b", "<svg/onload=window.pwned=1>")
        self.sessions: list[str] = []

    def attack(self) -> None:
        (self.world.root / "config").mkdir()
        (self.world.root / "config" / "settings.yaml").write_text(SETTINGS)
        self._scenario()
        self.world.start()
        for number, text in enumerate(hostile.strings()):
            self._session(number, text)
        self._session(999, LONG)
        self._by_hand()

    def _session(self, number: int, text: str) -> None:
        """Few events for most of them, so that all fields meet all kinds of text. At the daemon's own door: it is quick."""
        self.sessions.append(f"s{number}-{text[:80]}")
        paths = f"{self.project}/{text[:150]}"
        call = {"tool_name": text[:200], "tool_input": {"command": text}, "tool_use_id": text[:60]}
        edit = {"tool_name": "Edit", "tool_input": {"file_path": paths, "old_string": text, "new_string": text}}
        asks = {"tool_name": "Bash", "tool_input": {"command": text, "description": text}}
        for event, fields in (
            (("SessionStart", {"source": text, "model": text}), ("UserPromptSubmit", {"prompt": f"We decided: {text}"})),
            (("UserPromptSubmit", {"prompt": text}), ("PreToolUse", call)),
            (("PreToolUse", edit), ("PostToolUseFailure", {**asks, "error": text})),
            (("SubagentStart", {"agent_id": text[:60], "agent_type": text[:60]}), ("PermissionRequest", asks)),
            (("UserPromptSubmit", {"prompt": f"Always {text}"}), ("Stop", {"last_assistant_message": f"The root cause was {text}"})),
        )[number % 5]:  # fmt: skip
            self._fire(event, {**fields, "prompt_id": text[:40]})

    def _fire(self, event: str, fields: dict[str, Any]) -> None:
        common = {"session_id": self.sessions[-1], "transcript_path": "/none.jsonl", "cwd": str(self.project)}
        payload = json.loads(json.dumps({**common, "hook_event_name": event, **fields}).replace("\\ud800", "\\ufffd"))
        oak_payloads.forward_hook(self.world.paths, "ask", "claude-code", event, payload)

    def _scenario(self) -> None:
        folder = self.project / "uat" / "scenarios"
        folder.mkdir(parents=True)
        bad = json.dumps("<script>window.pwned=1</script>")
        step = {"action": "navigate", "description": '" onmouseover=window.pwned=1 x="'}
        (folder / "bad.yaml").write_text(f"name: {bad}\ndescription: {bad}\nsteps: {json.dumps([step])}\n")

    def _by_hand(self) -> None:
        bad = '"><script>window.pwned=1</script>'
        repo = f"{self.project}/.git"
        everywhere = {"repo": repo, "branch": "<svg/onload=window.pwned=1>"}
        for name, args in (
            ("project.add_task", {"description": bad, "why": bad, "done_when": [bad]}),
            ("project.acquire", {"lease": bad, "why": bad, "pid": self.world.pid, "exactly": True}),
            ("memory.add", {"text": f"{bad} \u202egnp", "type": "gotcha"}),
            ("gates.pause", {**everywhere, "seconds": 60, "why": bad}),
            ("gates.approve", {**everywhere, "names": ["plan"], "everyone": True, "metadata": {bad: bad}}),
            ("uat.start", {"scenario": "<script>window.pwned=1</script>", "session": self.sessions[0]}),
            ("uat.assert", {"run": "", "description": bad, "result": "failed", "actual": bad}),
            ("log.note", {"text": bad}),
        ):
            who = {"session": self.sessions[0], "project": str(self.project)}
            self.world.ask(op="command", name=name, args=args, **who)

    def link(self) -> str:
        return self.world.json("dashboard", "--no-open")["link"]

    def close(self) -> None:
        self.world.cli("dashboard", "--stop", code=None)
        self.world.close()


SETTINGS = """
requirements:
  plan:
    description: '"><script>window.pwned=1</script>'
    message: '<img src=x onerror=window.pwned=1>'
"""


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    found = Hostile(tmp_path_factory.mktemp("h"))
    try:
        found.attack()
        yield found
    finally:
        found.close()


@pytest.fixture(scope="module")
def visitor(attacked: Hostile, browser: Any) -> Iterator[Any]:
    """One page that walks through everything; what it complains about is collected."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(20_000)
    page = context.new_page()
    page.complaints = []
    page.on(
        "console",
        lambda said: (
            page.complaints.append(f"{said.text} {said.location.get('url')}")
            if said.type in ("error", "warning")
            else None
        ),
    )
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("dialog", lambda dialog: (page.complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on(
        "request", lambda asked: page.complaints.append(asked.url) if "//127.0.0.1:" not in asked.url[:20] else None
    )
    page.goto(attacked.link())
    page.wait_for_selector("main")
    page.log = attacked.world.paths.logs / "web.log"
    yield page
    context.close()


def visited(page: Any, path: str) -> str:
    page.complaints.clear()
    answer = page.goto(
        path if path.startswith("http") else page.url.split("/", 3)[0] + "//" + page.url.split("/")[2] + path
    )
    assert answer.status == 200, (path[:200], answer.status, page.log.read_text()[-600:] if page.log.exists() else "")
    page.wait_for_selector('[data-wire="live"]')
    assert looks.ask(page, "foreign") == CLEAN, path[:200]
    assert page.complaints == [], path[:200]
    return page.inner_text("body")


def _await_text(page: Any, text: str) -> None:
    wait_until(lambda: text in " ".join(page.inner_text("body").split()), text[:80])


SCREENS = ("/", "/gates", "/tasks", "/state", "/uat", "/memory", "/activity", "/health", "/search?q=script")


def test_every_screen_of_hostile_texts(visitor: Any) -> None:
    for path in SCREENS:
        words = visited(visitor, path)
        assert [said for said in SAYS.get(path, ()) if said not in words] == [], path
        assert len(visitor.content()) < 1_000_000, path
        for width in (400, 1280):
            visitor.set_viewport_size({"width": width, "height": 800})
            assert looks.too_wide(visitor) == [], (path, width)


SAYS = {
    "/memory": ("<script>window.pwned=1</script>",),
    "/gates": ("onerror=",),
    "/tasks": ('"><script>window.pwned=1</script>',),
}


def test_two_hundred_sessions_each_with_its_own(visitor: Any, attacked: Hostile) -> None:
    """Every seventh session is looked at, and what it was told stands there, letter for letter."""
    known = {event.session.partition("-")[0]: event.session for event in attacked.world.events() if event.session}
    for number, text in list(enumerate(hostile.strings()))[::7]:
        visited(visitor, f"/session/{quote(known[f's{number}'], safe='')}")
        # The rows of a turn are loaded when it comes into view.
        _await_text(visitor, _start(text))


def _start(text: str) -> str:
    """As the page names what would not be seen; its first letters, for the rest may be cut off."""
    return sanitise_value(" ".join(text.replace("\ud800", "\ufffd").split()))[:16].strip()


def test_events_and_reasons(visitor: Any, attacked: Hostile) -> None:
    seqs = [event.seq for event in attacked.world.events() if event.session]
    for seq in seqs[:: len(seqs) // 10]:
        visited(visitor, f"/event/{seq}")
        visited(visitor, f"/gates/why/{seq}")


def test_a_megabyte_on_one_line_costs_no_megabyte(visitor: Any, attacked: Hostile) -> None:
    visited(visitor, f"/session/{quote(attacked.sessions[-1], safe='')}")
    assert len(visitor.content()) < 400_000
    assert looks.too_wide(visitor) == []


def test_hostile_addresses(visitor: Any) -> None:
    """What is asked for in the address is shown as text too, or is not there."""
    base = "/".join(visitor.url.split("/")[:3])
    bad = quote('"><script>window.pwned=1</script>', safe="")
    for path in (
        f"/gates?project={bad}", f"/tasks?project={bad}", f"/state?project={bad}&step={bad}", f"/memory?type={bad}&status={bad}",
        f"/uat?before={bad}", f"/uat/{bad}?with={bad}", f"/session/{bad}", f"/gates/why/{bad}", f"/event/{bad}", f"/search?q={bad}",
        f"/uat/{bad}/shot/{bad}", "/uat/x/shot/99999999", f"/activity?days={bad}", "/state?step=99999999999999999999",
    ):  # fmt: skip
        if "/shot/" in path:
            assert visitor.request.get(base + path).status == 404
            continue
        assert visitor.goto(base + path).status < 500, path
        assert looks.ask(visitor, "foreign") == CLEAN, path
    visitor.complaints.clear()  # Those that are not there were refused with 404, which the browser tells.
