"""Reactions to events: `decide` gives an agent context at its start, `enrich` finds its process, `enqueue` starts background
work."""

from collections.abc import Iterator
from itertools import islice

import msgspec

from holdfast.core.decision import Decision, context_decision
from holdfast.core.event import Event
from holdfast.core.feature import ContentParts, Settings, State
from holdfast.core.job import READ_USAGE, Job
from holdfast.core.kinds import HOOK_KINDS, SESSION_ENDS, TOOL_ENDS, HookPayload
from holdfast.core.kinds.agent_events import SessionEnded, SessionStarted
from holdfast.core.kinds.session_events import TurnAnswerRead
from holdfast.core.times import DAY, HOUR, format_duration
from holdfast.features.sessions.jobs import read_failures, read_transcripts
from holdfast.features.sessions.jobs.recovery import LINKED_SOURCES, same_process
from holdfast.features.sessions.liveness import NAMES_PROCESS, ProcessLookup, has_lost_terminal
from holdfast.features.sessions.settings import DEFAULTS
from holdfast.features.sessions.state.documents import (
    CLOSES_TURN,
    COMPLETED,
    RECENT_SESSIONS,
    SESSION,
    SUMMARY,
    Session,
)
from holdfast.features.sessions.subagent_watch import SubagentWatch, untold_subagents
from holdfast.features.sessions.turn_sums import imported_turns

SOURCE = "holdfast/sessions"
# Live sessions that are named to an agent.
MAX_OTHERS = 5
RECENT_MS = 7 * DAY

FIND, PROCESS, SUMMARISE, LINK, ADOPT = (
    f"sessions.{verb}" for verb in ("find", "process", "summarise", "link", "adopt")
)
CALLS_BETWEEN_LOOKS = 10
"""Tool calls after which token use is read in the middle of a turn: a turn may last for hours."""
# How long after the end of a session its last lines may still be written.
WRITTEN_LATE_MS = 1500

# ── before the event is stored ────────────────────────────────────────────────────────────────────────────────────────

ENRICHED_KINDS = frozenset(HOOK_KINDS) - {"unknown", "message.displayed", "model.requested"}
_PROCESSES = ProcessLookup()
_SUBAGENTS = SubagentWatch()


UNTOLD_REASONS = ("", "other")


def enrich(event: Event, _settings: Settings, _parts: ContentParts) -> bool:
    """Before the answer leaves: an agent that is killed right after it is known, and decisions depend on the subagent, where
    the agent does not name it."""
    data = event.data
    # The process of an imported event is long gone.
    if not isinstance(data, HookPayload) or not event.session or data.imported:
        return False
    _SUBAGENTS.assign_lane(event)
    data.process = _PROCESSES.identify((event.agent, event.session), event.kind, data, event.at)
    if isinstance(data, SessionEnded) and data.pid and data.reason in UNTOLD_REASONS:
        data.terminal_closed = has_lost_terminal(data.pid, data.pid_start)
    return False


# ── context at the start ──────────────────────────────────────────────────────────────────────────────────────────────


def can_decide(kind: str, settings: Settings) -> bool:
    return kind == "session.started" and (settings or DEFAULTS).inject


def decide(state: State, event: Event, settings: Settings) -> Decision | None:
    if not can_decide(event.kind, settings):
        return None
    session = SESSION.get(state, event.session)
    data: SessionStarted = event.data
    if not session:
        return None
    lines = list(_TOLD_BY_SOURCE.get(data.source, _at_startup)(state, event, session))
    # Below the weight of memory, so that this is left out first.
    return context_decision(SOURCE, "\n".join(lines), weight=40) if lines else None


def _at_startup(state: State, event: Event, _session: Session) -> Iterator[str]:
    others = list(_other_sessions(state, event))
    live = [f"- {other.title or 'no prompt yet'} ({other.state}, {_format_age(event, other.at)} ago)"
            for other in others if other.is_active]  # fmt: skip
    if live:
        yield "Other agent sessions are live in this project now (mind their changes):"
        yield from live[:MAX_OTHERS]
    last = next((other for other in others if other.status == COMPLETED and other.prompts), None)
    # What was left open weeks ago is no news; a clock that went back gives a negative age.
    if last and 0 <= event.at - last.ended_at < RECENT_MS:
        yield from _left_open(state, event, last, "The last session here")


def _at_resume(_state: State, _event: Event, session: Session) -> Iterator[str]:
    """Minimal: the agent has its own history."""
    turn = session.turn
    if turn and turn.how == "lost":
        yield f"This session was cut off while working on: {turn.prompt}"


