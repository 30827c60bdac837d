"""Two people, two real agents on two state folders: Claude Code holds a lease, Codex is refused, work is handed over."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kit import wait_until
from tests.team.conftest import postgres_url, team_url
from tests.team.processes import TeamHost, TeamMachine, a_team, code_for

from .agent import Agent
from .claude import ClaudeCode
from .codex import Codex
from .model_server import ModelServer, call, slow, text
from .programs import program

__all__ = ["postgres_url", "team_url"]
pytestmark = pytest.mark.real

PATCH = "*** Begin Patch\n*** Add File: src/api.py\n+one\n*** End Patch\n"
NAMES = ("PATH", "HOLDFAST_STATE", "HOLDFAST_CONFIG", "XDG_RUNTIME_DIR")


class Desk:
    """One person's machine, and the agent that works there with a model of its own."""

    def __init__(self, machine: TeamMachine, kind: type[Agent], name: str, stack: ExitStack) -> None:
        self.machine, self.model = machine, stack.enter_context(ModelServer())
        self.agent = kind(program(name), machine.project, machine.home, self.model)
        stack.callback(self.agent.close)
        machine.env |= {"HOME": str(machine.home)}
        self.agent.env |= {name: machine.env[name] for name in NAMES}
        machine.cli("install", "--agent", name, "--project")

    def run(self, prompt: str, *turns: object) -> str:
        self.model.script([*turns])
        result = self.agent.run(prompt)
        assert result.returncode == 0, result.stderr
        return result.stdout


@pytest.fixture
def desks(team_url: str, tmp_path: Path) -> Iterator[tuple[TeamHost, Desk, Desk]]:
    with ExitStack() as stack:
        host, (ann, ben) = stack.enter_context(a_team(team_url, tmp_path, "ann", "ben"))
        first = Desk(ann, ClaudeCode, "claude-code", stack)
        second = Desk(ben, Codex, "codex", stack)
        ann.join(host, code_for(host, "ann"))
        ben.join(host, ann.json("team", "invite", "ben")["code"])
        yield host, first, second


def test_a_lease_and_a_hand_over_between_two_real_agents(desks: tuple[TeamHost, Desk, Desk]) -> None:
    """The lease is the agent's, not that of the shell it ran the command in; it ends with the agent."""
    host, ann, ben = desks
    ben.run("good morning", text("BEN-HERE"))
    wait_until(lambda: ben.machine.view("team.status")["projects"], "the other machine knows its clone")
    written = ann.machine.project / "src" / "api.py"
    edit = call("Write", file_path=str(written), content="mine\n")
    hold = "holdfast team lease acquire api --path 'src/**' --why 'moving it' --ttl 60"
    ann.model.script([call("Bash", command=hold), edit, slow(text("ANN-DONE"), 300)])
    working = ann.agent.start("take it and write")
    try:
        wait_until(lambda: written.exists(), "the first agent wrote")
        wait_until(lambda: ann.model.saw("api is yours, token 1"), "the first agent was told that it has the lease")
        wait_until(lambda: ben.machine.view("team.status")["leases"], "the lease is known to the other machine")
        ben.run("write it too", call("apply_patch", patch=PATCH), text("BEN-DONE"))
        assert not (ben.machine.project / "src" / "api.py").exists()
        assert ben.model.saw("covered by the team lease api, held by ann") and ben.model.saw("moving it")
        ann.machine.cli("team", "handoff", "ben", "--next", "write src/api.py anew")
    finally:
        os.killpg(working.pid, signal.SIGKILL)
        working.communicate()

    wait_until(lambda: not ben.machine.view("team.status")["leases"], "the lease ended with its agent")
    wait_until(lambda: ben.machine.view("team.status")["handovers"], "the work arrived")
    ben.run("go on", call("apply_patch", patch=PATCH), text("BEN-DONE"))
    assert ben.model.saw("From ann") and ben.model.saw("write src/api.py anew")
    assert (ben.machine.project / "src" / "api.py").read_text() == "one\n"

    wrote = "select distinct machine from edited_files where path = 'src/api.py'"
    wait_until(lambda: len(host.rows(wrote)) == 2, "the team knows that both wrote it")
    agents = {row["agent"] for row in host.rows("select distinct agent from events")}
    # What a daemon notes itself, a session whose process is gone for one, is no agent's.
    assert agents - {""} == {"claude-code", "codex"}
