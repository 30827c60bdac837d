"""Which requirements a tool call is about. What resolves a refusal is never refused itself (no chicken and egg)."""

from typing import TYPE_CHECKING

from holdfast.core.event import Event
from holdfast.features.gates.evidence import proves_itself
from holdfast.features.gates.globs import any_matches
from holdfast.features.gates.rules import Rule, acts_of, written_paths

if TYPE_CHECKING:
    from holdfast.features.gates.model import GateSettings


def triggered(settings: "GateSettings", event: Event) -> list[Rule]:
    """Asked twice of each call, by what follows and by what is decided; the answer is worked out once."""
    last = settings.index.last
    if last[0] is not event:
        last = settings.index.last = (event, _triggered(settings, event))
    return last[1]


def _triggered(settings: "GateSettings", event: Event) -> list[Rule]:
    found = settings.index.triggered_by(event)
    if not found or _exempt(settings, event):
        return []
    return [rule for rule in found if not _resolves(rule, event)]


def _exempt(settings: "GateSettings", event: Event) -> bool:
    """Writing the plan, and asking the gate itself."""
    data = event.data
    if data.get("action") == "edit":
        paths = (*(data.get("paths") or ()), *(data.get("written") or ()))
        return bool(paths) and all(any_matches(settings.plan_files, path, event.project) for path in paths)
    if written := written_paths(event):
        return all(any_matches(settings.plan_files, path, event.project) for path in written) and not acts_of(event).readings
    readings = acts_of(event).readings
    return bool(readings) and all(f"{one} ".startswith("holdfast gate ") for one in readings)


def _resolves(rule: Rule, event: Event) -> bool:
    """The very thing the requirement asks for: its skill, or the command that would be its proof."""
    if skill := event.data.get("skill"):
        return rule.resolved_by(skill)
    command = event.data.get("command")
    if not command or rule.type != "evidence":
        return False
    return proves_itself(rule, command)
