"""What this machine knows of its team: membership, rules, and per project leases and hand-overs."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from holdfast.core.document import DocumentType
from holdfast.core.event import Event
from holdfast.core.ids import bounded_name
from holdfast.core.kinds import TEAM_KINDS, JsonObject, team_events
from holdfast.core.ports import Doc, Ref

MOST_HANDOVERS, MOST_LEASES, MOST_BUDGETS = 20, 200, 20
replace = msgspec.structs.replace


class TeamRule(msgspec.Struct, frozen=True, omit_defaults=True):
    by: str = ""
    at: int = 0
    requirement: JsonObject = {}
    shown_by: str = ""
    """The key of the event at which its text was shown."""


class BudgetNews(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    item: int
    name: str = ""
    percent: int = 0
    text: str = ""
    shown_by: str = ""


class Membership(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    status: str = ""
    """joined, left or revoked."""
    url: str = ""
    tenant: str = ""
    person: str = ""
    role: str = ""
    level: str = ""
    at: int = 0
    rules: dict[str, TeamRule] = {}
    budgets: list[BudgetNews] = []


class KnownLease(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A lease as this machine knows it; `until` is by the local clock, counted from its arrival."""

    person: str = ""
    session: str = ""
    token: int = 0
    paths: list[str] = []
    until: int = 0
    why: str = ""
    mine: bool = False
    since: int = 0
    """When it arrived, by the same clock: an earlier time now means that the clock was set back."""
    item: int = 0


