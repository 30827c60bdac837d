"""The project room with the real Claude Code: its tools become facts, its failing tests a task, its leases its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.features.project.daemon_calls import command, view
from tests.kit import World, wait_until

from .claude import ClaudeCode
from .model_server import ModelServer, call, text

pytestmark = pytest.mark.real

TEST = "import unittest\n\nclass T(unittest.TestCase):\n    def test_x(self):\n        self.assertEqual(1, {value})\n"
RUN = "python3 -m unittest test_x"


def document(world: World) -> dict[str, Any]:
    command(world, "project.look")
    wait_until(lambda: not view(world, "project.looking")["waiting"], "the project is looked at")
    return view(world, "project.state")["document"]


def gaps(found: dict[str, Any]) -> set[str]:
    return {task["gap_type"] for tasks in found["TASKS"].values() for task in tasks}


def test_what_claude_code_does_becomes_facts_and_tasks(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    """S1-3, S1-4, S1-8: a test file that fails, then one that passes, written and run by the agent itself."""
    file = str(claude.project / "test_x.py")
    model.script([call("Write", file_path=file, content=TEST.format(value=2)), call("Bash", command=RUN), text("hm")])
    claude.run("write a test")
    broken = document(held)
    assert broken["CURRENT_STATE"]["tests"]["status"] == "failing"
    assert broken["CURRENT_STATE"]["tests"]["failed"] == 1
    assert {"broken_tests", "unvalidated_changes", "untracked_sources"} <= gaps(broken)
    assert broken["CURRENT_STATE"]["git"]["uncommitted_files"]["count"] >= 1

    edit = call("Edit", file_path=file, old_string="(1, 2)", new_string="(1, 1)")
    commit = "git add . && git -c user.name=A -c user.email=a@localhost commit -qm tested"
    model.script(
        [call("Read", file_path=file), edit, call("Bash", command=RUN), call("Bash", command=commit), text("ok")]
    )
    claude.run("fix it", "--continue")
    fixed = document(held)
    assert fixed["CURRENT_STATE"]["tests"]["status"] == "passing"
    assert fixed["CURRENT_STATE"]["git"]["last_commit"]["message"] == "tested"
    assert not {"broken_tests", "unvalidated_changes"} & gaps(fixed)
    done = [line["summary"] for line in fixed["STATE_HISTORY"] if line["change_type"] == "task_completed"]
    assert any("test failing" in line or "Passing again" in line for line in done)
    assert "claude-code" not in str(fixed)


def test_a_lease_taken_in_a_shell_of_the_agent_lasts_as_long_as_the_agent(
    claude: ClaudeCode, model: ModelServer, held: World
) -> None:
    """The shell of a Bash call is gone at once; the owner is the session's process, and when that ends it is free."""
    take = call("Bash", command="holdfast lease acquire database --why migrating")
    model.script([take, call("Bash", command="holdfast lease list"), text("GOT-IT")])
    with claude.tui() as tui:
        tui.type("take it")
        tui.wait_for("GOT-IT")
        assert model.saw("database is yours", "main")
        assert model.saw("migrating", "main")
        (lease,) = view(held, "project.leases")["leases"]
        assert lease["holders"][0]["pid"] == tui.pid or lease["holders"][0]["lost"] == ""
        tui.kill()

    def free() -> bool:
        command(held, "project.tend", lease="database", request="none")
        return not view(held, "project.leases")["leases"]

    wait_until(free, "the lease is free when the agent is gone")


def test_two_agents_on_one_file_are_told_of_each_other(claude: ClaudeCode, model: ModelServer, held: World) -> None:
    file = str(claude.project / "README.md")
    with claude.tui() as tui:
        edit = call("Edit", file_path=file, old_string="scratch", new_string="SCRATCH")
        model.script([call("Read", file_path=file), edit, text("FIRST-DONE")])
        tui.type("edit it")
        tui.wait_for("FIRST-DONE")
        again = call("Edit", file_path=file, old_string="SCRATCH", new_string="Scratch")
        model.script([call("Read", file_path=file), again, text("second done")])
        claude.run("edit it too")
        assert model.saw("another session that is still open", "main")
