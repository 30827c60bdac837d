"""Seed 001 in users' words: one document says what is true and what needs doing, and parallel sessions wait."""

import json
import os
import re
import signal
import subprocess
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from holdfast.core.event import Event
from tests.features.project.daemon_calls import command, view
from tests.features.project.notion_server import DATABASE, NotionServer
from tests.kit import BIN, World, alive, git, wait_until

SEED = Path(__file__).parent / "seeds" / "session_state_v4.yaml"


@pytest.fixture
def repo(world: World) -> World:
    git(world.project, "init", "-q")
    (world.project / "app.py").write_text("x = 1\n")
    git(world.project, "add", ".")
    git(world.project, "commit", "-qm", "first")
    return world


def configure(world: World, text: str) -> None:
    folder = Path(world.env["HOLDFAST_CONFIG"])
    folder.mkdir(exist_ok=True)
    (folder / "settings.yaml").write_text(textwrap.dedent(text))


def document(world: World) -> dict[str, Any]:
    """What `holdfast state show` prints."""
    return view(world, "project.state")["document"]


def tasks(world: World) -> dict[str, str]:
    """gap type → description"""
    return {one["gap_type"]: one["description"] for one in view(world, "project.tasks")["tasks"]}


def look(world: World) -> None:
    """What `holdfast state refresh` does."""
    if not world.pid:
        world.start()
    command(world, "project.look")
    wait_until(lambda: not view(world, "project.looking")["waiting"], "the project is looked at")


def held(world: World) -> dict[str, Any]:
    return {row["name"]: row for row in view(world, "project.leases")["leases"]}


def ran(output: str) -> dict[str, str]:
    return {"stdout": output, "stderr": ""}


def edit(world: World, agent: Any, path: str, text: str) -> None:
    file = world.project / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    agent.tool("Write", file_path=str(file), content=text)


# ── the document ─────────────────────────────────────────────────────────────────────────────────────────────────────

SEED_SETTINGS = """
    project:
      phase: phase_5_active
      tokens: {limit: 200000}
      areas:
        agents:
          paths: dot_claude/agents
          noun: agents
          validate: ["validate-agents*"]
          done_when: [All files pass frontmatter validation, No YAML syntax errors, All required fields present]
          blocks: chezmoi_apply
          capabilities: [yaml_parsing, file_reading, agent_schema_validation]
          locks: chezmoi_source
          activity: agent_system_refinement
          intent: Testing new agent patterns before committing
      trees:
        chezmoi_source: {path: ~/.local/share/chezmoi}
        deployed_config: {path: ~/.config/zsh, source: ~/.local/share/chezmoi/dot_config/zsh}
      notion: {database: DATABASE, base_url: "URL", token_file: ~/notion-token}
"""
AGENTS = ("dot_claude/agents/content-pruner.md", "dot_claude/agents/breaking-change-detector.md")
MAPPING = """
    projects:
      dotfiles: {paths: [~/.local/share/chezmoi], remotes: [beppe-system-bootstrap]}
      manga: {paths: [~/Comics]}
"""


def the_seeds_repository(world: World) -> None:
    world.project = world.home / ".local/share/chezmoi"
    for path in (*AGENTS, "dot_config/zsh/zshrc"):
        file = world.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("name: old\n")
    (world.home / ".config/zsh").mkdir(parents=True)
    (world.home / ".config/zsh/zshrc").write_text("name: older\n")
    git(world.project, "init", "-q")
    git(world.project, "remote", "add", "origin", "git@example.invalid:beppe/beppe-system-bootstrap.git")
    git(world.project, "add", ".")
    git(world.project, "commit", "-qm", "feat(agents): Add content-pruner skill")


def spend(world: World, agent: Any, tokens: int) -> None:
    usage = {"input_tokens": tokens - 100, "output_tokens": 100}
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    line = {"type": "assistant", "timestamp": now, "uuid": agent.id, "message": {"id": agent.id, "usage": usage}}
    Path(agent.common["transcript_path"]).write_text(json.dumps(line) + "\n")


