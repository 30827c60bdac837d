"""What an agent may not do to the gates themselves: a person's acts, the settings, the hooks, the daemon."""

from typing import TYPE_CHECKING

from holdfast.core.decision import Decision, deny
from holdfast.core.event import Event
from holdfast.core.kinds import ToolPayload
from holdfast.features.gates.rules import acts_of

if TYPE_CHECKING:
    from holdfast.features.gates.model import GateSettings

PERSONS_ACTS = {
    "holdfast gate approve": "approving",
    "holdfast gate accept": "accepting looser rules",
    "holdfast gate pause": "pausing the gates",
    "holdfast config set": "changing Holdfast's settings",
    "holdfast config trust": "trusting a project's settings",
    "holdfast daemon stop": "stopping Holdfast",
    "holdfast daemon restart": "stopping Holdfast",
    "holdfast uninstall": "removing Holdfast",
    "holdfast memory forget": "erasing what is on record",
    "holdfast forget": "erasing what is on record",
    "holdfast dashboard": "the dashboard's way in",
}
TOUCHED = {
    "state": "Holdfast's own files",
    "settings": "your person's rules",
    "hooks": "the hooks that Holdfast is called by",
    "daemon": "Holdfast's daemon",
}


def self_protection(event: Event, settings: "GateSettings") -> Decision | None:
    data = event.data
    if not isinstance(data, ToolPayload) or settings.agents_may_approve:
        return None
    acts = [what for reading in acts_of(event).readings if (what := _persons_act(reading, settings))]
    if acts:
        return _refuse(f"Refused: {acts[0]} is for a person, in a terminal of their own or in the dashboard.", acts[0])
    if data.touches:
        what = TOUCHED.get(data.touches[0], data.touches[0])
        return _refuse(f"Refused: this would change {what}. A person can do that; an agent cannot.", what)
    return None


def _persons_act(reading: str, settings: "GateSettings") -> str:
    words = [word for word in reading.split(" ") if not word.startswith("-")]
    text = " ".join(words[:3])
    if text in ("holdfast gate satisfy", "holdfast gate clear") and text.endswith("satisfy"):
        named = [settings.by_name[name] for name in words[3:] if name in settings.by_name]
        barred = [rule.name for rule in named if not (rule.spec.manual and rule.spec.agent_may_satisfy)]
        return f"satisfying {barred[0]}" if barred else ""
    return next((what for act, what in PERSONS_ACTS.items() if f"{text} ".startswith(f"{act} ")), "")


def _refuse(text: str, what: str) -> Decision:
    return deny(text, details=({"gate": "protected", "what": what},))
