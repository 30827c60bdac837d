"""The rendered timeline and exports of one scripted session in every agent, from its recorded payloads through its adapter.

`HOLDFAST_GOLDENS=write pytest tests/features/sessions/test_timelines.py` makes the goldens anew.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents import AGENTS
from holdfast.agents.intake import Intake
from holdfast.analysis.usage.report import format_dollars
from holdfast.core.decision import Decision, Delivery, deny_decision
from holdfast.core.event import Event
from holdfast.core.feature import Feature
from holdfast.core.git_context import CachedGitContext
from holdfast.core.machine import boot_id, machine_id
from holdfast.doors.cli.sessions import timeline_line
from holdfast.features import cost
from holdfast.features.cost.settings import CostSettings
from holdfast.features.sessions import FEATURE
from tests.factories import a_key, an_engine
from tests.kit import PAYLOADS

from .story import House, an

GOLDENS = Path(__file__).parent / "goldens"
SESSION = "5e5510a0-0001"
PARENTS = ("parentAgentId", "parentID")
NAMES = ("session_id", "sessionId", "sessionID", "conversation_id")


@dataclass(frozen=True)
class Names:
    """Which recorded payload plays which part; empty where the agent has none."""

    start: str
    prompt: str
    before: str
    after: str
    stop: str
    end: str = ""
    failure: str = ""
    empty_prompt: str = ""
    subagent: tuple[str, ...] = ()
    """Its start, a call of its own before and after, its end, as far as they are recorded."""
    compaction: tuple[str, ...] = ()
    interrupt: str = ""
    call: str = ""
    """The field with the id of a call, a path with dots."""
    turn: str = ""
    input: str = "tool_input"


PARTS = {
    "claude-code": Names(
        "SessionStart.startup", "UserPromptSubmit", "PreToolUse.Bash", "PostToolUse.Bash", "Stop",
        "SessionEnd.prompt_input_exit", "PostToolUseFailure", call="tool_use_id", turn="prompt_id",
        subagent=("SubagentStart", "PreToolUse.Bash_in_subagent", "PostToolUse.Bash_in_subagent", "SubagentStop"),
        compaction=("PreCompact.auto", "SubagentStop.compaction", "PostCompact.auto", "SessionStart.compact"),
    ),
    "codex": Names(
        "SessionStart.startup", "UserPromptSubmit", "PreToolUse.Bash", "PostToolUse.Bash", "Stop", "SessionEnd",
        call="tool_use_id", turn="turn_id", interrupt="Interrupt",
        subagent=("SubagentStart", "PreToolUse.Bash_in_subagent", "PostToolUse.Bash_in_subagent", "SubagentStop"),
        compaction=("PreCompact", "PostCompact"),
    ),
    "gemini": Names(
        "SessionStart.startup", "BeforeAgent", "BeforeTool.run_shell_command", "AfterTool.run_shell_command",
        "AfterAgent", "SessionEnd.exit", compaction=("PreCompress.manual",),
    ),
    "copilot": Names(
        "sessionStart.new", "userPromptSubmitted", "preToolUse.bash", "postToolUse.bash", "agentStop",
        "sessionEnd.complete", "postToolUseFailure", input="toolArgs",
        subagent=("subagentStart", "preToolUse.bash_in_subagent", "postToolUse.bash_in_subagent", "subagentStop"),
        compaction=("preCompact",),
    ),
    "cursor": Names(
        "sessionStart", "beforeSubmitPrompt", "preToolUse", "postToolUse", "stop", "sessionEnd", "postToolUseFailure",
        call="tool_use_id", turn="generation_id", subagent=("subagentStart", "subagentStop"),
        compaction=("preCompact",),
    ),
    "opencode": Names(
        "session.created", "chat.message", "tool.execute.before.bash", "tool.execute.after.bash", "session.idle",
        "session.ended", call="input.callID", turn="output.message.id", input="opencode",
        subagent=("session.created.subagent", "session.idle.subagent"),
    ),
    "qwen": Names(
        "SessionStart.startup", "UserPromptSubmit", "PreToolUse.run_shell_command", "PostToolUse.run_shell_command",
        "Stop", "SessionEnd.prompt_input_exit", "PostToolUseFailure", "UserPromptSubmit.empty-after-tool",
        call="tool_use_id", turn="prompt_id",
        subagent=("SubagentStart", "PreToolUse.run_shell_command_in_subagent",
                  "PostToolUse.run_shell_command_in_subagent", "SubagentStop"),
    ),
    "droid": Names(
        "SessionStart", "UserPromptSubmit", "PreToolUse.Execute", "PostToolUse.Execute", "Stop", "SessionEnd",
    ),
    "kimi": Names(
        "SessionStart", "UserPromptSubmit", "PreToolUse.Bash", "PostToolUse.Bash", "Stop",
        failure="PostToolUseFailure.Bash", call="tool_call_id", subagent=("SubagentStart", "SubagentStop"),
    ),
}  # fmt: skip


@dataclass
class Script:
    """Hooks of one agent, each as the agent would send it, a second apart."""

    agent: str
    hooks: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def names(self) -> Names:
        return PARTS[self.agent]

    def fire(self, stem: str, **changes: Any) -> "Script":
        payload = json.loads((PAYLOADS / self.agent / f"{stem}.json").read_bytes())
        parent = next((name for name in PARENTS if isinstance(payload.get(name), str)), "")
        for name in NAMES if not parent else (parent,):
            if name in payload:
                payload[name] = SESSION
        for path, value in changes.items():
            _put(payload, path.replace("__", "."), value)
        self._stamp(payload)
        self.hooks.append((stem, payload))
        return self

    def _stamp(self, payload: dict[str, Any]) -> None:
        """Hooks of one agent do not come in one moment."""
        n = len(self.hooks)
        if isinstance(payload.get("timestamp"), str):
            payload["timestamp"] = f"2026-11-15T07:03:{n:02}.000Z"
        elif "timestamp" in payload:
            payload["timestamp"] = 1_794_724_359_000 + n * 1000

    def prompt(self, text: str, turn: str) -> "Script":
        named = {self.names.turn.replace(".", "__"): turn} if self.names.turn else {}
        if self.agent == "opencode":
            return self.fire(self.names.prompt, output__parts=[{"type": "text", "text": text}], **named)
        return self.fire(self.names.prompt, prompt=text, **named, **self._not_in_a_subagent())

    def _not_in_a_subagent(self) -> dict[str, Any]:
        """The fullest recorded payloads of these two are of a subagent."""
        if self.agent == "codex":
            return {"agent_id": None, "agent_type": None}
        alone = {"parentAgentId": None, "agentId": None, "agentType": None, "sessionId": SESSION}
        return alone if self.agent == "copilot" else {}

    def call(self, stem: str, command: str, call: str, turn: str = "t1", **more: Any) -> "Script":
        named: dict[str, Any] = {self.names.call.replace(".", "__"): call} if self.names.call else {}
        if self.names.turn and self.agent != "opencode":
            named[self.names.turn] = turn
        if self.agent == "opencode":
            where = "output__args" if stem == self.names.before else "input__args"
            return self.fire(stem, **{where: {"command": command}}, **named, **more)
        shell = {"tool_name": _tool_name(self.agent)} if stem == self.names.failure else {}
        return self.fire(stem, **{self.names.input: {"command": command}}, **named, **shell, **more)

    def stop(self, turn: str = "t1") -> "Script":
        named = {self.names.turn: turn} if self.names.turn and self.agent != "opencode" else {}
        return self.fire(self.names.stop, **named, **self._not_in_a_subagent())


def _tool_name(agent: str) -> str:
    payload = json.loads((PAYLOADS / agent / f"{PARTS[agent].before}.json").read_bytes())
    return str(payload.get("tool_name") or payload.get("toolName"))


def _put(payload: dict[str, Any], path: str, value: Any) -> None:
    *folders, name = path.split(".")
    for folder in folders:
        payload = payload.setdefault(folder, {})
    if value is None:
        payload.pop(name, None)
    else:
        payload[name] = value


def a_whole_session(agent: str) -> Script:
    """A call, two at once that end the other way round, one that failed, one that is denied, a subagent, a compaction; then
    a turn in which a call is left without an end."""
    script, names = Script(agent), PARTS[agent]
    script.fire(names.start).prompt("Fix my_var in *all* files", "t1")
    script.call(names.before, "make build", "c1").call(names.after, "make build", "c1")
    if names.empty_prompt:
        script.fire(names.empty_prompt, **{names.turn: "t1"})
    script.call(names.before, "sleep 2", "c2").call(names.before, "sleep 1", "c3")
    script.call(names.after, "sleep 1", "c3").call(names.after, "sleep 2", "c2")
    if names.failure:
        script.call(names.before, "make test", "c4").call(names.failure, "make test", "c4")
    script.call(names.before, "rm -rf build", "c5")
    for stem in (*names.subagent, *names.compaction):
        script.fire(stem, **({names.turn: "t1"} if names.turn and agent != "opencode" else {}))
    script.stop()
    script.prompt("And now?", "t2").call(names.before, "make deploy", "c6", "t2")
    if names.interrupt:
        script.fire(names.interrupt, **{names.turn: "t2"})
    if names.end:
        script.fire(names.end)
    return script


def _deny_removal(_state: Any, event: Event, _settings: Any) -> Decision | None:
    dangerous = event.kind == "tool.started" and event.get("command", "").startswith("rm ")
    detail = {"gate": "refused", "requirements": [{"name": "careful"}]}
    return deny_decision("Ask before you remove anything.", details=(detail,)) if dangerous else None


GATE = Feature(name="gate", decide=_deny_removal)


class Recorder(House):
    """The feature behind the real intake and all adapters, with something that denies."""

    def play(self, script: Script) -> None:
        intake = Intake(AGENTS, CachedGitContext(), lambda body: (body, 0))
        engine = an_engine(
            self.store, FEATURE, cost.FEATURE, GATE, read=intake.read, clock=self.clock,
            settings=lambda _project: {"sessions": self.settings},
            write=lambda event, decision: AGENTS[event.agent].write(event, decision),
        )  # fmt: skip
        for stem, payload in script.hooks:
            event = str(payload.get("hook_event_name") or payload.get("hook") or stem.partition(".")[0])
            engine.handle([
                Delivery(key=a_key(), agent=script.agent, event=event, mode="ask", at=self.clock.tick(1000),
                         cwd="/home/dev/project", body=json.dumps(payload).encode()),
            ])  # fmt: skip

    def rendered(self) -> Iterator[str]:
        turn = -1
        for entry in self.view("timeline", id=SESSION)["entries"]:
            if entry["turn"] != turn:
                turn = entry["turn"]
                yield f"turn {turn}"
            yield re.sub(r"^\s*\d+\s+[\d:]+\s+", "  ", timeline_line(entry).plain).rstrip()


@pytest.fixture(params=PARTS)
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def recorder(tmp_path: Path, agent: str) -> Iterator[Recorder]:
    made = Recorder(tmp_path)
    made.play(a_whole_session(agent))
    yield made
    made.close()


def compare(name: str, text: str) -> None:
    golden = GOLDENS / name
    if os.environ.get("HOLDFAST_GOLDENS") == "write":
        golden.write_text(text)
    assert text == golden.read_text(), f"{golden}: HOLDFAST_GOLDENS=write accepts it"


def test_the_rendered_timeline(recorder: Recorder, agent: str) -> None:
    compare(f"{agent}.txt", "\n".join(recorder.rendered()) + "\n")


def test_the_markdown_export(recorder: Recorder, agent: str) -> None:
    compare(f"{agent}.md", recorder.view("export", id=SESSION, format="md")["text"])


def test_the_html_and_the_jsonl_export(recorder: Recorder, agent: str) -> None:
    """Without style, and of each event only what makes the record: the rest is in the events' own tests."""
    page = recorder.view("export", id=SESSION, format="html")["text"]
    compare(f"{agent}.html", re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL))
    lines = [json.loads(line) for line in recorder.view("export", id=SESSION, format="jsonl")["text"].splitlines()]
    events = [{name: line[name] for name in ("seq", "kind", "tool")} for line in lines if line["type"] == "event"]
    compare(f"{agent}.jsonl", "".join(json.dumps(event) + "\n" for event in events))