class Handover(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    item: int
    by: str = ""
    text: str = ""
    at: int = 0
    told: str = ""
    """The session it was shown to."""


class SharedState(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    leases: dict[str, KnownLease] = {}
    ended: dict[str, int] = {}
    """The newest expired token by name: news about an older one is late."""
    handovers: list[Handover] = []
    at: int = 0


class LocalProject(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    id: str = ""
    remote: str = ""
    at: int = 0


MEMBERSHIP = DocumentType("team", Membership)
SHARED = DocumentType("team.shared", SharedState)
LOCAL_PROJECT = DocumentType("team.project", LocalProject)
DOCUMENTS = (MEMBERSHIP, SHARED, LOCAL_PROJECT)
THE_TEAM = "membership"
NEWS_KINDS = frozenset(("session.started", "prompt.submitted"))
SUBSCRIBED_KINDS = frozenset(TEAM_KINDS) | NEWS_KINDS | {"tool.started"}
_OF_MEMBERSHIP = (
    team_events.TeamJoined, team_events.TeamLeft, team_events.TeamRevoked, team_events.TeamRuleArrived,
    team_events.TeamRuleWithdrawn, team_events.TeamRulesShown, team_events.TeamBudgetReached,
    team_events.TeamBudgetsShown,
)  # fmt: skip


def keys(event: Event) -> Iterable[Ref]:
    data = event.data
    if isinstance(data, _OF_MEMBERSHIP):
        return (MEMBERSHIP.ref(THE_TEAM),)
    if isinstance(data, team_events.TeamProjectPayload | team_events.TeamHandoverTold | team_events.TeamWordsWithdrawn):
        return (SHARED.ref(bounded_name(data.project_id)),)
    if isinstance(data, team_events.TeamProjectKnown):
        return (LOCAL_PROJECT.ref(bounded_name(event.project)),)
    return ()


def reduce(doc: Doc | None, event: Event, ref: Ref) -> Doc | None:
    if ref.kind == MEMBERSHIP.kind:
        return _reduce_membership(doc or Membership(), event)
    if ref.kind == SHARED.kind:
        step = _SHARED_STEPS.get(type(event.data))
        before = doc or SharedState()
        return step(before, event.data, event) if step else before
    data = event.data
    return (
        LocalProject(id=data.id, remote=data.remote, at=event.at)
        if isinstance(data, team_events.TeamProjectKnown)
        else doc
    )


def _reduce_membership(doc: Membership, event: Event) -> Membership:
    data = event.data
    if isinstance(data, team_events.TeamJoined):
        return Membership(
            status="joined", url=data.url, tenant=data.tenant, person=data.person, role=data.role, level=data.level,
            # Joining the same tenant again keeps its rules and what was shown of them.
            at=event.at, rules=doc.rules if doc.tenant == data.tenant else {},
        )  # fmt: skip
    if isinstance(data, team_events.TeamLeft):
        return replace(doc, status="left", rules={}, at=event.at)
    if isinstance(data, team_events.TeamRevoked):
        return replace(doc, status="revoked", at=event.at)
    if isinstance(data, team_events.TeamBudgetReached | team_events.TeamBudgetsShown):
        return replace(doc, budgets=_reduce_budgets(doc.budgets, data), at=event.at)
    return replace(doc, rules=_reduce_rules(doc.rules, event), at=event.at)


def _reduce_budgets(
    known: list[BudgetNews], data: team_events.TeamBudgetReached | team_events.TeamBudgetsShown
) -> list[BudgetNews]:
    if isinstance(data, team_events.TeamBudgetsShown):
        return [replace(one, shown_by=data.by) if one.item in data.budgets else one for one in known]
    news = BudgetNews(item=data.item, name=data.name, percent=data.percent, text=data.text)
    return [*(one for one in known if one.item != data.item), news][-MOST_BUDGETS:]


def _reduce_rules(rules: dict[str, TeamRule], event: Event) -> dict[str, TeamRule]:
    data = event.data
    if isinstance(data, team_events.TeamRuleArrived):
        return {**rules, data.name: TeamRule(data.by, event.at, data.requirement)}
    if isinstance(data, team_events.TeamRulesShown):
        shown = {name: replace(rules[name], shown_by=data.by) for name in data.names if name in rules}
        return {**rules, **shown}
    gone = data.name if isinstance(data, team_events.TeamRuleWithdrawn) else ""
    return {name: rule for name, rule in rules.items() if name != gone}


def _lease_ended(doc: SharedState, data: team_events.TeamLeaseEnded, event: Event) -> SharedState:
    # Late news of an older lease does not end a newer one.
    left = {name: one for name, one in doc.leases.items() if name != data.name or one.token > data.token}
    ended = {**doc.ended, data.name: max(data.token, doc.ended.get(data.name, 0))}
    return replace(doc, leases=left, ended=ended, at=event.at)


def _handover_arrived(doc: SharedState, data: team_events.TeamHandoverArrived, event: Event) -> SharedState:
    arrived = Handover(item=data.item, by=data.by, text=data.text, at=event.at)
    return replace(doc, handovers=[*doc.handovers, arrived][-MOST_HANDOVERS:], at=event.at)


def _words_withdrawn(doc: SharedState, data: team_events.TeamWordsWithdrawn, event: Event) -> SharedState:
    gone = set(data.numbers)
    handovers = [one for one in doc.handovers if one.item not in gone]
    leases = {name: one for name, one in doc.leases.items() if one.item not in gone}
    return replace(doc, handovers=handovers, leases=leases, at=event.at)


def _handover_told(doc: SharedState, data: team_events.TeamHandoverTold, event: Event) -> SharedState:
    handovers = [replace(one, told=event.session) if one.item in data.handovers else one for one in doc.handovers]
    return replace(doc, handovers=handovers, at=event.at)


def _lease_held(doc: SharedState, data: team_events.TeamLeaseHeld, event: Event) -> SharedState:
    at = event.at
    current_lease = doc.leases.get(data.name)
    # Feed items may arrive late: a higher token is always the newer lease.
    if data.token <= doc.ended.get(data.name, 0) or (current_lease and current_lease.token > data.token):
        return doc
    held = KnownLease(
        person=data.by, session=data.session, token=data.token, paths=data.paths, until=at + data.left_ms,
        why=data.why, mine=data.mine, since=at, item=data.item,
    )  # fmt: skip
    # Expired leases are dropped here, because nothing reports their end.
    current = {name: one for name, one in doc.leases.items() if one.until > at and name != data.name}
    return replace(doc, leases=dict([*current.items(), (data.name, held)][-MOST_LEASES:]), at=at)


_SHARED_STEPS: dict[type, Callable[[SharedState, Any, Event], SharedState]] = {
    team_events.TeamLeaseHeld: _lease_held,
    team_events.TeamLeaseEnded: _lease_ended,
    team_events.TeamHandoverArrived: _handover_arrived,
    team_events.TeamWordsWithdrawn: _words_withdrawn,
    team_events.TeamHandoverTold: _handover_told,
}
