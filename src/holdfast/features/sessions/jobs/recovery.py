"""Nothing is left dangling (S4-10 to S4-14)."""

# Each finder only reads; what it finds becomes events, once. Also the looks at processes that the agent's hook could
# not make, what Esc leaves behind (Claude Code fires no hook for it), and the parent of a fork or a clear (O4-d): the
# same process first, then shared history, then the clock.

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from math import inf
from typing import Any

import msgspec

from holdfast.analysis.usage.model import parse_milliseconds
from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.kinds.agent_events import AgentProcess
from holdfast.core.kinds.session_events import (
    PermissionGranted,
    ProcessFound,
    SessionBranched,
    SessionLeft,
    SessionLinked,
    SessionLost,
    SessionStale,
    TurnAdopted,
    TurnEscaped,
    TurnRecovered,
)
from holdfast.core.ports import Reader
from holdfast.core.times import DAY
from holdfast.features.sessions import liveness
from holdfast.features.sessions.jobs.process_turns import turn_events
from holdfast.features.sessions.settings import DEFAULTS, SessionsSettings
from holdfast.features.sessions.state.documents import (
    ACTIVE,
    COMPLETED,
    RECENT_SESSIONS,
    SESSION,
    WATCHED,
    Session,
    Turn,
    session_event,
)
from holdfast.features.sessions.state.reducer import live_sessions, sessions_by_status
from holdfast.paths import open_regular

# After Esc Claude Code fires no hook: only its transcript shows that the turn is over.

# Searched for in the raw bytes first: most lines are not parsed at all.
MARK = b"[Request interrupted by user"
TEXTS = ("[Request interrupted by user]", "[Request interrupted by user for tool use]")
# Bytes from the end at the first look, bytes at most in one look, files whose offset is kept.
FIRST_LOOK = 256 << 10
MOST_BYTES = 8 << 20
MOST_FILES = 500


