"""Kinds of the feature `team`: what the team's server sent to this machine."""

# `item` is its number in the team's feed.

from holdfast.core.kinds.base import JsonObject, Payload, event_kind


@event_kind("team.joined")
class TeamJoined(Payload):
    """A person joined this machine to a team; `level` is what it shares."""

    url: str = ""
    tenant: str = ""
    person: str = ""
    role: str = ""
    level: str = ""


@event_kind("team.left")
class TeamLeft(Payload):
    """A person took this machine out of its team; team rules no longer count here."""


@event_kind("team.project_known")
class TeamProjectKnown(Payload):
    """The identity of a local project: the same in every clone of its repository."""

    id: str = ""
    remote: str = ""


class TeamItemPayload(Payload):
    item: int = 0
    by: str = ""
    """The person whose act it is."""


@event_kind("team.revoked")
class TeamRevoked(TeamItemPayload):
    """An admin revoked this machine: nothing is sent any more. What the team decided before still counts."""


@event_kind("team.words_withdrawn")
class TeamWordsWithdrawn(TeamItemPayload):
    """Somebody erased what they had shared with the team: hand-overs and leases by their numbers in the feed, memories by id."""

    project_id: str = ""
    numbers: list[int] = []
    memories: list[str] = []


@event_kind("team.rule_arrived")
class TeamRuleArrived(TeamItemPayload):
    """A requirement of the team, in addition to those of the settings."""

    name: str = ""
    requirement: JsonObject = {}


@event_kind("team.rule_withdrawn")
class TeamRuleWithdrawn(TeamItemPayload):
    """A lead of the team withdrew a requirement."""

    name: str = ""


@event_kind("team.rules_shown")
class TeamRulesShown(Payload):
    """The text of new team rules was shown to the person; `by` is the key of the event that showed it."""

    names: list[str] = []
    by: str = ""


@event_kind("team.budget_reached")
class TeamBudgetReached(TeamItemPayload):
    """So many percent of a weekly budget of the team are spent; `text` says which."""

    name: str = ""
    percent: int = 0
    text: str = ""


@event_kind("team.budgets_shown")
class TeamBudgetsShown(Payload):
    """News about budgets was shown to the person; `by` is the key of the event that showed it."""

    budgets: list[int] = []
    """Their numbers in the feed."""
    by: str = ""


class TeamProjectPayload(TeamItemPayload):
    project_id: str = ""


@event_kind("team.lease_held")
class TeamLeaseHeld(TeamProjectPayload):
    """Somebody holds a lease; `left_ms` is how long at least, unless it is renewed."""

    name: str = ""
    machine: str = ""
    session: str = ""
    token: int = 0
    paths: list[str] = []
    left_ms: int = 0
    why: str = ""
    mine: bool = False
    """This machine holds it."""


@event_kind("team.lease_ended")
class TeamLeaseEnded(TeamProjectPayload):
    """A lease was given back."""

    name: str = ""
    token: int = 0


@event_kind("team.handover_arrived")
class TeamHandoverArrived(TeamProjectPayload):
    """Another person handed work over to this machine's person."""

    text: str = ""
    origin: str = ""
    """The session it comes from."""


@event_kind("team.handover_told")
class TeamHandoverTold(Payload):
    """A session received the hand-over."""

    project_id: str = ""
    handovers: list[int] = []
    """Their numbers in the feed."""
