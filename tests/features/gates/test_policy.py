"""What is refused, what is not, and that no refusal ever loops."""

import pytest

from holdfast.features.gates.settings import GateSettings
from tests.features.gates.stage import PROJECT, Stage, names, rules

PLAN = {"commit_plan": {}, "adr_reviewed": {}, "tdd_planned": {}, "solid_reviewed": {}}
ASKED_AT_THE_END = {name: {"check": "stop"} for name in PLAN}
REVIEW = {"pre_commit_review": {}}
SIZE = {"branch_size_limit": {}}


def test_with_nothing_configured_nothing_is_ever_said() -> None:
    stage = Stage()
    assert stage.start().silent
    assert stage.edit().silent
    assert stage.stop().silent


def test_one_refusal_names_all_that_is_open_and_what_resolves_each() -> None:
    """S2-5, O2-c."""
    told = Stage(**PLAN).edit()
    assert told.verdict == "deny"
    assert names(told) == list(PLAN)
    (text,) = told.reasons
    assert text.count("/arch-review") == 4
    assert "holdfast gate satisfy commit_plan adr_reviewed tdd_planned solid_reviewed" in text
    assert len(text) < 600


def test_parallel_refusals_within_five_seconds_are_one_message() -> None:
    """O2-h, S2-19: denied all the same, but said once."""
    stage = Stage(**PLAN)
    first, second = stage.edit("a.py"), stage.later(1).edit("b.py")
    assert (first.verdict, second.verdict) == ("deny", "deny")
    assert len(second.reasons[0]) < len(first.reasons[0]) / 2
    assert stage.later(5).edit("c.py").reasons == first.reasons


def test_one_skill_satisfies_all_four_for_this_session() -> None:
    """S2-5, S2-6."""
    stage = Stage(**PLAN)
    stage.skill("arch-review")
    assert stage.edit().silent
    assert names(stage.edit(session="s-2")) == list(PLAN)


@pytest.mark.parametrize("skill", ["plan-review", "requirements-framework:arch-review"])
def test_the_other_names_of_that_skill_count_too(skill: str) -> None:
    stage = Stage(**PLAN)
    stage.skill(skill)
    assert stage.edit().silent


def test_a_skill_that_failed_satisfies_nothing() -> None:
    stage = Stage(**PLAN)
    stage.skill("arch-review", ok=False)
    assert stage.edit().verdict == "deny"


def test_a_typed_slash_command_is_the_skill() -> None:
    stage = Stage(**PLAN)
    stage.take("prompt.expanded", command="arch-review", prompt="/arch-review")
    assert stage.edit().silent


def test_plan_files_and_our_own_commands_are_exempt() -> None:
    """O2-g: no chicken and egg."""
    stage = Stage(commit_plan={"trigger_tools": ["edit", "Bash"]})
    assert stage.edit("/home/ada/.claude/plans/p.md").silent
    assert stage.run("holdfast gate satisfy commit_plan").silent
    assert stage.run("holdfast gate status; touch x").verdict == "deny"
    assert stage.edit("src/a.py").verdict == "deny"


def test_the_command_that_is_the_proof_is_not_refused_for_want_of_it() -> None:
    proof = {"type": "evidence", "trigger_tools": ["Bash"], "check": "tool", "evidence": {"command": "pytest*"}}
    stage = Stage(tests=proof)
    assert stage.run("make deploy").verdict == "deny"
    assert stage.run("pytest -q").silent
    assert stage.run("make deploy").silent


def test_tools_by_pattern_and_paths() -> None:
    stage = Stage(
        push={"command_pattern": r"git\s+push"},
        api={"trigger_tools": ["Edit"], "paths": ["api/**"], "except_paths": ["api/docs/**"]},
        mcp={"trigger_tools": ["mcp__db__write"]},
    )
    assert names(stage.run("cd x && git   push")) == ["push"]
    assert stage.run("git pull").silent
    assert names(stage.edit("api/a.py")) == ["api"]
    assert stage.edit("api/docs/a.md").silent
    assert stage.edit("web/a.py").silent
    assert names(stage.take("tool.started", tool="mcp__db__write", action="mcp")) == ["mcp"]