def test_the_seeds_full_example_from_a_real_repository(world: World) -> None:
    """S1-1 to S1-14, S1-18: the seed's example, field by field, from a repository put into that state."""
    with NotionServer() as notion:
        (world.home / "notion-token").write_text("secret-token\n")
        configure(world, SEED_SETTINGS.replace("DATABASE", DATABASE).replace("URL", notion.url))
        (world.home / ".claude").mkdir()
        (world.home / ".claude/project_mapping.yml").write_text(textwrap.dedent(MAPPING))
        the_seeds_repository(world)
        for name, tokens in (("earlier-1", 6_600), ("earlier-2", 6_700)):
            agent = world.session(name)
            agent.start()
            agent.prompt("do it")
            spend(world, agent, tokens)
            agent.stop()
            wait_until(lambda n=name: world.events(kinds=("model.answered",), session=n), "its tokens are read")
            agent.end()
        agent = world.session("now")
        agent.start()
        agent.prompt("refine the agents")
        agent.tool("Bash", ran("==== 42 passed in 3.01s ===="), command="pytest")
        look(world)
        for path in AGENTS:
            edit(world, agent, path, "name: new\nfields: all\n")
        spend(world, agent, 53_535)
        agent.stop()
        wait_until(lambda: world.events(kinds=("model.answered",), session="now"), "the tokens are read")
        look(world)
        wait_until(lambda: "filesystem" in document(world)["CURRENT_STATE"], "the trees are looked at")
        synced = lambda: document(world)["CURRENT_STATE"].get("notion_workspace", {}).get("sync_status") == "synced"  # noqa: E731
        wait_until(synced, "the tasks are in Notion")
        now, seed = document(world), YAML(typ="safe").load(SEED.read_text())

    assert {"dotfiles/task_001", "dotfiles/task_002"} <= set(notion.rows())
    assert [now[k] for k in ("SCHEMA_VERSION", "PROJECT")] == ["4.0.0", "dotfiles"]
    assert shape(now["CURRENT_STATE"]) >= shape(seed["CURRENT_STATE"])
    state, said = now["CURRENT_STATE"], seed["CURRENT_STATE"]
    for name in ("repository", "status", "branch", "commits_ahead", "commits_behind"):
        assert state["git"][name] == said["git"][name], name
    assert state["git"]["last_commit"]["message"] == said["git"]["last_commit"]["message"]
    assert state["git"]["uncommitted_files"]["count"] == said["git"]["uncommitted_files"]["count"] == 2
    assert {f["path"]: f["validated"] for f in state["git"]["uncommitted_files"]["files"]} == dict.fromkeys(
        AGENTS, False
    )
    assert {k: v for k, v in state["tests"].items() if k != "last_run"} == {
        k: v for k, v in said["tests"].items() if k != "last_run"
    }
    for name, tree in said["filesystem"].items():
        assert state["filesystem"][name]["path"] == tree["path"]
        assert state["filesystem"][name].get("in_sync") == tree.get("in_sync")
    assert state["notion_workspace"]["pending_updates"] == said["notion_workspace"]["pending_updates"]
    assert state["token_budget"] == said["token_budget"]

    (task,) = [t for t in now["TASKS"]["P1_urgent"] if t["gap_type"] == "unvalidated_changes"]
    (wanted,) = seed["TASKS"]["P1_urgent"]
    different = ("id", "discovered_at")
    assert {k: v for k, v in task.items() if k not in different} == {
        k: v for k, v in wanted.items() if k not in different
    }

    resolution, wanted = now["PROJECT_RESOLUTION"], seed["PROJECT_RESOLUTION"]
    for name in ("project", "confidence", "method", "alternatives"):
        assert resolution[name] == wanted[name], name
    assert {n: (s["project"], s["confidence"]) for n, s in resolution["signals"].items()} == {
        n: (s["project"], s["confidence"]) for n, s in wanted["signals"].items()
    }
    for name in ("pwd", "git", "recent_files"):
        assert resolution["signals"][name]["reason"] == wanted["signals"][name]["reason"]

    context, wanted = now["WORK_CONTEXT"], seed["WORK_CONTEXT"]
    assert context["current_phase"] == wanted["current_phase"]
    assert context["current_activity"]["type"] == wanted["current_activity"]["type"]
    assert context["current_activity"]["status"] == wanted["current_activity"]["status"]
    assert context["uncommitted_files_context"] == wanted["uncommitted_files_context"]
    assert context["blockers"] == wanted["blockers"]

    assert set(seed["RESOURCE_LOCKS"]) <= set(now["RESOURCE_LOCKS"])
    assert now["RESOURCE_LOCKS"]["chezmoi_source"] == seed["RESOURCE_LOCKS"]["chezmoi_source"]
    summaries = [line["summary"] for line in now["STATE_HISTORY"]]
    assert seed["STATE_HISTORY"][0]["summary"] in summaries
    assert all(isinstance(line.get("changed_by_process", 1), int) for line in now["STATE_HISTORY"])
    assert set(now) == set(seed)

    file = world.home / ".claude/sessions/dotfiles/SESSION_STATE.md"
    written = YAML(typ="safe").load(file.read_text())
    assert written["TASKS"] == now["TASKS"]
    assert "claude" not in re.sub(r"dot_claude|\.claude", "", file.read_text().lower()), "S1-1, C6: no agent is named"
    assert list((file.parent / "history").glob("????-??-??/SESSION_STATE.md"))
    assert "valid, version 4.0.0" in world.cli("state", "validate", str(file))


