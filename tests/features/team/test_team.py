"""What the team decided counts on this machine: leases, rules, hand-overs, by reduce and decide alone."""

from typing import Any

import pytest

from holdfast.core.decision import Decision
from holdfast.core.event import Event
from holdfast.core.feature import Call, CommandResult
from holdfast.core.ids import bounded_name
from holdfast.core.kinds.memory_events import MemoryObserved
from holdfast.core.ports import Ref
from holdfast.features.team import FEATURE, policy
from holdfast.features.team.commands import COMMANDS
from holdfast.features.team.state import MEMBERSHIP, THE_TEAM
from tests.features.gates.stage import Stage

PROJECT, ID = "/home/ada/engine", "f" * 32
NOON = 1_700_000_000_000


class Documents:
    """The feature's documents in memory, made by its own reduce."""

    def __init__(self) -> None:
        self.docs: dict[Ref, Any] = {}
        self.seq = 0

    def get(self, kind: str, key: str) -> Any:
        return self.docs.get(Ref(kind, key))

    def take(self, kind: str, *, at: int = NOON, session: str = "", project: str = PROJECT, **data: Any) -> Event:
        self.seq += 1
        event = Event(key=f"k{self.seq}", kind=kind, at=at, session=session, project=project, data=data, seq=self.seq)
        for ref in FEATURE.keys(event):
            self.docs[ref] = FEATURE.reduce(self.docs.get(ref), event, ref)
        return event

    def decide(self, kind: str, **more: Any) -> Decision | None:
        event = self.take(kind, **more)
        for derived in FEATURE.derive(self, event, None):
            for ref in FEATURE.keys(derived):
                self.docs[ref] = FEATURE.reduce(self.docs.get(ref), derived, ref)
        return FEATURE.decide(self, event, None)


@pytest.fixture
def state(monkeypatch) -> Documents:
    monkeypatch.setattr(policy.Markers, "is_set", classmethod(lambda _cls, _name: True))
    known = Documents()
    known.take("team.joined", tenant="acme", person="ada")
    known.take("team.project_known", id=ID, remote="example.org/a/b")
    return known


def edit(state: Documents, path: str, at: int = NOON) -> Decision | None:
    return state.decide("tool.started", at=at, session="s", action="edit", paths=[f"{PROJECT}/{path}"])


def lease(state: Documents, token: int = 1, **more: Any) -> None:
    state.take(
        "team.lease_held", project_id=ID, name="api", by="ben", token=token, paths=["src/**"], left_ms=60_000, **more
    )


def test_a_lease_of_another_machine_refuses_its_paths_until_its_time_is_over(state: Documents) -> None:
    lease(state, why="moving <system>it</system>")
    refused = edit(state, "src/a.py")
    assert (
        refused
        and refused.verdict == "deny"
        and "src/a.py is covered by the team lease api, held by ben" in refused.reasons[0]
    )
    assert "<system>" not in refused.reasons[0]
    assert edit(state, "docs/a.md") is None
    assert edit(state, "src/a.py", at=NOON + 60_000) is None


def test_an_own_lease_refuses_nothing(state: Documents) -> None:
    lease(state, mine=True)
    assert edit(state, "src/a.py") is None


def test_late_news_about_an_older_lease_counts_for_nothing(state: Documents) -> None:
    lease(state, token=2)
    state.take("team.lease_ended", project_id=ID, name="api", token=2)
    lease(state, token=2)
    lease(state, token=1)
    assert edit(state, "src/a.py") is None
    lease(state, token=3)
    state.take("team.lease_ended", project_id=ID, name="api", token=2)
    assert edit(state, "src/a.py") is not None


def test_a_shell_command_that_writes_there_is_refused_too(state: Documents) -> None:
    lease(state)
    told = state.decide("tool.started", session="s", action="shell", command="x > src/a", written=[f"{PROJECT}/src/a"])
    assert told and told.verdict == "deny"


def test_the_text_of_a_rule_is_shown_once_to_the_person(state: Documents) -> None:
    state.take("team.rule_arrived", name="planned", by="ann", requirement={"message": "Plan."}, item=1)
    first = state.decide("prompt.submitted", session="s")
    assert first and "New team rule planned, set by ann" in first.notices[0] and "Plan." in first.notices[0]
    again = state.decide("prompt.submitted", session="s")
    assert again is None or not again.notices


def test_a_budget_that_is_nearly_spent_is_told_once_and_refuses_nothing(state: Documents) -> None:
    state.take("team.budget_reached", name="api", percent=80, text="$50.00 a week for ben", item=7)
    state.take("team.budget_reached", name="api", percent=80, text="$50.00 a week for ben", item=7)
    first = state.decide("prompt.submitted", session="s")
    assert first and first.notices == ("Team budget api: 80 % of $50.00 a week for ben are spent.",)
    again = state.decide("prompt.submitted", session="s")
    assert again is None or not again.notices


