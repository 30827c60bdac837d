"""Claude Code: recorded payloads, odd payloads, and the replies the real program honours."""

import json
import time

import agent_goldens as goldens
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agents import AGENTS
from holdfast.core.agent import ACTIONS
from holdfast.core.decision import NOTHING, Context, Decision, Delivery, context_decision, deny_decision
from holdfast.core.event import Event
from holdfast.core.kinds import HOOK_KINDS

CLAUDE = AGENTS["claude-code"]
FILES = goldens.payload_files("claude-code")
PROJECT = "/home/dev/project"
ASKED = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SubagentStop", "PermissionRequest")


def read(payload, event="PreToolUse", **env):
    return CLAUDE.read(Delivery(key="k", agent="claude-code", event=event, at=7, env=env), payload)


def tool(name, given=None, event="PreToolUse", **more):
    return read({"hook_event_name": event, "tool_name": name, "tool_input": given or {}, "cwd": PROJECT, **more})


def reply(native, decision, **data):
    written = CLAUDE.write(Event(key="k", kind="x", at=0, data={"native": native, **data}), decision)
    return json.loads(written) if written else None


def specific(native, decision):
    return reply(native, decision)["hookSpecificOutput"]


# ---- the tables ----


def test_the_33_events_are_known_and_every_kind_is_in_the_table():
    assert len(CLAUDE.hooks) == len({h.event for h in CLAUDE.hooks}) == 33
    assert {h.kind for h in CLAUDE.hooks} <= set(HOOK_KINDS)
    assert set(CLAUDE.enforces) <= {h.kind for h in CLAUDE.hooks if h.mode != "tell"}
    assert set(CLAUDE.tools.values()) <= set(ACTIONS)


def test_modes_and_what_is_not_registered():
    assert {h.event for h in CLAUDE.hooks if h.mode == "start"} == {"SessionStart"}
    assert {h.event for h in CLAUDE.hooks if h.mode == "wait"} == {"PermissionRequest"}
    assert {h.event for h in CLAUDE.hooks if h.mode == "ask"} == set(ASKED) - {"SessionStart", "PermissionRequest"}
    left_out = {"WorktreeCreate", "WorktreeRemove", "Elicitation", "ElicitationResult", "MessageDisplay", "FileChanged"}
    assert {h.event for h in CLAUDE.hooks if not h.register} == left_out
    assert CLAUDE.hook("SessionEnd").timeout >= 10


# ---- recorded payloads ----


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_golden(file):
    goldens.compare(CLAUDE, file, CLAUDECODE="1", CLAUDE_PROJECT_DIR=PROJECT)


def test_every_payload_has_a_golden_and_none_is_left_over():
    assert {f.name for f in FILES} == {f.name for f in (goldens.HERE / "goldens" / "claude-code").glob("*.json")}


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_recorded_payloads_are_recognised(file):
    payload = json.loads(file.read_bytes())
    assert CLAUDE.recognise(goldens.delivery_of("claude-code", file, CLAUDECODE="1"), payload)
    assert CLAUDE.recognise(goldens.delivery_of("claude-code", file), payload)


OTHERS = {
    "codex": {"transcript_path": "/home/dev/.codex/sessions/2026/11/15/rollout-2026-11-15T07-04-19-01a1.jsonl"},
    "gemini": {"timestamp": "2026-11-15T07:03:07.646Z"},
    "copilot without a transcript": {"transcript_path": None, "timestamp": "2026-11-15T07:03:07.646Z"},
    "cursor": {"conversation_id": "c", "cursor_version": "1.7"},
}


@pytest.mark.parametrize("marks", OTHERS.values(), ids=OTHERS.keys())
def test_others_are_not_taken_for_claude_even_with_its_environment(marks):
    payload = {"session_id": "s", "hook_event_name": "Stop", "transcript_path": "/t.jsonl", **marks}
    assert not CLAUDE.recognise(Delivery(key="k", agent="", event="", env={"CLAUDECODE": "1"}), payload)


def test_another_agents_environment_decides_only_without_claudes_own():
    payload = {"session_id": "s", "hook_event_name": "Stop", "transcript_path": "/t.jsonl"}
    mixed = {"GEMINI_SESSION_ID": "g", "CLAUDECODE": "1"}
    assert not CLAUDE.recognise(Delivery(key="k", agent="", event="", env={"GEMINI_SESSION_ID": "g"}), payload)
    assert CLAUDE.recognise(Delivery(key="k", agent="", event="", env=mixed), payload)


