"""What Codex puts into the person's place is no prompt; what it puts around their words is cut off."""

import json
from pathlib import Path

import pytest

from holdfast.agents.codex import AGENT
from holdfast.agents.codex.attribution import typed_words
from holdfast.agents.codex.history import read_rollout
from holdfast.analysis.transcripts import ImportLocation
from holdfast.core.decision import Delivery
from holdfast.core.event import Event

FROM_AN_EDITOR = "# Files mentioned by the user:\n\n## a.png: /tmp/a.png\n\n## My request for Codex:\nuse the picture\n"
CONTEXT = "<environment_context>\n  <cwd>/p</cwd>\n</environment_context>"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fix it", "fix it"), (FROM_AN_EDITOR, "use the picture"), (CONTEXT, ""),
        ("<user_instructions>\nbe brief", ""), ("# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>", ""),
        ("<turn_aborted>\nthe user interrupted", ""), ("# Plan\n\nwrite it down", "# Plan\n\nwrite it down"),
        ("what does '## My request for Codex:' mean?", "what does '## My request for Codex:' mean?"),
    ],
)  # fmt: skip
def test_the_words_of_the_person(text: str, words: str) -> None:
    assert typed_words(text) == words


def line(kind: str, **payload: object) -> str:
    return json.dumps({"timestamp": "2026-11-15T15:49:08Z", "type": kind, "payload": payload}) + "\n"


def events_of(tmp_path: Path, *lines: str) -> list[Event]:
    path = tmp_path / "rollout-1.jsonl"
    path.write_text("".join(lines))
    return [one for one in read_rollout(path, ImportLocation(tmp_path, tmp_path)) if isinstance(one, Event)]


def test_a_rollout_has_the_words_and_marks_the_rest(tmp_path: Path) -> None:
    said = [line("event_msg", type="user_message", message=text) for text in (CONTEXT, FROM_AN_EDITOR)]
    events = events_of(tmp_path, line("session_meta", id="s-1"), *said)
    prompts = [(one.data["prompt"], one.data.get("synthetic")) for one in events if one.kind == "prompt.submitted"]
    assert prompts == [(CONTEXT, True), ("use the picture", None)]


PARENT, COPIED, CHILD, OWN = (f"01a1f522-{part}-7890-8dab-12c17c9d9614" for part in ("a1ba", "a1df", "a268", "a290"))
"""As Codex makes them: ids grow with time."""


def fork_of(*own: str) -> tuple[str, ...]:
    """The rollout of a forked subagent as 0.166 writes it, with what older versions copied besides."""
    call = {"type": "function_call", "name": "exec_command", "call_id": "c0", "arguments": '{"cmd":"make"}'}
    return (
        line("session_meta", id=CHILD, session_id=PARENT, forked_from_id=PARENT),
        line("session_meta", id=PARENT, session_id=PARENT),
        line("event_msg", type="task_started", turn_id=COPIED),
        line("turn_context", turn_id=COPIED, model="m"),
        line("event_msg", type="user_message", message="the parent's task"),
        line("response_item", **call),
        line("response_item", type="function_call_output", call_id="c0", output="ok"),
        *own,
    )


def test_a_fork_says_only_what_is_its_own(tmp_path: Path) -> None:
    call = {"type": "function_call", "name": "exec_command", "call_id": "c1", "arguments": '{"cmd":"pytest"}'}
    events = events_of(
        tmp_path,
        *fork_of(
            line("event_msg", type="task_started", turn_id=OWN),
            line("event_msg", type="user_message", message="look"),
            line("response_item", **call),
            line("event_msg", type="task_complete", turn_id=OWN, last_agent_message="done"),
        ),
    )
    assert {(one.session, one.data.get("lane")) for one in events} == {(PARENT, CHILD)}
    said = [one.data.get("prompt") or one.data.get("command") or one.data.get("message") or "" for one in events]
    assert [text for text in said if text] == ["look", "pytest", "done"]


def test_a_copy_without_ids_of_turns_is_read_as_before(tmp_path: Path) -> None:
    events = events_of(
        tmp_path,
        line("session_meta", id="child", session_id="top", forked_from_id="top"),
        line("session_meta", id="top"),
        line("turn_context", model="m"),
        line("event_msg", type="user_message", message="look"),
    )
    assert [one.data.get("prompt") for one in events if one.kind == "prompt.submitted"] == ["look"]


def test_a_hook_has_the_words_too() -> None:
    payload = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "turn_id": "t", "prompt": FROM_AN_EDITOR}
    event = AGENT.read(Delivery(key="k", at=1, mode="ask", agent="codex", event="UserPromptSubmit"), payload)
    assert event.data["prompt"] == "use the picture"
