"""Kinds of the feature `gates`: what was asked for, satisfied, refused to whom, and got round."""

from collections.abc import Iterable
from typing import Any

from holdfast.core.kinds.base import JsonObject, Payload, Record, event_kind

LONGEST_NAME = 100


class GatePayload(Payload):
    """Where it holds: a branch of a repository, or a folder outside of git."""

    branch: str = ""
    repo: str = ""
    of: int = 0
    method: str = ""
    """Who or what did it: person, agent, skill, carry_over, used, session_end."""


@event_kind("gates.triggered")
class GatesTriggered(GatePayload):
    """A session did for the first time what a requirement is about."""

    requirements: list[str] = []
    tool: str = ""


class SatisfiedRequirement(Record):
    name: str = ""
    scope: str = "session"
    until: int = 0
    """When it ends by itself, in ms; 0: as its scope says."""


def requirement_names(listed: Iterable[Any]) -> list[str]:
    """Of requirements as events name them: by name alone, or with their scope."""
    names = (one if isinstance(one, str) else one.get("name") for one in listed)
    return [str(name)[:LONGEST_NAME] for name in names if name]


class SatisfiedPayload(GatePayload):
    requirements: list[SatisfiedRequirement] = []
    everyone: bool = False
    metadata: JsonObject = {}
    certain: bool = True
    """False: a person without a terminal, of whom nothing more is known."""


@event_kind("gates.satisfied")
class GatesSatisfied(SatisfiedPayload):
    """Requirements were satisfied."""


@event_kind("gates.approved")
class GatesApproved(SatisfiedPayload):
    """A person let something pass for a while."""


@event_kind("gates.cleared")
class GatesCleared(GatePayload):
    """Requirements are open again; `everyone` for all sessions."""

    requirements: list[str] = []
    everyone: bool = False
    metadata: JsonObject = {}


@event_kind("gates.paused")
class GatesPaused(Payload):
    """No gate refuses anything meanwhile; `until` 0 means until it is resumed."""

    where: str = ""
    until: int = 0
    why: str = ""


@event_kind("gates.resumed")
class GatesResumed(Payload):
    """Gates refuse again."""

    where: str = ""


@event_kind("gates.pruned")
class GatesPruned(Payload):
    """The state of branches that are gone was removed."""

    repo: str = ""
    branches: list[str] = []


@event_kind("gates.measured")
class GatesMeasured(Payload):
    """Git was asked about a branch."""

    project: str = ""
    branch: str = ""
    repo: str = ""
    lines: int = 0
    base: str = ""
    covers: dict[str, str] = {}
    as_of: int = 0


@event_kind("gates.looked")
class GatesLooked(Payload):
    """Skills that requirements name were looked for."""

    missing: list[str] = []


@event_kind("gates.bypassed")
class GatesBypassed(GatePayload):
    """Something that a requirement is about happened without it, in a way that no command showed before."""

    requirements: list[str] = []
    what: str = ""
    """What was seen afterwards, for people."""


@event_kind("gates.held")
class GatesHeld(GatePayload):
    """A hook of git held a commit, a push or a move of a branch."""

    requirements: list[str] = []
    act: str = ""


@event_kind("gates.passed")
class GatesPassed(GatePayload):
    """A hook of git let through what no command had shown, because the requirements were met."""

    requirements: list[str] = []
    act: str = ""


@event_kind("gates.attempted")
class GatesAttempted(Payload):
    """An agent tried what only a person may do; it was refused."""

    act: str = ""
    why: str = ""
    """How it was known to be an agent."""


@event_kind("gates.rules_kept")
class GatesRulesKept(Payload):
    """The settings ask for less than before, and no person said so: what was asked for before still holds."""

    scope: str = ""
    """A project, or empty for the user's own settings."""
    digest: str = ""
    differences: list[str] = []


@event_kind("gates.rules_accepted")
class GatesRulesAccepted(Payload):
    """These rules are in force: they ask for no less than those before, or a person accepted them."""

    scope: str = ""
    digest: str = ""
    rules: JsonObject = {}
    by: str = ""
    """`settings` (nothing was loosened), `person` (accepted by command), `files` (changed while no agent was at work)."""
    differences: list[str] = []
