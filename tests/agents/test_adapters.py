"""Every adapter: its tables, its recorded payloads, whose payload is whose, and anything at all."""

import json
import time

import agent_goldens as goldens
import fuzz
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agents import AGENTS as ALL
from holdfast.agents import normalise
from holdfast.core.agent import ACTIONS
from holdfast.core.decision import NOTHING, Context, Decision, Delivery
from holdfast.core.kinds import HOOK_KINDS

AGENTS = {name: agent for name, agent in ALL.items() if agent.hooks}
FOLDERS = {"copilot-pascal": "copilot"} | {name: name for name in AGENTS}
FILES = [(FOLDERS[folder], file) for folder in FOLDERS for file in goldens.payload_files(folder)]
RECORDED = pytest.mark.parametrize(("name", "file"), FILES, ids=[f"{f.parent.name}-{f.stem}" for _, f in FILES])
EVERY = pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS.keys())
OTHERS = [pair for pair in FILES if pair[0] != "claude-code"]
GOLDEN = pytest.mark.parametrize(("name", "file"), OTHERS, ids=[f"{f.parent.name}-{f.stem}" for _, f in OTHERS])
EVERYTHING = Decision(verdict="deny", reasons=("r",), contexts=(Context("s", "t"),), notices=("n",))


@EVERY
def test_the_tables_speak_of_known_kinds_and_actions(agent):
    assert len(agent.hooks) == len({h.event for h in agent.hooks})
    assert {h.kind for h in agent.hooks} <= set(HOOK_KINDS)
    assert set(agent.tools.values()) <= set(ACTIONS)
    assert set(agent.enforces) <= {h.kind for h in agent.hooks if h.mode != "tell"} | {"subagent.ended"}
    assert {"edit", "shell", "read"} <= set(agent.tools.values())
    assert agent.setup is None or "user" in agent.setup.files


@GOLDEN
def test_golden(name, file):
    goldens.compare(AGENTS[name], file)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_payload_has_a_golden_and_none_is_left_over(folder):
    there = {f.name for f in (goldens.HERE / "goldens" / folder).glob("*.json")}
    assert {f.name for f in goldens.payload_files(folder)} == there


FOREIGN = {"CLAUDECODE": "1", "GEMINI_SESSION_ID": "x", "CLAUDE_PROJECT_DIR": "/elsewhere"}


@RECORDED
def test_a_payload_is_recognised_by_its_own_adapter_alone_whatever_was_inherited(name, file):
    """An agent started from another one's shell has all its variables."""
    payload = json.loads(file.read_bytes())
    for env in ({}, FOREIGN):
        delivery = goldens.delivery_of("claude-code", file, **env)
        assert [a.name for a in ALL.values() if a.recognise(delivery, payload)] == [name]


@GOLDEN
def test_no_recorded_payload_is_unknown_and_each_has_its_session(name, file):
    event = AGENTS[name].read(goldens.delivery_of(name, file), json.loads(file.read_bytes()))
    assert event.kind != "unknown"
    assert event.session or file.stem == "workspaceOpen"
    assert event.agent == name


def read(name, payload, event="x"):
    return AGENTS[name].read(Delivery(key="k", agent=name, event=event, at=7, cwd="/p"), payload)


def recorded(folder, stem):
    return json.loads((goldens.HERE / "payloads" / folder / f"{stem}.json").read_bytes())


# ---- the same word in every agent ----

