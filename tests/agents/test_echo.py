"""Our own words, handed back by an agent, are no prompt of anybody's."""

import json

import agent_goldens as goldens
import pytest

from holdfast.agents import AGENTS
from holdfast.core.decision import Context, Decision, Delivery
from holdfast.core.text import VOICE, without_contexts

REFUSAL = Decision(verdict="deny", reasons=("Run the tests first.",))


def recorded(agent, stem):
    return json.loads((goldens.HERE / "payloads" / agent / f"{stem}.json").read_bytes())


def read(agent, payload, event):
    return AGENTS[agent].read(Delivery(key="k", agent=agent, event=event, at=7, cwd="/p"), payload)


def test_geminis_prompt_is_what_the_person_typed():
    event = read("gemini", recorded("gemini", "BeforeAgent.with-context"), "BeforeAgent")
    assert event.data["prompt"] == "please do it"
    assert "synthetic" not in event.data


def test_a_context_without_a_prompt_behind_it_is_nobodys():
    payload = recorded("gemini", "BeforeAgent.with-context")
    payload["prompt"] = payload["prompt"].removesuffix("please do it")
    assert read("gemini", payload, "BeforeAgent").data["synthetic"] is True


REFUSED = [
    ("gemini", "AfterAgent", "BeforeAgent", "BeforeAgent.refused-stop"),
    ("qwen", "Stop", "UserPromptSubmit", "UserPromptSubmit.refused-stop"),
    ("copilot", "agentStop", "userPromptSubmitted", ""),
]


@pytest.mark.parametrize(("agent", "stop", "prompt", "back"), REFUSED)
def test_the_reason_of_a_refused_stop_comes_back_as_nobodys_prompt(agent, stop, prompt, back):
    ended = read(agent, recorded(agent, stop), stop)
    said = json.loads(AGENTS[agent].write(ended, REFUSAL))["reason"]
    assert said == f"{VOICE}Run the tests first."
    returned = recorded(agent, back) if back else recorded(agent, prompt) | {"prompt": said}
    assert returned["prompt"] == said
    assert read(agent, returned, prompt).data["synthetic"] is True


def test_opencodes_plugin_sends_the_reason_itself():
    idle = read("opencode", recorded("opencode", "session.idle"), "session.idle")
    said = json.loads(AGENTS["opencode"].write(idle, REFUSAL))["deny"]
    payload = recorded("opencode", "chat.message")
    payload["output"]["parts"] = [{"type": "text", "text": said}]
    assert read("opencode", payload, "chat.message").data["synthetic"] is True


def test_a_refused_tool_is_told_its_reason_as_it_is():
    begun = read("gemini", recorded("gemini", "BeforeTool"), "BeforeTool")
    assert json.loads(AGENTS["gemini"].write(begun, REFUSAL))["reason"] == "Run the tests first."


@pytest.mark.parametrize(
    ("prompt", "left"),
    [
        ("fix <hook_context> in the parser", "fix <hook_context> in the parser"),
        ("<hook_context>a</hook_context>\n\n<hook_context>b</hook_context> do it", "do it"),
        ('<holdfast-context source="x">\nold\n</holdfast-context>\n\ndo it', "do it"),
        ("<hook_context>never closed", "<hook_context>never closed"),
        ("", ""),
    ],
)
def test_only_contexts_before_the_prompt_are_cut_off(prompt, left):
    assert without_contexts(prompt) == left


def test_a_compaction_ends_no_subagent():
    event = read("claude-code", recorded("claude-code", "SubagentStop.compaction"), "SubagentStop")
    assert (event.kind, event.data.compaction) == ("model.answered", True)
    assert AGENTS["claude-code"].write(event, Decision(verdict="deny", contexts=(Context("s", "t"),))) == b""
    assert read("claude-code", recorded("claude-code", "SubagentStop"), "SubagentStop").kind == "subagent.ended"
