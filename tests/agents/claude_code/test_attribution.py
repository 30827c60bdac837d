"""Who said what in a transcript of Claude Code: the person's words are prompts, those of Claude Code never."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.claude_code import AGENT
from holdfast.agents.claude_code.attribution import rejection_words, typed_words
from holdfast.agents.claude_code.history import TRANSCRIPTS
from holdfast.analysis.transcripts import ImportLocation
from holdfast.core.decision import Delivery
from holdfast.core.event import Event

REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. a file was NOT written)."
)
SAID = f"{REJECTED} To tell you how to proceed, the user said:\n"
CUT = "[Request interrupted by user for tool use]"


def user(uuid: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "user", "uuid": uuid, "message": {"content": content}, **more}


def works(uuid: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "assistant",
        "uuid": uuid,
        "message": {"content": list(parts) or [{"type": "text", "text": "on it"}]},
    }


def edit(call: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": "Edit", "input": {"file_path": "/p/a.py"}}


def refused(call: str, text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "is_error": True, "content": text}


def queue(operation: str, text: str = "") -> dict[str, Any]:
    return {"type": "queue-operation", "operation": operation, "content": text}


def attached(text: str, mode: str = "prompt") -> dict[str, Any]:
    return {
        "type": "attachment", "uuid": f"at-{text}",
        "attachment": {"type": "queued_command", "prompt": text, "commandMode": mode},
    }  # fmt: skip


def told(home: Path, *records: dict[str, Any]) -> list[Event]:
    file = home / ".claude/projects/-p/s.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    stamped = [{"sessionId": "s", "cwd": "/p", "timestamp": 1e9 + n, **one} for n, one in enumerate(records)]
    file.write_text("".join(json.dumps(one) + "\n" for one in stamped))
    place = ImportLocation(home, home)
    found = [one for path in TRANSCRIPTS.importer.find_files(place) for one in TRANSCRIPTS.importer.read(path, place)]
    events = [one for one in found if isinstance(one, Event)]
    assert len({one.key for one in events}) == len(events)
    return events


def prompts(events: list[Event], *, synthetic: bool = False) -> list[str]:
    chosen = (one.data for one in events if one.kind == "prompt.submitted")
    return [data["prompt"] for data in chosen if bool(data.get("synthetic")) == synthetic]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fix it", "fix it"),
        ("<ide_opened_file>The user opened a.py</ide_opened_file>", ""),
        ("<ide_selection>lines 1 to 2</ide_selection>\nwhat is this?", "what is this?"),
        ("<system-reminder>be brief</system-reminder>\n<system-reminder>x</system-reminder>go on", "go on"),
        ("go on\n<system-reminder>be brief</system-reminder>", "go on"),
        ("why does it print <system-reminder> here?", "why does it print <system-reminder> here?"),
        ("<bash-stdout>ok</bash-stdout><bash-stderr></bash-stderr>", ""),
        ("<local-command-stdout>See ya!</local-command-stdout>", ""),
        ("<ide_selection>never closed", ""),
        ("Stop hook feedback:\n- run the tests", ""),
        ("<command-message>r</command-message>\n<command-name>/review</command-name>\n<command-args>a.py</command-args>",
         "/review a.py"),
        ("<div>is this html right?</div>", "<div>is this html right?</div>"),
    ],
)  # fmt: skip
def test_the_words_of_the_person_are_without_wrappers(text: str, words: str) -> None:
    assert typed_words(text) == words


def test_many_wrappers_take_time_by_their_length() -> None:
    assert typed_words("<bash-stdout></bash-stdout>" * 50_000 + "end") == "end"


def test_the_reason_of_a_rejection_is_a_prompt_and_the_call_was_denied(tmp_path: Path) -> None:
    hint = "\n\nNote: The user's next message may contain a correction or preference. Pay attention."
    events = told(
        tmp_path, user("1", "go"), works("2", edit("c1")), user("3", [refused("c1", f"{SAID}use a table{hint}")])
    )
    assert prompts(events) == ["go", "use a table"]
    assert [one.kind for one in events if one.data.get("call")] == ["tool.started", "permission.denied"]


def test_a_rejection_without_words_and_the_question_form_are_no_prompts() -> None:
    assert rejection_words(REJECTED) == ""
    assert rejection_words(f"{SAID}The user wants to clarify these questions.\n  They may have more to say.") == ""
    assert rejection_words("Exit code 1: the user said:\nhello") == ""


def test_an_interruption_ends_the_turn_and_is_no_prompt(tmp_path: Path) -> None:
    result = [refused("c1", f"{REJECTED} STOP what you are doing."), {"type": "text", "text": CUT}]
    for marker in (user("3", CUT), user("3", [{"type": "text", "text": CUT}]), user("3", result)):
        events = told(tmp_path, user("1", "go"), works("2", edit("c1")), marker, user("4", "do less"), works("5"))
        assert prompts(events) == ["go", "do less"]
        ends = [one.kind for one in events if one.kind.startswith("turn.")]
        assert ends == ["turn.interrupted", "turn.ended"]


def test_what_is_typed_while_the_agent_works_is_one_prompt(tmp_path: Path) -> None:
    """As an attachment, as a message of its own after the turn, or in the queue alone as in older versions."""
    begin, more = user("1", "go"), works("9")
    for rest in (
        [queue("enqueue", "and tests"), queue("remove"), attached("and tests"), more],
        [queue("enqueue", "and tests"), attached("and tests"), queue("remove"), more],
        [queue("enqueue", "and tests"), queue("dequeue"), user("3", "and tests"), more],
        [queue("enqueue", "and tests"), queue("remove"), more, attached("and tests")],
        [queue("enqueue", "and tests"), queue("remove"), more],
        [queue("enqueue", "and tests")],
    ):
        assert prompts(told(tmp_path, begin, works("2"), *rest)) == ["go", "and tests"]


def test_the_project_is_where_the_session_began(tmp_path: Path) -> None:
    """As `CLAUDE_PROJECT_DIR` says it to a hook: `cd` makes no other project."""
    events = told(tmp_path, user("1", "go"), works("2", edit("c1")) | {"cwd": "/p/web"})
    assert {one.project for one in events} == {"/p"}
    assert [one.data["cwd"] for one in events if one.kind == "tool.started"] == ["/p/web"]


def test_a_call_ran_where_it_began(tmp_path: Path) -> None:
    ran = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "cd web && npm test"}}
    result = user("3", [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]) | {"cwd": "/p/web"}
    (ended,) = [one for one in told(tmp_path, user("1", "go"), works("2", ran), result) if one.kind == "tool.finished"]
    assert ended.data["cwd"] == "/p"


def test_a_command_of_several_lines_that_waited_is_one_prompt(tmp_path: Path) -> None:
    """The queue has it as it was typed, the message in tags."""
    message = "<command-name>/review</command-name>\n<command-args>the parser\nand its tests</command-args>"
    events = told(
        tmp_path, queue("enqueue", "/review\nthe parser\nand its tests"), queue("dequeue"), user("1", message)
    )
    assert [one.data["prompt"] for one in events if one.kind == "prompt.submitted"] == [typed_words(message)]


def test_what_is_taken_back_from_the_queue_was_not_said(tmp_path: Path) -> None:
    taken_back = [queue("enqueue", "and tests"), queue("popAll", "and tests"), user("3", "and unit tests")]
    assert prompts(told(tmp_path, user("1", "go"), *taken_back)) == ["go", "and unit tests"]


def test_words_next_to_a_result_are_a_prompt(tmp_path: Path) -> None:
    done = {"type": "tool_result", "tool_use_id": "c1", "content": "done"}
    events = told(
        tmp_path, user("1", "go"), works("2", edit("c1")), user("3", [done, {"type": "text", "text": "and b.py"}])
    )
    assert prompts(events) == ["go", "and b.py"]


def test_notices_and_commands_of_the_shell_are_marked(tmp_path: Path) -> None:
    notice = "<task-notification>\n<task-id>t1</task-id></task-notification>"
    events = told(
        tmp_path, user("1", "go"), user("2", "<bash-input>git status</bash-input>"),
        user("3", "<bash-stdout>clean</bash-stdout><bash-stderr></bash-stderr>"), queue("enqueue", notice),
        attached(notice, "task-notification"), user("4", notice),
    )  # fmt: skip
    assert prompts(events) == ["go"]
    assert prompts(events, synthetic=True) == ["! git status", notice]


def test_a_continuation_is_a_compaction(tmp_path: Path) -> None:
    text = "This session is being continued from a previous conversation that ran out of context."
    events = told(tmp_path, user("1", "go"), user("2", text), user("3", text, isCompactSummary=True))
    assert prompts(events) == ["go"] and [one.kind for one in events].count("compact.ended") == 2


def titles(events: list[Event]) -> list[str]:
    return [one.data["title"] for one in events if one.kind == "session.titled"]


def test_the_agents_own_title_is_recorded_once_and_the_persons_wins(tmp_path: Path) -> None:
    ai = {"type": "ai-title", "aiTitle": "Fix the parser"}
    custom = {"type": "custom-title", "customTitle": "parser-work"}
    assert titles(told(tmp_path, user("1", "go"), ai, works("2"), ai, works("3"))) == ["Fix the parser"]
    assert titles(told(tmp_path, user("1", "go"), ai, custom, ai, works("2"), ai)) == ["parser-work"]
    own = {"type": "summary", "summary": "Parser fixed", "leafUuid": "2"}
    assert titles(told(tmp_path, own, user("1", "go"), works("2"))) == ["Parser fixed"]
    assert titles(told(tmp_path, user("1", "go"), works("2"), own)) == ["Parser fixed"]
    other = {"type": "summary", "summary": "Something else", "leafUuid": "elsewhere"}
    assert titles(told(tmp_path, other, user("1", "go"), works("2"))) == []


def test_a_session_ends_as_its_file_shows(tmp_path: Path) -> None:
    begin, leave = [user("1", "go"), works("2")], [user("8", CAVEAT, isMeta=True), user("9", EXIT)]
    for rest, how, turn in (
        ([], "import", ["turn.ended"]),
        ([user("3", "more")], "import-working", ["turn.ended"]),
        ([works("3", edit("c1"))], "import-working", []),
        ([works("3", edit("c1")), user("4", [refused("c1", "Exit code 1")])], "import-working", []),
        ([user("3", CUT)], "import", ["turn.interrupted"]),
        (leave, "import-exit", ["turn.ended"]),
        ([*leave, user("10", "once more"), works("11")], "import", ["turn.ended", "turn.ended"]),
        ([user("9", EXIT)], "import-exit", ["turn.ended"]),
    ):
        events = told(tmp_path, *begin, *rest)
        assert (events[-1].data.reason, [one.kind for one in events if one.kind.startswith("turn.")]) == (how, turn)
        assert "/exit" not in prompts(events)


def test_a_long_output_is_kept_whole_for_the_judgement_of_checks(tmp_path: Path) -> None:
    run = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "cargo test"}}
    for printed, kept in (("ok\n" * 3_000, True), ("ok", False)):
        told_so = {"stdout": printed, "stderr": "", "interrupted": False}
        result = [{"type": "tool_result", "tool_use_id": "c1", "content": "cut by Claude Code"}]
        events = told(tmp_path, user("1", "go"), works("2", run), user("3", result, toolUseResult=told_so))
        (ended,) = [one for one in events if one.kind == "tool.finished"]
        assert ended.data.output.startswith("ok")
        body = json.loads(ended.body) if ended.body else {}
        assert body == ({"tool_response": {"stdout": printed, "stderr": ""}} if kept else {})


def test_a_queued_command_of_claude_code_itself_is_no_prompt(tmp_path: Path) -> None:
    fast = "<command-name>/fast</command-name>\n<command-args>on</command-args>"
    waiting = [queue("enqueue", "/fast on"), queue("dequeue")]
    events = told(
        tmp_path, user("1", "go"), *waiting, works("2"), user("3", CAVEAT, isMeta=True), user("4", fast), works("5")
    )
    assert prompts(events) == ["go"]


CAVEAT = "<local-command-caveat>Caveat: The messages below were generated by the user while running local commands."
EXIT = "<command-name>/exit</command-name>\n<command-message>exit</command-message>\n<command-args></command-args>"


def test_an_error_of_the_service_is_no_answer(tmp_path: Path) -> None:
    error = {**works("a1", {"type": "text", "text": "API Error: 529 overloaded"}), "isApiErrorMessage": True}
    events = told(tmp_path, user("u1", "Fix it"), error, user("u2", "again"), works("a2"))
    ends = [
        (one.kind, one.data.get("error"), one.data.get("message")) for one in events if one.kind.startswith("turn.")
    ]
    assert ends == [("turn.failed", "API Error: 529 overloaded", None), ("turn.ended", None, "on it")]


def test_a_pull_request_of_the_session_is_kept(tmp_path: Path) -> None:
    url = "https://example.com/ada/engine/pull/5"
    links = [{"type": "pr-link", "prUrl": one, "prNumber": 5} for one in (url, "javascript:x", 7)]
    events = told(tmp_path, user("u1", "Open one"), works("a1"), *links)
    assert [(one.data["url"], one.session) for one in events if one.kind == "session.pull_request"] == [(url, "s")]


def system(subtype: str, **more: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype, "uuid": f"sys-{subtype}", **more}


def test_a_turn_ends_when_claude_code_says_how_long_it_took(tmp_path: Path) -> None:
    over = system("turn_duration", durationMs=5_000)
    events = told(tmp_path, user("1", "go"), works("2"), over, {"type": "mode"}, user("3", "on"), works("4"))
    first, second = [one for one in events if one.kind == "turn.ended"]
    assert (first.at - events[0].at, first.data.message) == (2_000, "on it")
    assert second.at > first.at and second.data.turn != first.data.turn


def test_a_compaction_has_its_trigger(tmp_path: Path) -> None:
    for told_trigger, known in (("auto", "auto"), ("manual", "manual"), ({"odd": 1}, ""), (None, "")):
        boundary = system("compact_boundary", compactMetadata={"trigger": told_trigger})
        events = told(tmp_path, user("1", "go"), works("2"), boundary, user("3", "summed up", isCompactSummary=True))
        assert [one.data.trigger for one in events if one.kind == "compact.ended"] == [known]


def test_an_approved_plan_is_the_agents_text(tmp_path: Path) -> None:
    """Live and imported: it opens a turn and is no word of the person."""
    plan = "Implement the following plan:\n\n# Fix it\n\nAlways use tabs."
    events = told(tmp_path, user("1", plan, planContent="# Fix it"), works("2"))
    (imported,) = [one.data for one in events if one.kind == "prompt.submitted"]
    payload = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/p", "prompt": plan}
    live = AGENT.read(Delivery(key="k", at=1, mode="ask", agent="claude-code", event="UserPromptSubmit"), payload).data
    assert (imported.source, imported.is_plan, imported.prompt) == (live.source, live.is_plan, live.prompt)
    assert live.is_plan and not live.synthetic


@pytest.mark.parametrize(
    "text",
    [
        "<task-notification>\n<task-id>a</task-id>\n</task-notification>\nFull transcript available at: /tmp/a.output",
        "Operation stopped by hook: Another session is active",
    ],
)
def test_a_notice_has_no_word_of_the_person_also_after_its_tag(tmp_path: Path, text: str) -> None:
    assert typed_words(text) == ""
    events = told(tmp_path, user("1", "go"), works("2"), queue("enqueue", text), queue("remove"), user("3", text))
    assert prompts(events) == ["go"]