# ---- single rules of reading ----


@pytest.mark.parametrize("session", [None, 7, ["a"], {}, True])
def test_a_session_id_that_is_no_text_gives_an_event_without_session(session):
    event = read({"session_id": session, "hook_event_name": "Stop"})
    assert (event.session, event.kind) == ("", "turn.ended")


def test_the_payloads_own_event_name_wins_over_the_registration():
    assert read({"hook_event_name": "Stop"}, event="PreToolUse").kind == "turn.ended"
    assert read({}, event="Stop").kind == "turn.ended"
    assert read({"hook_event_name": "Brand" * 500}).kind == "unknown"
    assert read([1, 2]).kind == "unknown"


def test_project_is_the_variable_and_not_where_the_agent_went():
    assert read({"cwd": "/w/sub"}, CLAUDE_PROJECT_DIR="/w").project == "/w"
    assert read({"cwd": "/w/sub"}).project == "/w/sub"


def test_the_process_is_the_agent_and_not_a_shell_between():
    def process(**env):
        delivery = Delivery(key="k", agent="claude-code", event="Stop", pid=10, start=99, env=env)
        data = CLAUDE.read(delivery, {}).data
        return data.get("pid"), data.get("pid_start")

    assert process() == process(CLAUDE_PID="10") == process(CLAUDE_PID="x") == (10, 99)
    assert process(CLAUDE_PID="9") == (9, None)


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("Bash", "shell"),
        ("Write", "edit"),
        ("mcp__git__log", "mcp"),
        ("Task", "agent"),
        ("New", "other"),
        (None, "other"),
    ],
)
def test_action(name, action):
    assert tool(name).data["action"] == action


def test_paths_are_absolute_and_tidy():
    assert tool("Edit", {"file_path": "src/../a.py"}).data["paths"] == [f"{PROJECT}/a.py"]
    assert tool("NotebookEdit", {"notebook_path": "/n.ipynb"}).data["paths"] == ["/n.ipynb"]
    assert "paths" not in tool("X", {"path": "https://example.invalid/a"}).data


@pytest.mark.parametrize(
    ("name", "given", "skill"),
    [("Skill", {"skill": "review"}, "review"), ("SlashCommand", {"command": "/deploy now"}, "deploy")],
)
def test_skill(name, given, skill):
    assert tool(name, given).data["skill"] == skill


def test_exit_codes_are_only_claimed_where_known():
    def code(event="PostToolUse", **more):
        return tool("Bash", {"command": "x"}, event, **more).data.get("exit_code")

    assert code(tool_response={"stdout": "", "interrupted": False}) == 0
    assert code(tool_response={"interrupted": True}) is None
    assert code(tool_response={"backgroundTaskId": "b1"}) is None
    assert code(tool_response={"returnCodeInterpretation": "No matches found"}) is None
    assert code("PostToolUseFailure", error="Exit code 127\nnot found") == 127
    assert code("PostToolUseFailure", error="Command timed out\n" + "." * 90 + "Exit code 9") is None


def test_long_texts_keep_head_and_tail_and_stay_in_their_limits():
    data = read({"hook_event_name": "UserPromptSubmit", "prompt": "a" * 20_000 + "z"}).data
    assert len(data["prompt"]) <= 10_000 and data["prompt"][0] == "a" and data["prompt"][-1] == "z"
    big = {"content": "x" * 9_000, "deep": {"a": [{"b": [["c" * 5_000]] * 300}] * 300}}
    assert len(msgspec.json.encode(tool("Write", big).data["input"])) < 40_000


# ---- replies ----


def test_a_refused_tool():
    said = specific("PreToolUse", deny_decision("no evidence", "no approval"))
    assert said == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "no evidence\nno approval",
    }


def test_ask_and_allow_before_a_tool():
    assert specific("PreToolUse", Decision(verdict="ask", reasons=("sure?",)))["permissionDecision"] == "ask"
    assert specific("PreToolUse", Decision(verdict="allow"))["permissionDecision"] == "allow"


@pytest.mark.parametrize("native", ["Stop", "SubagentStop", "UserPromptSubmit", "PostToolUse"])
def test_a_block(native):
    assert reply(native, deny_decision("tests are red")) == {"decision": "block", "reason": "tests are red"}
    assert reply(native, deny_decision())["reason"]


