"""A permission and a question of the real Claude Code, answered from elsewhere while its own dialog is open."""

import json
import time

import pytest

from holdfast.features.attention.suggestions import Question, rules_of
from tests.kit import World, wait_until

from .claude import ClaudeCode
from .codex import Codex
from .model_server import ModelServer, call, text
from .opencode import OpenCode

pytestmark = pytest.mark.real
DIALOG, CODEX_DIALOG = "Do you want to proceed", "Would you like to run"
QUESTION = {
    "question": "Which colour?", "header": "Colour", "multiSelect": False,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}  # fmt: skip


def waiting_need(world: World, kind: str) -> dict[str, object]:
    def look() -> dict[str, object] | None:
        found = [one for one in world.view("attention.list")["needs"] if one["kind"] == kind]
        return found[0] if found and world.view("attention.show", id=found[0]["id"])["waits"] else None

    wait_until(lambda: look() is not None, f"a {kind} waits")
    found = look()
    assert found
    return found


def test_a_permission_is_allowed_and_denied_from_elsewhere(held: World, claude: ClaudeCode, model: ModelServer) -> None:
    with claude.tui("--permission-mode", "default") as tui:
        model.script([call("Bash", command="touch allowed.txt"), text("FIRST-DONE")])
        tui.type("make the first file")
        tui.wait_for(DIALOG)
        need = waiting_need(held, "permission")
        assert (need["text"], need["task"]) == ("touch allowed.txt", "make the first file")
        held.cli("notify", "answer", str(need["id"]), "allow")
        tui.wait_for("FIRST-DONE")
        assert (claude.project / "allowed.txt").exists()

        model.script([call("Bash", command="touch denied.txt"), text("SECOND-DONE")])
        tui.type("make the second file")
        tui.wait_for(DIALOG)
        need = waiting_need(held, "permission")
        held.cli("notify", "answer", str(need["id"]), "deny", "not before the review")
        tui.wait_for("SECOND-DONE")
        assert not (claude.project / "denied.txt").exists()
        assert model.saw("not before the review", "main")
    answers = [event.data for event in held.events(kinds=("attention.answered",))]
    assert [(one.verdict, one.how) for one in answers] == [("allow", "command line"), ("deny", "command line")]
    assert all(one.who for one in answers)


def test_what_is_answered_in_the_terminal_waits_nowhere(held: World, claude: ClaudeCode, model: ModelServer) -> None:
    model.script([call("Bash", command="touch here.txt"), text("HERE-DONE")])
    with claude.tui("--permission-mode", "default") as tui:
        tui.type("make a file")
        need = waiting_need(held, "permission")
        tui.answer(DIALOG, "Enter")
        tui.wait_for("HERE-DONE")
        wait_until(
            lambda: not [n for n in held.view("attention.list")["needs"] if n["id"] == need["id"]], "it is settled"
        )
        assert "settled" in held.cli("notify", "answer", str(need["id"]), "deny", code=1)


def test_a_question_is_answered_from_elsewhere(held: World, claude: ClaudeCode, model: ModelServer) -> None:
    model.script([call("AskUserQuestion", questions=[QUESTION]), text("COLOUR-DONE")])
    with claude.tui("--permission-mode", "default") as tui:
        tui.type("ask me")
        tui.wait_for("Which colour")
        need = waiting_need(held, "question")
        args = {"id": need["id"], "verdict": "allow", "answers": {"Which colour?": "Blue"}}
        file = held.root / "answer.json"
        file.write_text(json.dumps(args))
        held.ask(op="command", name="attention.answer", args=args)
        tui.wait_for("COLOUR-DONE")
    assert model.saw("Blue", "main")


def test_codex_waits_only_as_long_as_the_person_set(held: World, codex: Codex, model: ModelServer) -> None:
    """Its dialog comes after the hook, so by default it does not wait at all."""
    held.cli("config", "set", "attention.hold_seconds", "60")
    codex.env |= {name: held.env[name] for name in ("PATH", "HOLDFAST_STATE", "HOLDFAST_CONFIG", "XDG_RUNTIME_DIR")}
    held.cli("install", "--agent", "codex")
    codex.asking = True
    escalated = {"sandbox_permissions": "require_escalated", "justification": "it writes"}
    model.script([call("exec_command", cmd="touch made.txt", **escalated), text("CODEX-DONE")])
    with codex.tui("--ask-for-approval", "on-request", "--sandbox", "read-only", wait=False) as tui:
        tui.wait_for("Ask Codex")
        time.sleep(1)  # it loses what is typed in its first moment
        tui.type("make a file")
        need = waiting_need(held, "permission")
        assert need["text"] == "touch made.txt"
        assert CODEX_DIALOG not in tui.screen()
        held.cli("notify", "answer", str(need["id"]), "allow")
        wait_until((codex.project / "made.txt").exists, "the command ran")
        tui.wait_for("Worked for")

        held.cli("config", "set", "attention.hold_seconds", "0")
        held.cli("daemon", "restart")
        model.script([call("exec_command", cmd="touch more.txt", **escalated), text("CODEX-MORE")])
        tui.type("make another")
        tui.answer(CODEX_DIALOG, "Enter")
        wait_until((codex.project / "more.txt").exists, "the command ran")


