"""All places and projects at once, as the dashboard asks for them; through the real hook."""

import textwrap
from typing import Any

import pytest

from tests.features.project.daemon_calls import command, view
from tests.kit import World, git, wait_until

RULES = """
requirements:
  planned: {auto_resolve_skill: plan-review, description: A plan first}
  tests_green:
    type: evidence
    paths: ["src/**"]
    evidence: {command: "pytest*", after_edit: "src/**"}
"""


@pytest.fixture
def repo(world: World) -> World:
    git(world.project, "init", "-q")
    (world.project / "src").mkdir()
    (world.project / "src" / "app.py").write_text("x = 1\n")
    git(world.project, "add", ".")
    git(world.project, "commit", "-qm", "first")
    folder = world.root / "config"
    folder.mkdir()
    (folder / "settings.yaml").write_text(textwrap.dedent(RULES))
    return world


def standing(world: World, place: dict[str, Any], session: str) -> dict[str, dict[str, Any]]:
    args = {"repo": place["repo"], "branch": place["branch"]}
    asked = {"name": "gates.status", "args": args, "project": place["project"], "session": session}
    return {one["name"]: one for one in world.ask(op="view", **asked)["requirements"]}


def test_each_branch_with_the_sessions_that_live_on_it(repo: World) -> None:
    first, second = repo.session("s-1"), repo.session("s-2")
    first.start()
    second.start()
    place = view(repo, "gates.places")["places"][0]
    assert (place["project"], place["branch"]) == (str(repo.project), "main")
    assert {one["id"] for one in place["sessions"]} == {"s-1", "s-2"}
    second.end()
    assert [one["id"] for one in view(repo, "gates.places")["places"][0]["sessions"]] == ["s-1"]
    assert view(repo, "gates.places", project="/elsewhere")["places"] == []


def test_a_place_at_rest_says_until_when_and_why(repo: World) -> None:
    repo.session().start()
    command(repo, "gates.pause", repo=f"{repo.project}/.git", seconds=60, why="a call")
    assert view(repo, "gates.places")["places"][0]["pause"]["why"] == "a call"
    command(repo, "gates.resume", repo=f"{repo.project}/.git")
    assert view(repo, "gates.places")["places"][0]["pause"] is None


def test_what_was_refused_lately_newest_first(repo: World) -> None:
    agent = repo.session("s-1")
    agent.start()
    agent.before("Edit", file_path=str(repo.project / "src" / "app.py"), old_string="1", new_string="2")
    agent.before("Write", file_path=str(repo.project / "src" / "b.py"), content="")
    refused = view(repo, "gates.refused")["refused"]
    assert [one["tool"] for one in refused] == ["Write", "Edit"]
    assert refused[0]["what"].endswith("src/b.py")
    assert [need["name"] for need in refused[0]["open"]] == ["planned"]
    assert view(repo, "gates.refused", project="/elsewhere")["refused"] == []


def test_a_requirement_shows_its_evidence(repo: World) -> None:
    agent = repo.session("s-1")
    agent.start()
    agent.tool("Skill", skill="plan-review")
    agent.tool("Edit", file_path=str(repo.project / "src" / "app.py"), old_string="1", new_string="2")
    agent.failed("Bash", "Exit code 1", command="pytest -q")
    place = view(repo, "gates.places")["places"][0]
    stood = standing(repo, place, "s-1")
    assert stood["planned"]["entry"]["by"] == "skill"
    assert [fact["ok"] for fact in stood["tests_green"]["facts"]] == [False]
    agent.tool("Bash", {"stdout": "1 passed in 0.01s", "stderr": ""}, command="pytest -q")
    proven = standing(repo, place, "s-1")["tests_green"]
    assert (proven["ok"], [fact["ok"] for fact in proven["facts"]]) == (True, [True])


def test_projects_and_the_moments_of_one(repo: World) -> None:
    agent = repo.session("s-1")
    agent.start()
    wait_until(lambda: view(repo, "project.list")["projects"], "the project is known")
    agent.failed("Bash", "Exit code 1\n1 failed in 0.1s", command="pytest -q")
    command(repo, "project.add_task", description="Paint it", priority="P1")
    row = view(repo, "project.list")["projects"][0]
    assert (row["root"], row["branch"], row["tests"]) == (str(repo.project), "main", "failing")
    assert row["priorities"]["P0"] == row["priorities"]["P1"] == 1
    moments = view(repo, "project.moments")["moments"]
    assert [one["seq"] for one in moments] == sorted(one["seq"] for one in moments)
    assert {"look", "failed", "word"} <= {one["kind"] for one in moments}
    then = view(repo, "project.state", at=str(moments[0]["seq"]))
    assert then["open"] == 0
