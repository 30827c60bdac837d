"""Whatever happens in whatever order: sessions are apart, decisions repeat, documents stay small and are the log's."""

from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.core.decision import Delivery
from holdfast.core.event import Event
from holdfast.core.replay import Rebuild
from holdfast.core.state import encode
from holdfast.features.gates import FEATURE
from holdfast.features.gates.views import Simulation
from holdfast.stores.sqlite import SqliteStore
from tests.factories import an_engine
from tests.features.gates.stage import PROJECT, REPO, Stage, rules

SESSIONS, BRANCHES = ("s-1", "s-2", "s-3"), ("feature/a", "feature-a")
SCOPES = {
    "in_session": {"scope": "session", "auto_resolve_skill": "plan"},
    "on_branch": {"scope": "branch", "auto_resolve_skill": "plan"},
    "for_ever": {"scope": "permanent", "auto_resolve_skill": "licence"},
    "each_commit": {"scope": "single_use", "auto_resolve_skill": "review", "command_pattern": r"git\s+commit"},
}
ON_EDIT = ("in_session", "on_branch", "for_ever")
sessions, branches = st.sampled_from(SESSIONS), st.sampled_from(BRANCHES)


class Scopes(RuleBasedStateMachine):
    """A model in plain sets beside the real thing: the seed's table of scopes, whatever the order of events."""

    @initialize()
    def begin(self) -> None:
        self.stage = Stage(**SCOPES)
        self.mine: set[tuple[str, str, str]] = set()
        self.shared: set[tuple[str, str]] = set()

    @rule(session=sessions, branch=branches, skill=st.sampled_from(["plan", "licence", "review", "other"]))
    def skill(self, session: str, branch: str, skill: str) -> None:
        self.stage.branch = branch
        self.stage.skill(skill, session=session)
        for name, spec in SCOPES.items():
            if spec["auto_resolve_skill"] == skill:
                if spec["scope"] in ("branch", "permanent"):
                    self.shared.add((branch, name))
                else:
                    self.mine.add((branch, session, name))

    @rule(session=sessions, branch=branches)
    def edit(self, session: str, branch: str) -> None:
        self.stage.branch = branch
        told = self.stage.later(6).edit(session=session)
        open_ = [name for name in ON_EDIT if not self.satisfied(branch, session, name)]
        assert [d["name"] for detail in told.details for d in detail["requirements"]] == open_
        assert told.verdict == ("deny" if open_ else "none")

    @rule(session=sessions, branch=branches, works=st.booleans())
    def commit(self, session: str, branch: str, works: bool) -> None:
        self.stage.branch = branch
        told = self.stage.later(6).run("git commit -m x", code=0 if works else 1, session=session)
        allowed = self.satisfied(branch, session, "each_commit")
        assert told.verdict == ("none" if allowed else "deny")
        if allowed and works:
            self.mine.discard((branch, session, "each_commit"))

    @rule(session=sessions, branch=branches, name=st.sampled_from(sorted(SCOPES)), everyone=st.booleans())
    def clear(self, session: str, branch: str, name: str, everyone: bool) -> None:
        self.stage.branch = branch
        self.stage.say("gates.cleared", session, requirements=[name], everyone=everyone, method="person")
        self.mine.discard((branch, session, name))
        if everyone:
            self.shared.discard((branch, name))
            self.mine = {one for one in self.mine if (one[0], one[2]) != (branch, name)}

    @rule(session=sessions, branch=branches, source=st.sampled_from(["startup", "resume", "clear", "compact"]))
    def start(self, session: str, branch: str, source: str) -> None:
        self.stage.branch = branch
        self.stage.take("session.started", session, source=source)

    @rule(session=sessions, branch=branches)
    def end(self, session: str, branch: str) -> None:
        self.stage.branch = branch
        self.stage.end(session)

    @precondition(lambda self: hasattr(self, "stage"))
    @rule(session=sessions)
    def stop_never_loops(self, session: str) -> None:
        verdicts = [self.stage.stop(session, again=n > 0).verdict for n in range(5)]
        assert verdicts.count("deny") <= 3
        assert verdicts[-1] == "none"
        self.stage.prompt(session)

    @invariant()
    def documents_are_small(self) -> None:
        if hasattr(self, "stage"):
            assert all(len(encode(doc)) < 20_000 for doc in self.stage.simulation.docs.values())

    def satisfied(self, branch: str, session: str, name: str) -> bool:
        return (branch, name) in self.shared or (branch, session, name) in self.mine


Scopes.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestScopes = Scopes.TestCase


