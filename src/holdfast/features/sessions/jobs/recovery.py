"""Nothing is left dangling (S4-10 to S4-14). Each finder only reads; what it finds is told by events, once."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from math import inf

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.kinds.agent_events import AgentProcess
from holdfast.core.kinds.session_events import PermissionGranted, SessionStale, TurnAdopted, TurnRecovered
from holdfast.core.ports import Reader
from holdfast.features.sessions import liveness
from holdfast.features.sessions.events import session_event
from holdfast.features.sessions.jobs import watch
from holdfast.features.sessions.jobs.interrupts import INTERRUPTS
from holdfast.features.sessions.jobs.process_turns import turn_events
from holdfast.features.sessions.settings import DEFAULTS, SessionsSettings
from holdfast.features.sessions.state.documents import ACTIVE, SESSION, WATCHED, Session
from holdfast.features.sessions.state.queries import live_sessions, sessions_by_status

Finder = Callable[[Reader, SessionsSettings, int], Iterable[Event]]
"""(reader, the feature's settings, now) → what is to be told."""

MAX_AT_ONCE = 100
"""Told in one go: they are one transaction, and no hook shall wait for it. The rest comes with the next round."""
MAX_SWEPT = 500
CLOCKS_DIFFER_MS = 1000
"""Linux tells the time of boot, which process start times are counted from, in whole seconds."""
LONGER_THAN_A_HOOK_MS = 2000


def stuck_turns(reader: Reader, settings: SessionsSettings, now: int) -> Iterator[Event]:
    """S4-11: an open turn, or a lane left open behind it, without a sign of life."""
    limit = settings.batch_active_timeout_seconds * 1000
    for session in live_sessions(reader, until=now - limit + 1):
        turn = session.turn
        if turn and _dangles(session) and _quiet_ms(session, now) >= limit and not _is_busy(session):
            payload = TurnRecovered(n=turn.n, last=session.at)
            yield session_event(session, payload, now, f"{turn.n}.{session.seq}")


def _dangles(session: Session) -> bool:
    turn = session.turn
    return turn is not None and not session.asks and (turn.is_open or session.any_lane_open)


def _is_busy(session: Session) -> bool:
    """A command that runs for an hour is work; the agent's child says so."""
    process, running = session.process, session.running.values()
    return bool(process and running) and _runs_since(process, min(call.at for call in running))


def granted_permissions(reader: Reader, _settings: SessionsSettings, now: int) -> Iterator[Event]:
    """No agent tells that you said yes before the tool has ended; but then the command runs already."""
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
    for session in sessions_by_status(reader, ACTIVE, until=now - limit + 1):
        if _quiet_ms(session, now) >= limit:
            yield session_event(session, SessionStale(last=session.at), now, session.seq)


def _quiet_ms(session: Session, now: int) -> int:
    return watch.AWAKE.ms_since(session.at, now)


def orphaned_activities(reader: Reader, _settings: SessionsSettings, now: int) -> Iterator[Event]:
    """S4-13: activities before any prompt are in a turn of their own; here that is put on record."""
    for session in islice(live_sessions(reader), MAX_SWEPT):
        yield from _adopted(session, now)


def _adopted(session: Session, now: int) -> Iterator[Event]:
    turn = session.turn
    if turn and turn.origin == "recovery" and not turn.adopted:
        yield session_event(session, TurnAdopted(n=turn.n, first=turn.first), now, turn.n)


def pending_turns(reader: Reader, settings: SessionsSettings, now: int) -> Iterator[Event]:
    """S4-14: closed turns nobody has gone through."""
    for session in islice(live_sessions(reader), MAX_SWEPT):
        yield from turn_events(session, reader, now, transcripts=settings.transcripts)


def lost_sessions(reader: Reader, _settings: SessionsSettings, now: int) -> Iterator[Event]:
    return watch.lost_sessions(sessions_by_status(reader, WATCHED), now)


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


def find(name: str, reader: Reader, settings: SessionsSettings | None, now: int) -> list[Event]:
    return list(islice(FINDERS[name](reader, settings or DEFAULTS, now), MAX_AT_ONCE))


def as_job(name: str) -> Callable[[JobCall], list[Event]]:
    return lambda call: find(name, call.reader, call.settings(""), call.now)


def keep_watch(call: JobCall) -> list[Event]:
    """Every few seconds who is gone, was interrupted or got its permission; all else at the pace of recovery."""
    watch.AWAKE.check()
    settings = call.settings("") or DEFAULTS
    events = find("lost", call.reader, settings, call.now)
    gone = {event.session for event in events}
    events += find("interrupted", call.reader, settings, call.now) + find("granted", call.reader, settings, call.now)
    if watch.PACE.is_due(settings.background_processing_interval):
        for name in ("stuck", "stale", "orphans", "pending"):
            events += [e for e in find(name, call.reader, settings, call.now) if e.session not in gone]
    return events


def adopt(call: JobCall) -> list[Event]:
    session = SESSION.load(call.reader, str(call.job.payload["session"]))
    return list(_adopted(session, call.now)) if session else []
