"""Every gap rule: the gap opens, a task appears; it closes, the task closes, and the history says so (S1-8, S1-9)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.times import DAY, HOUR
from holdfast.features.project.gaps import PRIORITIES, RULES
from tests.factories import NOON
from tests.features.project.stage import ROOT, Stage

FILE = {"path": "src/a.py", "code": ".M", "modified": NOON, "size": 10}
FIELDS = ("type", "priority", "description", "method", "blocking", "done_when", "resources")


def dirty(stage: Stage, **facts: Any) -> None:
    stage.git(**{"status": "dirty", "count": 1, "files": [FILE], "newest_change": NOON, "oldest_change": NOON, **facts})


def clean(stage: Stage) -> None:
    stage.git(doing="", conflicts=[], untracked_sources=[], ahead=0, unpushed_since=0, oldest_change=0)


def failing(stage: Stage) -> None:
    stage.check("failed", failed=1, passed=2, failures=["t.py::a"])


def passing(stage: Stage) -> None:
    stage.check("passed", passed=3)


def refused(stage: Stage) -> None:
    details = [{"gate": "refused", "requirements": [{"name": "commit_plan"}]}]
    stage.say("decision.made", session="s-1", tool="Edit", verdict="deny", details=details, of_kind="tool.started")


def uat(outcome: str) -> Callable[[Stage], Any]:
    def go(stage: Stage) -> None:
        stage.say("uat.started", uat="u1", plan={"name": "checkout"})
        if outcome == "failed":
            stage.say("uat.step", uat="u1", step=1, status="failed")
        stage.say("uat.ended", uat="u1", reason="last-step")

    return go


def locked(until: int) -> Callable[[Stage], Any]:
    lock = {"pid": 77, "at": NOON, "until": until, "why": "", "mode": "exclusive", "holders": [77], "waiters": []}
    return lambda stage: stage.say("project.lease_changed", name="db", lock=lock)


def checked(ok: bool) -> Callable[[Stage], Any]:
    rule = {"command": "test -e x", "description": "No x", "priority": "P1", "exit_code": 0}
    return lambda stage: stage.say("project.checked", name="x", names=["x"], ok=ok, exit_code=int(not ok), rule=rule)


def added(stage: Stage) -> None:
    stage.say("project.task_added", description="Write it", priority="P2")


def done(stage: Stage) -> None:
    stage.say("project.task_done", key=stage.doc.own_tasks[0].key)


GOLDEN: dict[str, tuple[Callable[[Stage], Any], Callable[[Stage], Any], dict[str, Any]]] = {
    "broken_tests": (failing, passing, {"priority": "P0", "description": "1 test failing"}),
    "tests_not_started": (
        lambda s: s.check("did_not_run", why="exit status 127: the program could not be started"), passing,
        {"priority": "P2",
         "description": "The tests could not be started: pytest, exit status 127: the program could not be started"},
    ),
    "merge_conflict": (
        lambda s: s.git(status="dirty", count=2, doing="merge", conflicts=["a.py", "b.py"]), clean,
        {"priority": "P0", "description": "2 conflicts in the merge"},
    ),
    "operation_in_progress": (
        lambda s: s.git(doing="rebase"), clean, {"priority": "P0", "description": "A rebase in progress"},
    ),
    "unvalidated_changes": (
        dirty, passing, {"priority": "P1", "description": "1 uncommitted file needs validation"},
    ),
    "unpushed_commits": (
        lambda s: s.git(ahead=3, upstream="origin/main", unpushed_since=NOON - 2 * DAY), clean,
        {"priority": "P1", "description": "3 commits not pushed for 2 days"},
    ),
    "tree_out_of_sync": (
        lambda s: s.observe(trees={"deployed": {"path": "~/x", "source": "src", "in_sync": False, "differing": ["z"]}}),
        lambda s: s.observe(trees={"deployed": {"path": "~/x", "source": "src", "in_sync": True}}),
        {"priority": "P1", "description": "deployed is not in sync with src"},
    ),
    "unsatisfied_gates": (
        refused, lambda s: s.say("gates.satisfied", session="s-1", requirements=[{"name": "commit_plan"}]),
        {"priority": "P1", "description": "1 requirement not satisfied: commit_plan"},
    ),
    "uat_failures": (
        uat("failed"), uat("passed"), {"priority": "P1", "description": "1 UAT scenario failed: checkout"},
    ),
    "stuck_lease": (
        locked(NOON - HOUR), lambda s: s.say("project.lease_changed", name="db", lock={}),
        {"priority": "P1", "description": "db is held by process 77 beyond its time"},
    ),
    "own_rule": (checked(False), checked(True), {"priority": "P1", "description": "No x"}),
    "own_task": (added, done, {"priority": "P2", "description": "Write it"}),
    "old_uncommitted_work": (
        lambda s: dirty(s, oldest_change=NOON - 5 * HOUR), clean,
        {"priority": "P2", "description": "1 file uncommitted for up to 5 hours"},
    ),
    "stale_index": (
        lambda s: s.say("reindex.finished", status="killed", reason="out of memory"),
        lambda s: s.say("reindex.finished", status="unchanged"),
        {"priority": "P2", "description": "The code index does not show the present code"},
    ),
    "todos_added": (
        lambda s: s.observe(todos={"count": 2, "places": ["a.py:1", "b.py:2"]}),
        lambda s: s.observe(todos={"count": 0}),
        {"priority": "P3", "description": "2 TODOs or FIXMEs added on this branch"},
    ),
    "untracked_sources": (
        lambda s: s.git(untracked_sources=["new.py"]), clean,
        {"priority": "P3", "description": "1 untracked file like source code"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("gap", GOLDEN)
def test_a_gap_opens_and_closes(stage: Stage, gap: str) -> None:
    opens, closes, wanted = GOLDEN[gap]
    assert gap not in stage.gaps()
    opens(stage)
    task = stage.gaps()[gap]
    assert {name: getattr(task, name) for name in wanted} == wanted
    assert task.why, "every task says why it is there"
    assert task.done_when, "and when it is done"
    assert 0 < task.confidence <= 1 and task.minutes > 0
    stage.wait(0)
    assert stage.gaps()[gap].id == task.id, "the number stays while the gap lasts"
    closes(stage)
    assert gap not in stage.gaps()
    assert task.id in stage.completed()


def test_every_rule_has_a_golden(stage: Stage) -> None:
    for opens, _, _ in GOLDEN.values():
        opens(stage)
        stage.git(doing="", status="dirty", count=1, files=[FILE])
    silent = {rule.__name__ for rule in RULES if not list(rule(stage.doc, stage.now))}
    covered = {"unfinished_merge", "unvalidated_changes", "unpushed_commits", "old_uncommitted_work"}
    assert silent <= covered, "a new rule needs its golden above"
    assert len(GOLDEN) >= len(RULES)


def test_time_alone_opens_a_gap(stage: Stage) -> None:
    dirty(stage)
    assert "old_uncommitted_work" not in stage.gaps()
    stage.wait(5)
    assert "old_uncommitted_work" in stage.gaps()


def test_a_task_gets_a_new_number_when_its_gap_comes_back(stage: Stage) -> None:
    failing(stage)
    first = stage.gaps()["broken_tests"].id
    passing(stage)
    failing(stage)
    assert stage.gaps()["broken_tests"].id != first


def test_the_most_pressing_comes_first(stage: Stage) -> None:
    added(stage)
    dirty(stage, untracked_sources=["n.py"])
    failing(stage)
    order = [PRIORITIES.index(task.priority) for task in stage.doc.tasks]
    assert order == sorted(order)
    assert len(order) == 4


def test_settings_switch_a_rule_off_or_move_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path, gaps_off=["unvalidated_changes"], priorities={"broken_tests": "P1"})
    stage.observe(rules=stage.settings.rules().as_dict())
    dirty(stage)
    failing(stage)
    assert {name: task.priority for name, task in stage.gaps().items()} == {"broken_tests": "P1"}
    stage.store.close()


def test_ten_thousand_files_are_counted_and_listed_to_a_cap(stage: Stage) -> None:
    files = [{**FILE, "path": f"src/{n}.py"} for n in range(100)]
    dirty(stage, count=10_000, files=files)
    assert stage.gaps()["unvalidated_changes"].description == "10000 uncommitted files need validation"
    assert len(stage.document["CURRENT_STATE"]["git"]["uncommitted_files"]["files"]) == 100
    assert len(stage.gaps()["unvalidated_changes"].why) < 300


def test_a_gate_at_the_end_of_the_turn_is_done_when_the_next_prompt_comes(stage: Stage) -> None:
    """Evidence gates say nothing when they are satisfied; that the turn ended says it."""
    details = [{"gate": "stop", "requirements": [{"name": "tests"}]}]
    stage.say("decision.made", session="s-1", verdict="deny", details=details, of_kind="turn.ended")
    assert stage.gaps()["unsatisfied_gates"].blocking == ["end_of_turn"]
    stage.say("prompt.submitted", session="s-2", prompt="other session")
    assert "unsatisfied_gates" in stage.gaps()
    stage.say("prompt.submitted", session="s-1", prompt="go on")
    assert "unsatisfied_gates" not in stage.gaps()


def test_what_a_session_that_is_gone_left_is_nobodys_task(stage: Stage) -> None:
    refused(stage)
    stage.say("session.lost", session="s-1")
    assert "unsatisfied_gates" not in stage.gaps()


def test_areas_have_their_own_proof(tmp_path: Path) -> None:
    """`validated`: only the area's own command proves its files; for the others any check does."""
    areas = {"agents": {"paths": ["agents"], "noun": "agents", "validate": ["check-agents *"]}}
    stage = Stage(tmp_path, areas=areas)
    stage.observe(rules=stage.settings.rules().as_dict())
    files = [{**FILE, "path": "agents/a.md"}, {**FILE, "path": "src/a.py"}]
    dirty(stage, count=2, files=files)
    assert len(stage.doc.tasks) == 2
    passing(stage)
    assert [task.key for task in stage.doc.tasks] == ["agents"]
    stage.run("check-agents agents/ | tail -1", "fine")
    assert [task.key for task in stage.doc.tasks] == ["agents"], "a pipe hides how it ended"
    stage.run("check-agents agents/", "fine")
    assert stage.doc.tasks == []
    stage.store.close()


def test_a_check_that_began_before_the_change_proves_nothing(stage: Stage) -> None:
    dirty(stage, files=[{**FILE, "modified": NOON + 2500}])
    stage.check("passed", "ruff", kind="lint", ms=30_000)
    assert "unvalidated_changes" in stage.gaps()
    stage.now += 60_000
    stage.check("passed", "ruff", kind="lint", ms=100)
    assert "unvalidated_changes" not in stage.gaps()


def test_history_keeps_twenty_lines_newest_first_with_process_ids(stage: Stage) -> None:
    for n in range(30):
        stage.say("project.observed", pid=4242, facts={"git": {"branch": f"b{n}", "count": 0, "status": "clean"}})
    history = stage.document["STATE_HISTORY"]
    assert len(history) == 20
    assert history[0]["summary"] == "Now on b29 (was b28)"
    assert {line["changed_by_process"] for line in history} == {4242}
    assert ROOT