kinds = st.sampled_from(
    ["session.started", "session.ended", "session.lost", "prompt.submitted", "prompt.expanded", "tool.started",
     "tool.finished", "tool.failed", "turn.ended", "gates.measured", "gates.satisfied", "gates.cleared", "uat.ended"]
)  # fmt: skip
odd = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=5), st.lists(st.text(max_size=3), max_size=2)
)
values = {
    "action": st.sampled_from(["edit", "shell", "skill", "read", "", None]),
    "command": st.sampled_from(
        ["pytest -q", "git commit -m x", "git push", "ls", "pytest | tail", "holdfast gate list"]
    ),
    "paths": st.lists(st.sampled_from([f"{PROJECT}/src/a.py", f"{PROJECT}/docs/b.md", "/tmp/x", ""]), max_size=2),
    "skill": st.sampled_from(["plan", "review", "licence"]),
    "tool": odd,
    "exit_code": st.sampled_from([0, 1, None]),
    "ok": st.booleans(),
    "again": st.booleans(),
    "source": st.sampled_from(["startup", "resume"]),
    "covers": st.dictionaries(st.sampled_from(["green"]), st.sampled_from(["d1", "d2"]), max_size=1),
    "lines": st.integers(0, 900),
    "scenario": odd,
    "branch": st.sampled_from([*BRANCHES, "main"]),
    "repo": st.just(REPO),
}
happenings = st.lists(
    st.tuples(kinds, st.sampled_from([*SESSIONS, ""]), st.fixed_dictionaries({}, optional=values)),
    min_size=1,
    max_size=40,
)
RULES = rules(
    **SCOPES,
    green={"type": "evidence", "evidence": {"command": "pytest*", "after_edit": "src/**"}},
    branch_size_limit={},
    protected_branch={},
    single_session_per_project={},
)


def log_of(happened: list[tuple[str, str, dict[str, Any]]]) -> list[Event]:
    tools = {"edit": "Edit", "shell": "Bash", "skill": "Skill"}
    return [
        Event(key=f"k{n}", seq=n, kind=kind, at=n * 1000, session=session, project=PROJECT, agent="claude-code",
              tool=tools.get(data.get("action") or "", ""), data=data)
        for n, (kind, session, data) in enumerate(happened, 1)
    ]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(happenings)
def test_replay_with_the_same_settings_gives_the_same_decisions(happened: list[Any]) -> None:
    log = log_of(happened)
    first, second = Simulation(RULES), Simulation(RULES)
    assert [first.apply_event(event) for event in log] == [second.apply_event(event) for event in log]
    assert first.docs == second.docs


@settings(max_examples=150, deadline=None)
@given(happenings)
def test_what_one_session_satisfies_for_itself_no_other_ever_sees(happened: list[Any]) -> None:
    """Take a session's own satisfactions away: for all the others nothing changes."""
    log = [e for e in log_of(happened) if e.kind != "gates.cleared" and e.kind != "gates.satisfied"]
    only = rules(in_session=SCOPES["in_session"], each_commit=SCOPES["each_commit"])
    with_, without = Simulation(only), Simulation(only)
    for event in log:
        told = with_.apply_event(event)
        if event.session == "s-1" and event.data.get("skill") and event.kind in ("tool.finished", "prompt.expanded"):
            continue
        other = without.apply_event(event)
        if event.session != "s-1":
            assert told == other


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(happened=happenings)
def test_state_is_replay_of_the_log_on_a_real_store(happened: list[Any], tmp_path_factory: Any) -> None:
    """P5: through the real engine, with what followed and what was decided on record."""
    store = SqliteStore(Path(tmp_path_factory.mktemp("log")) / "log.db")
    log = {event.key: msgspec.structs.replace(event, seq=0) for event in log_of(happened)}
    errors: list[Exception] = []
    engine = an_engine(store, FEATURE, read=lambda d: log[d.key], settings=lambda _: {"gates": RULES},
                       report=lambda _f, _e, error: errors.append(error))  # fmt: skip
    for key in log:
        engine.handle([Delivery(key=key, agent="claude-code", event="x", mode="ask")])
    reader = store.reader()
    work = Rebuild([FEATURE], reader)
    work.read()
    assert work.differences() == []
    assert errors == []
    reader.close()
    store.close()


def test_an_error_in_a_rule_is_reported_and_means_no_opinion(tmp_path: Path) -> None:
    """P1, C7: fail open."""
    store = SqliteStore(tmp_path / "log.db")
    event = log_of([("tool.started", "s-1", {"action": "edit", "paths": ["x"]})])[0]
    reported: list[Exception] = []
    engine = an_engine(store, FEATURE, read=lambda _: event, settings=lambda _: {"gates": object()},
                       report=lambda _f, _e, error: reported.append(error))  # fmt: skip
    (outcome,) = engine.handle([Delivery(key="k1", agent="claude-code", event="x", mode="ask")])
    assert outcome.decision.verdict == "none"
    assert reported
    store.close()