class Interrupts:
    """Remembers how far it has read, so that a look costs one `stat` where nothing was written."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[int, int]] = {}
        """By path: where to read on, and how far was looked."""

    def find(self, sessions: Iterable[Session], now: int) -> Iterator[Event]:
        for session in sessions:
            turn = session.turn
            if turn is None or not turn.is_open or not session.transcript:
                continue
            at = self.latest(session.transcript, turn)
            if at:
                # Once per turn and time: the same mark read again makes no second event.
                yield session_event(session, TurnEscaped(n=turn.n, when=at), now, f"{turn.n}.{at}")

    def latest(self, path: str, turn: Turn) -> int:
        """When this turn was interrupted, if the new part of the file says so; else 0."""
        marks = [_parse_interrupt(line) for line in self._new_part(path).split(b"\n") if MARK in line]
        return max((at for prompt, at in marks if _is_of(turn, prompt, at)), default=0)

    def _new_part(self, path: str) -> bytes:
        with suppress(OSError, ValueError), open(path, "rb", opener=open_regular) as file:
            size = os.fstat(file.fileno()).st_size
            offset, looked_at = self._read.get(path, (max(0, size - FIRST_LOOK), -1))
            if size == looked_at:
                return b""
            # A file that was cut is read from its new end, not from behind it.
            offset = min(offset, size)
            part = os.pread(file.fileno(), MOST_BYTES, offset)
            # Up to the last line end: a half-written line is read again. A line longer than a look is skipped: the mark of an
            # interruption is short.
            passed = len(part) if len(part) == MOST_BYTES and b"\n" not in part else part.rfind(b"\n") + 1
            self._remember(path, offset + passed, offset + len(part))
            return part
        return b""

    def _remember(self, path: str, offset: int, looked_at: int) -> None:
        # Put in again at the end, so that the file looked at last is the last to go.
        self._read.pop(path, None)
        self._read[path] = offset, looked_at
        if len(self._read) > MOST_FILES:
            del self._read[next(iter(self._read))]


def _is_of(turn: Turn, prompt: str, at: int) -> bool:
    # By the prompt's id where both sides have one; else the mark must be younger than the turn.
    return prompt == turn.id if prompt and turn.id else at >= turn.at


def _parse_interrupt(line: bytes) -> tuple[str, int]:
    """(prompt id, time). A person may type the same words, but only as plain text."""
    with suppress(msgspec.DecodeError, ValueError, TypeError, AttributeError, RecursionError):
        record: Any = msgspec.json.decode(line)
        parts = record["message"]["content"] if record.get("type") == "user" else None
        if isinstance(parts, list) and any(isinstance(p, dict) and p.get("text") in TEXTS for p in parts):
            return str(record.get("promptId") or ""), parse_milliseconds(record.get("timestamp"))
    return "", 0


INTERRUPTS = Interrupts()


# Jobs that look at processes: find the agent above a hook, notice when it is gone, and keep the pace of recovery.

# Smaller differences between the two clocks are drift.
JUMP_MS = 30_000


def find_process(call: JobCall) -> list[Event]:
    """For hooks whose process could not be looked for when they came."""
    payload = call.job.payload
    session = SESSION.load(call.reader, str(payload["session"]))
    if session is None:
        return []
    above = liveness.agent_above(int(payload["pid"]), int(payload.get("start") or 0))
    process = liveness.agent_process(above) if above else None
    return [_process_found(session, process, call.now)] if process and process != session.process else []


def _process_found(session: Session, process: AgentProcess, now: int) -> Event:
    payload = msgspec.convert(process, ProcessFound, from_attributes=True)
    return session_event(session, payload, now, f"{process.pid}.{process.start}.{session.seq}")


def lost_among(sessions: Iterable[Session], now: int) -> Iterator[Event]:
    """Sessions whose process is gone."""
    for session in sessions:
        process = session.process
        if process and liveness.is_alive(process) is False:
            # A session that was resumed and lost again is another loss.
            once = f"{process.pid}.{process.start}.{session.restarts}"
            yield session_event(session, SessionLost(pid=process.pid, start=process.start), now, once)


class AwakeClock:
    """How long the machine was awake since a moment: neither suspend nor a changed clock is inactivity."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._offset = wall() - steady()
        self._jumps: list[tuple[float, float]] = []

    def check(self) -> None:
        """Called every few seconds: the steady clock stops while the machine sleeps."""
        now = self._wall()
        jump = now - self._steady() - self._offset
        # Clock set forwards, backwards, or the machine asleep: the difference shows all three.
        if abs(jump) * 1000 > JUMP_MS:
            self._offset += jump
            self._jumps = [*self._jumps, (now, jump)][-100:]

    def ms_since(self, at: int, now: int) -> int:
        # Only jumps forward count as time that was not spent awake.
        jumped = sum(max(0.0, jump) for when, jump in self._jumps if when * 1000 > at)
        return now - at - int(jumped * 1000)