def test_claudes_names_hold_in_every_agent_by_what_the_tool_does() -> None:
    stage = Stage(plan={"trigger_tools": ["Edit"]})
    codex = {"tool": "apply_patch", "agent": "codex", "action": "edit", "paths": [f"{PROJECT}/a.py"]}
    assert names(stage.take("tool.started", **codex)) == ["plan"]
    assert stage.take("tool.started", tool="Write", action="edit", paths=["/x"]).silent  # in Claude Code, Edit is Edit


def test_stop_is_refused_only_for_what_was_triggered() -> None:
    """S2-10, S2-13: a research-only session is never blocked."""
    stage = Stage(**ASKED_AT_THE_END)
    stage.start()
    stage.run("ls")
    stage.take("tool.started", tool="Read", action="read", paths=[f"{PROJECT}/a"])
    assert stage.stop().silent
    stage.edit()
    assert names(stage.stop()) == list(PLAN)
    stage.skill("arch-review")
    assert stage.stop().silent


def test_what_was_refused_asks_for_nothing_at_the_end() -> None:
    stage = Stage(**PLAN)
    assert stage.edit().verdict == "deny"
    assert stage.stop().silent


def test_a_stop_is_let_go_after_three_refusals_without_progress() -> None:
    """H2, pain 11: tools that run are no progress."""
    stage = Stage(**ASKED_AT_THE_END)
    stage.edit()
    said = []
    for _ in range(3):
        said.append(stage.stop(again=bool(said)))
        stage.run("ls")
    assert [one.verdict for one in said] == ["deny"] * 3
    assert "the next stop is let through" in said[-1].reasons[0]
    last = stage.stop(again=True)
    assert last.verdict == "none"
    assert "Allowed to stop after 3 refusals" in last.notices[0]
    assert last.details[0]["gate"] == "let_go"
    assert stage.stop(again=True).verdict == "none"


def test_progress_and_a_person_begin_the_count_anew() -> None:
    stage = Stage(one={"auto_resolve_skill": "a", "check": "stop"}, two={"auto_resolve_skill": "b", "check": "stop"})
    stage.edit()
    for _ in range(3):
        assert stage.stop().verdict == "deny"
    stage.skill("a")
    assert [stage.stop().verdict for _ in range(4)] == ["deny", "deny", "deny", "none"]
    stage.prompt(synthetic=True)
    assert stage.stop().verdict == "none"
    stage.prompt()
    assert stage.stop().verdict == "deny"


def test_somebody_elses_refused_stop_is_not_made_longer() -> None:
    """S2-10 `stop_hook_active`: with no refusal of ours, we return at once."""
    stage = Stage(**PLAN)
    stage.edit()
    assert stage.stop(again=True).silent


def test_the_seeds_single_refusal_is_a_setting() -> None:
    settings = GateSettings.of(
        {"requirements": {"commit_plan": {"check": "stop"}}, "hooks": {"stop": {"max_refusals": 1}}}
    )
    stage = Stage(settings)
    stage.edit()
    assert [stage.stop().verdict, stage.stop(again=True).verdict] == ["deny", "none"]


def test_stop_checks_can_be_switched_off_and_widened() -> None:
    def after_commit(stop: dict) -> str:
        stage = Stage(
            GateSettings.of({"requirements": {"pre_commit_review": {"check": "stop"}}, "hooks": {"stop": stop}})
        )
        stage.run("git commit -m x")
        return stage.stop().verdict

    assert after_commit({}) == "none"
    assert after_commit({"verify_scopes": ["session", "single_use"]}) == "deny"
    assert after_commit({"verify_scopes": ["single_use"], "verify_requirements": False}) == "none"


def test_stop_only_never_refuses_a_tool() -> None:
    stage = Stage(notes={"type": "stop_only", "auto_resolve_skill": "write-notes"})
    assert stage.edit().silent
    assert names(stage.stop()) == ["notes"]
    stage.skill("write-notes")
    assert stage.stop().silent


def test_a_protected_branch_is_a_condition_of_the_moment() -> None:
    stage = Stage(protected_branch={})
    stage.branch = "main"
    assert names(stage.edit()) == ["protected_branch"]
    stage.branch = "feature/x"
    assert stage.edit().silent