DEDUPE_KEY = {
    "shell": [
        ("codex", "PreToolUse.Bash"), ("gemini", "BeforeTool.run_shell_command"), ("copilot", "preToolUse.bash"),
        ("copilot-pascal", "PreToolUse.Bash"), ("qwen", "PreToolUse.run_shell_command"),
        ("opencode", "tool.execute.before.bash"), ("cursor", "preToolUse"),
    ],
    "edit": [
        ("codex", "PreToolUse.apply_patch"), ("gemini", "BeforeTool.write_file"), ("copilot", "preToolUse.create"),
        ("copilot-pascal", "PreToolUse.Write"), ("qwen", "PreToolUse.write_file"),
        ("opencode", "tool.execute.before.write"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("folder", "stem"), DEDUPE_KEY["shell"])
def test_a_shell_command_is_the_same_everywhere(folder, stem):
    name = FOLDERS[folder]
    event = read(name, recorded(folder, stem), stem.split(".")[0])
    assert (event.kind, event.data["action"], event.data["command"]) == ("tool.started", "shell", "echo hi")


@pytest.mark.parametrize(("folder", "stem"), DEDUPE_KEY["edit"])
def test_an_edit_names_its_file_everywhere(folder, stem):
    name = FOLDERS[folder]
    event = read(name, recorded(folder, stem), stem.split(".")[0])
    assert event.data["action"] == "edit"
    assert event.data["paths"] == ["/home/dev/project/hello.txt"]


FAILED = [
    ("qwen", "PostToolUseFailure", "tool.failed", 3),
    ("cursor", "postToolUseFailure", "tool.failed", 3),
    ("copilot", "postToolUse.bash", "tool.finished", 0),
    ("opencode", "tool.execute.after.bash", "tool.finished", 0),
    ("cursor", "postToolUse", "tool.finished", 0),
    ("qwen", "PostToolUse.run_shell_command", "tool.finished", 0),
    ("gemini", "AfterTool.run_shell_command", "tool.finished", 0),
    ("codex", "PostToolUse.apply_patch", "tool.finished", 0),
    ("droid", "PostToolUse.Execute", "tool.finished", 0),
    ("kimi", "PostToolUse.Bash", "tool.finished", 0),
    ("kimi", "PostToolUseFailure.Bash", "tool.failed", 3),
]


@pytest.mark.parametrize(("name", "stem", "kind", "code"), FAILED)
def test_exit_codes(name, stem, kind, code):
    event = read(name, recorded(name, stem), stem.split(".")[0])
    assert (event.kind, event.data.get("exit_code"), event.data["ok"]) == (kind, code, code == 0)


def test_a_command_that_failed_under_gemini_and_copilot_is_no_success():
    gone = recorded("gemini", "AfterTool.run_shell_command")
    gone["tool_response"]["llmContent"] = "<untrusted_context>\nOutput: (empty)\nExit Code: 3\n</untrusted_context>"
    assert read("gemini", gone).data["ok"] is False
    gone = recorded("copilot", "postToolUse.bash")
    gone["toolResult"]["textResultForLlm"] = "no\n<shellId: 0 completed with exit code 2>"
    event = read("copilot", gone, "postToolUse")
    assert (event.data["ok"], event.data["exit_code"]) == (False, 2)


@pytest.mark.parametrize(
    ("printed", "code"),
    [
        ("tests failed with exit code 3\n{}", 0),
        ("{}\ntests failed with exit code 3", None),
        ("worker exited with code 3", None),
        ("it said {} and went on", None),
        ("{}\n\n", 0),
    ],
)
@pytest.mark.parametrize("name", ["copilot", "droid"])
def test_what_a_command_prints_about_exit_codes_is_not_its_status(name, printed, code):
    """Only the agent's own line behind the output says how the command ended."""
    if name == "copilot":
        stem, line = "postToolUse.bash", "<shellId: 0 completed with exit code 0>"
        given = recorded(name, stem)
        given["toolResult"]["textResultForLlm"] = printed.format(line)
    else:
        stem, line = "PostToolUse.Execute", "[Process exited with code 0]"
        given = recorded(name, stem) | {"tool_response": printed.format(line)}
    data = read(name, given, stem.split(".")[0]).data
    assert (data.get("exit_code"), data["ok"]) == (code, True)


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ("<untrusted_context>\nOutput: Exit Code: 7\nfine\nProcess Group PGID: 9\n</untrusted_context>", 0),
        ("<untrusted_context>\nOutput: (empty)\nSignal: 9\nProcess Group PGID: 9\n</untrusted_context>", None),
        ("<untrusted_context>\nOutput: x\nError: spawn ENOENT\nProcess Group PGID: 9\n</untrusted_context>", None),
        ("Command was cancelled by user before it could complete.", None),
        ("Output: a\nProcess Group PGID: 9\nand what a command printed last", None),
        ("Output: a\nExit Code: 2\nProcess Group PGID: 9", 2),
    ],
)
def test_a_command_under_gemini_ended_well_only_where_gemini_says_that_it_ended(told, code):
    given = recorded("gemini", "AfterTool.run_shell_command")
    given["tool_response"]["llmContent"] = told
    assert read("gemini", given).data.get("exit_code") == code


