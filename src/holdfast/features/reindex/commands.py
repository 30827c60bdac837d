"""Commands of the code index: run, rebuild, and the seed's functions for a session's flag."""

import time
from typing import Any

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.core.event import own_event
from holdfast.core.feature import Call, CommandResult
from holdfast.core.ids import bounded_name
from holdfast.core.kinds import Payload
from holdfast.core.kinds.reindex_events import FlagInitialized, FlagMarked, RunAsked
from holdfast.core.ports import Reader
from holdfast.features.reindex.state import CHECKOUT, SESSION, NewestSession

SOURCES = ("startup", "clear", "resume", "compact", "fork", "unknown")


def request_index_run(call: Call) -> CommandResult:
    project = required_project(call)
    request = RunAsked(rebuild=call.args.get("rebuild") is True, by="command")
    event = own_event(request, call.now, session=call.session, project=project)
    return CommandResult((event,), answer=lambda reader: _last_decision(reader, project))


def _last_decision(reader: Reader, project: str) -> dict[str, Any]:
    checkout = CHECKOUT.load(reader, project)
    decided: dict[str, Any] = msgspec.to_builtins(checkout.decided) if checkout and checkout.decided else {}
    return decided


def initialize_flag(call: Call) -> CommandResult:
    """The session that the file names keeps its flag, any other begins with false (S0-4)."""
    session = _resolve_session(call)
    session_flag, newest = SESSION.load(call.reader, session), _newest_session(call)
    previous = newest.session_id if newest else ""
    source = str(call.args.get("source") or "unknown")
    shown = bool(session_flag and session_flag.shown) and previous in ("", session)
    flag = FlagInitialized(
        source=source if source in SOURCES else "unknown", shown=shown, previous=previous,
        reset=previous != session,
    )  # fmt: skip
    answer = {"source": flag.source, "shown": flag.shown, "previous": previous, "reset": flag.reset}
    return _record_flag_event(call, session, flag, answer)


def mark_flag(call: Call) -> CommandResult:
    """`mark_first_prompt_shown`; `shown=False` undoes it."""
    shown = call.args.get("shown", True) is True
    return _record_flag_event(call, _resolve_session(call), FlagMarked(shown=shown), {"shown": shown})


def _record_flag_event(call: Call, session: str, payload: Payload, answer: dict[str, Any]) -> CommandResult:
    # The event names the flag's session, which need not be the caller's.
    event = own_event(payload, call.now, session=session, project=required_project(call))
    return CommandResult((event,), answer={"session_id": session, **answer})


def required_project(call: Call) -> str:
    project = str(call.args.get("project") or call.project)
    if not project.startswith("/"):
        raise CommandRefused("no project folder is known", fix="Run it inside the project.")
    return project


def _resolve_session(call: Call) -> str:
    """The agent's session; else the newest of this project; else a name from the clock."""
    named = str(call.args.get("session") or call.session)
    if named:
        return bounded_name(named)
    newest = _newest_session(call)
    if newest:
        return newest.session_id
    return time.strftime("session_%Y%m%d_%H%M%S", time.localtime(call.now / 1000))


def _newest_session(call: Call) -> NewestSession | None:
    checkout = CHECKOUT.load(call.reader, required_project(call))
    return checkout.newest if checkout else None