def shape(value: Any, path: str = "") -> set[str]:
    """Every path to a leaf, lists by their first element."""
    if isinstance(value, dict):
        return {path}.union(*(shape(v, f"{path}.{k}") for k, v in value.items()))
    return shape(value[0], f"{path}[]") if isinstance(value, list) and value and isinstance(value[0], dict) else {path}


def test_learned_patterns_are_honest(repo: World) -> None:
    """S1-12: fifteen times out of fifteen is 0.818, not 1.0; a habit seen once is none."""
    agent = repo.session("s1")
    agent.start()
    for n in range(16):
        agent.prompt(f"change {n}")
        edit(repo, agent, "agents/one.md", f"{n}\n")
        agent.tool("Bash", ran("ok"), command="validate-agents agents/")
        command_line = f"git add . && git commit -m 'change {n}'"
        agent.before("Bash", f"commit-{n}", command=command_line)
        git(repo.project, "add", ".")
        git(repo.project, "commit", "-qm", f"change {n}")
        agent.after("Bash", f"commit-{n}", ran("1 file changed"), command=command_line)
        agent.stop()
    look(repo)
    patterns = {one["pattern"]: one for one in document(repo)["LEARNED_PATTERNS"]}
    before = patterns["Always run validate-agents before commit"]
    assert (before["sample_size"], before["confidence"], before["applies_to"]) == (15, 0.818, ["project"])
    after = patterns["validate-agents after changes in agents/"]
    assert (after["sample_size"], after["confidence"]) == (15, 0.818)
    assert "Uncommitted files normal for <1 hours" in patterns


def test_v3_becomes_v4_as_the_seed_shows(repo: World) -> None:
    """S1-16: the seed's own example, in a repository with two uncommitted agents."""
    configure(repo, "project: {areas: {agents: {paths: agents, noun: agents, validate: nothing}}}")
    for name in ("one", "two"):
        edit(repo, repo.session(), f"agents/{name}.md", "x\n")
    old = repo.root / "SESSION_STATE.md"
    old.write_text((SEED.parent / "session_state_v3.yaml").read_text())
    look(repo)
    now = YAML(typ="safe").load(repo.cli("state", "migrate", str(old)))
    wanted = YAML(typ="safe").load((SEED.parent / "session_state_v3_as_v4.yaml").read_text())
    assert now["CURRENT_STATE"]["git"]["status"] == wanted["CURRENT_STATE"]["git"]["status"]
    assert (
        now["CURRENT_STATE"]["git"]["uncommitted_files"]["count"] == wanted["CURRENT_STATE"]["git"]["uncommitted_files"]
    )
    (task,), (said,) = now["TASKS"]["P1_urgent"], wanted["TASKS"]["P1_urgent"]
    assert {name: task[name] for name in said} == said
    assert now["STATE_HISTORY"] == wanted["STATE_HISTORY"]
    assert not re.search("orchestrator|validator", repo.cli("state", "migrate", str(old)))
    assert old.read_text() == (SEED.parent / "session_state_v3.yaml").read_text(), "the old file is left as it is"


