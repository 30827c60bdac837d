"""Each real program does one scripted session with the hooks that `holdfast install` put in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents import AGENTS
from holdfast.agents.kimi import AGENT as KIMI
from holdfast.analysis.transcripts import ImportLocation as ImportPlace
from holdfast.core.event import Event
from holdfast.setup.imports import IMPORTERS
from holdfast.setup.imports.turns import number_turns
from tests.features.sessions.story import House
from tests.kit import NATIVE_HOOK, World, wait_until

from .agent import Agent, Result
from .claude import ClaudeCode
from .codex import Codex
from .conftest import Place
from .copilot import Copilot
from .droid import Droid
from .gemini import Gemini
from .kimi import Kimi
from .model_server import ModelServer, Script, Turn, call, calls, slow, text
from .opencode import OpenCode
from .programs import program
from .qwen import Qwen

pytestmark = pytest.mark.real

REPOSITORY = Path(__file__).parents[2]
RELEASE = """\
requirements:
  checked: {type: evidence, check: tool, command_pattern: 'touch\\s+released', evidence: {command: 'sh check.sh*'}}
"""


def _patch(path: Path) -> Turn:
    return call("apply_patch", patch=f"*** Begin Patch\n*** Add File: {path.name}\n+one\n*** End Patch\n")


@dataclass(frozen=True)
class Kind:
    """How one program is run, and how its model says `run this` and `write this`."""

    program: str
    agent: type[Agent]
    shell: str
    command: str = "command"
    write: str = ""
    path: str = "file_path"
    content: str = "content"
    says_when_over: bool = True
    goes_on: bool = True
    """Whether a refused end of a turn keeps it going where there is no terminal."""

    def run(self, command: str) -> Turn:
        return call(self.shell, {self.command: command, "description": "scripted"})

    def file(self, path: Path) -> Turn:
        return call(self.write, {self.path: str(path), self.content: "one\n"}) if self.write else _patch(path)


KINDS = {
    "claude-code": Kind("claude-code", ClaudeCode, "Bash", write="Write"),
    "codex": Kind("codex", Codex, "exec_command", command="cmd"),
    "gemini": Kind("gemini-cli", Gemini, "run_shell_command", write="write_file"),
    "copilot": Kind("copilot", Copilot, "bash", write="create", path="path", content="file_text"),
    "qwen": Kind("qwen-code", Qwen, "run_shell_command", write="write_file", says_when_over=False),
    "opencode": Kind("opencode-ai", OpenCode, "bash", write="write", path="filePath", goes_on=False),
}
EVERY = pytest.mark.parametrize("name", KINDS)
MORE = {"droid": Kind("droid", Droid, "Execute", write="Create"), "kimi": Kind("kimi-code", Kimi, "Bash")}
"""Programs that tell less of a session than the others."""


@dataclass
class Scene:
    world: World
    agent: Agent
    kind: Kind
    name: str
    model: ModelServer

    def install(self, level: str = "--project", agent: str = "", **env: str) -> None:
        self.world.cli("install", "--agent", agent or self.name, level, **env)

    def holding_us(self) -> list[Path]:
        """Files with a hook of ours in them. (What the program itself wrote into its settings meanwhile is its own.)"""
        places = [
            (self.agent.home if level == "user" else self.agent.project) / name
            for level, name in AGENTS[self.name].setup.files.items()
        ]
        return [file for file in places if file.exists() and b"holdfast" in file.read_bytes()]

    def require_check(self) -> None:
        """A requirement of the project: no release before the check passed."""
        (self.agent.project / "check.sh").write_text("exit 0\n")
        (self.agent.project / ".claude").mkdir(exist_ok=True)
        (self.agent.project / ".claude" / "requirements.yaml").write_text(RELEASE)

    def play(self, *turns: Turn, prompt: str = "please do it") -> Result:
        self.model.script(turns)
        result = self.agent.run(prompt)
        assert result.returncode == 0, result
        return result

    def kinds(self) -> list[str]:
        """Without the answers of the model, which are read from the agent's files beside the hooks."""
        return [e.kind for e in self.world.hooks_seen() if e.kind not in ("decision.made", "model.answered")]

    def as_it_happened(self, kind: str) -> list[Event]:
        """A hook that a busy daemon did not answer in time is spooled: its event is in the log later, with the time it had."""
        return sorted(self.world.hooks_seen(kinds=(kind,)), key=lambda event: event.at)

    def all_taken_in(self) -> bool:
        """The last end of a turn may be in the log while an earlier hook is still in the spool."""
        kinds = self.kinds()
        return (kinds.count("tool.started"), kinds.count("tool.finished")) == (7, 5)

    def calls_told(self) -> str:
        told = [e for e in self.world.hooks_seen() if e.kind.startswith("tool.")]
        return "\n".join(f"{e.at} {e.kind} {e.data.get('command', '')} {e.data.get('dedupe_key', '')}" for e in told)

    def check_events(self, note: Path) -> None:
        seen, kinds = self.world.hooks_seen(), self.kinds()
        assert ({e.agent for e in seen}, len({e.session for e in seen})) == ({self.name}, 1)
        assert all(e.project == str(self.agent.project) for e in seen)
        assert (kinds.count("session.started"), kinds.count("turn.ended")) == (1, 1 + self.kind.goes_on)
        prompts = [
            e.data.get("prompt", "") for e in seen if e.kind == "prompt.submitted" and not e.data.get("synthetic")
        ]
        assert len([prompt for prompt in prompts if "NOT-YET" not in prompt]) == 1, "a refusal may come back as one"
        begun, finished = (self.as_it_happened(kind) for kind in ("tool.started", "tool.finished"))
        assert [e.data["action"] for e in begun] == ["shell", "shell", "edit", *["shell"] * 4]
        assert [e.data["action"] for e in finished] == ["shell", "shell", "edit", "shell", "shell"]
        assert all(e.data["ok"] for e in finished)
        assert finished[2].data["paths"] == [str(note)]
        assert note.read_text() == "one\n"

    def check_answer(self) -> None:
        """What the model said last is the answer of the turn, also where the hook itself does not say it."""
        if self.name == "copilot":
            wait_until(lambda: len(self.world.events(kinds=("turn.answer_read",))) == 2, "both answers were read")
        session = self.world.hooks_seen(kinds=("turn.ended",))[-1].session
        rows = self.world.view("sessions.rows", id=session)["rows"]
        answers = [row["text"].splitlines()[-1] for row in rows if row["kind"] == "turn.ended"]
        assert answers[-1] == "done" and all(answers), self.name

    def check_import(self, folder: Path) -> None:
        """The same session from the agent's own files shows the same, but for what Holdfast itself did."""
        house, place = House(folder), ImportPlace(self.agent.home, self.agent.project)
        try:
            importer = IMPORTERS[self.name]
            found = (one for file in importer.find_files(place) for one in importer.read(file, place))
            house.take(list(number_turns(one for one in found if isinstance(one, Event))))
            session = self.world.hooks_seen(kinds=("turn.ended",))[-1].session
            live = shown_rows(self.world.view("sessions.timeline", id=session)["entries"])
            past = shown_rows(house.view("timeline", id=session)["entries"])
            assert past == live
        finally:
            house.close()

    def check_refusal(self, *refused: str) -> None:
        assert not (self.agent.project / "forbidden.txt").exists()
        assert self.model.saw("is not allowed", "main"), "the reason reached the model"
        assert self.model.saw("are refused", "main"), "so did the context given at the start"
        made = self.world.hooks_seen(kinds=("decision.made",))
        assert [e.data["of_kind"] for e in made if e.data["verdict"] == "deny"] == [*refused, "turn.ended"]
        assert self.model.saw("NOT-YET", "main") is self.kind.goes_on, "and so did the reason to go on"

    def check_release(self) -> None:
        """The second call was refused by a gate, and let go after its check had passed."""
        self.check_refusal("tool.started", "tool.started")
        assert self.model.saw("no `sh check.sh` that passed is on record", "main"), "what the gate asks for was told"
        assert (self.agent.project / "released.txt").exists(), "and after the check it let go"