def _at_clear(state: State, event: Event, session: Session) -> Iterator[str]:
    before = next((other for other in _other_sessions(state, event) if same_process(session, other)), None)
    if before and before.prompts:
        yield from _left_open(state, event, before, "Before the clear")


def _at_compact(_state: State, _event: Event, session: Session) -> Iterator[str]:
    turn = session.turn
    if turn and turn.prompt:
        yield f"Before the compaction: turn {turn.n}, working on: {turn.prompt}"


_TOLD_BY_SOURCE = {"resume": _at_resume, "clear": _at_clear, "fork": _at_resume, "compact": _at_compact}


def _other_sessions(state: State, event: Event) -> Iterator[Session]:
    recent_sessions = RECENT_SESSIONS.get(state, event.project)
    sessions = (
        SESSION.get(state, name)
        for name in (recent_sessions.recent if recent_sessions else [])
        if name != event.session
    )
    # Of the twenty that are known: enough to find a live or a recent one.
    return islice((session for session in sessions if session), 10)


def _left_open(state: State, event: Event, session: Session, label: str) -> Iterator[str]:
    """Only what was left open."""
    summary = SUMMARY.get(state, session.id)
    cut_off = session.reason in ("process-gone", "stale") and session.at_end != "answered"
    left = summary.open[:3] if summary else []
    if left or cut_off:
        how = f", cut off ({session.reason})" if cut_off else ""
        yield f"{label}: {session.title} ({_format_age(event, session.ended_at or session.at)} ago{how})."
        yield from (f"- {line}" for line in left)


def _format_age(event: Event, at: int) -> str:
    ms = max(0, event.at - at)
    return format_duration(ms) if ms < 2 * HOUR else f"{ms // HOUR} h"


# ── what is done in the background ────────────────────────────────────────────────────────────────────────────────────


def derive(state: State, event: Event, _settings: Settings) -> Iterator[Event]:
    yield from untold_subagents(state, event)
    yield from imported_turns(state, event)


def enqueue(state: State, event: Event, _settings: Settings) -> Iterator[Job]:
    """Cheap: it runs for every event, inside its transaction."""
    session = SESSION.get(state, event.session) if event.session else None
    if session is None:
        return
    if event.kind in NAMES_PROCESS or session.events == 1:
        yield from _find_process(session, event)
    if event.kind in TOOL_ENDS:
        yield from read_transcripts.exit_jobs(event)
        # By the count of calls, so that no state is needed.
        if session.tools % CALLS_BETWEEN_LOOKS == 0:
            yield _session_job(READ_USAGE, session)
    else:
        yield from read_transcripts.answer_jobs(event)
        yield from read_failures.failure_jobs(event)
        yield from _end_work(session, event)
    yield from _link_work(session, event)


def _link_work(session: Session, event: Event) -> Iterator[Job]:
    if session.origin in LINKED_SOURCES and not session.parent and event.kind in ("session.started", "turn.ended"):
        yield _session_job(LINK, session)
    turn = session.turn
    if turn and turn.origin == "recovery" and turn.first == event.seq:
        yield _session_job(ADOPT, session)


def _find_process(session: Session, event: Event) -> Iterator[Job]:
    """Only where the hook's own look found nothing: the shell above it may have been short-lived."""
    data = event.data
    if not isinstance(data, HookPayload) or not data.pid or data.process:
        return
    if not session.process or session.process.pid != data.pid:
        yield _session_job(FIND, session, pid=data.pid, start=data.pid_start)


def _end_work(session: Session, event: Event) -> Iterator[Job]:
    if event.kind == TurnAnswerRead.KIND and session.status == COMPLETED:
        yield _session_job(SUMMARISE, session)
    if event.kind not in CLOSES_TURN:
        return
    if session.has_unprocessed_turns:
        yield _session_job(PROCESS, session)
    if event.kind in SESSION_ENDS and session.status == COMPLETED:
        yield _session_job(SUMMARISE, session)
        # An agent may write the last lines of its transcript after the hook at the end. A job of its
        # own: the one that is waiting or running for the end of the turn may look too early.
        late = {"dedupe": f"{session.id}/late", "run_at": event.at + WRITTEN_LATE_MS}
        yield msgspec.structs.replace(_session_job(PROCESS, session), **late)


def _session_job(kind: str, session: Session, **payload: object) -> Job:
    return Job(kind=kind, dedupe=session.id, payload={"session": session.id, **payload})
