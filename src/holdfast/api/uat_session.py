"""UAT sessions for hook scripts (S3-11 to S3-25); on failure functions return None or False."""

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from holdfast import client
from holdfast.core.errors import HoldfastError

# In seconds: how long to wait for a lock, the pause between tries, and the age of a stale lock.
LOCK_S, POLL_S, STALE_S = 30.0, 0.1, 300.0
DONE_S = 60.0

__all__ = [
    "acquire_session_lock", "add_tool_call", "batch_update_session", "cache_session", "cleanup_session",
    "cleanup_stale_sessions", "create_session_state", "get_cached_session", "get_hook_signal", "get_session_context",
    "is_session_active", "read_session_state", "recover_session_state", "release_session_lock", "set_hook_signal",
    "update_scenario_progress", "update_session_state", "validate_session_state", "write_session_state",
]  # fmt: skip

State = dict[str, Any]


def create_session_state(session: str, scenario: str, message: str = "", confidence: int | str = 100) -> State | None:
    """Start a run; None if the scenario is unknown or invalid."""
    facts = {"scenario": scenario, "message": message, "confidence": _parse_number(confidence), "auto": True}
    return read_session_state(session) if _run_command("uat.start", session, **facts) else None


def read_session_state(session: str) -> State | None:
    """Read the current state, not a file."""
    return _parse_object(_ask_view("uat.document", session))


def write_session_state(session: str, data: State | str) -> bool:
    """Merge fields into the state. Fields that Holdfast derives (times, steps, calls, performance) are kept."""
    return update_session_state(session, data)


def update_session_state(session: str, patch: State | str) -> bool:
    return batch_update_session(session, patch)


def batch_update_session(session: str, *patches: State | str) -> bool:
    """Apply several patches in one write."""
    read = [_parse_object(patch) for patch in patches]
    return None not in read and _run_command("uat.update", session, patches=read) is not None


def add_tool_call(session: str, call: State | str) -> bool:
    return _run_command("uat.call", session, call=_parse_object(call)) is not None


def update_scenario_progress(session: str, step: int | str, status: str) -> bool:
    return _run_command("uat.step", session, step=_parse_number(step), status=status) is not None


def is_session_active(session: str) -> bool:
    return _ask_view("uat.active", session) is not None


def cleanup_session(session: str) -> bool:
    """End the run. Its lock is released, whoever holds it; temporary files older than an hour are removed."""
    ended = _run_command("uat.end", session) is not None
    location = _ask_view("uat.place", session)
    if location:
        Path(location["lock"]).unlink(missing_ok=True)
    if ended:
        _wait_until_done(_run_command("uat.tend", ""))
    return ended


def cleanup_stale_sessions() -> int:
    """Archive stale runs and return how many. A run that is silent too long is ended first."""
    outcome = _wait_until_done(_run_command("uat.tend", "")) or {}
    # A run that only just ended is archived by the next call.
    if outcome.get("ended"):
        outcome = _wait_until_done(_run_command("uat.tend", "")) or {}
    return int(outcome.get("count", 0))


def get_session_context(session: str) -> State | None:
    return _parse_object(_ask_view("uat.context", session))


def set_hook_signal(session: str, name: str, data: Any) -> bool:
    return _run_command("uat.signal", session, signal=name, data=data) is not None


def get_hook_signal(session: str, name: str) -> State | None:
    return _parse_object(_ask_view("uat.signal", session, signal=name))


def validate_session_state(session: str) -> bool:
    """Whether the file exists and is valid."""
    location = _ask_view("uat.place", session)
    return bool(location and location["condition"] == "good")


def recover_session_state(session: str) -> bool:
    """Rewrite the file from the log."""
    outcome = _wait_until_done(_run_command("uat.recover", session))
    return bool(outcome and outcome["now"] == "good")


def get_cached_session(session: str) -> State | None:
    """The same as `read_session_state`: the daemon's memory is the cache."""
    return read_session_state(session)


def cache_session(session: str, data: State | str) -> bool:  # noqa: ARG001 - the seed's signature
    return _parse_object(data) is not None


def acquire_session_lock(session: str, timeout: float | str = LOCK_S, owner: int | None = None) -> str | None:
    """For scripts that need several undisturbed steps; Holdfast itself needs no lock. Returns the path or None.

    `owner`: the process that holds the lock, by default this one.
    """
    location = _ask_view("uat.place", session)
    if location is None:
        return None
    path, deadline = Path(location["lock"]), time.monotonic() + float(timeout)
    while not _create_lock_file(path, owner or os.getpid()):
        _remove_stale(path)
        if time.monotonic() > deadline:
            return None
        time.sleep(POLL_S)
    return str(path)


def release_session_lock(lock_file: str = "", owner: int | None = None) -> None:
    """Never fails, and never releases another process's lock (D9)."""
    with suppress(OSError, ValueError):
        path = Path(lock_file)
        if path.suffix == ".lock" and (int(path.read_text()) == (owner or os.getpid()) or not _owner_lives(path)):
            path.unlink()


def _create_lock_file(path: Path, owner: int) -> bool:
    try:
        # O_EXCL: of two processes exactly one creates the file.
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    except OSError:
        return False
    with os.fdopen(fd, "w") as file:
        file.write(f"{owner}\n")
    return True


def _remove_stale(path: Path) -> None:
    """Remove a lock older than five minutes, or of a process that is gone (O3-a)."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > STALE_S or not _owner_lives(path):
            path.unlink()


def _owner_lives(path: Path) -> bool:
    try:
        return bool(psutil.pid_exists(int(path.read_text())))
    except (OSError, ValueError):
        return True  # Half-written, or gone this moment: only its age can tell.


def _ask_view(name: str, session: str, **args: Any) -> Any:
    try:
        return client.ask_view(name, session=session, **args)
    except HoldfastError:
        return None


def _run_command(name: str, session: str, **args: Any) -> Any:
    try:
        return client.run_command(name, session=session, **args)
    except HoldfastError:
        return None


def _wait_until_done(answer: State | None) -> State | None:
    deadline = time.monotonic() + DONE_S
    while answer and time.monotonic() < deadline:
        if (outcome := _parse_object(_ask_view("uat.done", "", key=answer["done"]))) is not None:
            return outcome
        time.sleep(0.02)
    return None


def _parse_number(value: int | str) -> int | str:
    """From a shell every argument is a string."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _parse_object(data: Any) -> State | None:
    if isinstance(data, str):
        try:
            data = json.loads(data)
        except ValueError:
            return None
    return dict(data) if isinstance(data, Mapping) else None