# ---- subagents are lanes of their session ----

LANES = [
    ("codex", "PreToolUse.Bash_in_subagent", "01a1dde0-2327-78e3-bb63-b926c100076f"),
    ("copilot", "preToolUse.bash_in_subagent", "fa3beb83-98c6-48b1-bbf8-0e3e8a1864e9"),
    ("qwen", "PreToolUse.run_shell_command_in_subagent", "be595597-fb4a-40b9-86f4-d4e5d6ef7d02"),
    ("opencode", "session.created.subagent", "ses_e22126063ffeN6hRj7wubocmVK"),
    ("opencode", "session.idle.subagent", "ses_e22126063ffeN6hRj7wubocmVK"),
]


@pytest.mark.parametrize(("name", "stem", "session"), LANES)
def test_a_subagent_is_a_lane(name, stem, session):
    event = read(name, recorded(name, stem), stem.split(".")[0])
    assert event.session == session
    assert event.data["lane"] not in ("", session)
    assert not event.kind.startswith("turn.")


def test_qwens_empty_prompts_tell_that_a_batch_is_over():
    assert read("qwen", recorded("qwen", "UserPromptSubmit.empty-after-tool")).kind == "tool.batch"
    typed = read("qwen", recorded("qwen", "UserPromptSubmit"))
    assert (typed.kind, typed.data.synthetic) == ("prompt.submitted", False)


def test_gemini_says_precompress_before_every_call_of_the_model():
    assert read("gemini", recorded("gemini", "PreCompress.auto")).kind == "model.requested"
    assert read("gemini", recorded("gemini", "PreCompress.manual")).kind == "compact.started"


# ---- answers ----


def answer(name, stem, decision, folder=""):
    payload = recorded(folder or name, stem)
    written = AGENTS[name].write(read(name, payload, stem.split(".")[0]), decision)
    return json.loads(written) if written else {}


def test_codex_gets_nothing_it_does_not_know():
    """One unknown field and it drops the whole reply, and the tool runs."""
    assert answer("codex", "PreToolUse.Bash", Decision(verdict="allow")) == {}
    assert answer("codex", "PreToolUse.Bash", Decision(verdict="ask", reasons=("?",))) == {}
    said = answer("codex", "PreToolUse.Bash", EVERYTHING)
    assert set(said) == {"hookSpecificOutput", "systemMessage"}
    assert set(said["hookSpecificOutput"]) == {"hookEventName", "permissionDecision", "permissionDecisionReason"}


DENIALS = [
    ("codex", "PreToolUse.Bash", lambda r: r["hookSpecificOutput"]["permissionDecision"] == "deny"),
    ("codex", "Stop", lambda r: r["decision"] == "block"),
    ("gemini", "BeforeTool", lambda r: r["decision"] == "deny"),
    ("gemini", "AfterAgent", lambda r: r["decision"] == "deny"),
    ("copilot", "preToolUse.bash", lambda r: r["permissionDecision"] == "deny"),
    ("copilot", "agentStop", lambda r: r["decision"] == "block"),
    ("qwen", "PreToolUse", lambda r: r["hookSpecificOutput"]["permissionDecision"] == "deny"),
    ("qwen", "Stop", lambda r: r["decision"] == "block"),
    ("opencode", "tool.execute.before.bash", lambda r: r["deny"] == "r"),
    ("cursor", "preToolUse", lambda r: r["permission"] == "deny" and r["agent_message"] == "r"),
    ("cursor", "beforeSubmitPrompt", lambda r: r["continue"] is False),
    ("cursor", "stop", lambda r: r["followup_message"] == "r"),
    ("droid", "PreToolUse.Execute", lambda r: r["hookSpecificOutput"]["permissionDecision"] == "deny"),
    ("droid", "Stop", lambda r: r["decision"] == "block"),
    ("kimi", "PreToolUse.Bash", lambda r: r["hookSpecificOutput"]["permissionDecisionReason"] == "r"),
    ("kimi", "UserPromptSubmit", lambda r: r["hookSpecificOutput"]["permissionDecision"] == "deny"),
    ("kimi", "Stop", lambda r: r["hookSpecificOutput"]["permissionDecision"] == "deny"),
]