def ended_badly(agent: str) -> Script:
    """A command runs when the process is killed; the session is resumed, and a second command is asked for and done."""
    script, names = Script(agent), PARTS[agent]
    script.fire(names.start).prompt("Build it", "t1").call(names.before, "make build", "c1")
    return script


def test_a_killed_and_resumed_session(tmp_path: Path, agent: str) -> None:
    house, names = Recorder(tmp_path), PARTS[agent]
    try:
        house.play(ended_badly(agent))
        process = {"pid": 4_000_000, "start": 7, "boot": boot_id(), "machine": machine_id()}
        house.take([an("session.process", at=house.clock.tick(1000), session=SESSION, **process)])
        house.run("sessions.lost")
        assert house.view("show", id=SESSION)["state"] == "ended"
        again = Script(agent)
        if (PAYLOADS / agent / "SessionStart.resume.json").exists():
            again.fire("SessionStart.resume")
        again.prompt("Go on", "t2").call(names.before, "make all", "c2", "t2").call(names.after, "make all", "c2", "t2")
        house.play(again.stop("t2"))
        compare(f"{agent}-killed.txt", "\n".join(house.rendered()) + "\n")
        shown = house.view("show", id=SESSION)
        assert (shown["state"], shown["prompts"], shown["restarts"]) == ("waiting", 2, 1)
    finally:
        house.close()


