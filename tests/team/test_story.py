"""Two people on two machines, through the real programs: share, overlap, lease, rule, hand-over, kill, forget."""

import os
import signal
from pathlib import Path

import pytest

from holdfast_team.server.connection import team_schema
from holdfast_team.server.database import TENANT_TABLES, owner_connection
from tests.kit import wait_until
from tests.team.processes import TeamHost, TeamMachine, a_team, code_for


def test_two_people_work_together_and_nothing_is_lost_when_everything_is_killed(team_url: str, tmp_path: Path) -> None:
    with a_team(team_url, tmp_path, "ann", "ben") as (host, (ann, ben)):
        _join(host, ann, ben)
        _see_one_another(ann, ben)
        _hold_a_lease(ann, ben)
        _set_a_rule(ann, ben, tmp_path)
        _hand_over(ann, ben)
        _kill_everything(host, ann, ben)
        _forget(host, ben)
        _forget_words(host, ann, ben)
        _leave(host, ben)
        _erase_everything(host, ann)


def _join(host: TeamHost, ann: TeamMachine, ben: TeamMachine) -> None:
    ann.join(host, code_for(host, "ann"))
    ben.join(host, ann.json("team", "invite", "ben")["code"], level="full")


def _see_one_another(ann: TeamMachine, ben: TeamMachine) -> None:
    for machine in (ann, ben):
        machine.fire("SessionStart", source="startup")
        machine.fire("UserPromptSubmit", prompt=f"the words of {machine.root.name}")
        machine.edit("src/api.py")
    wait_until(lambda: len(ann.board()["overlaps"]) == 1, "both edits are on the board")
    board = ann.board()
    assert {(one["person"], one["remote"], one["state"]) for one in board["sessions"]} == {
        ("ann", "example.org/acme/app", "working"), ("ben", "example.org/acme/app", "working"),
    }  # fmt: skip
    assert "the words of" not in str(ann.sent())
    assert "the words of ben" in ben.cli("team", "sent", "-n", "0")


def _hold_a_lease(ann: TeamMachine, ben: TeamMachine) -> None:
    taken = ann.json(
        "team", "lease", "acquire", "api", "--path", "src/**", "--why", "moving it", "--pid", str(os.getpid())
    )
    assert taken["token"] == 1
    assert "held by ann" in ben.cli("team", "lease", "acquire", "api", code=75)
    wait_until(lambda: ben.view("team.status")["leases"], "the lease arrived")
    refused = ben.edit("src/api.py")["hookSpecificOutput"]
    assert refused["permissionDecision"] == "deny" and "held by ann" in refused["permissionDecisionReason"]
    assert ann.edit("src/api.py") == {} and ben.edit("README.md") == {}
    ann.cli("team", "lease", "release", "api")
    wait_until(lambda: not ben.view("team.status")["leases"], "its end arrived")
    assert ben.edit("src/api.py") == {}


def _set_a_rule(ann: TeamMachine, ben: TeamMachine, folder: Path) -> None:
    rule = folder / "rule.yaml"
    rule.write_text("enabled: true\nscope: session\nmessage: Plan it first.\n")
    ann.cli("team", "rule", "set", "planned", str(rule))
    wait_until(lambda: "planned" in ben.view("team.status").get("rules", {}), "the rule arrived")
    shown = ben.fire("UserPromptSubmit", prompt="go on")["systemMessage"]
    assert "New team rule planned, set by ann" in shown and "Plan it first." in shown
    assert "New team rule" not in str(ben.fire("UserPromptSubmit", prompt="and again"))
    assert "Plan it first." in str(ben.edit("src/other.py"))


def _hand_over(ann: TeamMachine, ben: TeamMachine) -> None:
    ann.cli("team", "handoff", "ben", "--session", ann.session_id, "--next", "finish the api")
    assert "finish the api" in ann.cli("team", "sent", "-n", "0")
    wait_until(lambda: ben.view("team.status")["handovers"], "the hand-over arrived")
    ben.session_id = "session-ben-2"
    told = ben.fire("SessionStart", source="startup")["hookSpecificOutput"]["additionalContext"]
    assert "From ann" in told and "finish the api" in told
    ben.session_id = "session-ben-3"
    assert "finish the api" not in str(ben.fire("SessionStart", source="startup"))


