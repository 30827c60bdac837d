"""The seed's file and its schema: versions 1 and 2, reading both, degrading on others (S0-2, S0-15 to S0-17). Pure.

A field goes away over three releases: named as deprecated, no longer written, no longer read (S0-16). `DEPRECATED` says
which release a field is in; there is none today.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from holdfast.features.reindex.state import LastRun, NewestSession

CURRENT, NEXT = 1, 2
NEW_IN_2: dict[str, Any] = {"last_reindex": None}
DEPRECATED: dict[str, str] = {}

# \Z instead of $, which would let a line end pass.
_SEED_ID = re.compile(r"^session_[0-9]{8}_[0-9]{6}\Z")
_AGENT_ID = re.compile(r"^(?!session_\d)[A-Za-z0-9][A-Za-z0-9_.:#-]{0,199}\Z")
"""Most agents give a UUID, some a name of their own (`ses_…`); the id is theirs to choose (D1)."""


def render_state_file(newest: NewestSession, version: int, last: LastRun | None = None) -> bytes:
    state: dict[str, Any] = {
        "session_id": newest.session_id,
        "first_semantic_search_shown": newest.shown,
    }
    if version >= NEXT:
        state = {"version": NEXT, **state, "last_reindex": _last_run_as_dict(last)}
    return json.dumps(state, indent=2).encode()


def _last_run_as_dict(last: LastRun | None) -> dict[str, Any] | None:
    return {"trigger": last.trigger, "result": last.result, "timestamp": last.timestamp} if last else None


def migrate_session_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Version 1 becomes version 2: the version itself, and new fields with their defaults. Newer ones are left alone."""
    migrated = dict(state) if isinstance(state, Mapping) else {}
    version = migrated.get("version", CURRENT)
    # True equals 1 in Python.
    if version == CURRENT and not isinstance(version, bool):
        migrated["version"] = NEXT
        migrated = {**NEW_IN_2, **migrated}
    return migrated


def validate_session_state(state: Any) -> bool:
    """The seed's JSON Schema: both fields, of their types, the id of a known form, nothing else (version 2: its fields)."""
    if not isinstance(state, Mapping):
        return False
    version = state.get("version", CURRENT)
    allowed = {"session_id", "first_semantic_search_shown"}
    if version == NEXT and "version" in state:
        allowed |= {"version", *NEW_IN_2}
    elif "version" in state and (version != CURRENT or isinstance(version, bool)):
        return False
    if "version" in state:
        allowed.add("version")
    return (
        set(state) <= allowed
        and isinstance(state.get("first_semantic_search_shown"), bool)
        and isinstance(session := state.get("session_id"), str)
        and bool(_SEED_ID.match(session) or _AGENT_ID.match(session))
    )


def parse_state_file(text: bytes | None) -> tuple[str, bool]:
    """(session id, flag) as the seed reads them: missing, malformed or of a shape unknown means a new session."""
    try:
        state = json.loads(text) if text is not None else {}
    except (ValueError, RecursionError):
        state = {}
    if not isinstance(state, dict):
        return "", False
    session = state.get("session_id")
    return session if isinstance(session, str) else "", state.get("first_semantic_search_shown") is True