def test_every_call_is_one_row_and_none_is_left_hanging(recorder: Recorder) -> None:
    entries = recorder.view("timeline", id=SESSION)["entries"]
    calls = [(e["text"], e["outcome"]) for e in entries if e["kind"].startswith("tool.") and not e["lane"]]
    texts = [text for text, _ in calls]
    assert len(texts) == len(set(texts))
    outcomes = dict(calls)
    assert outcomes["rm -rf build"] == "denied"
    assert outcomes["make deploy"] in ("interrupted", "not ended", "running")
    assert {outcomes["sleep 1"], outcomes["sleep 2"]} <= {"ok", ""}


def test_the_title_and_the_prompts_are_the_persons(recorder: Recorder) -> None:
    shown = recorder.view("show", id=SESSION)
    assert (shown["title"], shown["prompts"], shown["turn_n"]) == ("Fix my_var in *all* files", 2, 2)
    prompts = [e["text"] for e in recorder.view("timeline", id=SESSION)["entries"] if e["kind"] == "prompt.submitted"]
    assert [p for p in prompts if p in ("Fix my_var in *all* files", "And now?")] == [
        "Fix my_var in *all* files", "And now?",
    ]  # fmt: skip
    assert "" not in prompts


def test_one_figure_is_the_same_everywhere(recorder: Recorder, agent: str) -> None:
    """Issue 17, point 1: header, rows, lists, exports and summary are computed once."""
    unknown = recorder.view("export", id=SESSION, format="md")["text"]
    assert "tokens**: –" in unknown and "cost**: –" in unknown
    spent = an("model.answered", at=recorder.clock(), session=SESSION, tokens={"input": 900, "output": 50}, turn_n=1,
               model="claude-opus-5-5")  # fmt: skip
    recorder.take([spent])
    show = recorder.view("show", id=SESSION)
    entries = recorder.view("timeline", id=SESSION)
    (listed,) = recorder.view("list", all=True)["sessions"]
    first = json.loads(recorder.view("export", id=SESSION, format="jsonl")["text"].splitlines()[0])
    names = (
        "state",
        "duration_ms",
        "turn_n",
        "prompts",
        "tools",
        "failed",
        "denied",
        "edits",
        "tokens",
        "total_tokens",
        "cost",
        "open_gates",
    )
    for other in (listed, entries["session"], first):
        assert {name: other[name] for name in names} == {name: show[name] for name in names}
    for summary in (show["summary"], first["summary"]):
        assert (summary["tools"], summary["failed"], summary["denied"], summary["edits"], summary["ms"]) == (
            show["tools"], show["failed"], show["denied"], show["edits"], show["duration_ms"],
        )  # fmt: skip
    rows = entries["entries"]
    ended = [e for e in rows if e["kind"] in ("tool.finished", "tool.failed")]
    assert len(ended) == show["tools"]
    assert sum(e["outcome"] == "failed" for e in ended) == show["failed"]
    assert sum(e["outcome"] == "denied" or e["verdict"] == "deny" for e in rows) == show["denied"] == 1
    work = f"{show['prompts']} prompts, {show['tools']} tool calls"
    for text in (show["summary"]["text"], recorder.view("export", id=SESSION, format="md")["text"],
                 recorder.view("export", id=SESSION, format="html")["text"]):  # fmt: skip
        assert work in text
    assert (show["tokens"], show["turns"][0]["cost"]) == ({"input": 900, "output": 50}, show["cost"])
    money = format_dollars(show["cost"])
    assert f"cost**: {money}" in recorder.view("export", id=SESSION, format="md")["text"].replace("\\", "")
    assert recorder.view("statusline", id=SESSION)["text"].startswith(f"{money} · 950 tokens")
    asked = replace(recorder.call(by="session"), settings=CostSettings())
    (group,) = cost.FEATURE.views["report"](asked)["groups"]
    assert (group["cost_micro_dollars"], group["tokens"]["total"]) == (show["cost"], show["total_tokens"])


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_pages_of_any_size_say_the_same(recorder: Recorder, limit: int) -> None:
    whole = recorder.view("timeline", id=SESSION)["entries"]
    entries: list[Any] = []
    before = 0
    while True:
        page = recorder.view("timeline", id=SESSION, limit=limit, before=before)
        entries = page["entries"] + entries
        before = page["next"]
        if not before:
            break
    assert entries == whole


def test_replay_says_the_same(recorder: Recorder) -> None:
    assert recorder.replayed() == []