def test_a_file_somebody_edited_is_set_aside_and_others_are_left_alone(repo: World) -> None:
    """S1-18 and bad input: nothing is overwritten blindly; another program's files stay."""
    folder = repo.home / ".claude/sessions"
    (folder / "project").mkdir(parents=True)
    (folder / "1234.json").write_text("another program's")
    (folder / "project/SESSION_STATE.md").write_text("NEXT_ACTIONS: [{action: mine}]\n")
    agent = repo.session()
    agent.start()
    file = folder / "project/SESSION_STATE.md"
    wait_until(lambda: "CURRENT_STATE" in file.read_text() if file.exists() else False, "the document is written")
    (kept,) = (repo.root / "state/kept").glob("*/*-SESSION_STATE.md")
    assert "mine" in kept.read_text()
    wait_until(lambda: "mine" in [t["description"] for t in repo.json("task", "list")["tasks"]], "it is a task")
    summaries = [line["summary"] for line in document(repo)["STATE_HISTORY"]]
    assert "SESSION_STATE.md, version 3.0.0: 1 task taken over" in summaries
    assert (folder / "1234.json").read_text() == "another program's"


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.quick
def test_tasks_come_and_go_with_what_is_true(repo: World) -> None:
    """S1-8, S1-9: failing tests are P0; fixing them closes the task, and the history says so."""
    agent = repo.session()
    agent.start()
    edit(repo, agent, "app.py", "x = 2\n")
    agent.failed("Bash", "Exit code 1\nFAILED tests/t.py::test_x - no\n1 failed, 4 passed in 0.1s", command="pytest -q")
    agent.stop()
    look(repo)
    assert tasks(repo) == {
        "broken_tests": "1 test failing",
        "unvalidated_changes": "1 uncommitted file needs validation",
    }
    first = repo.json("task", "next")["task"]
    assert (first["priority"], first["gap_type"]) == ("P0", "broken_tests")
    assert "tests/t.py::test_x" in repo.cli("task", "why", first["id"])

    agent.tool("Bash", ran("5 passed in 0.1s"), command="pytest -q")
    assert tasks(repo) == {}, "the tests pass, and they ran after the change"
    done = [line for line in document(repo)["STATE_HISTORY"] if line["change_type"] == "task_completed"]
    assert first["id"] in {line["task_id"] for line in done}
    assert "is closed" in repo.cli("task", "why", first["id"])


def test_a_pass_elsewhere_heals_nothing_and_a_false_task_can_be_dismissed(repo: World) -> None:
    """Issue 15: one P0 per suite and folder; a dismissal lasts for the content it was said of."""
    agent = repo.session()
    agent.start()
    for name in ("a", "b"):
        (repo.project / name).mkdir()
    agent.failed("Bash", call="failed-1", error="Exit code 1\n1 failed, 4 passed in 0.1s", command="cd a && pytest -q")
    agent.tool("Bash", ran("5 passed in 0.1s"), command="cd b && pytest -q")
    assert tasks(repo) == {"broken_tests": "1 test failing in a"}
    agent.failed(
        "Bash", call="failed-2", error="Exit code 4\nERROR: usage: pytest", command="cd b && pytest --no-such-flag"
    )
    assert "could not be started" in tasks(repo)["tests_not_started"]
    first = repo.json("task", "next")["task"]
    assert (
        "needs the network" in repo.json("task", "dismiss", first["id"], "--reason", "it needs the network")["reason"]
    )
    assert "broken_tests" not in tasks(repo)
    agent.failed("Bash", call="failed-3", error="Exit code 1\n1 failed, 4 passed in 0.1s", command="cd a && pytest -q")
    assert "broken_tests" not in tasks(repo), "the same content failed again"
    (repo.project / "a" / "new.py").write_text("x = 1\n")
    agent.failed("Bash", call="failed-4", error="Exit code 1\n1 failed, 4 passed in 0.1s", command="cd a && pytest -q")
    assert tasks(repo)["broken_tests"] == "1 test failing in a"


def test_what_is_committed_without_validation_is_called_so(repo: World) -> None:
    agent = repo.session()
    agent.start()
    edit(repo, agent, "app.py", "x = 2\n")
    look(repo)
    assert "unvalidated_changes" in tasks(repo)
    git(repo.project, "commit", "-qam", "quick")
    agent.tool("Bash", ran(""), command="git commit -qam quick")
    look(repo)
    assert "Committed without validation: 1 file" in [line["summary"] for line in document(repo)["STATE_HISTORY"]]


