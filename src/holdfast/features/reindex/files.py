"""Writes `logs/state/session-reindex-tracking.json` for the newest session (S0-1, S0-2)."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.core.feature import File
from holdfast.core.feature import Settings as AnySettings
from holdfast.core.ports import Ref
from holdfast.features.reindex.settings import settings_or_default
from holdfast.features.reindex.state import CHECKOUT, Checkout, LastRun, NewestSession

# The seed's file and its schema: versions 1 and 2, degrading on others (S0-2, S0-15 to S0-17).
#
# A field is removed over three releases: deprecated, no longer written, no longer read (S0-16). `DEPRECATED` lists the
# release of each; it is empty today.

CURRENT, NEXT = 1, 2
NEW_IN_2: dict[str, Any] = {"last_reindex": None}
DEPRECATED: dict[str, str] = {}

# \Z instead of $, which would allow a trailing line end.
_SEED_ID = re.compile(r"^session_[0-9]{8}_[0-9]{6}\Z")
_AGENT_ID = re.compile(r"^(?!session_\d)[A-Za-z0-9][A-Za-z0-9_.:#-]{0,199}\Z")
"""Most agents use a UUID, some a name of their own (`ses_…`); the id is theirs to choose (D1)."""


def render_state_file(newest: NewestSession, version: int, last: LastRun | None = None) -> bytes:
    state: dict[str, Any] = {"session_id": newest.session_id, "first_semantic_search_shown": newest.shown}
    if version >= NEXT:
        state = {"version": NEXT, **state, "last_reindex": _last_run_as_dict(last)}
    return json.dumps(state, indent=2).encode()


def _last_run_as_dict(last: LastRun | None) -> dict[str, Any] | None:
    return {"trigger": last.trigger, "result": last.result, "timestamp": last.timestamp} if last else None


def migrate_session_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Convert version 1 to 2: the version itself, and new fields with defaults. Newer versions are left alone."""
    migrated = dict(state) if isinstance(state, Mapping) else {}
    version = migrated.get("version", CURRENT)
    # True equals 1 in Python.
    if version == CURRENT and not isinstance(version, bool):
        migrated["version"] = NEXT
        migrated = {**NEW_IN_2, **migrated}
    return migrated


def validate_session_state(state: Any) -> bool:
    """The seed's JSON Schema: both fields with their types, an id of known form, nothing else (version 2: its fields)."""
    if not isinstance(state, Mapping):
        return False
    allowed = {"session_id", "first_semantic_search_shown"}
    if "version" in state:
        version = state["version"]
        # True equals 1 in Python.
        if isinstance(version, bool) or version not in (CURRENT, NEXT):
            return False
        allowed |= {"version"} if version == CURRENT else {"version", *NEW_IN_2}
    session = state.get("session_id")
    return (
        set(state) <= allowed
        and isinstance(state.get("first_semantic_search_shown"), bool)
        and isinstance(session, str)
        and bool(_SEED_ID.match(session) or _AGENT_ID.match(session))
    )


def parse_state_file(text: bytes | None) -> tuple[str, bool]:
    """(session id, flag) as the seed reads them: a missing, malformed or unknown file means a new session."""
    try:
        state = json.loads(text) if text is not None else {}
    except (ValueError, RecursionError):
        state = {}
    if not isinstance(state, dict):
        return "", False
    session = state.get("session_id")
    return session if isinstance(session, str) else "", state.get("first_semantic_search_shown") is True


def files(ref: Ref, doc: Checkout, settings: AnySettings) -> Iterator[File]:
    # No file in a home folder, in the root, or in a folder that is gone.
    if ref.kind != CHECKOUT.kind or not doc.newest or not _may_hold(doc.project):
        return
    mine = settings_or_default(settings)
    path = Path(doc.project) / mine.state_file
    if not _stays_inside(path, doc.project):
        return
    yield File(path, render_state_file(doc.newest, mine.state_file_version, _last_run(doc)), mode=0o644, hidden=path)


def _may_hold(project: str) -> bool:
    return project.startswith("/") and project != "/" and os.path.isdir(project) and not is_home(project)


def is_home(folder: str) -> bool:
    return os.path.realpath(folder) == os.path.realpath(os.path.expanduser("~"))


def _stays_inside(path: Path, project: str) -> bool:
    """A repository may have a link in our folder's place."""
    real = os.path.realpath(path.parent)
    root = os.path.realpath(project)
    return real == root or real.startswith(f"{root}{os.sep}")


def _last_run(doc: Checkout) -> LastRun | None:
    return LastRun(doc.last.trigger, doc.last.status, doc.last.at) if doc.last else None
