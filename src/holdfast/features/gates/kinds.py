"""The events of this room, and those of others that it listens to."""

from holdfast.features.gates.refs import CHANGES, CHECK, LIFE, TOOLS, UAT

OWN = {"gates.bypassed", "gates.attempted", "gates.rules_kept", "gates.rules_accepted"}
KINDS = OWN | {
    "gates.triggered",
    "gates.satisfied",
    "gates.approved",
    "gates.cleared",
    "gates.paused",
    "gates.resumed",
    "gates.pruned",
    "gates.measured",
    "gates.looked",
}
HEARD = {CHECK, "daemon.started", "daemon.stopped", "tool.started", "prompt.expanded", "decision.made"}
SUBSCRIBED_KINDS = frozenset(KINDS) | CHANGES | LIFE | TOOLS | UAT | HEARD