def test_an_agent_is_told_how_old_a_line_is(repo: World) -> None:
    """What was not looked at when the session starts says when it was."""
    agent = repo.session("first")
    agent.start()
    edit(repo, agent, "app.py", "x = 2\n")
    look(repo)
    told = repo.session("second").start()["hookSpecificOutput"]["additionalContext"]
    assert "need" in told
    assert "as of" not in told, "the content is what the last look saw"
    (repo.project / "app.py").write_text("x = 3\n")
    told = repo.session("third").start()["hookSpecificOutput"]["additionalContext"]
    assert "need" not in told.split("Open tasks")[1], "somebody changed the file since: what was true is not told"
    assert "left out, because files changed since" in told


def test_a_new_session_starts_with_the_list_everybody_reads(repo: World) -> None:
    """The same tasks for every agent and person; nothing is said while nothing needs doing."""
    assert repo.session("first").start() == {}
    repo.cli("task", "add", "Write the release notes", "-p", "P1")
    told = repo.session("second").start()["hookSpecificOutput"]["additionalContext"]
    assert re.search(r"- P1 task_\d+: Write the release notes", told)


def test_tasks_of_ones_own(repo: World) -> None:
    repo.cli("task", "add", "Write the release notes", "-p", "P1", "--done-when", "They are on the page")
    (mine,) = repo.json("task", "list")["tasks"]
    assert (mine["description"], mine["resolution_criteria"]) == ("Write the release notes", ["They are on the page"])
    assert "no priority" in repo.cli("task", "add", "x", "-p", "P9", code=1)
    repo.cli("task", "done", mine["id"])
    assert tasks(repo) == {}
    assert "no open task" in repo.cli("task", "done", mine["id"], code=1)


def test_a_derived_task_cannot_be_talked_away(repo: World) -> None:
    (repo.project / "app.py").write_text("x = 2\n")
    look(repo)
    (task,) = repo.json("task", "list")["tasks"]
    assert "closes by itself" in repo.cli("task", "done", task["id"], code=1)


def test_a_gap_rule_of_ones_own_runs_only_when_trusted(repo: World) -> None:
    """P9: a repository's settings may name a command; it runs after `config trust`, not before."""
    folder = repo.project / ".holdfast"
    folder.mkdir()
    rule = "{command: 'touch ran; test -e released', description: Nothing is released, priority: P1}"
    (folder / "settings.yaml").write_text(f"project: {{checks: {{release: {rule}}}}}\n")
    look(repo)
    time.sleep(0.5)
    assert not (repo.project / "ran").exists()
    repo.cli("config", "trust", "--yes")
    wait_until(lambda: seen(repo).get("own_rule") == "Nothing is released", "the rule is a task")
    (repo.project / "released").write_text("")
    wait_until(lambda: "own_rule" not in seen(repo), "the gap is closed")


def seen(world: World) -> dict[str, str]:
    """Settings count a second after they were written: look again until they do."""
    look(world)
    time.sleep(0.3)
    return tasks(world)


# ── resolution, time travel ──────────────────────────────────────────────────────────────────────────────────────────


def test_resolution_is_a_vote_and_a_persons_word_wins(repo: World) -> None:
    """S1-10, O1-b."""
    git(repo.project, "remote", "add", "origin", "https://example.invalid/me/engine.git")
    look(repo)
    told = repo.json("resolve")
    assert told["project"] == "project"
    assert [one["project"] for one in told["alternatives"]] == ["engine"]
    assert told["confidence"] == pytest.approx(0.9 / 1.6, abs=0.01)
    assert repo.json("resolve", CLAUDE_PROJECT="special")["project"] == "special"
    agent = repo.session("named")
    agent.env |= {"CLAUDE_PROJECT": "comet"}
    agent.start()
    look(repo)
    assert document(repo)["PROJECT"] == "comet", "the agent's own environment says so"
    agent.end()
    repo.cli("resolve", "--set", "rocket")
    look(repo)
    assert document(repo)["PROJECT"] == "rocket"
    wait_until((repo.home / ".claude/sessions/rocket/SESSION_STATE.md").exists, "its file is under that name")
    repo.cli("resolve", "--clear")
    look(repo)
    assert document(repo)["PROJECT"] == "project"


