"""Sessions that are one JSON document, and those of Pi."""

import json
from pathlib import Path
from typing import Any

from holdfast.agents.gemini.history import read_chat
from holdfast.agents.opencode.history import find_sessions, read_sessions
from holdfast.agents.opencode.transcript import FOLDER
from holdfast.agents.pi.history import read_session
from holdfast.analysis.transcripts import ImportLocation, Skipped
from holdfast.core.event import Event


def events(read: Any, path: Path) -> list[Event]:
    return [one for one in read(path, ImportLocation(path.parent, path.parent)) if isinstance(one, Event)]


def deeds(found: list[Event]) -> list[tuple[str, str]]:
    return [
        (one.kind, str(one.data.get("prompt") or one.data.get("title") or one.data.get("command") or ""))
        for one in found
        if one.kind != "model.answered"
    ]


def test_a_chat_of_gemini_is_a_document_whatever_its_name(tmp_path: Path) -> None:
    messages = [
        {"id": "m1", "type": "user", "timestamp": "2026-03-01T10:00:00Z", "content": [{"text": "Add a guide"}]},
        {"id": "m2", "type": "gemini", "timestamp": "2026-03-01T10:00:05Z", "content": "Done."},
    ]
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps({"sessionId": "s1", "messages": messages}, indent=2))
    found = events(read_chat, path)
    assert {one.session for one in found} == {"s1"}
    assert ("prompt.submitted", "Add a guide") in deeds(found)


def exported(path: Path, **info: Any) -> Path:
    def message(ident: str, role: str, *parts: Any, **more: Any) -> dict[str, Any]:
        return {"info": {"id": ident, "role": role, "time": {"created": 1_776_105_641_982}, **more}, "parts": parts}

    call = {"input": {"command": "ls"}, "status": "completed", "output": "a.py", "metadata": {"exit": 0}}
    messages = [
        message("m1", "user", {"type": "text", "text": "List the files"}),
        message("m2", "assistant", {"type": "tool", "tool": "bash", "callID": "c1", "state": call}, {"odd": 1}, "odd"),
        {"info": "damaged", "parts": []},
        message("m3", "assistant", {"type": "text", "text": "One."}, cost=0.5, tokens={"input": 7, "output": 2}),
    ]
    document = {"info": {"id": "ses_1", "directory": "/home/dev/project", **info}, "messages": messages}
    path.write_text(json.dumps(document, indent=2))
    return path


def test_an_exported_session_of_opencode(tmp_path: Path) -> None:
    path = exported(tmp_path / "ses_1.json", title="Files of the project")
    found = events(read_sessions, path)
    assert deeds(found) == [
        ("session.started", ""), ("prompt.submitted", "List the files"), ("tool.started", "ls"), ("tool.finished", "ls"),
        ("session.titled", "Files of the project"), ("turn.ended", ""), ("session.ended", ""),
    ]  # fmt: skip
    (spent,) = [one for one in found if one.kind == "model.answered"]
    assert (spent.session, spent.data.tokens["input"]) == ("ses_1", 7)
    skipped = [one for one in read_sessions(path, ImportLocation(tmp_path, tmp_path)) if isinstance(one, Skipped)]
    assert len(skipped) == 1, "the damaged message is named, and the others are read"


def test_an_exported_subagent_of_opencode_is_a_lane(tmp_path: Path) -> None:
    found = events(read_sessions, exported(tmp_path / "ses_1.json", parentID="ses_0"))
    assert {(one.session, one.data.get("lane")) for one in found if one.kind != "model.answered"} == {
        ("ses_0", "ses_1")
    }


def test_an_exported_subagent_comes_with_its_session_in_the_order_of_time(tmp_path: Path) -> None:
    """Ids of opencode fall with time, so by name the subagent comes first."""
    session, subagent = (
        exported(tmp_path / "ses_2.json", id="ses_2"),
        exported(tmp_path / "ses_1.json", parentID="ses_2"),
    )
    home = tmp_path / "home"
    folder = home / FOLDER
    folder.mkdir(parents=True)
    for path in (session, subagent):
        path.rename(folder / path.name)
    (head,) = find_sessions(ImportLocation(home, home))
    assert head.name == session.name
    found = events(read_sessions, head)
    assert {(one.session, one.data.get("lane")) for one in found if one.kind == "prompt.submitted"} == {
        ("ses_2", None), ("ses_2", "ses_1"),
    }  # fmt: skip
    assert found[0].kind == "session.started"