def shown_rows(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """(what, text, outcome) of prompts, calls and answers. A call that we refused is in some agents' files no more than one that
    failed; the prompt with our reason to go on is nobody's, and the answer that was refused is followed by the next."""
    kinds = {"prompt.submitted": "prompt", "turn.ended": "answer"}
    found = [
        (
            kinds.get(row["kind"]) or row["tool"],
            row["text"].splitlines()[-1],
            row["outcome"].replace("denied", "failed"),
        )
        for row in rows
        if (row["kind"] in kinds or row["kind"].startswith("tool.")) and not row["synthetic"]
    ]
    return [
        row for row, following in zip(found, [*found[1:], None], strict=True) if row != following or row[0] != "answer"
    ]


@pytest.fixture
def scene(name: str, place: Place) -> Iterator[Scene]:
    room = {
        "HOLDFAST_FEATURES": "tests.sample_features.refusing tests.sample_features.holding",
        "PYTHONPATH": str(REPOSITORY),
    }
    world = World(place.project.parent, **room)
    kind = (KINDS | MORE)[name]
    agent = kind.agent(program(kind.program), place.project, place.home, place.model)
    agent.env |= {key: world.env[key] for key in ("XDG_RUNTIME_DIR", "HOLDFAST_CONFIG", *room)}
    world.start()
    try:
        yield Scene(world, agent, kind, name, place.model)
    finally:
        agent.close()
        world.close()


@EVERY
def test_a_session_is_on_record_once_and_a_gate_holds(scene: Scene, tmp_path: Path) -> None:
    """A prompt, the same command twice, a file, a refused command, one that is refused until a check passed, the end.

    The hooks are in twice, for the project and for the user, by commands that differ: each happening is one event.
    """
    scene.install("--project")
    scene.install("--user", HOLDFAST_STATE=f"{scene.world.paths.state}/.")
    note, echo = scene.agent.project / "note.txt", scene.kind.run("echo from-main")
    scene.require_check()
    forbidden, release = scene.kind.run("touch forbidden.txt"), scene.kind.run("touch released.txt")
    checked = (release, scene.kind.run("sh check.sh"), slow(release, 0.5))
    scene.play(echo, echo, scene.kind.file(note), forbidden, *checked, text("done"), text("done"))
    ends = 1 + scene.kind.goes_on
    wait_until(lambda: scene.kinds().count("turn.ended") == ends, "the end that was refused, and the one that was not")
    if scene.kind.says_when_over:
        wait_until(lambda: "session.ended" in scene.kinds(), "the session has ended")
    wait_until(scene.all_taken_in, "all calls are in the log, also those that were spooled", says=scene.calls_told)
    scene.check_events(note)
    scene.check_release()
    scene.check_answer()
    scene.check_import(tmp_path)
    assert len(scene.holding_us()) == 2
    scene.world.cli("uninstall")
    assert scene.holding_us() == []


@pytest.mark.parametrize("name", ["opencode"])
def test_opencode_goes_on_in_its_terminal(scene: Scene) -> None:
    scene.install()
    scene.model.script([text("FIRST-ANSWER"), text("SECOND-ANSWER")])
    with scene.agent.tui() as tui:
        tui.type("hello there")
        tui.wait_for("FIRST-ANSWER", timeout=60)
        wait_until(lambda: scene.model.saw("NOT-YET", "main"), "the reason to go on reached the model")


@pytest.mark.parametrize("name", ["droid"])
def test_droid_is_on_record_and_a_gate_holds(scene: Scene) -> None:
    """`droid exec` does not tell of its prompt, and no hook of a command that failed: its file does."""
    scene.install("--user")
    risk = {"summary": "scripted", "riskLevel": "low", "riskLevelReason": "scripted", "timeout": 60}
    commands = ("echo from-main", "sh -c 'echo broken; exit 3'", "touch forbidden.txt")
    echo, broken, forbidden = (call("Execute", {"command": command, **risk}) for command in commands)
    note = scene.agent.project / "note.txt"
    scene.play(echo, broken, scene.kind.file(note), forbidden, text("done"), text("done"))
    wait_until(lambda: "session.ended" in scene.kinds(), "the session has ended")
    wait_until(lambda: "tool.failed" in scene.kinds(), "the command that failed was read from droid's file")
    (failed,) = scene.world.hooks_seen(kinds=("tool.failed",))
    assert (failed.data["command"], failed.data["exit_code"]) == (commands[1], 3)
    kinds = [kind for kind in scene.kinds() if kind not in ("notification", "tool.failed")]
    tools = ["tool.started", "tool.finished", "tool.started", "tool.started", "tool.finished", "tool.started"]
    assert kinds == ["session.started", *tools, "turn.ended", "turn.ended", "session.ended"]
    finished = scene.world.hooks_seen(kinds=("tool.finished",))
    assert [(e.data["action"], e.data["ok"]) for e in finished] == [("shell", True), ("edit", True)]
    assert finished[1].data["paths"] == [str(note)]
    scene.check_refusal("tool.started")
    scene.world.cli("uninstall")
    assert scene.holding_us() == []


def use_kimis_hooks(scene: Scene) -> None:
    hook = f"{NATIVE_HOOK} --state {scene.world.paths.state}"
    entries = [
        f'[[hooks]]\nevent = "{one.event}"\ncommand = "{hook} {one.mode} kimi {one.event}"\n' for one in KIMI.hooks
    ]
    config = scene.agent.home / ".kimi-code" / "config.toml"
    config.write_text(config.read_text() + "\n".join(entries))


@pytest.mark.parametrize("name", ["kimi"])
def test_kimis_subagent_ends_for_itself(scene: Scene) -> None:
    """Its hooks do not name their subagent: the turn goes on after the subagent's Stop, and the calls are in its lane."""
    use_kimis_hooks(scene)
    spawn = call("Agent", description="look", prompt="MARK please look", subagent_type="coder")
    inside = [scene.kind.run("echo from-sub"), text("looked")]
    scene.model.script(Script(main=[scene.kind.run("echo one"), spawn, slow(text("all done"), 1)], subagent=inside))
    assert scene.agent.run("please do it").returncode == 0
    wait_until(lambda: scene.kinds().count("turn.ended") >= 2, "the end of the subagent's turn and of the session's")
    wait_until(lambda: scene.kinds().count("tool.finished") == 3, "all calls have ended")
    ends = scene.as_it_happened("turn.ended")
    assert [end.get("lane", "") for end in ends] == ["coder", *[""] * (len(ends) - 1)]
    rows = scene.world.view("sessions.timeline", id=ends[-1].session)["entries"]
    calls = [(row["tool"], row["text"], row["lane"], row["outcome"]) for row in rows if row["tool"]]
    assert sorted(calls) == [
        ("Agent", "coder: look", "", "ok"),
        ("Bash", "echo from-sub", "coder", "ok"),
        ("Bash", "echo one", "", "ok"),
    ]
    assert {row["lane"] for row in rows if row["kind"] == "turn.ended"} == {""}, "the subagent's is no row"


@pytest.mark.parametrize("name", ["kimi"])
def test_several_of_kimis_subagents_at_once(scene: Scene) -> None:
    """Both have one name, which is all that is told of them: what they do is theirs, and their session's own is its own."""
    use_kimis_hooks(scene)
    spawn = [
        call("Agent", description="look", prompt=f"{word} please", subagent_type="coder") for word in ("ONE", "TWO")
    ]
    inside = {word: [slow(scene.kind.run(f"echo in-{word}"), 0.5), text(word)] for word in ("ONE", "TWO")}
    main = [scene.kind.run("echo first"), calls(*spawn), scene.kind.run("echo last"), slow(text("all done"), 1)]
    scene.model.script(Script(main=main, marked=inside))
    assert scene.agent.run("please do it").returncode == 0
    wait_until(lambda: scene.kinds().count("tool.finished") == 6, "all calls have ended")
    (session,) = scene.world.view("sessions.list", all=True)["sessions"]
    rows = scene.world.view("sessions.timeline", id=session["id"])["entries"]
    lanes = {row["text"]: row["lane"] for row in rows if row["tool"] == "Bash"}
    assert lanes == {"echo first": "", "echo last": "", "echo in-ONE": "coder", "echo in-TWO": "coder"}
    shown = scene.world.view("sessions.show", id=session["id"])
    assert (shown["lanes_seen"], shown["tools"]) == (2, 6)


@pytest.mark.parametrize("name", ["gemini"])
def test_geminis_subagents_are_lanes(scene: Scene) -> None:
    """Its hooks do not tell of subagents at all: one, then two at once."""
    scene.install()

    def spawn(word: str) -> Turn:
        return call("invoke_agent", agent_name="generalist", prompt=f"{word} please look")

    run = scene.kind.run
    scene.model.script(Script(
        main=[run("echo one"), spawn("FIRST"), calls(spawn("SECOND"), spawn("THIRD")), run("echo two"), text("all done")],
        marked={
            "FIRST": [slow(run("echo in-first"), 0.5), text("1")], "SECOND": [slow(run("echo in-second"), 0.5), text("2")],
            "THIRD": [slow(run("echo in-third"), 0.5), text("3")],
        },
    ))  # fmt: skip
    assert scene.agent.run("please do it").returncode == 0
    wait_until(lambda: scene.kinds().count("tool.finished") == 8, "all calls have ended")
    (session,) = scene.world.view("sessions.list", all=True)["sessions"]
    rows = scene.world.view("sessions.timeline", id=session["id"])["entries"]
    lanes = {row["text"]: row["lane"] for row in rows if row["tool"] == "run_shell_command"}
    assert lanes == {
        "echo one": "", "echo two": "", **dict.fromkeys(("echo in-first", "echo in-second", "echo in-third"), "generalist"),
    }  # fmt: skip
    shown = scene.world.view("sessions.show", id=session["id"])
    assert (shown["lanes_seen"], shown["lanes_open"], shown["tools"]) == (3, 0, 8)


@pytest.mark.parametrize("name", ["copilot"])
def test_copilot_takes_no_harm_from_claudes_file(scene: Scene) -> None:
    """It runs the hooks in there without their arguments: our client then says nothing and changes nothing."""
    scene.install("--project", "claude-code")
    scene.play(scene.kind.run("touch made.txt"), text("done"))
    assert (scene.agent.project / "made.txt").exists()
    assert scene.world.hooks_seen() == []


@pytest.mark.parametrize("name", ["claude-code"])
def test_claude_code_runs_the_plugin(scene: Scene) -> None:
    scene.agent.env |= {"PATH": scene.world.env["PATH"], "HOLDFAST_STATE": str(scene.world.paths.state)}
    scene.model.script([scene.kind.run("touch forbidden.txt"), text("done"), text("done")])
    result = scene.agent.run("please do it", "--plugin-dir", str(REPOSITORY / "plugin"))
    assert result.returncode == 0, result
    assert not (scene.agent.project / "forbidden.txt").exists()
    assert scene.kinds().count("tool.started") == 1