def test_the_state_as_it_was(repo: World) -> None:
    """O1-d: time travel, and what changed since."""
    look(repo)
    seq = repo.events()[-1].seq
    edit(repo, repo.session(), "app.py", "x = 2\n")
    look(repo)
    assert repo.json("state", "show", "--at", str(seq))["CURRENT_STATE"]["git"]["status"] == "clean"
    assert repo.json("state", "--at", str(seq))["CURRENT_STATE"]["git"]["status"] == "clean"
    assert document(repo)["CURRENT_STATE"]["git"]["status"] == "dirty"
    changed = {one["path"] for one in repo.json("state", "diff", str(seq))["differences"]}
    assert "CURRENT_STATE.git.status" in changed
    assert "no time" in repo.cli("state", "show", "--at", "yesterdayish", code=1)


# ── parallel sessions ────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_shells_on_one_project_do_not_overlap(repo: World) -> None:
    """S1-13, O1-c: each shell reads, waits and writes a counter; with the lease no update is lost."""
    counter = repo.root / "counter"
    counter.write_text("0")
    step = f"n=$(cat {counter}); sleep 0.05; echo $((n + 1)) > {counter}"
    shells = [
        subprocess.Popen(
            ["sh", "-c", f"for i in 1 2 3; do '{BIN}/holdfast' lease run counter -- sh -c '{step}' || exit 1; done"],
            env=repo.env, cwd=repo.project,
        )
        for _ in range(2)
    ]  # fmt: skip
    assert [shell.wait(100) for shell in shells] == [0, 0]
    assert counter.read_text().strip() == "6"
    assert repo.json("rebuild")["differences"] == []