def test_ids_that_repeat_or_are_none_lose_and_merge_nothing(tmp_path: Path) -> None:
    """As tools leave them that take out what looks like a secret."""
    path = exported(tmp_path / "ses_7.json", id="REDACTED", parentID="REDACTED")
    document = json.loads(path.read_text())
    for n, message in enumerate(one for one in document["messages"] if one["info"] != "damaged"):
        message["info"] |= {"id": "REDACTED", "time": {"created": 1_776_105_641_982 + n}}
        if n == 1:
            call = message["parts"][0]
            message["parts"] = [call, {**call, "state": {**call["state"], "input": {"command": "ls -a"}}}]
    path.write_text(json.dumps(document, indent=2))
    found = events(read_sessions, path)
    assert {(one.session, one.data.get("lane")) for one in found if one.kind != "model.answered"} == {
        ("ses_7", "ses_7")
    }
    assert len({one.key for one in found}) == len(found)
    ended = [one for one in found if one.kind == "tool.finished"]
    assert [one.data["command"] for one in ended] == ["ls", "ls -a"] and len({one.data["call"] for one in ended}) == 2
    assert [one.key for one in events(read_sessions, path)] == [one.key for one in found]


def test_a_document_that_is_no_session_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ses_1.json"
    path.write_text('{\n  "messages": 3\n}')
    (skipped,) = read_sessions(path, ImportLocation(tmp_path, tmp_path))
    assert isinstance(skipped, Skipped)


def pi(path: Path) -> Path:
    call = {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "go test ./..."}}
    usage = {"input": 533, "output": 53, "cacheRead": 2048, "cacheWrite": 0, "cost": {"total": 0.005}}
    said: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "Run the tests"}]},
        {"role": "assistant", "model": "gpt-5.5", "content": [call], "usage": usage, "stopReason": "toolUse"},
        {"role": "toolResult", "toolCallId": "c1", "isError": True, "content": [{"type": "text", "text": FAILED}]},
        {"role": "bashExecution", "command": "git status"},
        {"role": "assistant", "model": "gpt-5.5", "content": [{"type": "text", "text": "One fails."}], "stopReason": "aborted"},
    ]  # fmt: skip
    start = {
        "type": "session",
        "version": 3,
        "id": "p1",
        "timestamp": "2026-05-20T10:00:00Z",
        "cwd": "/home/dev/project",
    }
    lines = [start, *({"type": "message", "id": f"m{n}", "timestamp": f"2026-05-20T10:00:{n:02}Z", "message": one}
                      for n, one in enumerate(said, 1))]  # fmt: skip
    named = {"type": "session_info", "id": "n1", "timestamp": "2026-05-20T10:01:00Z", "name": "Failing test"}
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, named]))
    return path


FAILED = "--- FAIL: TestOne\nFAIL\n\n\nCommand exited with code 1"


def test_a_session_of_pi(tmp_path: Path) -> None:
    found = events(read_session, pi(tmp_path / "p1.jsonl"))
    assert deeds(found) == [
        ("session.started", ""), ("prompt.submitted", "Run the tests"), ("tool.started", "go test ./..."),
        ("tool.failed", "go test ./..."), ("prompt.submitted", "! git status"), ("turn.interrupted", ""),
        ("session.titled", "Failing test"), ("session.ended", ""),
    ]  # fmt: skip
    (ended,) = [one for one in found if one.kind == "tool.failed"]
    assert (ended.data.exit_code, ended.data.action) == (1, "shell")
    (spent,) = [one for one in found if one.kind == "model.answered"]
    assert (spent.session, spent.data.tokens["cache_read"], spent.data.model) == ("p1", 2048, "gpt-5.5")
    shell = next(one for one in found if one.data.get("source") == "shell")
    assert shell.data.synthetic