@pytest.mark.parametrize(("name", "stem", "holds"), DENIALS)
def test_a_denial(name, stem, holds):
    assert holds(answer(name, stem, EVERYTHING))


CONTEXTS = [
    ("codex", "SessionStart"), ("gemini", "SessionStart"), ("gemini", "BeforeAgent"), ("copilot", "sessionStart"),
    ("copilot", "userPromptSubmitted"), ("qwen", "UserPromptSubmit"), ("opencode", "chat.message"),
    ("cursor", "sessionStart"), ("droid", "SessionStart"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "stem"), CONTEXTS)
def test_context_is_fenced(name, stem):
    assert "</holdfast-context>" in json.dumps(answer(name, stem, EVERYTHING))


# ---- anything at all ----

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = sorted({key for _, file in FILES for key in json.loads(file.read_bytes())})
shaped = st.dictionaries(st.sampled_from(FIELDS), values, max_size=9)
samples = st.sampled_from([json.loads(file.read_bytes()) for _, file in FILES])
bent = st.builds(lambda sample, change: {**sample, **change}, samples, shaped)
events = st.sampled_from(sorted({h.event for a in AGENTS.values() for h in a.hooks})) | st.text(max_size=10)


@settings(max_examples=500, deadline=None)
@given(agent=st.sampled_from(sorted(ALL)), payload=values | shaped | bent | st.binary(max_size=40), event=events)
def test_no_payload_raises_or_is_refused_and_every_event_can_be_stored(agent, payload, event):
    delivery, adapter = Delivery(key="k", agent=agent, event=event), ALL[agent]
    seen = adapter.read(delivery, payload)
    assert seen.kind in HOOK_KINDS
    msgspec.json.encode(seen)
    assert adapter.write(seen, NOTHING) == b""
    adapter.write(seen, EVERYTHING)
    adapter.recognise(delivery, payload)
    assert isinstance(adapter.mark(seen, payload if isinstance(payload, dict) else {}), str)


@EVERY
def test_reading_and_answering_takes_microseconds(agent):
    """50 µs is the promise at the median of a 4 KB payload; ten times that only guards against a blunder."""
    file = next(f for n, f in FILES if n == agent.name and "tool" in f.name.lower())
    payload = json.loads(file.read_bytes()) | {"text": "echo some words\n" * 220}
    delivery, taken = Delivery(key="k", agent=agent.name, event=file.name.split(".")[0]), []
    for _ in range(300):
        begun = time.perf_counter()
        agent.write(agent.read(delivery, payload), EVERYTHING)
        taken.append(time.perf_counter() - begun)
    assert sorted(taken)[150] < 500e-6


@pytest.mark.parametrize("agent", ALL)
def test_bent_payloads_are_kept_and_hold_nobody_up(agent):
    kinds = [fuzz.survives(delivery) for delivery in fuzz.deliveries(agent, 1500)]
    assert "unknown" in kinds and len(set(kinds)) > 1


@given(
    st.dictionaries(
        st.text(max_size=4) | st.integers(195, 205).map("n".__mul__),
        st.text(max_size=4) | st.integers() | st.sampled_from([0, 1_990, 2_000, 2_001, 3_995]).map("x".__mul__),
        max_size=60,
    )
)
def test_an_input_that_fits_is_kept_as_the_careful_way_would_keep_it(given_input):
    careful = normalise._trim_value(given_input, normalise.INPUT_DEPTH, [normalise.INPUT_TOTAL])
    assert normalise.trim_input(given_input) == careful
