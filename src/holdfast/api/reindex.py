"""Seed 000's functions for hook scripts (S0-5 to S0-8, S0-15, S0-17)."""

# None of them raises. The session is the agent's: passed in the call, or named by its environment. The project is the
# agent's too.

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast import client
from holdfast.features.reindex.files import CURRENT, migrate_session_state, parse_state_file, render_state_file
from holdfast.features.reindex.settings import STATE_FILE
from holdfast.features.reindex.state import NewestSession
from holdfast.paths import write_atomically

__all__ = [
    "get_session_id",
    "initialize_session_state",
    "mark_first_prompt_shown",
    "migrate_session_state",
    "should_show_first_prompt_status",
]

PATIENCE_S = 2.0
"""How long a call waits until the file shows what it did; the state itself is recorded by then."""


def get_session_id() -> str:
    """The session id from the agent (S0-3): the same in every process of the session, never derived from the clock
    (D1). Empty outside a session."""
    return client.current_session()


def initialize_session_state(source: str = "unknown", session_id: str = "") -> None:
    """Call it at the start of a session. A new id starts with false, whatever `source` says; a known id keeps its
    flag."""
    answer = _call_or_none(
        lambda: client.run_command("reindex.initialize", source=source, **_session_and_project(session_id))
    )
    _ensure_state_file(answer, session_id, shown=False)


def should_show_first_prompt_status(session_id: str = "") -> bool:
    """Whether this session's first prompt is still to come. True if nothing is known."""
    answer = _call_or_none(lambda: client.ask_view("reindex.flag", **_session_and_project(session_id)))
    if answer and answer["known"]:
        return not answer["shown"]
    stored, shown = parse_state_file(_state_file_content(answer))
    current = answer["session_id"] if answer else session_id or client.current_session()
    return not (shown and (not current or stored == current))


def mark_first_prompt_shown(session_id: str = "") -> None:
    """Make `should_show_first_prompt_status` return False for this session. Creates or repairs the file."""
    answer = _call_or_none(lambda: client.run_command("reindex.mark", shown=True, **_session_and_project(session_id)))
    _ensure_state_file(answer, session_id, shown=True)


def _session_and_project(session_id: str) -> dict[str, str]:
    return {"session": session_id or client.current_session(), "project": _project_folder()}


def _project_folder() -> str:
    return os.environ.get("CLAUDE_PROJECT_DIR") or client.current_project()


def _call_or_none(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return None


def _state_file_content(answer: Any) -> bytes | None:
    try:
        value: bytes | None = (Path(_project_folder()) / (answer or {}).get("state_file", STATE_FILE)).read_bytes()
        return value
    except OSError:
        return None


def _ensure_state_file(answer: Any, session_id: str, shown: bool) -> None:
    """Wait for the view; without a daemon the file alone carries the flag."""
    if answer:
        deadline = time.monotonic() + PATIENCE_S
        while (
            parse_state_file(_state_file_content(None)) != (answer["session_id"], answer["shown"])
            and time.monotonic() < deadline
        ):
            time.sleep(0.01)
        return
    try:
        _write_state_file(session_id or client.current_session(), shown)
    except Exception as error:
        print(f"holdfast: {error}", file=sys.stderr)


def _write_state_file(session: str, shown: bool) -> None:
    stored, flag = parse_state_file(_state_file_content(None))
    # The old system's id format, for a script outside any session.
    session = session or stored or time.strftime("session_%Y%m%d_%H%M%S")
    flag_to_store = shown or (flag and stored == session)
    path = Path(_project_folder()) / STATE_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, render_state_file(NewestSession(session, flag_to_store), CURRENT), 0o644)