def test_a_proposed_edit_rule_ends_questions_in_its_folder_only(claude: ClaudeCode, model: ModelServer) -> None:
    """Neither `..` nor a link leads out of it."""
    source, outside = claude.project / "src", claude.project.parent / "outside"
    source.mkdir()
    outside.mkdir()
    (source / "link").symlink_to(outside)
    rule = rules_of(Question(paths=(f"{source}/a.py",), project=str(claude.project), root=str(claude.project)))
    settings = claude.home / ".claude" / "settings.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "permissions": {"allow": rule}}))

    def write(path: str) -> list[object]:
        return [call("Write", file_path=path, content="new\n"), text("WRITTEN")]

    model.script(write(f"{source}/a.py"))
    with claude.tui("--permission-mode", "default") as tui:
        tui.type("write it")
        tui.wait_for("WRITTEN")
        assert (source / "a.py").read_text() == "new\n"
        for path in (f"{source}/../Makefile", f"{source}/link/new.txt"):
            model.script(write(path))
            tui.type("and this")
            tui.answer("Do you want to", "Escape")
            tui.wait_gone("Do you want to")
        assert not (claude.project / "Makefile").exists() and not list(outside.iterdir())


def test_opencode_is_answered_beside_its_dialog(held: World, opencode: OpenCode, model: ModelServer) -> None:
    opencode.env |= {name: held.env[name] for name in ("PATH", "HOLDFAST_STATE", "HOLDFAST_CONFIG", "XDG_RUNTIME_DIR")}
    held.cli("install", "--agent", "opencode", HOME=str(opencode.home))
    settings = opencode.home / ".config" / "opencode" / "opencode.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "permission": {"bash": "ask"}}))
    dialog = "Permission required"
    with opencode.tui() as tui:
        for verdict, name in (("allow", "allowed.txt"), ("deny", "denied.txt")):
            model.script([call("bash", command=f"touch {name}", description="x"), text(f"END-{verdict}")])
            tui.type(f"make {name}")
            tui.wait_for(dialog)
            need = waiting_need(held, "permission")
            assert need["text"] == f"touch {name}"
            held.cli("notify", "answer", str(need["id"]), verdict, *(["not yet"] if verdict == "deny" else []))
            tui.wait_gone(dialog)
            tui.wait_for(f"END-{verdict}")
            assert (opencode.project / name).exists() == (verdict == "allow")
        assert model.saw("not yet", "main")

        model.script([call("bash", command="touch here.txt", description="x"), text("END-here")])
        tui.type("make here.txt")
        tui.wait_for(dialog)
        need = waiting_need(held, "permission")
        tui.answer(dialog, "Enter")
        tui.wait_for("END-here")
        assert "settled" in held.cli("notify", "answer", str(need["id"]), "deny", code=1)


@pytest.mark.parametrize("name", ["gemini", "copilot"])
def test_where_a_hook_cannot_wait_its_person_is_told_and_the_page_says_so(
    name: str, held: World, model: ModelServer, request: pytest.FixtureRequest
) -> None:
    """Gemini's hook about a permission is heard of only; Copilot's comes before its dialog, and for what it never asks, too."""
    agent = request.getfixturevalue(name)
    agent.env |= {one: held.env[one] for one in ("PATH", "HOLDFAST_STATE", "HOLDFAST_CONFIG", "XDG_RUNTIME_DIR")}
    held.cli("install", "--agent", name, HOME=str(agent.home))
    held.start()
    tool = {"gemini": "run_shell_command", "copilot": "bash"}[name]
    agent.asking = True
    model.script([call(tool, command="touch made.txt", description="x"), text("ITS-END")])
    with agent.tui(*({"gemini": ("--approval-mode", "default")}.get(name, ()))) as tui:
        tui.type("make a file")
        wait_until(
            lambda: [one for one in held.view("attention.list")["needs"] if one["kind"] == "permission"],
            "it asks",
            says=tui.screen,
        )
        need = next(one for one in held.view("attention.list")["needs"] if one["kind"] == "permission")
        assert held.view("attention.show", id=need["id"])["waits"] is None
        assert "in its terminal" in held.cli("notify", "answer", str(need["id"]), "allow", code=1)
