"""A session that hooks recorded and its imported twin say the same; known differences are named here."""

import json
from pathlib import Path
from typing import Any

import pytest
from tools import twin

FAILED = "FAILED tests/test_a.py::test_one - assert 1 == 2\n===== 1 failed, 2 passed in 0.10s ====="
PASSED = "===== 3 passed in 0.10s ====="
REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, "
)
SESSION = "0199a1b2-0000-7000-8000-00000000000{}"


def claude(path: Path) -> Path:
    lines: list[dict[str, Any]] = []

    def say(kind: str, content: Any, **more: Any) -> None:
        n = len(lines)
        lines.append(
            {
                "type": kind, "uuid": f"u{n}", "sessionId": SESSION.format(1), "cwd": "/home/dev/project",
                "timestamp": f"2026-03-01T10:00:{n:02}.000Z", "message": {"role": kind, "content": content}, **more,
            }
        )  # fmt: skip

    def call(name: str, told: Any, *, failed: bool = False, **tool_input: Any) -> None:
        ident = f"toolu_{len(lines)}"
        say("assistant", [{"type": "tool_use", "id": ident, "name": name, "input": tool_input}])
        text = told if isinstance(told, str) else told.get("stdout", "done")
        result = {"type": "tool_result", "tool_use_id": ident, "content": text, "is_error": failed}
        say("user", [result], promptId="p1", toolUseResult=f"Error: {told}" if failed else told)

    say("user", "Make the tests pass", promptId="p1")
    call("Bash", f"Exit code 1\n{FAILED}", failed=True, command="pytest -q")
    call(
        "Edit",
        {"filePath": "/home/dev/project/a.py"},
        file_path="/home/dev/project/a.py",
        old_string="1",
        new_string="2",
    )
    call("Bash", {"stdout": PASSED, "stderr": "", "interrupted": False}, command="pytest -q")
    say("assistant", [{"type": "text", "text": "They pass."}])
    say("user", "Thanks", promptId="p2")
    say("assistant", [{"type": "text", "text": "Gladly."}])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def claude_with_words(path: Path) -> Path:
    lines: list[dict[str, Any]] = []

    def add(kind: str, **more: Any) -> None:
        at = f"2026-03-01T10:00:{len(lines):02}.000Z"
        common = {"uuid": f"u{len(lines)}", "sessionId": SESSION.format(3), "cwd": "/home/dev/project"}
        lines.append({"type": kind, "timestamp": at, **common, **more})

    def say(kind: str, content: Any, **more: Any) -> None:
        add(kind, message={"role": kind, "content": content}, **more)

    def call(ident: str, text: str, **more: Any) -> None:
        say("assistant", [{"type": "tool_use", "id": ident, "name": "Bash", "input": {"command": "ls"}}])
        told = {} if more else {"toolUseResult": {"stdout": text, "stderr": "", "interrupted": False}}
        say("user", [{"type": "tool_result", "tool_use_id": ident, "content": text, **more}], promptId="p1", **told)

    say("user", "Make the tests pass", promptId="p1")
    call("c1", "a.py")
    add("queue-operation", operation="enqueue", content="Only the fast ones")
    add("queue-operation", operation="remove")
    call("c2", f"{REJECTED}the user said:\nNot that folder", is_error=True)
    say("user", "<bash-input>git status</bash-input>")
    say("assistant", [{"type": "text", "text": "Sorry."}])
    say("user", [{"type": "text", "text": "[Request interrupted by user]"}], promptId="p1")
    add("ai-title", aiTitle="Fast tests")
    say("user", "Thanks", promptId="p2")
    say("assistant", [{"type": "text", "text": "Gladly."}])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def codex(path: Path) -> Path:
    session = SESSION.format(2)
    lines: list[dict[str, Any]] = []

    def say(kind: str, **payload: Any) -> None:
        at = f"2026-03-01T10:00:{len(lines):02}.000Z"
        lines.append({"type": kind, "timestamp": at, "payload": payload})

    def call(command: str, output: str) -> None:
        ident = f"call_{len(lines)}"
        given = json.dumps({"cmd": command})
        say("response_item", type="function_call", name="exec_command", arguments=given, call_id=ident)
        text = f"Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n{output}\n"
        say("response_item", type="function_call_output", call_id=ident, output=text)

    say("session_meta", id=session, session_id=session, cwd="/home/dev/project")
    say("event_msg", type="task_started", turn_id="t1")
    say("turn_context", turn_id="t1", model="gpt-5.5")
    say("event_msg", type="user_message", message="Run the tests")
    call("pytest -q", PASSED)
    call("ls", "a.py")
    say("event_msg", type="task_complete", turn_id="t1", last_agent_message="They pass.")
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


DIFFERENT = {claude: (), codex: ("[2].text",)}
"""The words about a check of Codex, whose exit status is known later than its output."""


@pytest.mark.parametrize(("write", "checks", "deeds"), [(claude, 2, 8), (codex, 1, 5)])
def test_an_imported_session_says_what_the_hooks_said(tmp_path: Path, write: Any, checks: int, deeds: int):
    found = twin.compare_twins(write(tmp_path / "transcript.jsonl"), tmp_path).views
    odd = [line for view in found.values() for line in view.differing if line.partition(":")[0] not in DIFFERENT[write]]
    assert odd == []
    assert (found["checks"].equal, found["history"].equal) == (checks, deeds)


def test_words_that_no_hook_reports_are_read_from_the_transcript(tmp_path: Path):
    """Typed while it worked, said with a rejection, run with `!`, an interruption, and the agent's own title."""
    found = twin.compare_twins(claude_with_words(tmp_path / "transcript.jsonl"), tmp_path).views
    assert [line for view in found.values() for line in view.differing] == []


def test_what_cannot_be_played_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "lane.jsonl").write_text(
        json.dumps({"type": "session_meta", "payload": {"id": "b", "session_id": "a", "cwd": "/home/dev"}}) + "\n"
    )
    (tmp_path / "text.jsonl").write_text("no JSON\n")
    assert twin.main([str(tmp_path / "lane.jsonl"), str(tmp_path / "text.jsonl")]) == {}
    printed = capsys.readouterr().out
    assert "not played: a subagent's rollout" in printed
    assert "not played: not one JSON object per line" in printed
