"""The events of this room, and those of others that it listens to."""

from holdfast.features.gates.refs import CHANGES, LIFE, TOOLS, UAT

KINDS = {
    "gates.triggered": "a session did for the first time what a requirement is about (`requirements`, `tool`)",
    "gates.satisfied": "requirements were satisfied (`requirements`: name, scope, until; `method`, `metadata`)",
    "gates.approved": "a person let something pass for a while (`requirements`: name, until)",
    "gates.cleared": "requirements are open again (`requirements`, `method`; `everyone` for all sessions)",
    "gates.paused": "gates rest (`where`, `until`; 0 = until resumed)",
    "gates.resumed": "gates are back (`where`)",
    "gates.pruned": "state of branches that are gone was removed (`repo`, `branches`)",
    "gates.measured": "git was asked about a branch (`branch`, `lines`, `base`, `covers`, `as_of`)",
    "gates.looked": "skills that requirements name were looked for (`missing`)",
}
HEARD = {"tool.started", "prompt.expanded", "decision.made"}
SUBSCRIBED_KINDS = frozenset(KINDS) | CHANGES | LIFE | TOOLS | UAT | HEARD
