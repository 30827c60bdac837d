"""Evidence: only recorded facts count, and they go stale by themselves."""

from typing import Any

import pytest

from holdfast.analysis.shell.analysis import analyse_command
from holdfast.core.event import Event
from holdfast.features.gates.looking import is_real_run, only_looks
from tests.features.gates.stage import Stage, names


def green(**more: Any) -> Stage:
    evidence = {"command": "pytest*", "after_edit": "src/**"}
    return Stage(tests={"type": "evidence", "paths": ["src/**"], "evidence": evidence, **more})


def test_tests_green_before_you_say_done() -> None:
    """The pain: “done” without proof."""
    stage = green()
    assert stage.edit().silent  # proof about an edit cannot be asked for before the edit
    assert "no `pytest` that passed is on record" in stage.stop().reasons[0]
    stage.run("pytest -q", code=1)
    assert "failed" in stage.stop().reasons[0]
    stage.run("pytest -q")
    assert stage.stop().silent


def test_it_goes_stale_when_a_covered_file_changes_and_only_then() -> None:
    stage = green()
    stage.edit()
    stage.run("cd . && uv run pytest -q")
    stage.edit("docs/readme.md")
    assert stage.stop().silent
    stage.edit("src/deep/b.py")
    assert "src/deep/b.py changed after" in stage.stop().reasons[0]


def test_an_edit_whose_files_are_not_named_may_be_any() -> None:
    stage = green()
    stage.edit()
    stage.run("pytest")
    stage.take("tool.finished", tool="apply_patch", agent="codex", action="edit", ok=True)
    assert stage.stop().verdict == "deny"


@pytest.mark.parametrize(
    "command", ["pytest | tail -5", "pytest || true", "pytest; echo done", "echo pytest", "pytest &"]
)
def test_what_the_exit_code_does_not_prove_is_no_proof(command: str) -> None:
    stage = green()
    stage.edit()
    stage.run(command)
    assert names(stage.stop()) == ["tests"]


def test_a_command_without_an_exit_code_is_no_fact() -> None:
    stage = green()
    stage.edit()
    stage.run("pytest", code=None)
    assert stage.stop().verdict == "deny"


def test_an_exit_code_that_is_found_out_later_counts_from_then_on() -> None:
    """Codex: its hook tells none."""
    stage = green()
    stage.edit()
    failed = unknown(stage)
    stage.found_out(failed, 1)
    assert "failed" in stage.stop().reasons[0]
    passed = unknown(stage)
    assert stage.stop().verdict == "deny"
    stage.found_out(passed, 0)
    assert stage.stop().silent


def test_an_edit_between_the_command_and_its_report_makes_it_stale() -> None:
    stage = green()
    stage.edit()
    ran = unknown(stage)
    stage.edit("src/b.py")
    stage.found_out(ran, 0)
    assert "src/b.py changed after" in stage.stop().reasons[0]


def test_a_change_on_disk_between_the_command_and_its_report_makes_it_stale() -> None:
    stage = green()
    stage.edit()
    ran = unknown(stage)
    stage.say("gates.measured", "", lines=1, base="main", covers={"tests": "d1"}, as_of=ran.seq)
    stage.found_out(ran, 0)
    assert stage.stop().silent
    stage.say("gates.measured", "", lines=1, base="main", covers={"tests": "d2"}, as_of=ran.seq + 1)
    assert "a file it covers changed" in stage.stop().reasons[0]


def test_it_is_as_old_as_its_command_and_used_up_as_it() -> None:
    aged = green(evidence={"command": "pytest*", "within": 60})
    aged.edit()
    ran = unknown(aged)
    aged.later(61).found_out(ran, 0)
    assert "older than 60 s" in aged.stop().reasons[0]

    single = green(paths=[], scope="single_use", command_pattern=r"git\s+push")
    ran = unknown(single)
    assert names(single.run("git push")) == ["tests"]
    single.found_out(ran, 0)
    assert single.run("git push").silent
    assert names(single.run("git push")) == ["tests"]


def test_of_two_reports_the_later_command_holds_whichever_comes_last() -> None:
    stage = Stage(
        tests={"type": "evidence", "evidence": {"command": "pytest*"}},
        committed={"type": "evidence", "evidence": {"commit": True}},
    )
    stage.edit()
    early, early_commit = unknown(stage), unknown(stage, "git commit -m a")
    stage.edit()
    late, late_commit = unknown(stage), unknown(stage, "git commit -m b")
    for ran, code in ((late, 0), (late_commit, 0), (early, 1), (early_commit, 0)):
        stage.found_out(ran, code)
    assert stage.stop().silent


def unknown(stage: Stage, command: str = "pytest -q") -> Event:
    """A command whose end is known, but not how it went."""
    stage.run(command, code=None)
    return next(event for event in reversed(stage.log) if event.kind == "tool.finished")


