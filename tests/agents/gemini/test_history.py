"""A chat of Gemini CLI that is one document."""

import json
from pathlib import Path

import pytest

from holdfast.agents import source
from holdfast.agents.gemini.history import TRANSCRIPTS
from holdfast.analysis.transcripts import Found, ImportLocation, Skipped
from holdfast.core.event import Event

AT = "2026-11-15T21:14:00Z"
RESULT = {"functionResponse": {"response": {"output": "hi"}}}
CALL = {
    "id": "c1",
    "name": "run_shell_command",
    "args": {"command": "echo hi"},
    "status": "success",
    "result": [RESULT],
}
CHAT = {
    "sessionId": "s-1", "kind": "main",
    "messages": [
        {"id": "m0", "timestamp": AT, "type": "info", "content": "An update is available."},
        {"id": "m1", "timestamp": AT, "type": "user", "content": [{"text": "say hi"}]},
        {"id": "m2", "timestamp": AT, "type": "gemini", "content": "Done.", "model": "gemini-3", "toolCalls": [CALL],
         "tokens": {"input": 7, "output": 3, "total": 10}},
        {"id": "m3", "timestamp": AT, "type": "user", "content": "System: Please continue."},
    ],
}  # fmt: skip


def read(home: Path, text: str) -> list[Found]:
    file = home / ".gemini/tmp/p/chats/session-1.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    place = ImportLocation(home, home)
    return [one for path in TRANSCRIPTS.importer.find_files(place) for one in TRANSCRIPTS.importer.read(path, place)]


def test_it_is_read_as_lines_are(tmp_path: Path) -> None:
    events = [one for one in read(tmp_path, json.dumps(CHAT)) if isinstance(one, Event)]
    assert {one.session for one in events} == {"s-1"}
    kinds = [one.kind for one in events]
    assert kinds.count("tool.finished") == kinds.count("model.answered") == kinds.count("session.started") == 1
    prompts = [(one.data["prompt"], one.data.get("synthetic")) for one in events if one.kind == "prompt.submitted"]
    assert prompts == [("say hi", None), ("System: Please continue.", True)]


@pytest.mark.parametrize("text", ["", "[]", '{"messages": 3}', json.dumps(CHAT)[:-9]])
def test_a_broken_one_is_named(tmp_path: Path, text: str) -> None:
    (found,) = read(tmp_path, text)
    assert isinstance(found, Skipped) and found.why.startswith("not a chat")


def test_one_beyond_all_bounds_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LONGEST_DOCUMENT", 100)
    (found,) = read(tmp_path, json.dumps(CHAT))
    assert isinstance(found, Skipped) and "read at once" in found.why
