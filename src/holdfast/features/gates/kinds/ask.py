"""Kind `ask`: a person is asked before an act that cannot be undone."""

import re
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from holdfast.core.kinds import ToolPayload
from holdfast.features.gates.fields import Part
from holdfast.features.gates.kinds.base import Finding, RequirementKind, settings_of

if TYPE_CHECKING:
    from holdfast.core.event import Event
    from holdfast.features.gates.rules.checker import Checker
    from holdfast.features.gates.rules.triggers import Rule
    from holdfast.features.gates.settings import Requirement

_REMOVES = re.compile(r"^(?:rm -\S*[rRf]|rmdir|shred|find .* -delete$)")
# What is temporary, or no file at all.
_LOOSE = re.compile(r"^/(?:tmp|var/tmp|dev|proc)(?:/|$)|^/(?:private/)?var/folders/")


class AskSettings(Part):
    only_outside: Annotated[
        bool, Meta(description="For type ask: deletions inside of the project and of temporary files are free.")
    ] = True


class Ask(RequirementKind):
    name = "ask"
    summary = (
        "A person is asked before it (`command_pattern`); where the agent cannot ask, it is refused until approved."
    )
    settings = AskSettings
    comparisons = {"only_outside": lambda was, now: was or not now}
    asks = True

    def checked_at(self, spec: "Requirement") -> tuple[bool, bool]:
        return True, False

    def concerns(self, rule: "Rule", event: "Event", readings: list[str]) -> bool:
        if not settings_of(AskSettings, rule.spec).only_outside:
            return True
        return not all(map(_REMOVES.match, readings)) or _removes_outside(event)

    def check(self, checker: "Checker", rule: "Rule") -> Finding:
        why = rule.spec.description or "this is for a person to decide"
        return checker.approved(rule) or Finding(rule, False, why)

    def lets_through(self, checker: "Checker", rule: "Rule") -> bool:
        """The person may have been asked by the agent; nobody tells us the answer but the call itself."""
        return True


def _removes_outside(event: "Event") -> bool:
    data = event.data
    if not isinstance(data, ToolPayload):
        return False
    inside = tuple(f"{root}/" for root in (event.project, data.worktree) if root)
    return any(not path.startswith(inside) and not _LOOSE.match(path) for path in data.written)


KIND = Ask()
