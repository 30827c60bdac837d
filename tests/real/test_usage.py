"""Each real program spends what the scripted model says it spends; our readers find exactly that, and so do others.

ccusage (from npm) reads the same homes: where it counts the same thing, its figures are ours.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.analysis.usage.model import Usage, UsageRecord
from holdfast.analysis.usage.prices import load_table
from holdfast.analysis.usage.report import sum_all_records
from tests.analysis.usage.generate import Generator
from tests.analysis.usage.kit import scan_usage, total_of

from .agent import Agent
from .claude import ClaudeCode
from .codex import Codex
from .conftest import Place
from .copilot import Copilot
from .droid import Droid
from .gemini import Gemini
from .kimi import Kimi
from .model_server import ModelServer, Script, Turn, call, slow, text
from .opencode import OpenCode
from .programs import program
from .qwen import Qwen
from .recorder import CLAUDE_LIKE, Recorder, hooks, write_settings
from .turns import spending

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

TASK = {"description": "look around", "prompt": "MARK please look"}


@dataclass(frozen=True)
class Kind:
    """How one program is run, how its model runs a command and begins a subagent, and how a session goes on."""

    program: str
    agent: type[Agent]
    shell: Turn
    spawn: Turn | None = None
    again: tuple[str, ...] = ()
    write: Turn | None = None
    """The model writes `note.txt`, given by its path in the project."""
    settings: str = ""
    """Where its hooks are registered, and which: a hook that only records proves the harness itself."""
    events: tuple[str, ...] = ()
    side: bool = False
    """It writes down what side requests cost, too."""
    knows_reasoning: bool = True
    ccusage: tuple[str, ...] = ("input", "output", "cache_read", "total")
    """What ccusage counts as we do."""


# Copilot runs the hooks of Claude Code's settings file; of a subagent it tells only the end there.
COPILOT_EVENTS = tuple(name for name in (*CLAUDE_LIKE, "SessionEnd") if name != "SubagentStart")


def shell(tool: str, **more: object) -> Turn:
    return call(tool, {"command": "echo from-main", **more})


KINDS = {
    "claude-code": Kind(
        "claude-code", ClaudeCode, shell("Bash"), call("Agent", {**TASK, "subagent_type": "general-purpose"}),
        ("--continue",), knows_reasoning=False,
    ),
    # ccusage leaves the subagents of Codex out.
    "codex": Kind(
        "codex", Codex, call("exec_command", cmd="echo from-main"),
        call("multi_agent_v1.spawn_agent", message=TASK["prompt"]), ("resume", "--last"),
        write=call("apply_patch", patch="*** Begin Patch\n*** Add File: note.txt\n+one\n*** End Patch\n"),
        settings=".codex/hooks.json", events=(*CLAUDE_LIKE, "SessionEnd"), ccusage=(),
    ),
    # ccusage shows the thoughts of Gemini and opencode only in the total.
    "gemini": Kind("gemini-cli", Gemini, shell("run_shell_command"), again=("--resume", "latest"),
                   ccusage=("input", "cache_read", "total")),
    "copilot": Kind("copilot", Copilot, shell("bash", description="x"),
                    call("task", {**TASK, "agent_type": "general-purpose", "name": "look"}), ("--continue",),
                    write=call("create", path="{note}", file_text="one\n"),
                    settings=".claude/settings.json", events=COPILOT_EVENTS),
    # ccusage counts cached tokens of Qwen twice and leaves subagents out.
    "qwen": Kind("qwen-code", Qwen, shell("run_shell_command", is_background=False),
                 call("agent", {**TASK, "subagent_type": "general-purpose"}), ("--continue",),
                 write=call("write_file", file_path="{note}", content="one\n"),
                 settings=".qwen/settings.json", events=CLAUDE_LIKE, side=True, ccusage=()),
    "opencode": Kind("opencode-ai", OpenCode, shell("bash", description="x"),
                     call("task", {**TASK, "subagent_type": "general"}), ("--continue",),
                     write=call("write", filePath="{note}", content="one\n"),
                     ccusage=("input", "cache_read", "total")),
    "droid": Kind("droid", Droid, shell("Execute", summary="x", riskLevel="low", riskLevelReason="x", timeout=60),
                  call("Task", {**TASK, "subagent_type": "worker"}), side=True, knows_reasoning=False),
    "kimi": Kind("kimi-code", Kimi, shell("Bash", description="x"), call("Agent", {**TASK, "subagent_type": "coder"}),
                 ("--continue",), knows_reasoning=False),
}  # fmt: skip


def spend(model: ModelServer, kind: Kind, note: Path | None = None) -> None:
    """A command, a file where the harness is looked at, a subagent that thinks twice, an answer."""
    first = spending(kind.shell, input=1000, output=101, cache_read=20_000, cache_write_5m=300, cache_write_1h=40,
                     reasoning=7)  # fmt: skip
    spawn = [spending(kind.spawn, input=2000, output=102, cache_read=30_000, reasoning=8)] if kind.spawn else []
    last = spending(slow(text("all done"), 1.5), input=3000, output=103, cache_read=40_000)
    inside = [spending(kind.shell, input=500, output=51, cache_read=5000), spending(text("looked"), input=600)]
    write = [_with_path(kind.write, note)] if kind.write and note else []
    model.script(Script(main=[first, *write, *spawn, last], subagent=inside))


def _with_path(turn: Turn, note: Path) -> Turn:
    (made,) = turn.calls
    given = {name: str(note) if value == "{note}" else value for name, value in made.input.items()}
    return call(made.name, given)


@pytest.fixture
def agent(name: str, place: Place) -> Iterator[Agent]:
    kind = KINDS[name]
    yield from place.running(kind.agent, kind.program)


def said_by(model: ModelServer, kind: Kind) -> Usage:
    """What the model told the program, as far as it is told to anybody but the provider."""
    spent = [turn.spent for request, turn in model.replies if kind.side or request.audience != "side"]
    return total_of([Usage(s.input, s.output, s.cache_read, s.cache_write_5m, s.cache_write_1h) for s in spent])


def same(records: list[UsageRecord], said: Usage, kind: Kind) -> bool:
    """Only Anthropic's protocol tells what is written to a cache."""
    found = total_of([record.spent for record in records])
    figures = (found.input, found.output, found.cache_read) == (said.input, said.output, said.cache_read)
    if kind.agent is ClaudeCode:
        figures &= (found.cache_write_5m, found.cache_write_1h) == (said.cache_write_5m, said.cache_write_1h)
    return figures