class Pace:
    """Recovery runs less often than the watch it rides on; how often is a setting."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady, self._next, self._lock = steady, 0.0, threading.Lock()

    def is_due(self, every: float) -> bool:
        with self._lock:
            now = self._steady()
            if now < self._next:
                return False
            self._next = now + every
            return True

    def put_off(self, seconds: float) -> None:
        with self._lock:
            self._next = max(self._next, self._steady() + seconds)


AWAKE = AwakeClock()
PACE = Pace()
IMPORT_PAUSE_S = 20.0
"""After an imported event: the end of its session may be in the next batch."""


def wait_for_import(_event: Event) -> None:
    PACE.put_off(IMPORT_PAUSE_S)


Finder = Callable[[Reader, SessionsSettings, int], Iterable[Event]]
"""(reader, the feature's settings, now) → events."""

MAX_AT_ONCE = 100
"""Events of one round: they are one transaction, which hooks wait for. The rest comes with the next round."""
MAX_SWEPT = 500
CLOCKS_DIFFER_MS = 1000
"""Linux reports the time of boot, from which process start times are counted, in whole seconds."""
# A child younger than this may be a hook of the agent, not the command.
LONGER_THAN_A_HOOK_MS = 2000


def stuck_turns(reader: Reader, settings: SessionsSettings, now: int) -> Iterator[Event]:
    """S4-11: an open turn, or a lane left open behind it, without a sign of life."""
    limit = settings.batch_active_timeout_seconds * 1000
    # By the index: only sessions whose last event is older than the limit are loaded.
    for session in live_sessions(reader, until=now - limit + 1):
        turn = session.turn
        if turn and _has_dangling_turn(session) and _quiet_ms(session, now) >= limit and not _is_busy(session):
            # The reducer checks `last` again: an event that came meanwhile takes the conclusion back.
            payload = TurnRecovered(n=turn.n, last=session.at)
            yield session_event(session, payload, now, f"{turn.n}.{session.seq}")


def _has_dangling_turn(session: Session) -> bool:
    turn = session.turn
    # While the user is asked something, silence is not a stuck turn.
    return turn is not None and not session.asks and (turn.is_open or session.any_lane_open)


def _is_busy(session: Session) -> bool:
    """A command that runs for an hour is work; the agent's child says so."""
    process, running = session.process, session.running.values()
    return bool(process and running) and _runs_since(process, min(call.at for call in running))


def granted_permissions(reader: Reader, _settings: SessionsSettings, now: int) -> Iterator[Event]:
    """No agent reports your permission before the tool has ended, but by then the command runs."""
    for session in sessions_by_status(reader, WATCHED):
        ask = session.asks[0] if session.asks else None
        if ask and ask.shell and _runs_since(session.process, ask.at, now - LONGER_THAN_A_HOOK_MS):
            yield session_event(session, PermissionGranted(asked=ask.at), now, ask.at)


def _runs_since(process: AgentProcess | None, at: int, until: float = inf) -> bool:
    if process is None or not liveness.is_alive(process):
        return False
    return liveness.has_child_since(process.pid, at - CLOCKS_DIFFER_MS, until)


def stale_sessions(reader: Reader, settings: SessionsSettings, now: int) -> Iterator[Event]:
    """S4-12, only where no process is known: `at` is the last activity, or the start where there was none."""
    limit = settings.session_inactive_timeout_seconds * 1000
    # WATCHED sessions have a process, whose end `lost_sessions` notices.
    for session in sessions_by_status(reader, ACTIVE, until=now - limit + 1):
        if _quiet_ms(session, now) >= limit:
            yield session_event(session, SessionStale(last=session.at), now, session.seq)


def _quiet_ms(session: Session, now: int) -> int:
    return AWAKE.ms_since(session.at, now)


def orphaned_activities(reader: Reader, _settings: SessionsSettings, now: int) -> Iterator[Event]:
    """S4-13: activities before any prompt are in a turn of their own; this records it."""
    for session in islice(live_sessions(reader), MAX_SWEPT):
        yield from _adoption_events(session, now)


def _adoption_events(session: Session, now: int) -> Iterator[Event]:
    turn = session.turn
    if turn and turn.origin == "recovery" and not turn.adopted:
        yield session_event(session, TurnAdopted(n=turn.n, first=turn.first), now, turn.n)


def pending_turns(reader: Reader, settings: SessionsSettings, now: int) -> Iterator[Event]:
    """S4-14: closed turns that are not processed."""
    for session in islice(live_sessions(reader), MAX_SWEPT):
        yield from turn_events(session, reader, now, transcripts=settings.transcripts)


def lost_sessions(reader: Reader, _settings: SessionsSettings, now: int) -> Iterator[Event]:
    return lost_among(sessions_by_status(reader, WATCHED), now)


def interrupted_turns(reader: Reader, settings: SessionsSettings, now: int) -> Iterable[Event]:
    """What Esc leaves behind."""
    return INTERRUPTS.find(sessions_by_status(reader, WATCHED), now) if settings.transcripts else ()


FINDERS: dict[str, Finder] = {
    "lost": lost_sessions,
    "interrupted": interrupted_turns,
    "granted": granted_permissions,
    "stuck": stuck_turns,
    "stale": stale_sessions,
    "orphans": orphaned_activities,
    "pending": pending_turns,
}


def run_finder(name: str, reader: Reader, settings: SessionsSettings | None, now: int) -> list[Event]:
    return list(islice(FINDERS[name](reader, settings or DEFAULTS, now), MAX_AT_ONCE))


def as_job(name: str) -> Callable[[JobCall], list[Event]]:
    return lambda call: run_finder(name, call.reader, call.settings(""), call.now)


def keep_watch(call: JobCall) -> list[Event]:
    """Lost, interrupted and granted every few seconds; the others at the pace of recovery."""
    AWAKE.check()
    settings = call.settings("") or DEFAULTS
    events = run_finder("lost", call.reader, settings, call.now)
    # A lost session ends here; the others would conclude something else about it.
    gone = {event.session for event in events}
    events += run_finder("interrupted", call.reader, settings, call.now) + run_finder(
        "granted", call.reader, settings, call.now
    )
    if PACE.is_due(settings.background_processing_interval):
        for name in ("stuck", "stale", "orphans", "pending"):
            events += [e for e in run_finder(name, call.reader, settings, call.now) if e.session not in gone]
    return events


def adopt_turn(call: JobCall) -> list[Event]:
    session = SESSION.load(call.reader, str(call.job.payload["session"]))
    return list(_adoption_events(session, call.now)) if session else []


# Finding the parent of a fork or a clear (O4-d): the same process first, then shared history, then the clock.

JUST_ENDED_MS = 5_000
FIRST_BYTES = 256 << 10
LINKED_SOURCES = ("clear", "fork")


def link_parent(call: JobCall) -> list[Event]:
    session = SESSION.load(call.reader, str(call.job.payload["session"]))
    return list(parent_events(session, call.reader, call.now)) if session else []


def parent_events(session: Session, reader: Reader, now: int) -> Iterator[Event]:
    reason = session.origin
    if session.parent or reason not in LINKED_SOURCES:
        return
    # Parents are older by number, whatever the clocks say.
    older = [other for other in _neighbour_sessions(session, reader) if other.first_seq < session.first_seq]
    parent = _find_cleared(session, older) if reason == "clear" else _find_forked(session, older)
    if parent:
        linked = SessionLinked(parent=parent.id, reason=reason, parent_seq=parent.first_seq)
        yield session_event(session, linked, now, "once")
        yield session_event(parent, SessionBranched(child=session.id, reason=reason), now, session.first_seq)
        # Only then it is certain that the parent was left.
        if reason == "clear" and parent.is_active and same_process(session, parent):
            # Codex reports a clear only when it exits.
            yield session_event(parent, SessionLeft(to=session.id), now, parent.restarts)


def _neighbour_sessions(session: Session, reader: Reader) -> Iterator[Session]:
    """Sessions of the same agent in the same project, the latest first."""
    recent_sessions = RECENT_SESSIONS.load(reader, session.project)
    for name in recent_sessions.recent if recent_sessions else []:
        other = SESSION.load(reader, name)
        if other and other.id != session.id and other.agent == session.agent:
            yield other


def _find_cleared(session: Session, older: list[Session]) -> Session | None:
    """By the process; without one the session cleared last, within seconds, else today."""
    began = session.started_at
    cleared = [o for o in older if o.status == COMPLETED and o.reason == "clear" and o.ended_at - began < JUST_ENDED_MS]
    # From the surest sign to the weakest; the same process within a day, as process ids come again.
    same = [o for o in older if same_process(session, o) and abs(began - o.at) < DAY]
    just_now = [o for o in cleared if began - o.ended_at < JUST_ENDED_MS]
    today = [o for o in cleared if 0 <= began - o.ended_at < DAY]
    return _latest_session(same or just_now or today)


def same_process(session: Session, other: Session) -> bool:
    """By the agent's own process; where one of them is not known, by the parent of their hooks."""
    if session.process and other.process:
        return (session.process.pid, session.process.start) == (other.process.pid, other.process.start)
    return bool(session.hook and other.hook and session.hook[0] == other.hook[0])


def _latest_session(sessions: Iterable[Session]) -> Session | None:
    return max(sessions, key=lambda session: session.seq, default=None)


def _find_forked(session: Session, older: list[Session]) -> Session | None:
    """A fork begins with its parent's messages, under their own ids."""
    root = first_message(session.transcript)
    return _latest_session(o for o in older if root and first_message(o.transcript) == root)


def first_message(path: str) -> str:
    """The id of the first message of a transcript."""
    # The path comes from a hook's payload: never a pipe or a device.
    with suppress(OSError, ValueError), open(path, "rb", opener=open_regular) as file:
        for line in file.read(FIRST_BYTES).split(b"\n"):
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                record = msgspec.json.decode(line)
                if isinstance(record, dict) and record.get("type") == "user":
                    return str(record.get("uuid") or "")[:100]
    return ""
