"""Every event kind in one place: what agents tell, what Holdfast writes, what each feature derives."""

# To add one: a `Payload` with `@event_kind` in the file it belongs to. To change the meaning of stored fields: raise
# its version and add an upcaster. Sets of kinds that several features use are named here, once.

from holdfast.core.kinds import (
    agent_events,
    attention_events,
    check_events,
    engine_events,
    gates_events,
    memory_events,
    project_events,
    reindex_events,
    session_events,
    team_events,
    uat_events,
    workspace_events,
)
from holdfast.core.kinds.agent_events import HookPayload, ToolEndPayload, ToolPayload
from holdfast.core.kinds.base import (
    KINDS,
    UPCASTERS,
    JsonObject,
    Payload,
    Record,
    UntypedPayload,
    build_payload,
    current_version,
    decode_payload,
    encode_payload,
    event_kind,
    upcast_fields,
)

__all__ = [
    "ATTENTION_KINDS",
    "CHECK_KINDS",
    "ENGINE_KINDS",
    "GATES_KINDS",
    "HOOK_KINDS",
    "KINDS",
    "MEMORY_KINDS",
    "PROJECT_KINDS",
    "SESSION_ENDS",
    "SESSION_KINDS",
    "TEAM_KINDS",
    "TOOL_ENDS",
    "TURN_ENDS",
    "UAT_KINDS",
    "UPCASTERS",
    "WORKSPACE_KINDS",
    "HookPayload",
    "JsonObject",
    "Payload",
    "Record",
    "ToolEndPayload",
    "ToolPayload",
    "UntypedPayload",
    "build_payload",
    "current_version",
    "decode_payload",
    "encode_payload",
    "event_kind",
    "upcast_fields",
]


def _kinds_of(module: object) -> dict[str, type[Payload]]:
    return {kind: payload for kind, payload in KINDS.items() if payload.__module__ == getattr(module, "__name__", "")}


HOOK_KINDS = _kinds_of(agent_events)
ENGINE_KINDS = _kinds_of(engine_events)
ATTENTION_KINDS = _kinds_of(attention_events)
CHECK_KINDS = _kinds_of(check_events)
GATES_KINDS = _kinds_of(gates_events)
MEMORY_KINDS = _kinds_of(memory_events)
PROJECT_KINDS = _kinds_of(project_events)
REINDEX_KINDS = _kinds_of(reindex_events)
SESSION_KINDS = _kinds_of(session_events)
TEAM_KINDS = _kinds_of(team_events)
UAT_KINDS = _kinds_of(uat_events)
WORKSPACE_KINDS = _kinds_of(workspace_events)

SESSION_ENDS = frozenset(("session.ended", "session.lost", "session.stale", "session.closed", "session.left"))
"""After any of these the session is over, until the agent shows itself again."""
TOOL_ENDS = frozenset(("tool.finished", "tool.failed"))
TURN_ENDS = frozenset(("turn.ended", "turn.failed", "turn.interrupted", "turn.recovered", "turn.escaped"))
"""After any of these the turn is over."""