@pytest.mark.parametrize("name", KINDS)
def test_what_is_read_is_what_the_model_said(name: str, agent: Agent, model: ModelServer, recorder: Recorder) -> None:
    kind = KINDS[name]
    record_hooks(agent, kind, recorder)
    spend(model, kind, agent.project / "note.txt")
    result = agent.run("please do it", timeout=120)
    assert result.returncode == 0, result
    check_harness(agent, model, kind, recorder)
    if kind.again:
        model.script([spending(text("again done"), input=4000, output=104, cache_read=50_000)])
        assert agent.run("and again", *kind.again, timeout=120).returncode == 0
        assert "please do it" in json.dumps(model.conversation()[-1].body), "the session went on"
    records = list(scan_usage(agent.home, [name]))
    assert same(records, said_by(model, kind), kind), (records, model.replies)
    if kind.knows_reasoning:
        assert total_of([record.spent for record in records]).reasoning is not None
    if kind.ccusage:
        assert_same_as_ccusage(agent.home, records, kind.ccusage)


def record_hooks(agent: Agent, kind: Kind, recorder: Recorder) -> None:
    """opencode has plugins instead of hooks: one that runs inside it writes down each tool it sees."""
    if kind.events:
        write_settings(agent.project / kind.settings, {"hooks": hooks(recorder.command, kind.events)})
    elif isinstance(agent, OpenCode):
        plugin = agent.project / ".opencode" / "plugin" / "record.js"
        plugin.parent.mkdir(parents=True)
        body = f"appendFileSync({json.dumps(str(recorder.folder / 'tools'))}, input.tool + '\\n')"
        plugin.write_text(
            "import { appendFileSync } from 'node:fs'\n"
            f"export const Record = async () => ({{ 'tool.execute.after': async (input) => {{ {body} }} }})\n"
        )


def check_harness(agent: Agent, model: ModelServer, kind: Kind, recorder: Recorder) -> None:
    """The file is there, main and subagent each got their own turns, every hook was called, and nothing left the machine."""
    assert model.saw("from-main", "main")
    if kind.write:
        assert (agent.project / "note.txt").read_text() == "one\n"
        assert model.saw("from-main", "subagent")
        assert (model.unknown, model.escapes if kind.events else []) == ([], [])
    assert set(kind.events) <= set(recorder.names())
    if isinstance(agent, Codex):
        assert sorted(recorder.tools("PostToolUse")) == ["Bash", "Bash", "apply_patch", "spawn_agent"]
    if isinstance(agent, OpenCode):
        assert sorted((recorder.folder / "tools").read_text().split()) == ["bash", "bash", "task", "write"]


def assert_same_as_ccusage(home: Path, records: list[UsageRecord], figures: tuple[str, ...]) -> None:
    found = total_of([record.spent for record in records])
    theirs = ccusage(home)
    ours = {"input": found.input, "output": found.output, "cache_read": found.cache_read, "total": found.total}
    assert {name: ours[name] for name in figures} == {name: theirs[name] for name in figures}


def test_generated_transcripts_come_to_the_same_in_ccusage(tmp_path: Path) -> None:
    """Streamed messages, forks and subagents: tokens to the last one, money but for the rounding of each call."""
    Generator(tmp_path).write(sessions=60, messages=50)
    records = list(scan_usage(tmp_path, ["claude-code"]))
    assert_same_as_ccusage(tmp_path, records, ("input", "output", "cache_read", "total"))
    assert abs(sum_all_records(records, load_table()).cost - ccusage(tmp_path)["cost"]) < len(records)


def ccusage(home: Path) -> dict[str, int]:
    binary = program("ccusage")
    binary.chmod(0o755)  # The package brings it without the mark of a program; its own launcher sets it.
    command = [str(binary), "daily", "--offline", "--json"]
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    told = json.loads(done.stdout)["totals"]
    names = {"input": "inputTokens", "output": "outputTokens", "cache_read": "cacheReadTokens", "total": "totalTokens"}
    return {name: told[theirs] for name, theirs in names.items()} | {"cost": round(told["totalCost"] * 1_000_000)}


MODELS = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-sonnet-4-6", "claude-haiku-5-5", "claude-fable-5-1")


@pytest.mark.parametrize("name", ["claude-code"])
@pytest.mark.parametrize("model_name", MODELS)
def test_the_cost_is_claude_codes_own_figure(name: str, agent: Agent, model: ModelServer, model_name: str) -> None:
    spend(model, KINDS[name])
    result = agent.run("please do it", "--output-format", "json", "--model", model_name)
    ours = sum_all_records(scan_usage(agent.home, [name]), load_table())
    theirs = json.loads(result.stdout)["total_cost_usd"] * 1_000_000
    assert ours.unpriced == set()
    assert abs(ours.cost - theirs) <= theirs * 0.005, (ours, result.stdout)