def test_a_single_session_guard_lets_go_when_the_other_has_gone() -> None:
    """S2-2."""
    stage = Stage(single_session_per_project={})
    stage.start("s-1")
    assert stage.edit(session="s-1").silent
    stage.start("s-2")
    assert "s-1" in stage.edit(session="s-2").reasons[0]
    stage.take("session.lost", "s-1")
    assert stage.edit(session="s-2").silent


def test_branch_size_warns_then_refuses_and_an_approval_lets_pass_until_it_ends() -> None:
    """S2-15, S2-16, O2-b."""
    stage = Stage(**SIZE)

    def measured(lines: int) -> None:
        stage.say("gates.measured", "", lines=lines, base="main", covers={}, as_of=0)

    assert stage.edit().silent  # not measured: unknown is never a refusal
    measured(249)
    assert stage.edit().silent
    measured(260)
    assert "260 changed lines" in stage.edit().contexts[0].text
    assert stage.edit().silent  # warned once
    measured(320)
    assert stage.edit().contexts
    measured(400)
    assert "limit 400" in stage.edit().reasons[0]
    stage.say("gates.approved", requirements=[{"name": "branch_size_limit", "until": stage.now + 3_600_000}])
    assert stage.edit().verdict == "none"
    assert stage.later(3601).edit().verdict == "deny"


def test_pauses_hold_where_and_while_they_were_asked_for() -> None:
    stage = Stage(**PLAN)
    stage.say("gates.paused", where="session:s-1", until=stage.now + 60_000)
    assert stage.edit().silent
    assert stage.edit(session="s-2").verdict == "deny"
    assert stage.later(61).edit().verdict == "deny"
    stage.say("gates.paused", where="everywhere", until=0)
    assert stage.later(10_000).edit(session="s-2").silent
    stage.say("gates.resumed", where="everywhere")
    assert stage.edit(session="s-2").verdict == "deny"


def test_the_environment_variable_pauses() -> None:
    """O2-g: it reaches us as `paused` in the event; what was done meanwhile is not held against the session later."""
    stage = Stage(**PLAN)
    assert stage.edit(paused=True).silent
    assert stage.stop().silent


def test_what_is_wrong_with_the_settings_is_told_once_per_session_and_change() -> None:
    stage = Stage(**PLAN)
    stage.settings.__dict__["notices"] = ("file:1: wrong",)
    assert stage.start().notices == ("Gates: file:1: wrong",)
    assert stage.prompt().notices == ()
    stage.say("gates.looked", "", missing=["arch-review"])
    assert stage.prompt().notices == ("Gates: no skill named arch-review was found.",)
    assert stage.prompt().notices == ()
    assert len(stage.start("s-2").notices) == 2


def test_the_start_of_a_session_says_what_is_open() -> None:
    """S2-9."""
    told = Stage(**PLAN).start()
    assert "commit_plan" in told.contexts[0].text
    quiet = GateSettings.of(
        {"requirements": PLAN, "hooks": {"session_start": {"inject_context": False}}},
    )
    assert Stage(quiet).start().silent


def test_messages_of_the_project_are_given_with_their_words_filled_in() -> None:
    text = "## Blocked: x\n\n**Execute**: `/{auto_resolve_skill}` on {branch} {unknown}"
    one = Stage(x={"message": text, "auto_resolve_skill": "look"}).edit().reasons[0]
    assert "`/look` on feature/test {unknown}" in one
    several = Stage(x={"message": text, "auto_resolve_skill": "look"}, y={}).edit().reasons[0]
    assert "## Blocked" not in several


def test_a_disabled_requirement_is_none() -> None:
    assert Stage(commit_plan={"enabled": False}).edit().silent
    assert Stage(GateSettings.of({"enabled": False, "requirements": PLAN})).edit().silent


def test_odd_events_are_never_an_error() -> None:
    stage = Stage(**PLAN, push={"command_pattern": "git push"}, paths={"paths": ["src/**"]})
    for data in ({}, {"action": "edit"}, {"action": "shell"}, {"action": "edit", "paths": []}, {"action": None}):
        stage.take("tool.started", tool="Edit", **data)
        stage.take("tool.finished", tool="Edit", **data)
    stage.take("turn.ended", "")
    assert rules().rules == ()