def test_the_agents_word_is_no_evidence() -> None:
    stage = green()
    stage.edit()
    stage.say("gates.satisfied", requirements=[{"name": "tests", "scope": "session"}], method="agent")
    assert stage.stop(message="All tests pass!").verdict == "deny"


def test_another_sessions_proof_counts_only_where_the_branch_shares_it() -> None:
    mine, shared = green(), green(scope="branch")
    for stage in (mine, shared):
        stage.edit(session="s-2")
        stage.edit()
        stage.run("pytest", session="s-2")
    assert mine.stop().verdict == "deny"
    assert shared.stop().silent
    assert shared.edit("src/x.py", session="s-2").silent  # and what another session edits makes it stale
    assert shared.stop().verdict == "deny"


def test_before_a_command_it_is_asked_for_at_the_command() -> None:
    stage = green(paths=[], trigger_tools=[{"tool": "Bash", "command_pattern": r"git\s+push"}])
    stage.edit()
    assert stage.stop().silent
    assert names(stage.run("git push")) == ["tests"]
    stage.run("pytest")
    assert stage.run("git push").silent


def test_a_commit_since_the_last_edit() -> None:
    stage = Stage(committed={"type": "evidence", "evidence": {"commit": True}})
    stage.edit()
    assert "no commit is on record" in stage.stop().reasons[0]
    stage.run("git add -A && git commit -m x")
    assert stage.stop().silent
    stage.edit()
    assert names(stage.stop()) == ["committed"]


def test_a_skill_on_this_very_diff_used_up_by_the_commit() -> None:
    spec = {"type": "evidence", "scope": "single_use", "command_pattern": r"git\s+commit"}
    stage = Stage(reviewed={**spec, "evidence": {"skill": "review"}})
    stage.edit()
    assert names(stage.run("git commit -m x")) == ["reviewed"]
    stage.skill("review")
    stage.edit()
    assert "changed after the last run of /review" in stage.later(6).run("git commit -m x").reasons[0]
    stage.skill("review")
    assert stage.run("git commit -m x").silent
    assert names(stage.run("git commit --amend")) == ["reviewed"]


def test_a_uat_scenario_passed() -> None:
    stage = Stage(login={"type": "evidence", "evidence": {"uat": "login-flow", "after_edit": "web/**"}})
    stage.edit("web/login.ts")
    assert names(stage.stop()) == ["login"]
    stage.say("uat.ended", scenario="login-flow", outcome="failed")
    assert "failed" in stage.stop().reasons[0]
    stage.say("uat.ended", scenario="login-flow", outcome="passed")
    assert stage.stop().silent


def test_evidence_ages() -> None:
    stage = green(evidence={"command": "pytest*", "within": 60})
    stage.edit()
    stage.run("pytest")
    assert stage.later(60).stop().silent
    assert "older than 60 s" in stage.later(1).stop().reasons[0]


def test_all_facts_asked_for_must_be_there() -> None:
    stage = green(evidence=[{"command": "ruff check*"}, {"command": ["pytest*", "make test"]}])
    stage.edit()
    stage.run("ruff check .")
    assert "pytest" in stage.stop().reasons[0]
    stage.run("make test")
    assert stage.stop().silent


def test_a_change_that_no_tool_told_us_of_makes_it_stale() -> None:
    """The user's own editor, `sed -i`, a generator: seen by the measurement after it."""
    stage = green()
    stage.edit()
    stage.say("gates.measured", "", lines=1, base="main", covers={"tests": "d1"}, as_of=2)
    stage.run("pytest")
    proof = stage.log[-1].seq
    stage.say("gates.measured", "", lines=1, base="main", covers={"tests": "d2"}, as_of=proof)
    assert stage.stop().silent  # the change may have been before the run: in doubt nothing is refused
    stage.say("gates.measured", "", lines=1, base="main", covers={"tests": "d3"}, as_of=proof + 5)
    assert "a file it covers changed" in stage.stop().reasons[0]
    stage.run("pytest")
    assert stage.stop().silent


def test_facts_stay_bounded_and_what_fell_out_is_taken_as_changed() -> None:
    stage = green()
    stage.edit()
    stage.run("pytest")
    for n in range(70):
        stage.edit(f"docs/{n}.md")
    facts = next(doc for ref, doc in stage.simulation.docs.items() if ref.kind == "gates.facts")
    assert len(facts.edits) == 60
    assert "too much changed" in stage.stop().reasons[0]
    for n in range(60):
        stage.run(f"make target-{n}")
    facts = next(doc for ref, doc in stage.simulation.docs.items() if ref.kind == "gates.facts")
    assert len(facts.ran) == 40