def _kill_everything(host: TeamHost, ann: TeamMachine, ben: TeamMachine) -> None:
    """Server, forwarder and daemon by SIGKILL, each with work on the way; gates deny meanwhile."""
    host.kill()
    for n in range(3):
        ann.fire("UserPromptSubmit", prompt=f"offline {n}")
    assert "Plan it first." in str(ben.edit("src/offline.py"))
    for pid in ann.forwarder_pids():
        os.kill(pid, signal.SIGKILL)
    ann.kill()
    host.start()
    ann.start()
    for machine in (ann, ben):
        machine.fire("UserPromptSubmit", prompt="back again")
        wait_until(machine.is_current, "everything was sent")
        sent = [event.key for event in machine.sent()]
        stored = host.stored_keys(machine.machine)
        assert len(stored) == len(set(stored)) and set(stored) == set(sent)
    assert len(host.rows("select 1 from events where machine = %s and kind = 'prompt.submitted'", ann.machine)) == 5


def _forget(host: TeamHost, ben: TeamMachine) -> None:
    """A text that is erased here is gone there too, without the text being sent."""
    assert host.rows("select 1 from events where data::text like '%%the words of ben%%'")
    ben.cli("erase", "--text", "the words of ben", "--yes")
    wait_until(
        lambda: not host.rows("select 1 from events where data::text like '%%the words of ben%%'"), "it is forgotten"
    )
    wait_until(lambda: host.rows("select events from receipts"), "there is a receipt")
    [receipt] = host.rows("select events from receipts")
    assert receipt["events"] >= 1 and "the words of ben" not in str(ben.sent())
    assert "and again" in str(host.rows("select data from events where machine = %s", ben.machine))


def _forget_words(host: TeamHost, ann: TeamMachine, ben: TeamMachine) -> None:
    """Text that commands told the team: a memory, a hand-over, a lease's name and reason. The agents there are told of it
    no more, and a name that is taken again goes on with a higher token."""
    secret = "the unannounced merger"
    ann.cli("team", "lease", "acquire", "merger", "--why", secret, "--path", "deal/**", "--pid", str(os.getpid()))
    memory = ann.cli("team", "memory", "share", f"{secret} moves the deadline").split()[2].strip(".")
    ann.cli("team", "memory", "promote", memory)
    ann.cli("team", "handoff", "ben", "--session", ann.session_id, "--next", f"hide {secret}")
    wait_until(lambda: secret in str(ben.view("team.status")["handovers"]), "the hand-over arrived")
    wait_until(lambda: ben.view("team.status")["leases"], "the lease arrived")
    ann.cli("erase", "--text", secret, "--yes")
    wait_until(lambda: secret not in everything_stored(host), "it is forgotten")
    wait_until(lambda: secret not in str(ben.view("team.status")), "it is withdrawn from others")
    wait_until(lambda: secret not in ann.cli("team", "sent", "-n", "0"), "it is not on record any more")
    ben.session_id = "session-ben-4"
    assert secret not in str(ben.fire("SessionStart", source="startup"))
    assert "is yours, token 2" in ann.cli("team", "lease", "acquire", "merger", "--pid", str(os.getpid()))


def everything_stored(host: TeamHost) -> str:
    """All rows of all tables, as their owner sees them."""
    with owner_connection(host.database) as db:
        tables = [row["name"] for row in db.execute(TENANT_TABLES, (team_schema(host.database),))]
        return " ".join(str(db.execute(f"select t::text from {name} t").fetchall()) for name in tables)


def _leave(host: TeamHost, ben: TeamMachine) -> None:
    (ben.project / "src").mkdir(exist_ok=True)
    ben.cli("team", "level", "none", "--project", str(ben.project / "src"))
    assert "nothing of this project is shared" in ben.cli("team", "lease", "acquire", "api", code=1)
    ben.cli("team", "leave", "--yes")
    wait_until(lambda: not ben.forwarder_pids(), "the forwarder ended")
    assert "Plan it first." not in str(ben.edit("src/free.py"))
    assert [row["n"] for row in host.rows("select count(*) as n from machines where revoked_at > 0")] == [1]


def _erase_everything(host: TeamHost, ann: TeamMachine) -> None:
    machine = ann.machine
    assert host.stored_keys(machine)
    assert "The team's server forgot" in ann.cli("erase", "--everything", "--yes")
    assert host.stored_keys(machine) == []


@pytest.fixture(autouse=True)
def _no_session_of_our_own(monkeypatch) -> None:
    """The test may itself run below an agent."""
    for name in [name for name in os.environ if name.startswith(("CLAUDE", "CODEX", "GEMINI"))]:
        monkeypatch.delenv(name)
