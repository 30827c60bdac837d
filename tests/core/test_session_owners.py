"""Two agents with one session id: each keeps its own record, after a restart and when old transcripts come in too."""

from pathlib import Path

import msgspec
import pytest

from holdfast.app import App, build_app
from holdfast.core.decision import Delivery
from holdfast.core.event import KEPT, Event, SessionOwners
from holdfast.core.ids import delivery_key
from holdfast.core.kinds.agent_events import ModelAnswered, PromptSubmitted
from holdfast.core.ports import EventQuery
from holdfast.daemon.ingest.imported import told_by_hooks
from holdfast.features.sessions.state.documents import SESSION
from holdfast.paths import Paths

AT = 1_794_700_000_000
CLAUDE = {"session_id": "s1", "transcript_path": "/t.jsonl", "cwd": "/", "prompt_id": "p1"}
CODEX = {
    "session_id": "s1",
    "transcript_path": "/.codex/sessions/2026/11/16/rollout-2026-11-16T07-00-00-s1.jsonl",
    "cwd": "/",
    "turn_id": "p1",
    "model": "gpt",
}
CALL = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "c1"}


@pytest.fixture
def app(tmp_path: Path):
    made = build_app(Paths(tmp_path / "state").prepare())
    yield made
    made.store.close()


def deliver(app: App, agent: str, payload: dict, at: int = AT) -> None:
    body = msgspec.json.encode(payload)
    key = delivery_key()
    app.engine.handle([Delivery(key=key, agent=agent, event=payload["hook_event_name"], at=at, body=body)])


def prompt(text: str) -> dict[str, str]:
    return {"hook_event_name": "UserPromptSubmit", "prompt": text}


def both(app: App) -> None:
    deliver(app, "claude-code", {**CLAUDE, **prompt("of claude")})
    deliver(app, "codex", {**CODEX, **prompt("of codex")}, at=AT + 5)
    deliver(app, "claude-code", {**CLAUDE, **CALL}, at=AT + 6)
    deliver(app, "codex", {**CODEX, **CALL}, at=AT + 7)


def test_each_agent_has_its_own_session(app: App):
    """The same turn and call ids within a moment are two happenings as well."""
    both(app)
    reader = app.store.reader()
    found = {key: (doc.agent, doc.title, doc.events) for key, doc in SESSION.list(reader)}
    assert found == {"s1": ("claude-code", "of claude", 2), "s1~codex": ("codex", "of codex", 2)}
    reader.close()


def test_they_stay_apart_after_a_restart(app: App):
    both(app)
    app.engine.forget()
    deliver(app, "codex", {**CODEX, **prompt("codex again"), "turn_id": "p2"}, at=AT + 60_000)
    deliver(app, "claude-code", {**CLAUDE, **prompt("claude again"), "prompt_id": "p2"}, at=AT + 60_000)
    reader = app.store.reader()
    assert {key: doc.prompts for key, doc in SESSION.list(reader)} == {"s1": 2, "s1~codex": 2}
    reader.close()


def test_an_imported_session_keeps_to_its_agent_too(app: App):
    deliver(app, "claude-code", {**CLAUDE, **prompt("of claude")})
    old = [
        Event(key="a", kind="prompt.submitted", at=AT, session="s1", agent="qwen", data={"prompt": "of qwen", "imported": "qwen"}),
        Event(key="b", kind="model.answered", at=AT, session="s1", agent="qwen", data={"imported": "qwen"}),
    ]  # fmt: skip
    assert [outcome.seq > 0 for outcome in app.engine.handle(old, imported=True)] == [True, True]
    assert [outcome.seq for outcome in app.engine.handle(old, imported=True)] == [0, 0]
    reader = app.store.reader()
    assert {e.kind for e in reader.events(EventQuery(session="s1~qwen"))} == {"prompt.submitted", "model.answered"}
    told = {agent: told_by_hooks(reader, agent, "s1") for agent in ("claude-code", "qwen", "gemini")}
    assert told == {"claude-code": True, "qwen": False, "gemini": False}
    reader.close()


def test_what_holdfast_found_out_stays_with_the_session_it_names():
    """Figures are read from files of an agent whose reader may have another name than the session's agent."""
    owners = SessionOwners()
    used = Event(key="k", kind="model.answered", at=AT, session="s1", agent="codex", data=ModelAnswered())
    owners.learn([used], lambda sessions: dict.fromkeys(sessions, "claude-code"))
    assert owners.keep_apart(used) is used


def test_few_sessions_are_remembered():
    owners, asked = SessionOwners(), []
    for n in range(KEPT + 1):
        one = Event(key="k", kind="prompt.submitted", at=AT, session=f"s{n}", agent="codex", data=PromptSubmitted())
        owners.learn([one], lambda sessions: asked.extend(sessions) or {})
    assert len(asked) == KEPT + 1
    owners.learn([msgspec.structs.replace(one, session="s0")], lambda sessions: {"s0": "claude-code"})
    assert owners.keep_apart(msgspec.structs.replace(one, session="s0")).session == "s0~codex"