def test_looking_around_does_not_push_a_proof_out() -> None:
    stage = green()
    stage.edit()
    stage.run("pytest")
    for n in range(100):
        stage.run(f"grep -rn word{n} src")
        stage.run(f"git log -{n}")
    assert stage.stop().silent


def test_content_that_could_not_be_read_is_unknown_since_it_was_last_known() -> None:
    stage = green()
    stage.edit()
    known = {"content": {"": "a", "src/**": "b"}}
    stage.run("pytest -q", **known)
    assert "unknown, since 40 s ago" in stage.later(40).stop().reasons[0]
    assert stage.stop(**known).silent


# ── where it ran, and how much ───────────────────────────────────────────────────────────────────────────────────────


def checked(stage: Stage, command: str, *, failed: int = 0, **check: Any) -> None:
    """A shell call with what the checks feature found out about it."""
    stage.run(command, code=int(bool(failed)))
    told = {"runner": "pytest", "dir": ".", "reach": ["."], "selection": "all", "passed": 3, "failed": failed}
    verdict = "failed" if failed else "passed"
    stage.say(
        "check.finished", "s-1", **{"of": stage.log[-1].seq, "command": command, "verdict": verdict, **told, **check}
    )


def test_a_run_in_a_folder_that_cannot_be_told_proves_nothing() -> None:
    stage = green(evidence={"command": "pytest*", "after_edit": ["src/**"]}, paths=["**"])
    stage.edit("src/a.py")
    checked(stage, 'cd "$DIR" && pytest -q', dir="?", reach=[])
    told = stage.stop()
    assert names(told) == ["tests"] and "it is unknown where the last" in told.reasons[0]
    checked(stage, "pytest -q", dir=".", reach=["."])
    assert stage.stop().silent


@pytest.mark.parametrize(
    ("covers", "reach", "proves"),
    [
        (["src/**"], ["sub"], False),
        (["src/**"], ["/elsewhere/copy"], False),
        (["src/**"], ["."], True),
        (["src/**"], [], True),
        (["backend/**"], ["backend"], True),
        (["backend/api/**"], ["backend"], True),
        (["**/*.py"], ["sub"], False),
        (["src/**", "lib/**"], ["src"], True),
        (["src/**"], ["src/part", "sub"], False),
    ],
)
def test_a_run_proves_what_lies_where_it_ran(covers: list[str], reach: list[str], proves: bool) -> None:
    stage = green(evidence={"command": "pytest*", "after_edit": covers}, paths=["**"])
    stage.edit(f"{covers[0].partition('/')[0].replace('**', 'src')}/api/a.py")
    checked(stage, "cd somewhere && pytest -q", dir="somewhere", reach=reach)
    assert stage.stop().silent is proves
    if not proves:
        checked(stage, "pytest -q")
        assert stage.stop().silent


def test_runs_in_several_folders_prove_together_and_none_heals_the_other() -> None:
    stage = green(evidence={"command": "pytest*", "after_edit": "services/**"}, paths=["**"])
    stage.edit("services/a/x.py")
    stage.edit("services/b/y.py")
    checked(stage, "cd services/b && pytest -q", dir="services/b", reach=["services/b"])
    assert "says nothing of services/a/x.py" in stage.stop().reasons[0]
    checked(stage, "cd services/a && pytest -q", dir="services/a", reach=["services/a"], failed=1)
    checked(stage, "cd services/b && pytest -q", dir="services/b", reach=["services/b"])
    assert stage.stop().verdict == "deny"
    checked(stage, "cd services/a && pytest -q", dir="services/a", reach=["services/a"])
    assert stage.stop().silent


def test_a_page_edited_beside_the_code_needs_no_run_of_its_own() -> None:
    stage = green(evidence={"command": "pytest*"}, paths=["**"])
    stage.edit("README.md")
    stage.edit("backend/a.py")
    checked(stage, "cd backend && pytest -q", dir="backend", reach=["backend"])
    assert stage.stop().silent


@pytest.mark.parametrize(
    ("operands", "heals"),
    [(["tests/test_b.py"], False), (["-k"], False), (["tests/test_a.py"], True), (["--lf"], True), ([], True)],
)
def test_a_failure_is_healed_only_by_a_run_that_includes_it(operands: list[str], heals: bool) -> None:
    stage = green()
    stage.edit()
    checked(stage, "pytest", failed=1, failures=["tests/test_a.py::test_one"])
    checked(stage, f"pytest -q {' '.join(operands)}", selection="part" if operands else "all", operands=operands)
    told = stage.stop()
    assert told.silent is heals
    assert heals or "a run of all tests failed on the same files" in told.reasons[0]
    stage.edit()
    checked(stage, "pytest -q tests/test_b.py", selection="part", operands=["tests/test_b.py"])
    assert stage.stop().silent, "on other content the failure is no longer known"