def test_a_killed_holder_frees_at_once_and_the_next_in_line_gets_it(repo: World) -> None:
    """C5, D3, D6: the owner is a process; when it is gone the lease is free, however long it was to last."""
    holder = subprocess.Popen(["sleep", "600"])
    try:
        repo.cli("lease", "acquire", "db", "--pid", str(holder.pid), "--ttl", "3600", "--why", "migrating")
        assert "migrating" in repo.cli("lease", "list")
        lock = document(repo)["RESOURCE_LOCKS"]["db"]
        assert (lock["locked"], lock["locked_by"], lock["locked_for"]) == (True, holder.pid, "migrating")
        assert "not free" in repo.cli("lease", "acquire", "db", "--wait", "0", code=75)
        waiting = subprocess.Popen(
            [BIN / "holdfast", "lease", "run", "db", "--", "echo", "mine"], env=repo.env, cwd=repo.project,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        wait_until(lambda: held(repo)["db"]["waiters"], "the next one waits")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        began = time.monotonic()
        assert waiting.communicate(timeout=60)[0] == "mine\n"
        assert time.monotonic() - began < 30
    finally:
        holder.kill()
        holder.wait()
    assert held(repo) == {}
    assert any("db was freed" in line["summary"] for line in document(repo)["STATE_HISTORY"])


def test_a_deadlock_is_refused_and_the_circle_named(repo: World) -> None:
    """C5: A holds one and waits for two; B, who holds two, may not wait for one."""
    one, two = (subprocess.Popen(["sleep", "600"]) for _ in range(2))
    try:
        repo.cli("lease", "acquire", "first", "--pid", str(one.pid))
        repo.cli("lease", "acquire", "second", "--pid", str(two.pid))
        waiting = subprocess.Popen(
            [BIN / "holdfast", "lease", "acquire", "second", "--pid", str(one.pid)], env=repo.env, cwd=repo.project,
        )  # fmt: skip
        wait_until(lambda: held(repo)["second"]["waiters"], "it waits")
        told = repo.cli("lease", "acquire", "first", "--pid", str(two.pid), code=1)
        assert f"process {two.pid} waits for first, which process {one.pid} holds" in told
        assert f"process {one.pid} waits for second, which process {two.pid} holds" in told
        repo.cli("lease", "release", "second", "--pid", str(two.pid))
        assert waiting.wait(60) == 0
    finally:
        for process in (one, two):
            process.kill()
            process.wait()


def test_the_command_is_gone_with_its_lease_and_its_exit_code_comes_through(repo: World) -> None:
    assert repo.cli("lease", "run", "x", "--", "sh", "-c", "exit 7", code=7) == ""
    nested = ["lease", "run", "x", "--", str(BIN / "holdfast"), "lease", "run", "x", "--", "true"]
    assert "deadlock" in repo.cli(*nested, code=1), "one cannot wait for oneself"
    assert "No such file" in repo.cli("lease", "run", "x", "--", "no-such-program", code=1)
    assert held(repo) == {}


def test_blame_names_the_session_turn_prompt_and_reason(repo: World) -> None:
    """Issue 17.11: of a line before and after its commit, and of the commit; nothing of the repository's config runs."""
    agent = repo.session("s1")
    agent.start()
    agent.prompt("count in floats")
    edit(repo, agent, "app.py", "total = float(count)\n")
    assert "count in floats" in repo.cli("blame", "app.py:1")
    (repo.project / ".gitattributes").write_text("*.py diff=evil filter=evil\n")
    for name in ("diff.evil.textconv", "filter.evil.clean"):
        git(repo.project, "config", name, f"touch {repo.root}/ran; cat")
    agent.before("Bash", "c1", command="git commit -qam floats")
    git(repo.project, "-c", "filter.evil.clean=cat", "commit", "-qam", "floats")
    agent.after("Bash", "c1", ran("1 file changed"), command="git commit -qam floats")
    agent.stop()
    (repo.root / "ran").unlink(missing_ok=True)
    told = repo.json("blame", "app.py:1")
    assert (told["line"]["subject"], told["origin"]["how"]) == ("floats", "edit")
    assert told["origin"]["turn"]["prompt"] == "count in floats"
    assert "made the commit" in repo.cli("blame", "HEAD")
    assert not (repo.root / "ran").exists()
    assert "no such file" in repo.cli("blame", "gone.py:1", code=1)
    assert "holdfast blame app.py:1" in repo.cli("blame", "app.py", code=1)


def test_blame_goes_on_after_a_rename_and_a_rewrite_by_somebody_else(repo: World) -> None:
    """Issue 17.11: the line keeps its edit under the new name, an amended commit the session that made it first."""
    agent = repo.session("s1")
    agent.start()
    agent.prompt("count in floats")
    edit(repo, agent, "app.py", "total = float(count)\n")
    agent.before("Bash", "c1", command="git commit -qam floats")
    git(repo.project, "commit", "-qam", "floats")
    agent.after("Bash", "c1", ran("1 file changed"), command="git commit -qam floats")
    agent.stop()
    made = git(repo.project, "rev-parse", "HEAD").strip()
    git(repo.project, "commit", "-q", "--amend", "-m", "Count in floats")
    assert f"made it as {made[:12]}; rewritten outside of a session" in repo.cli("blame", "HEAD")
    git(repo.project, "mv", "app.py", "count.py")
    git(repo.project, "commit", "-qm", "rename")
    told = repo.json("blame", "count.py:1")
    assert (told["origin"]["how"], told["origin"]["turn"]["prompt"]) == ("edit", "count in floats")
    assert repo.json("blame", "HEAD")["origin"]["turn"] is None, "the rename itself is nobody's"


def test_blame_finds_the_commit_of_a_line_that_was_squashed(repo: World) -> None:
    """Issue 17.11: commits of two turns become one in a terminal; each line still leads to its own prompt. Written by the shell,
    so only the commits tell."""
    agent = repo.session("s1")
    agent.start()
    for n, prompt in enumerate(("count the apples", "count the pears")):
        agent.prompt(prompt)
        command = f"echo {n} >> app.py; git commit -qam part-{n}"
        agent.before("Bash", f"c{n}", command=command)
        with (repo.project / "app.py").open("a") as file:
            file.write(f"part = {n}\n")
        git(repo.project, "commit", "-qam", f"part-{n}")
        agent.after("Bash", f"c{n}", ran("1 file changed"), command=command)
        agent.stop()
    git(repo.project, "reset", "-q", "--soft", "HEAD~2")
    git(repo.project, "commit", "-qm", "All of it")
    last = len((repo.project / "app.py").read_text().splitlines())
    for line, prompt in ((last - 1, "count the apples"), (last, "count the pears")):
        told = repo.json("blame", f"app.py:{line}")
        assert (told["line"]["subject"], told["origin"]["turn"]["prompt"]) == ("All of it", prompt)
    assert "rewritten outside of a session" in repo.cli("blame", f"app.py:{last}")
    assert repo.json("blame", "app.py:1")["origin"]["turn"] is None, "what was there before is nobody's"


def test_a_killed_lease_run_ends_its_command_and_the_lease_waits_for_it(repo: World) -> None:
    """`kill -9` of the wrapper: what it started, however deep, is ended, and nobody gets the lease before."""
    began, ended = repo.root / "began", repo.root / "ended"
    script = f"trap 'rm {began}; touch {ended}; exit' TERM; touch {began}; while :; do sleep 0.05; done"
    holder = subprocess.Popen(
        [BIN / "holdfast", "lease", "run", "db", "--", "sh", "-c", f'sh -c "{script}" & wait'],
        env=repo.env, cwd=repo.project,
    )  # fmt: skip
    wait_until(began.exists, "the command runs")
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    told = repo.cli("lease", "run", "db", "--", "sh", "-c", f"test -e {ended} && ! test -e {began} && echo alone")
    assert told == "alone\n"


def test_a_session_is_warned_of_another_that_edits_the_same_file(repo: World) -> None:
    """Parallel sessions: told at once, or refused where the settings say so; never of itself or of one that ended."""
    one, two = repo.session("one"), repo.session("two")
    one.start()
    one.prompt("make x two")
    edit(repo, one, "app.py", "x = 2\n")
    path = str(repo.project / "app.py")
    told = two.before("Edit", file_path=path, old_string="x", new_string="y")["hookSpecificOutput"]
    assert "another session that is still open: claude-code one" in told["additionalContext"]
    assert f"process {os.getpid()}" in told["additionalContext"]
    assert "on “make x two”" in told["additionalContext"]
    assert one.before("Edit", file_path=path, old_string="x", new_string="y") == {}
    two.after("Edit", file_path=path, old_string="x", new_string="y")
    assert two.before("Edit", file_path=path, old_string="x", new_string="y") == {}, (
        "told once, until the other edits again"
    )
    edit(repo, one, "app.py", "x = 3\n")
    configure(repo, "project: {edits: deny}")
    denied = lambda: two.before("Edit", file_path=path, old_string="x", new_string="y").get("hookSpecificOutput", {})  # noqa: E731
    wait_until(lambda: denied().get("permissionDecision") == "deny", "the new setting counts")
    one.end()
    assert denied() == {}


def test_an_agent_whose_reply_has_no_place_for_it_is_told_with_its_next_event(repo: World) -> None:
    """Codex takes no context before a call: the warning waits for the end of the call, and is recorded there."""
    one = repo.session("one")
    one.start()
    edit(repo, one, "app.py", "x = 2\n")
    patch = "*** Begin Patch\n*** Update File: app.py\n@@\n-x = 2\n+x = 3\n*** End Patch\n"
    call = {
        "session_id": "01a1de04-cf3f-76f1-96a3-50f5fd893358", "turn_id": "t", "cwd": str(repo.project), "model": "gpt-5.5",
        "tool_name": "apply_patch", "tool_input": {"command": patch}, "tool_use_id": "call_1",
        "transcript_path": "", "permission_mode": "bypassPermissions",
    }  # fmt: skip
    assert repo.reply("PreToolUse", call, agent="codex") == {}
    assert not told_of_edits(repo), "nothing is recorded as told that the agent did not receive"
    told = repo.reply("PostToolUse", {**call, "tool_response": "Success."}, agent="codex")["hookSpecificOutput"]
    assert "was edited by another session" in told["additionalContext"]
    assert [event.data["of_kind"] for event in told_of_edits(repo)] == ["tool.finished"]


def told_of_edits(repo: World) -> list[Event]:
    made = repo.events(kinds=("decision.made",))
    return [event for event in made if any("was edited by" in one["text"] for one in event.data["contexts"])]


def test_no_process_is_left_behind(repo: World) -> None:
    assert "0 open tasks" in repo.cli("state", "refresh")
    shown, known = repo.json("state", "show"), document(repo)
    assert {**shown, "LAST_UPDATED": ""} == {**known, "LAST_UPDATED": ""}, "but for a look in between"
    pid = repo.pid
    repo.kill()
    assert not alive(pid)
