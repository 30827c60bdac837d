"""Seed 002 in its users' words: through the real hook, the real daemon, the real command line and its files."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.settings.trust import is_trusted, read_trusted
from tests.kit import Agent, World, git, needs, wait_until

PLANNING = "requirements:\n" + "".join(
    f"  {name}: {{enabled: true}}\n" for name in ("commit_plan", "adr_reviewed", "tdd_planned", "solid_reviewed")
)


@pytest.fixture
def world(tmp_path: Path):
    made = World(tmp_path)
    git(made.project, "init", "-q")
    git(made.project, "commit", "-q", "--allow-empty", "-m", "first")
    git(made.project, "checkout", "-q", "-b", "feature/test")
    yield made
    made.close()


def requirements(world: World, text: str, file: str = ".claude/requirements.yaml") -> None:
    path = world.project / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def edit(agent: Agent, name: str = "src/a.py") -> str:
    """ "deny" or "". What is not refused is done: requirements look at the content, not at what was said."""
    path = agent.world.project / name
    call, given = agent._next_call(), {"file_path": str(path), "old_string": "a", "new_string": "b"}
    told = agent.before("Edit", call, **given)
    if not told:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write("b\n")
        agent.after("Edit", call, None, **given)
    return told.get("hookSpecificOutput", {}).get("permissionDecision", "")


def bash(agent: Agent, command: str) -> str:
    printed = "1 passed in 0.01s" if command.startswith("pytest") else ""
    told = agent.tool("Bash", {"stdout": printed, "stderr": "", "interrupted": False}, command=command)
    return told.get("hookSpecificOutput", {}).get("permissionDecision", "")


def reason(told: dict[str, Any]) -> str:
    return told["hookSpecificOutput"]["permissionDecisionReason"]


def standing(world: World, session: str) -> dict[str, bool]:
    told = world.json("gate", "status", CLAUDE_CODE_SESSION_ID=session)
    return {one["name"]: one["ok"] for one in told["requirements"]}


def jq(file: Path, query: str) -> Any:
    done = subprocess.run(["jq", "-c", query, file], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def in_file(world: World, name: str = "feature-test.json") -> dict[str, Any]:
    file = world.project / ".git" / "requirements" / name
    return json.loads(file.read_text())["requirements"] if file.exists() else {}


def test_workflow_1_a_single_planning_session(world: World) -> None:
    requirements(world, PLANNING)
    agent = world.session("abc123")
    assert "commit_plan (before an edit, before you are done): not satisfied" in json.dumps(agent.start())
    assert edit(agent) == "deny"
    agent.tool("Skill", skill="arch-review")
    assert standing(world, "abc123") == dict.fromkeys(
        ("commit_plan", "adr_reviewed", "tdd_planned", "solid_reviewed"), True
    )
    assert edit(agent) == ""
    assert bash(agent, "git commit -m x") == ""
    assert agent.stop() == {}
    agent.end()
    registry = world.home / ".claude" / "sessions.json"
    wait_until(
        lambda: registry.exists() and json.loads(registry.read_text())["sessions"] == {}, "the registry is empty"
    )
    wait_until(lambda: "abc123" in str(in_file(world)), "the state stays")


@pytest.mark.skipif(bool(needs("jq")), reason=needs("jq"))
def test_workflow_2_and_the_seeds_own_recipe_plan_then_implement(world: World) -> None:
    """S2-18, word for word: one session id after the first session, two after the second."""
    requirements(world, PLANNING)
    file = world.project / ".git" / "requirements" / "feature-test.json"
    first = world.session("cad0ac4d-3933-45ad-9a1c-14aec05bb940")
    first.start()
    first.tool("Skill", skill="arch-review")
    assert standing(world, first.id)["commit_plan"]
    first.end()
    wait_until(file.exists, "the file is written")
    query = ".requirements.commit_plan.sessions"
    assert {sid: one["satisfied"] for sid, one in jq(file, query).items()} == {first.id: True}

    second = world.session("def45678-0000-4000-8000-000000000000")
    assert "commit_plan" in json.dumps(second.start())
    assert not standing(world, second.id)["commit_plan"]
    assert edit(second) == "deny"
    second.tool("Skill", skill="arch-review")
    wait_until(lambda: len(jq(file, query)) == 2, "both sessions are there")
    assert {sid: one["satisfied"] for sid, one in jq(file, query).items()} == {first.id: True, second.id: True}


@pytest.mark.quick
def test_workflow_3_a_review_before_each_commit(world: World) -> None:
    """S2-12."""
    requirements(world, "requirements:\n  pre_commit_review: {enabled: true}\n")
    agent = world.session("A")
    agent.start()
    assert edit(agent) == ""
    assert bash(agent, "git commit -m one") == "deny"
    agent.tool("Skill", skill="pre-commit")
    assert bash(agent, "git commit -m one") == ""
    edit(agent)
    assert bash(agent, "git commit -m two") == "deny"
    gone = lambda: in_file(world).get("pre_commit_review", {}).get("sessions") == {}  # noqa: E731
    wait_until(gone, "its entry is gone from the file")


def test_a_research_only_session_is_never_blocked(world: World) -> None:
    """S2-13."""
    requirements(world, PLANNING)
    agent = world.session("reader")
    agent.start()
    agent.prompt("how does this work?")
    agent.tool("Read", file_path=str(world.project / "a.py"))
    assert bash(agent, "git log --oneline | head") == ""
    assert agent.stop() == {}


@pytest.mark.quick
def test_stop_is_refused_continued_then_allowed_and_never_a_loop(world: World) -> None:
    """S2-10, H2."""
    requirements(world, "requirements:\n  tests_green: {enabled: true}\n")
    agent = world.session("s1")
    agent.start()
    edit(agent)
    refused = agent.stop()
    assert refused["decision"] == "block"
    assert "run `pytest` so that it passes" in refused["reason"]
    bash(agent, "pytest -q")
    assert agent.stop(again=True) == {}
    edit(agent)
    assert [agent.stop(again=n > 0).get("decision") for n in range(4)] == ["block", "block", "block", None]
    told = [
        e.data["details"][0]["gate"]
        for e in world.events(kinds=("decision.made",))
        if e.data["of_kind"] == "turn.ended"
    ]
    assert told == ["stop", "stop", "stop", "stop", "let_go"]


def test_two_branches_never_share_and_worktrees_do(world: World) -> None:
    """D4, O2-d."""
    requirements(world, "requirements:\n  reviewed: {scope: branch, auto_resolve_skill: arch-review}\n")
    agent = world.session("s1")
    agent.start()
    agent.tool("Skill", skill="arch-review")
    assert edit(agent) == ""
    git(world.project, "checkout", "-q", "-b", "feature-test")
    wait_until(lambda: edit(agent) == "deny", "the other branch is seen")
    agent.tool("Skill", skill="arch-review")
    folder = world.project / ".git" / "requirements"
    wait_until(lambda: len(list(folder.glob("feature-test*.json"))) == 2, "each has its own file")
    tree = world.root / "tree"
    git(world.project, "worktree", "add", "-q", str(tree), "feature/test")
    there = world.session("s2", cwd=str(tree))
    told = there.tool("Edit", file_path=str(tree / "x.py"), old_string="a", new_string="b")
    assert told == {}  # the worktree stands on the branch that was reviewed


def test_an_agent_begun_in_a_subfolder_has_the_repositorys_gates(world: World) -> None:
    """The same project as `holdfast` sees it from there."""
    requirements(world, PLANNING)
    package = world.project / "packages" / "web"
    package.mkdir(parents=True)
    agent = world.session("s1", cwd=str(package))
    agent.env["CLAUDE_PROJECT_DIR"] = str(package)
    agent.start()
    assert edit(agent, "packages/web/a.ts") == "deny"
    assert {event.project for event in world.events(kinds=("tool.started",))} == {str(world.project)}


def test_a_skill_that_ran_while_the_daemon_was_down_counts(world: World) -> None:
    """Decision 4: what a spooled event means is worked out when it is taken in."""
    requirements(world, PLANNING)
    agent = world.session("s1")
    agent.start()
    world.kill()
    agent.after("Skill", "call-1", skill="arch-review")
    world.drained()
    assert standing(world, "s1")["commit_plan"]


def test_pausing_always_works_by_command_and_by_variable(world: World) -> None:
    """O2-g."""
    requirements(world, PLANNING)
    agent = world.session("s1")
    agent.start()
    assert edit(agent) == "deny"
    world.cli("gate", "pause", "1h", "--why", "fire")
    assert "PAUSED" in world.cli("gate", "status")
    assert edit(agent) == ""
    world.cli("gate", "resume")
    assert edit(agent) == "deny"
    for name in ("CLAUDE_SKIP_REQUIREMENTS", "HOLDFAST_PAUSE"):
        agent.env[name] = "1"
        assert edit(agent) == ""
        agent.env[name] = "0"
    assert edit(agent) == "deny"


def test_a_broken_file_is_told_once_per_session_and_blocks_nothing(world: World) -> None:
    """S2-8."""
    requirements(world, "requirements:\n  typo: {scope: brnch}\n  good: {auto_resolve_skill: arch-review}\n")
    agent = world.session("s1")
    assert "requirements.yaml:2:" in agent.start()["systemMessage"]
    assert "requirements.yaml" not in json.dumps(agent.prompt("hello"))
    wait_until(lambda: world.events(kinds=("gates.looked",)), "skills were looked for")
    assert "no skill named arch-review" in world.cli("gate", "verify", code=1)
    assert "requirements.yaml:2:" in world.cli("gate", "status")
    assert "requirements.yaml:2:" in world.cli("status")
    assert "good" in reason(agent.before("Edit", file_path="/x", old_string="a", new_string="b"))
    assert "requirements.yaml:2:" in world.session("s2").start()["systemMessage"]
    requirements(world, "requirements: [")
    wait_until(lambda: edit(agent) == "", "a torn file is no gate")
    assert "not valid YAML" in world.cli("gate", "verify", code=1)


def test_what_people_say_and_what_only_facts_can_say(world: World) -> None:
    requirements(world, PLANNING + "  tests_green: {enabled: true}\n  protected_branch: {enabled: true}\n")
    agent = world.session("abcdefgh-1")
    agent.start()
    as_agent = {"CLAUDE_CODE_SESSION_ID": "abcdefgh-1"}
    told = world.json("gate", "satisfy", "commit_plan", "--metadata", '{"ticket": "#12"}', **as_agent)
    assert told["state"]["commit_plan"]["sessions"]["abcdefgh-1"]["metadata"] == {"ticket": "#12"}
    world.cli("gate", "satisfy", "adr_reviewed")  # no session named: the only one alive here is meant
    world.cli("gate", "satisfy", "tdd_planned", "--session", "abcdefgh")
    world.cli("gate", "satisfy", "solid_reviewed", "--branch", "--ttl", "1h")
    assert edit(agent) == ""
    assert "recorded facts only" in world.cli("gate", "satisfy", "tests_green", code=1)
    assert "a person's to do" in world.cli("gate", "approve", "protected_branch", code=1, **as_agent)
    assert "Did you mean commit_plan" in world.cli("gate", "satisfy", "comit_plan", code=1)
    world.cli("gate", "clear", "commit_plan")
    assert edit(agent) == "deny"
    git(world.project, "checkout", "-q", "-B", "main")
    wait_until(lambda: "protected branch main" in world.cli("gate", "status"), "the branch is seen")
    world.cli("api", "approve_for_session", "protected_branch", "600", code=1, **as_agent)
    world.cli("api", "approve_for_session", "protected_branch", "600")
    world.cli("gate", "approve", "protected_branch", "--ttl", "10m")
    assert standing(world, "abcdefgh-1")["protected_branch"]


def test_two_live_sessions_are_never_guessed_between(world: World) -> None:
    """S2-2, D5: ids that all begin alike are told apart."""
    requirements(world, PLANNING)
    one, two = world.session("session_20250101_120000"), world.session("session_20250101_120001")
    one.start()
    assert one.id in json.dumps(two.start())  # the second is told of the first
    assert "2 sessions are alive here" in world.cli("gate", "satisfy", "commit_plan", code=1)
    assert "beginning of 2 sessions" in world.cli("gate", "satisfy", "commit_plan", "--session", "session_", code=1)
    world.cli("gate", "satisfy", "commit_plan", "--session", two.id)
    assert (standing(world, one.id)["commit_plan"], standing(world, two.id)["commit_plan"]) == (False, True)


def test_explain_and_replay_open_what_happened(world: World) -> None:
    requirements(world, PLANNING)
    agent = world.session("s1")
    agent.start()
    edit(agent)
    bash(agent, "ls")
    told = world.json("gate", "replay")
    assert (told["refused_calls"], told["calls"]) == (1, 2)
    (case,) = told["cases"]
    why = world.json("gate", "explain", str(case["seq"]))
    assert why["verdict"] == "deny"
    assert [one["name"] for one in why["requirements"] if one["about"] and not one["ok"]] == case["requirements"]
    other = world.root / "other.yaml"
    other.write_text("requirements:\n  no_shell: {trigger_tools: [Bash]}\n")
    assert world.json("gate", "replay", "--settings", str(other))["refused_calls"] == 1
    other.write_text("version: '1.0'\nrequirements:\n  no_shell: {trigger_tools: [Bash], command_pattern: nothing}\n")
    assert "0 of 2 calls" in world.cli("gate", "replay", "--settings", str(other))
    agent.tool("Skill", skill="arch-review")
    edit(agent)
    allowed = world.events(kinds=("tool.started",))[-1].seq
    assert world.json("gate", "explain", str(allowed))["verdict"] == "allow"


def test_init_asks_or_takes_flags_and_keeps_what_is_there(world: World) -> None:
    """O2-a."""
    assert "nothing is ever refused" in world.cli("gate", "status")
    requirements(world, "requirements:\n  mine: {enabled: false}  # keep me\n", ".holdfast/settings.yaml")
    skill = world.home / ".claude" / "skills" / "arch-review" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("# review\n")
    assert "left out: pre_commit_review" in world.cli("gate", "init", stdin="strict\n")
    text = (world.project / ".holdfast" / "settings.yaml").read_text()
    assert "keep me" in text
    assert "tests_green" in text
    assert {"commit_plan", "tests_green", "protected_branch"} <= set(standing(world, "x"))
    assert world.json("gate", "init", "--preset", "minimal", "--with", "single_session_per_project")["added"] == [
        "single_session_per_project"
    ]
    assert "There are: fitting, minimal" in world.cli("gate", "init", "--preset", "loose", code=1)


def test_init_proposes_what_fits_the_project_and_it_works_at_once(world: World) -> None:
    git(world.project, "branch", "-q", "-f", "trunk", "HEAD")
    (world.project / "Makefile").write_text("test:\n\ttrue\n")
    agent = world.session("s1")
    agent.start()
    edit(agent)
    told = world.cli("gate", "init", stdin="\n")
    assert "tests_green" in told
    assert "In the last 7 days it would have refused 0 of 1 calls" in told
    assert "run: make test" in (world.project / ".holdfast" / "settings.yaml").read_text()
    assert "0 problems" in world.cli("gate", "verify")
    assert "tests_green" in standing(world, "s1")


def test_prune_forgets_branches_that_are_gone(world: World) -> None:
    requirements(world, PLANNING)
    agent = world.session("s1")
    agent.start()
    agent.tool("Skill", skill="arch-review")
    file = world.project / ".git" / "requirements" / "feature-test.json"
    wait_until(file.exists, "the file is written")
    assert world.json("gate", "prune") == {"pruned": []}
    git(world.project, "checkout", "-q", "-b", "next")
    git(world.project, "branch", "-q", "-D", "feature/test")
    assert world.json("gate", "prune") == {"pruned": ["feature/test"]}
    wait_until(lambda: not file.exists(), "its file is gone")


def test_branch_size_is_measured_beside_the_hooks_and_then_refuses(world: World) -> None:
    """S2-16."""
    requirements(world, "requirements:\n  branch_size_limit: {base: main, thresholds: {warn: 5, block: 20}}\n")
    git(world.project, "branch", "-q", "-f", "main", "HEAD")
    (world.project / "big.txt").write_text("line\n" * 30)
    agent = world.session("s1")
    agent.start()
    wait_until(lambda: world.events(kinds=("gates.measured",)), "git was asked")
    assert world.events(kinds=("gates.measured",))[0].data["lines"] >= 30
    assert "limit 20" in reason(agent.before("Edit", file_path="/x", old_string="a", new_string="b"))
    world.cli("gate", "approve", "branch_size_limit")
    assert edit(agent) == ""


def lines_measured(world: World) -> int:
    return max((event.data["lines"] for event in world.events(kinds=("gates.measured",))), default=0)


def test_a_limit_holds_for_a_fast_agent_too(world: World) -> None:
    """The branch is measured after each call that may have changed it, not once a minute."""
    requirements(world, "requirements:\n  branch_size_limit: {base: main, thresholds: {warn: 20, block: 40}}\n")
    git(world.project, "branch", "-q", "-f", "main", "HEAD")
    agent = world.session("s1")
    agent.start()
    for number in range(1, 5):
        file = world.project / f"part{number}.py"
        assert "deny" not in json.dumps(agent.before("Write", f"c{number}", file_path=str(file), content=""))
        file.write_text("x\n" * 10)
        agent.after("Write", f"c{number}", file_path=str(file), content="")
        wait_until(lambda: lines_measured(world) >= 10 * number, f"{number * 10} lines are seen")  # noqa: B023
    assert "limit 40" in reason(agent.before("Write", file_path=str(world.project / "part5.py"), content=""))


def test_a_file_changed_by_hand_makes_proof_stale(world: World) -> None:
    """The user's own editor leaves no event; the measurement sees it."""
    spec = "type: evidence, evidence: {command: 'pytest*', after_edit: 'src/**'}"
    requirements(world, f"requirements:\n  green: {{{spec}}}\n  branch_size_limit: {{cache_ttl: 1}}\n")
    (world.project / "src").mkdir()
    (world.project / "src" / "a.py").write_text("1\n")
    agent = world.session("s1")
    agent.start()
    edit(agent)
    bash(agent, "pytest -q")

    def measured_once_more() -> None:
        mark = world.events()[-1].seq

        def asked() -> bool:
            agent.prompt("and?")
            return any(e.data["as_of"] > mark for e in world.events(kinds=("gates.measured",)))

        wait_until(asked, "git was asked again")

    measured_once_more()
    assert agent.stop() == {}
    assert standing(world, "s1")["green"]
    (world.project / "src" / "a.py").write_text("2 2\n")
    assert not standing(world, "s1")["green"]
    measured_once_more()
    assert "a file it covers changed" in agent.stop()["reason"]


def test_the_state_is_what_the_log_says(world: World) -> None:
    """P5."""
    requirements(world, PLANNING + "  tests_green: {enabled: true}\n")
    agent = world.session("s1")
    agent.start()
    edit(agent)
    agent.tool("Skill", skill="arch-review")
    edit(agent)
    agent.stop()
    bash(agent, "pytest -q")
    agent.stop()
    world.cli("gate", "pause", "10s")
    world.cli("gate", "clear", "--all")
    agent.end()
    assert world.json("rebuild", "gates")["differences"] == []


def test_the_file_that_gate_init_makes_is_the_persons_and_one_that_was_there_is_not(world: World) -> None:
    """Its rules are told to the agent as theirs, not as those of an untrusted project."""
    world.cli("gate", "init", "--preset", "minimal")
    file = world.project / ".holdfast" / "settings.yaml"
    known = read_trusted(Path(world.env["HOLDFAST_CONFIG"]))
    assert is_trusted(file, file.read_bytes(), known)
    file.write_text("requirements:\n  theirs: {type: blocking, message: obey}\n")
    world.cli("gate", "init", "--preset", "minimal")
    assert not is_trusted(file, file.read_bytes(), read_trusted(Path(world.env["HOLDFAST_CONFIG"])))