@pytest.mark.parametrize(("folder", "counts"), [("docs", False), (".", True), ("tests", True)])
def test_a_line_that_brings_its_proof_along_brings_it_for_the_folder_it_ran_in(folder: str, counts: bool) -> None:
    stage = green(paths=[], command_pattern=r"git\s+commit")
    stage.edit()
    assert stage.run(f"(cd {folder} && pytest -q) && git commit -am x").silent is counts


@pytest.mark.parametrize(("content", "holds"), [("c1", True), ("c2", False)])
def test_a_run_whose_end_is_not_known_takes_nothing_back_on_the_same_content(content: str, holds: bool) -> None:
    stage = green(evidence={"command": "pytest*"})
    stage.edit()
    checked(stage, "pytest -q", content={"": "c1"})
    checked(stage, "pytest -q | head -3", verdict="unknown", why="the summary was cut off", content={"": content})
    told = stage.stop(content={"": content})
    assert told.silent is holds
    assert holds or "proves nothing: the summary was cut off" in told.reasons[0]


def test_a_run_that_was_ended_early_is_no_failure_of_the_one_before() -> None:
    """Both have the same words; what the check says comes right behind the call."""
    stage = green(evidence={"command": "pytest*"})
    stage.edit()
    checked(stage, "pytest -q", content={"": "c1"})
    check = {"kind": "test", "runner": "pytest", "dir": ".", "selection": "all", "verdict": "unknown", "reach": ["."]}
    stage.run("timeout 1 pytest -q", code=124, judgement={"checks": [check]}, content={"": "c1"})
    of = stage.log[-1].seq
    del check["kind"]
    stage.say("check.finished", "s-1", of=of, command="timeout 1 pytest -q", content={"": "c1"}, **check)
    assert stage.stop(content={"": "c1"}).silent


LOOKS = [
    "git status", "git log -p", "git diff HEAD~1", "git branch -a", "git branch --show-current", "git branch -vv", "git stash list",
    "git remote -v", "git config --get user.name", "grep -rn x . | head", "cd src && ls 2>/dev/null", "find . -name '*.py'", "sed -n 1p a",
]  # fmt: skip
MAY_CHANGE = [
    "git stash", "git stash pop", "git branch -f main HEAD", "git branch -v -f main HEAD", "git branch -D topic", "git fetch . topic:main",
    "git diff --output=src/a.py", "git show --output=src/a.py HEAD", "GIT_EXTERNAL_DIFF='sh x' git diff", "git -c diff.external=x diff",
    "tree -o src/a.py", "rg --pre ./x y", "sort -o src/a.py b", "echo 1 > src/a.py", "sed -i s/a/b/ src/a.py", "ls | tee src/a.py",
]  # fmt: skip


@pytest.mark.parametrize("command", LOOKS)
def test_what_only_looks_needs_no_comparison_and_is_no_run(command: str) -> None:
    assert only_looks(command)
    stage = green()
    stage.edit()
    stage.run("pytest -q")
    stage.run(command)
    assert stage.stop().silent


@pytest.mark.parametrize("command", MAY_CHANGE)
def test_what_may_write_or_move_a_branch_does_not_only_look(command: str) -> None:
    """Where nobody looks at the files and branches after it, a change that it made would go unnoticed."""
    assert not only_looks(command)


@pytest.mark.parametrize("command", [*LOOKS, *MAY_CHANGE, "pytest -q", "cd src && pytest", "git log && pytest -q"])
def test_leaving_out_what_only_looks_leaves_out_no_run(command: str) -> None:
    """`with_run` asks it first, to save work: then nothing in the command may be a run."""
    commands = analyse_command(command, 0, "").commands
    assert not (only_looks(command) and any(is_real_run(one.words) for one in commands))


def suite(stage: Stage, passed: int, **more: Any) -> None:
    told = {"runner": "pytest", "verdict": "passed", "selection": "all", "command": "pytest", **more}
    stage.take("check.finished", of=len(stage.log), passed=passed, failed=0, **told)


def test_a_suite_that_lost_more_than_a_fifth_of_its_tests_proves_nothing() -> None:
    stage = green()
    stage.edit()
    suite(stage, 100)
    assert stage.stop().silent
    for fewer in (81, 79, 65):
        stage.edit()
        suite(stage, fewer)
    # 81 of 100 and 79 of 81 are the same suite; 65 of 79 is just so.
    assert stage.stop().silent
    for again in range(2):
        stage.edit()
        suite(stage, 50 + again)
        assert f"ran {50 + again} of the 65 tests" in stage.stop().reasons[0]
    stage.edit()
    suite(stage, 66)
    assert stage.stop().silent
    stage.edit()
    suite(stage, 1, branch="another")
    assert "tests that ran" not in str(stage.stop().reasons)
