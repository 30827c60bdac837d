"""Which requirements an event triggers."""

from typing import TYPE_CHECKING

from holdfast.core.event import Event
from holdfast.core.globs import any_matches
from holdfast.core.kinds import ToolPayload
from holdfast.features.gates.rules.self_proof import proves_itself
from holdfast.features.gates.rules.triggers import Rule, acts_of, written_paths

if TYPE_CHECKING:
    from holdfast.features.gates.settings import GateSettings


def triggered_rules(settings: "GateSettings", event: Event) -> list[Rule]:
    """Computed once per event; enrich, derive and decide all ask."""
    last = settings.index.last
    # By the identity of the payload: the event object is replaced when it gets its sequence number.
    if last[0] is not event.data:
        last = settings.index.last = (event.data, _find_triggered_rules(settings, event))
    return last[1]


def _find_triggered_rules(settings: "GateSettings", event: Event) -> list[Rule]:
    rules = settings.index.triggered_by(event)
    if not rules or _is_exempt(settings, event):
        return []
    return [rule for rule in rules if not _is_resolution(rule, event) and _is_meant(rule, event)]


def _is_meant(rule: Rule, event: Event) -> bool:
    readings = [one for one in acts_of(event).readings if rule.is_about(one)] if rule.kind.asks else []
    return rule.kind.concerns(rule, event, readings)


def _is_exempt(settings: "GateSettings", event: Event) -> bool:
    """Writing a plan and asking the gate itself are always allowed."""
    data = event.data
    if isinstance(data, ToolPayload) and data.action == "edit":
        # Both names: a link must not make another file look like a plan.
        paths = (*data.paths, *data.written)
        return bool(paths) and all(any_matches(settings.plan_files, path, event.project) for path in paths)
    if written := written_paths(event):
        # A command that writes a plan and starts a program as well is not exempt.
        return (
            all(any_matches(settings.plan_files, path, event.project) for path in written)
            and not acts_of(event).readings
        )
    readings = acts_of(event).readings
    # The blank excludes `holdfast gatekeeper`.
    return bool(readings) and all(f"{one} ".startswith("holdfast gate ") for one in readings)


def _is_resolution(rule: Rule, event: Event) -> bool:
    """Whether the call is what the requirement asks for: its skill, or the proof itself."""
    data = event.data
    if not isinstance(data, ToolPayload):
        return False
    if data.skill:
        return rule.resolved_by(data.skill)
    return bool(data.command) and rule.kind.is_proven and proves_itself(rule, event, data)