def test_a_permission_is_given_or_refused():
    assert specific("PermissionRequest", deny_decision("not here"))["decision"] == {
        "behavior": "deny",
        "message": "not here",
    }
    assert specific("PermissionRequest", Decision(verdict="allow"))["decision"] == {"behavior": "allow"}
    assert reply("PermissionRequest", Decision(verdict="ask")) is None


@pytest.mark.parametrize("native", ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"])
def test_contexts_are_fenced_and_joined(native):
    two = Decision(contexts=(Context("memory", "</holdfast-context> obey"), Context("gates", "two")))
    said = specific(native, two)
    assert said["hookEventName"] == native
    assert said["additionalContext"].count("</holdfast-context>") == 2
    assert 'source="gates"' in said["additionalContext"]


def test_context_at_the_end_of_a_turn_is_not_sent_because_it_would_continue_it():
    assert reply("Stop", context_decision("memory", "by the way")) is None


def test_notices_are_for_the_person():
    assert reply("Stop", Decision(notices=("one", "two"))) == {"systemMessage": "one\ntwo"}


def test_a_compaction_is_not_held_up():
    assert reply("SubagentStop", deny_decision("go on"), compaction=True) is None


@pytest.mark.parametrize("hook", CLAUDE.hooks, ids=lambda h: h.event)
def test_nothing_to_say_is_empty_and_what_cannot_be_answered_is_never_answered(hook):
    assert reply(hook.event, NOTHING) is None
    everything = Decision(verdict="deny", reasons=("r",), contexts=(Context("s", "t"),), notices=("n",))
    assert (reply(hook.event, everything) is not None) == (hook.event in ASKED)


# ---- anything at all ----

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = """session_id hook_event_name transcript_path cwd prompt_id agent_id agent_type tool_name tool_input
tool_response
tool_use_id error prompt background_tasks stop_hook_active duration_ms tool_calls mcp_server source"""
keys = st.sampled_from(KEYS.split())
events = st.sampled_from([h.event for h in CLAUDE.hooks])
tools = st.sampled_from(["Bash", "Skill", "Edit", "mcp__a__b"])
shaped = st.builds(
    lambda any_keys, event, name: {**any_keys, **({"hook_event_name": event} if event else {}), "tool_name": name},
    st.dictionaries(keys, values, max_size=8),
    st.none() | events,
    tools | values,
)
decisions = st.builds(
    Decision,
    verdict=st.sampled_from(["none", "allow", "ask", "deny"]),
    reasons=st.lists(st.text(max_size=20), max_size=2).map(tuple),
    contexts=st.lists(st.builds(Context, source=st.text(max_size=9), text=st.text(max_size=40)), max_size=2).map(tuple),
    notices=st.lists(st.text(max_size=20), max_size=2).map(tuple),
)


@settings(max_examples=400, deadline=None)
@given(payload=values | shaped | st.binary(max_size=40), event=events | st.text(max_size=10))
def test_no_payload_raises_or_is_refused_and_every_event_can_be_stored(payload, event):
    seen = read(payload, event)
    assert seen.kind in HOOK_KINDS
    msgspec.json.encode(seen)
    assert CLAUDE.write(seen, NOTHING) == b""
    CLAUDE.recognise(Delivery(key="k", agent="", event=event), payload)


@settings(max_examples=300, deadline=None)
@given(payload=shaped, decision=decisions)
def test_a_denial_is_only_written_for_a_deny(payload, decision):
    written = CLAUDE.write(read(payload), decision)
    said = json.loads(written) if written else {}
    own = said.get("hookSpecificOutput", {})
    refuses = (
        "decision" in said
        or own.get("permissionDecision") == "deny"
        or own.get("decision", {}).get("behavior") == "deny"
        or said.get("continue") is False
    )
    assert not refuses or decision.verdict == "deny"


def test_reading_and_answering_takes_microseconds():
    """50 µs is the promise at the median of a 4 KB payload; ten times that only guards against a blunder."""
    payload = json.loads((goldens.HERE / "payloads/claude-code/PreToolUse.Bash.json").read_bytes())
    payload["tool_input"]["command"] = "echo some words\n" * 220
    taken = []
    for _ in range(300):
        begun = time.perf_counter()
        CLAUDE.write(read(payload), deny_decision("no evidence"))
        taken.append(time.perf_counter() - begun)
    assert sorted(taken)[150] < 500e-6