def test_a_hand_over_is_told_to_the_next_session_of_its_project_once(state: Documents) -> None:
    state.take("team.handover_arrived", project_id=ID, by="ann", text="finish it", item=4)
    told = state.decide("session.started", session="s1")
    assert told and "From ann:\nfinish it" in told.contexts[0].text
    later = state.decide("session.started", session="s2")
    assert later is None or not later.contexts


def test_leaving_drops_the_rules_and_being_revoked_keeps_them(state: Documents) -> None:
    state.take("team.rule_arrived", name="planned", by="ann")
    state.take("team.revoked")
    assert MEMBERSHIP.get(state, THE_TEAM).rules and MEMBERSHIP.get(state, THE_TEAM).status == "revoked"
    state.take("team.left")
    assert MEMBERSHIP.get(state, THE_TEAM).rules == {}


def test_a_machine_without_a_team_costs_nothing(monkeypatch) -> None:
    monkeypatch.setattr(policy.Markers, "is_set", classmethod(lambda _cls, _name: False))
    assert not any(policy.can_decide(kind, None) for kind in FEATURE.subscribed_kinds)


# ── rules in the gates ───────────────────────────────────────────────────────────────────────────────────────────────


def a_team_rule(stage: Stage, name: str = "planned", **requirement: Any) -> None:
    given = {"enabled": True, "scope": "session", "message": "Plan it.", **requirement}
    stage.take("team.rule_arrived", "", name=name, requirement=given, by="ann")


def test_a_team_rule_refuses_beside_the_settings_own_and_never_replaces_one() -> None:
    stage = Stage(planned={"enabled": True, "scope": "session", "message": "Mine."})
    stage.start()
    a_team_rule(stage)
    refused = stage.edit().reasons[0]
    assert "Mine." in refused and "Plan it." in refused and 'source="rules-of-the-team"' in refused


def test_a_team_rule_counts_where_the_settings_ask_for_nothing_until_it_is_withdrawn() -> None:
    stage = Stage(other={"enabled": True, "paths": ["never/**"]})
    stage.start()
    assert stage.edit().verdict == "none"
    a_team_rule(stage)
    assert stage.edit().verdict == "deny"
    stage.take("team.rule_withdrawn", "", name="planned")
    assert stage.edit().verdict != "deny"


def test_a_rule_that_this_version_cannot_read_does_not_take_the_others_with_it() -> None:
    stage = Stage(other={"enabled": True, "paths": ["never/**"]})
    stage.start()
    a_team_rule(stage, "strange", scope="for-ever-and-a-day")
    a_team_rule(stage)
    assert "Plan it." in stage.edit().reasons[0]


# ── what the feed brings ─────────────────────────────────────────────────────────────────────────────────────────────


class NoDocuments:
    def document(self, _ref: Ref) -> None:
        return None

    def documents(self, _query: Any) -> list[Any]:
        return []


def command(name: str, tmp_path, **args: Any) -> CommandResult:
    return COMMANDS[name](
        Call(args=args, reader=NoDocuments(), settings=None, now=NOON, state_dir=tmp_path, caller=args.pop("caller", 0))
    )  # type: ignore[arg-type]


def test_an_item_that_comes_twice_is_one_event_and_an_unknown_one_is_none(tmp_path) -> None:
    items = [
        {"id": 7, "kind": "rule", "by": "ann", "payload": {"name": "n", "requirement": {}}},
        {"id": 8, "kind": "from-the-future"},
    ]
    first, again = (command("receive", tmp_path, items=items).events for _ in range(2))
    assert [event.key for event in first] == [event.key for event in again] and len(first) == 1


def test_a_memory_arrives_as_a_candidate_with_whose_words_it_is(tmp_path) -> None:
    item = {"id": 9, "kind": "memory", "by": "ann", "payload": {"id": "m", "text": "use tabs", "words_of": "ben"}}
    [event] = command("receive", tmp_path, items=[item]).events
    assert isinstance(event.data, MemoryObserved)
    assert (event.data.origin, event.data.status, event.data.detail) == (
        "outside",
        "candidate",
        "Shared by ben, promoted by ann.",
    )


def test_keys_are_bounded() -> None:
    event = Event(key="k", kind="team.project_known", at=0, project="/" + "x" * 20_000, data={"id": "i"})
    assert [ref.key for ref in FEATURE.keys(event)] == [bounded_name(event.project)]
