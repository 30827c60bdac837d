"""One happening, two registrations of our hooks: one event. Two happenings that look alike: two."""

from pathlib import Path

import msgspec
import pytest

from holdfast.app import App, build_app
from holdfast.core.decision import Delivery
from holdfast.core.errors import StoreUnavailable
from holdfast.core.event import AT_ONCE_MS, KEPT, WINDOW_MS, Deduplicator
from holdfast.core.ids import delivery_key
from holdfast.core.ports import EventQuery
from holdfast.paths import Paths

AT = 1_794_700_000_000
CLAUDE = {"session_id": "s1", "transcript_path": "/t.jsonl", "cwd": "/", "prompt_id": "p1"}
CALL = {**CLAUDE, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "make"}}
GEMINI = {"session_id": "g1", "transcript_path": "/g", "cwd": "/", "timestamp": "2026-11-15T07:03:08.146Z"}
BOTH = (
    {"sessionId": "c1", "timestamp": 1794735664496, "cwd": "/", "toolName": "bash", "toolArgs": {"command": "make"}},
    {"hook_event_name": "PreToolUse", "session_id": "c1", "timestamp": "2026-11-15T09:41:04.496Z", "cwd": "/",
     "tool_name": "Bash", "tool_input": {"command": "make"}},
)  # fmt: skip


@pytest.fixture
def app(tmp_path: Path):
    made = build_app(Paths(tmp_path / "state").prepare())
    yield made
    made.store.close()


def deliver(app: App, *payloads: dict, at: int = AT, event: str = "preToolUse", **more) -> list[int]:
    """The number each became in the log; 0 for what was there already."""
    deliveries = [
        Delivery(key=delivery_key(), agent="claude-code", event=event, at=at, body=msgspec.json.encode(p), **more)
        for p in payloads
    ]
    return [o.seq for o in app.engine.handle(deliveries)]


def count(app: App) -> int:
    reader = app.store.reader()
    try:
        return len([e for e in reader.events(EventQuery(limit=1000)) if e.agent])
    finally:
        reader.close()


def test_the_same_call_is_one_event_together_and_one_after_the_other(app):
    call = {**CALL, "tool_use_id": "toolu_1"}
    assert [bool(seq) for seq in deliver(app, call, call)] == [True, False]
    assert deliver(app, call, at=AT + 900) == [0]
    assert count(app) == 1


def test_two_spellings_of_copilot_are_one_happening(app):
    assert [bool(seq) for seq in deliver(app, *BOTH)] == [True, False]
    later = BOTH[1] | {"timestamp": "2026-11-15T09:41:04.497Z"}
    assert deliver(app, later) != [0]


def test_the_same_command_twice_is_two_events(app):
    again = [{**CALL, "tool_use_id": f"toolu_{n}"} for n in (1, 2)]
    assert all(deliver(app, *again))
    tool = {**GEMINI, "hook_event_name": "BeforeTool", "tool_name": "run_shell_command", "tool_input": {}}
    assert all(deliver(app, tool, {**tool, "timestamp": "2026-11-15T07:03:08.147Z"}))


def test_the_same_prompt_typed_twice_is_two_events(app):
    prompt = {**CLAUDE, "hook_event_name": "UserPromptSubmit", "prompt": "go on"}
    assert [bool(seq) for seq in deliver(app, prompt, prompt, {**prompt, "prompt_id": "p2"})] == [True, False, True]


def test_a_stop_refused_and_tried_again_with_the_same_words_is_a_new_stop(app):
    """Taken for a duplicate it would go unanswered, and a gate would be open."""
    stop = {**CLAUDE, "hook_event_name": "Stop", "last_assistant_message": "done", "stop_hook_active": True}
    assert [bool(seq) for seq in deliver(app, stop, stop)] == [True, False]
    assert deliver(app, stop, at=AT + AT_ONCE_MS + 1) != [0]


def test_parallel_requests_for_the_same_permission_are_never_one(app):
    asked = {**CALL, "hook_event_name": "PermissionRequest"}
    assert all(deliver(app, asked, asked))


def test_without_any_id_nothing_is_taken_for_another(app):
    bare = {"session_id": "s1", "transcript_path": "/t.jsonl", "hook_event_name": "Stop"}
    assert all(deliver(app, bare, bare))
    assert all(deliver(app, {"hook_event_name": "Brand new", **CLAUDE}, {"hook_event_name": "Brand new", **CLAUDE}))


def test_a_session_that_starts_is_one_for_its_process(app):
    start = {**CLAUDE, "hook_event_name": "SessionStart", "source": "resume"}
    del start["prompt_id"]
    assert deliver(app, start, pid=7, start=70) != [0]
    assert deliver(app, start, pid=7, start=70, at=AT + 50) == [0]
    assert deliver(app, start, pid=8, start=71, at=AT + 60) != [0]


def test_long_afterwards_it_is_another(app):
    call = {**CALL, "tool_use_id": "call_0"}
    deliver(app, call)
    assert deliver(app, call, at=AT + WINDOW_MS + 1) != [0]


def test_a_restart_forgets_nothing(app, tmp_path):
    call = {**CALL, "tool_use_id": "toolu_1"}
    deliver(app, call)
    app.store.close()
    second = build_app(Paths(tmp_path / "state"))
    assert deliver(second, call, at=AT + 400) == [0]
    app.store, app.engine = second.store, second.engine
    assert count(app) == 1


def test_a_transaction_that_failed_has_told_nothing(app, monkeypatch):
    call = {**CALL, "tool_use_id": "toolu_1"}
    with monkeypatch.context() as broken, pytest.raises(StoreUnavailable):
        broken.setattr(app.store, "append", lambda _events: (_ for _ in ()).throw(OSError("disk")))
        deliver(app, call)
    assert deliver(app, call) != [0]


def test_memory_is_bounded():
    recent = Deduplicator()
    recent.add((f"{n}", n) for n in range(KEPT * 2))
    assert not recent.knows("0", 0)
    assert recent.knows(f"{KEPT * 2 - 1}", KEPT * 2)


def test_gemini_may_tell_the_end_of_one_process_several_times(app: App):
    """Each with a time of its own (0.61.0, when its user presses Enter again); another process may end it again."""
    ended = [
        {**GEMINI, "hook_event_name": "SessionEnd", "reason": "exit", "timestamp": f"2026-11-15T07:03:0{n}.000Z"}
        for n in range(3)
    ]
    assert [bool(n) for n in deliver(app, *ended, event="SessionEnd", pid=7, start=9)] == [True, False, False]
    assert all(deliver(app, {**ended[0], "timestamp": "2026-11-15T07:03:05.000Z"}, event="SessionEnd", pid=8, start=9))
