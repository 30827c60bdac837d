"""A person is asked before an act that cannot be undone; ordinary work asks nobody."""

from typing import Any

import pytest

from holdfast.agents import AGENTS
from holdfast.core.agent import use_agents
from tests.features.gates.stage import PROJECT, Stage, names

DESTRUCTIVE = (
    "git push --force origin main", "git push -f", "git push origin +main", "git clean -fdx", "cd api && git clean -xdf",
    "dropdb shop", "psql shop -c 'DROP TABLE users'", "mysql -e 'drop database shop'", "sqlite3 app.db 'drop table t'",
    "rails db:drop", "redis-cli FLUSHALL", "mongosh --eval 'db.dropDatabase()'", "bash -c 'git push --force'", "timeout 60 git push -f",
)  # fmt: skip
ORDINARY = (
    "git push", "git push --force-with-lease", "git push -u origin topic", "git push --follow-tags", "git clean -nfdx", "git clean -fd",
    "psql shop -c 'select * from dropped'", "grep -rn 'drop table' migrations", "git commit -m 'git push --force'", "echo rm -rf /",
    "rails db:migrate", "sqlite3 app.db .tables",
)  # fmt: skip


@pytest.fixture(autouse=True)
def agents() -> None:
    use_agents(AGENTS)


def careful() -> Stage:
    return Stage(destructive={})


@pytest.mark.parametrize("command", DESTRUCTIVE)
def test_a_person_is_asked(command: str) -> None:
    told = careful().run(command, native="PreToolUse")
    assert (told.verdict, names(told)) == ("ask", ["destructive"])


@pytest.mark.parametrize("command", ORDINARY)
def test_nobody_is_asked(command: str) -> None:
    assert careful().run(command, native="PreToolUse").silent


@pytest.mark.parametrize(
    ("path", "verdict"),
    [("/home/ada/other/**", "ask"), ("/home/ada/**", "ask"), ("/etc/hosts", "ask"),
     (f"{PROJECT}/build/**", "none"), ("/tmp/x/**", "none")],
)  # fmt: skip
def test_deletions_count_where_they_are_outside_of_the_project(path: str, verdict: str) -> None:
    assert careful().run("rm -rf x", written=[path], native="PreToolUse").verdict == verdict


@pytest.mark.parametrize(
    ("agent", "verdict"), [("claude-code", "ask"), ("gemini", "ask"), ("codex", "deny"), ("opencode", "deny")]
)
def test_an_agent_that_cannot_ask_is_refused_until_a_person_approves(agent: str, verdict: str) -> None:
    stage = careful()
    native = {
        "claude-code": "PreToolUse",
        "gemini": "BeforeTool",
        "codex": "PreToolUse",
        "opencode": "tool.execute.before",
    }[agent]

    def push() -> Any:
        return stage.take(
            "tool.started", tool="Bash", agent=agent, action="shell", command="git push -f", native=native
        )

    assert push().verdict == verdict
    stage.say("gates.approved", requirements=[{"name": "destructive", "scope": "session", "until": 0}], by="person")
    assert push().verdict == "none"
