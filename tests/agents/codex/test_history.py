"""Codex's rollouts as events: how commands end, and what repeats."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.codex.history import follow_rollout, read_rollout
from holdfast.agents.codex.transcript import exit_code
from holdfast.analysis.transcripts import ImportLocation, Skipped
from holdfast.core.event import Event
from tests.agents.codex.test_attribution import events_of, line

START = line("session_meta", id="s-1", cwd="/home/ada/engine")


def call(ident: str, name: str, arguments: str) -> str:
    return line("response_item", type="function_call", name=name, arguments=arguments, call_id=ident)


def result(ident: str, head: str, text: str) -> str:
    output = f"Chunk ID: 1\nWall time: 1.0 seconds\n{head}\nOutput:\n{text}"
    return line("response_item", type="function_call_output", call_id=ident, output=output)


def ends(events: list[Event]) -> list[tuple[Any, ...]]:
    return [
        (one.data["call"], one.data.get("exit_code"), one.data["ok"], one.data["output"])
        for one in events
        if one.kind == "tool.finished"
    ]


def test_a_command_ends_with_its_code(tmp_path: Path) -> None:
    events = events_of(
        tmp_path, START, call("c1", "exec_command", '{"cmd":"make"}'), result("c1", "Process exited with code 2", "no")
    )
    assert [(code, ok) for _, code, ok, _ in ends(events)] == [(2, False)]


def test_a_command_that_runs_on_ends_in_the_result_of_another_call(tmp_path: Path) -> None:
    events = events_of(
        tmp_path,
        START,
        call("c1", "exec_command", '{"cmd":"pytest"}'),
        result("c1", "Process running with session ID 7", "collecting"),
        call("c2", "write_stdin", '{"session_id":7,"chars":""}'),
        result("c2", "Process exited with code 1", "1 failed"),
    )
    assert [(ident, code, ok) for ident, code, ok, _ in ends(events)] == [("c1", 1, False)]
    (check,) = [one for one in events if one.kind == "tool.finished" and one.data["call"] == "c1"]
    assert check.data["command"] == "pytest"
    assert "1 failed" in check.data["output"]


def test_a_script_with_one_call_is_that_call(tmp_path: Path) -> None:
    def script(ident: str, text: str) -> str:
        return line("response_item", type="custom_tool_call", name="exec", input=text, call_id=ident)

    events = events_of(
        tmp_path,
        START,
        script("c1", r'const r = await tools.exec_command({cmd:"printf \"a\\n\"","workdir":"/x"}); text(r.output);'),
        script(
            "c2",
            'const patch = "*** Begin Patch\\n*** Update File: b.py\\n@@\\n*** End Patch"; text(await tools.apply_patch(patch));',
        ),
        script("c3", "await tools.write_stdin({session_id:7,chars:''});"),
        script("c4", 'await tools.exec_command({cmd:"a"}); await tools.exec_command({cmd:"b"});'),
    )
    started = [(one.tool, one.data["action"], one.data.get("command")) for one in events if one.kind == "tool.started"]
    assert started[0] == ("Bash", "shell", 'printf "a\\n"')
    assert [one[:2] for one in started[1:]] == [("apply_patch", "edit"), ("exec", started[2][1])]
    assert [one.data["paths"] for one in events if one.tool == "apply_patch"] == [["/home/ada/engine/b.py"]]


@pytest.mark.parametrize(("printed", "known"), [(2, 2), (0, None)])
def test_a_failure_that_a_script_prints_is_believed_and_a_success_is_not(
    tmp_path: Path, printed: int, known: int | None
) -> None:
    script = 'const r = await tools.exec_command({cmd:"make"}); text(JSON.stringify(r));'
    shown = json.dumps({"chunk_id": "1a", "exit_code": printed, "output": "done"}, separators=(",", ":"))
    parts = [{"type": "input_text", "text": text} for text in ("Script completed\nOutput:\n", shown)]
    lines = (
        line("response_item", type="custom_tool_call", name="exec", input=script, call_id="c1"),
        line("response_item", type="custom_tool_call_output", call_id="c1", output=parts),
    )
    assert ends(events_of(tmp_path, START, *lines)) == [("c1", known, not known, "done")]
    assert exit_code([one.encode() for one in lines], "c1", 1 << 50) == known


def test_a_server_that_is_never_ended_is_not_finished(tmp_path: Path) -> None:
    events = events_of(
        tmp_path,
        START,
        call("c1", "exec_command", '{"cmd":"npm run dev"}'),
        result("c1", "Process running with session ID 7", "ready"),
    )
    assert ends(events) == []


def test_words_of_the_program_are_no_code(tmp_path: Path) -> None:
    events = events_of(
        tmp_path,
        START,
        call("c1", "exec_command", '{"cmd":"cat log"}'),
        result("c1", "Original token count: 3", "Process exited with code 1"),
    )
    assert [(code, ok) for _, code, ok, _ in ends(events)] == [(None, True)]


def test_the_name_of_a_thread_is_its_title(tmp_path: Path) -> None:
    events = events_of(tmp_path, START, line("event_msg", type="thread_name_updated", thread_name="Look at the engine"))
    (titled,) = [one for one in events if one.kind == "session.titled"]
    assert titled.data["title"] == "Look at the engine"
    take = follow_rollout(str(tmp_path / "rollout-1.jsonl"))
    lines = (tmp_path / "rollout-1.jsonl").read_bytes().splitlines()
    assert [one.key for each in lines for one in take(each)] == [titled.key]


def test_what_codex_asks_for_a_review_is_nobodys_prompt(tmp_path: Path) -> None:
    meta = line("session_meta", id="s-2", cwd="/home/ada/engine", source={"subagent": "review"})
    events = events_of(tmp_path, meta, line("event_msg", type="user_message", message="Review the code changes"))
    assert {(one.session, one.data.get("lane"), one.data.get("lane_type")) for one in events} == {
        ("s-2", "s-2", "review")
    }


def test_what_comes_before_the_session_is_named_is_said_once(tmp_path: Path) -> None:
    path = tmp_path / "rollout-1.jsonl"
    count = {"type": "token_count", "info": {"total_token_usage": {"input_tokens": 9, "output_tokens": 1}}}
    cut = [call("c1", "exec_command", '{"cmd":"make"}'), line("event_msg", **count)]
    path.write_text("".join([*cut, START, line("event_msg", type="user_message", message="look")]))
    found = list(read_rollout(path, ImportLocation(tmp_path, tmp_path)))
    assert [one.where.rpartition(":")[2] for one in found if isinstance(one, Skipped) and not one.expected] == ["1"]
    assert {one.session for one in found if isinstance(one, Event)} == {"s-1"}


def test_a_session_that_goes_on_starts_once(tmp_path: Path) -> None:
    events = events_of(tmp_path, START, line("event_msg", type="user_message", message="look"), START)
    assert [one.kind for one in events].count("session.started") == 1


@pytest.mark.parametrize("ended_at", [1_000, 4_102_444_800_000])
def test_an_older_version_writes_the_end_as_a_message(ended_at: int) -> None:
    told = line("event_msg", type="exec_command_end", call_id="c1", exit_code=3)
    assert exit_code([told.encode()], "c1", ended_at) == (3 if ended_at > 1_000 else None)
    assert exit_code([told.encode()], "c2", ended_at) is None


LONG = [
    call("c1", "exec_command", '{"cmd":"pytest"}'),
    result("c1", "Process running with session ID 7", "collecting"),
    call("c0", "exec_command", '{"cmd":"npm start"}'),
    result("c0", "Process running with session ID 8", "ready"),
    call("c2", "write_stdin", '{"session_id":7,"chars":""}'),
    result("c2", "Process running with session ID 7", "still"),
    call("c3", "write_stdin", '{"session_id":8,"chars":"q"}'),
    result("c3", "Process exited with code 130", ""),
    call("c4", "write_stdin", '{"session_id":7,"chars":""}'),
    result("c4", "Process exited with code 1", "1 failed"),
]


def test_live_the_code_of_a_command_that_ran_on_is_in_a_later_result() -> None:
    lines = [one.encode() for one in LONG]
    assert (exit_code(lines, "c1", 1 << 50), exit_code(lines, "c0", 1 << 50)) == (1, 130)
    assert exit_code(lines[:6], "c1", 1 << 50) is None, "it still runs"
    assert exit_code([b'"c1', *lines, b'{"broken": "c1"'], "c1", 1 << 50) == 1, "cut lines are no records"


def test_a_compaction_in_a_turn_with_a_prompt_is_automatic(tmp_path: Path) -> None:
    begin, asked = (
        line("event_msg", type="task_started", turn_id="t"),
        line("event_msg", type="user_message", message="a"),
    )
    triggers = [
        [one.data.get("trigger", "") for one in events_of(tmp_path, START, *turn) if one.kind == "compact.ended"]
        for turn in ([begin, asked, line("compacted", message="")], [begin, line("compacted", message="")])
    ]
    assert triggers == [["auto"], [""]]


def test_an_older_subagent_belongs_to_the_thread_that_spawned_it(tmp_path: Path) -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "top", "depth": 1, "agent_role": "worker"}}}
    events = events_of(tmp_path, line("session_meta", id="child", cwd="/home/ada/engine", source=source))
    assert [(one.kind, one.session, one.data["lane"]) for one in events] == [("subagent.started", "top", "child")]
