"""What every requirement kind defines: its settings, its check, its remedy and its row in the docs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from holdfast.features.gates.fields import Part, Spec
from holdfast.features.gates.state import OpenRequirement
from holdfast.features.gates.state.branches import Entry
from holdfast.features.gates.strictness import Comparison

if TYPE_CHECKING:
    from holdfast.core.event import Event
    from holdfast.features.gates.rules.checker import Checker
    from holdfast.features.gates.rules.triggers import Rule
    from holdfast.features.gates.settings import Requirement

BASES = ("main", "master")
PERSON_CAN = "a person can approve it"
"""Shown to agents, which may not run the command that lifts a refusal."""


S = TypeVar("S", bound=Part)


class NoSettings(Part):
    """For kinds that need nothing beyond the fields all requirements have."""


@dataclass(frozen=True, slots=True)
class Finding:
    rule: "Rule"
    ok: bool
    why: str
    amount: int = 0
    """Changed lines of a branch, or percent of a budget."""

    def as_open(self) -> OpenRequirement:
        return OpenRequirement(
            name=self.rule.name, type=self.rule.type, why=self.why, resolve=resolution_text(self.rule)
        )


class RequirementKind:
    """Defaults shared by all kinds; a kind overrides what differs."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """Its row in docs/features/gates.md."""
    settings: ClassVar[type[Part]] = NoSettings
    """The fields only this kind reads; they become fields of every requirement."""
    comparisons: ClassVar[Mapping[str, Comparison]] = {}
    """Field → whether a new value asks for at least as much. Without an entry, a change waits for a person."""
    is_task: ClassVar[bool] = False
    """A skill or `gate satisfy` satisfies it; otherwise it is a condition, or proven by facts."""
    is_proven: ClassVar[bool] = False
    is_measured: ClassVar[bool] = False
    asks: ClassVar[bool] = False
    """The agent asks its person instead of being refused, where it can."""
    always_at_stop: ClassVar[bool] = False
    """Checked at the end of a turn whatever its scope."""
    warn_step: ClassVar[int] = 50
    """How much `Finding.amount` grows before the next warning."""

    def complete_settings(self, spec: Spec) -> Spec:
        """Fill in what a settings file may leave out, and translate older names."""
        return spec

    def check_settings(self, spec: "Requirement") -> None:
        """Raise ValueError if a required field is missing."""

    def checked_at(self, spec: "Requirement") -> tuple[bool, bool]:
        """(at the tool call, at the end of the turn), unless the settings say otherwise."""
        return True, True

    def concerns(self, rule: "Rule", event: "Event", readings: list[str]) -> bool:
        """Whether a call that its trigger matches is meant; `readings` are those its patterns match."""
        return True

    def check(self, checker: "Checker", rule: "Rule") -> Finding:
        raise NotImplementedError

    def lets_through(self, checker: "Checker", rule: "Rule") -> bool:
        """Whether the act was allowed, seen afterwards."""
        return self.check(checker, rule).ok

    def remedy(self, rule: "Rule") -> str:
        return PERSON_CAN

    def why_not_by_hand(self, rule: "Rule") -> str:
        """Empty if `holdfast gate satisfy` may satisfy it."""
        return f"{rule.name} is a condition, not a task"

    def warn_from(self, rule: "Rule") -> float:
        """The `Finding.amount` from which it warns."""
        return math.inf

    def warning(self, finding: Finding) -> str:
        return f"{finding.rule.name}: {finding.why}"

    def protected_branches(self, spec: "Requirement") -> tuple[str, ...]:
        """Globs of the branches it allows no edits on."""
        return ()

    def scope_of(self, rule: "Rule") -> str:
        return rule.scope

    def placeholders(self, rule: "Rule") -> dict[str, int]:
        """Values for `{placeholders}` in messages."""
        return {}


def settings_of(_kind: type[S], spec: "Requirement") -> S:
    """The requirement, typed as the settings of its kind: it has all their fields."""
    return cast(S, spec)


def resolution_text(rule: "Rule") -> str:
    """What a person does about it."""
    by_hand = f"holdfast gate satisfy {rule.name}" if by_hand_too(rule) else ""
    remedy = rule.kind.remedy(rule).replace(PERSON_CAN, f"holdfast gate approve {rule.name}")
    return " or ".join(filter(None, (remedy, by_hand))) or "change the settings"


def by_hand_too(rule: "Rule") -> bool:
    return rule.spec.manual and rule.spec.agent_may_satisfy and rule.kind.is_task


def satisfied_by(entry: Entry) -> str:
    if entry.by == "agent":
        return "said by the agent"
    return f"{'approved' if entry.approved else 'satisfied'} by {entry.by or 'hand'}"
