"""Jobs that look at processes: find the agent above a hook, notice when it is gone, and keep the pace of recovery."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.kinds.agent_events import AgentProcess
from holdfast.core.kinds.session_events import ProcessFound, SessionLost
from holdfast.features.sessions import liveness
from holdfast.features.sessions.events import session_event
from holdfast.features.sessions.state.documents import SESSION, Session

JUMP_MS = 30_000


def find_process(call: JobCall) -> list[Event]:
    """For hooks whose process could not be looked for when they came."""
    payload = call.job.payload
    session = SESSION.load(call.reader, str(payload["session"]))
    if session is None:
        return []
    above = liveness.agent_above(int(payload["pid"]), int(payload.get("start") or 0))
    found = liveness.agent_process(above) if above else None
    return [_process_found(session, found, call.now)] if found and found != session.process else []


def _process_found(session: Session, found: AgentProcess, now: int) -> Event:
    payload = ProcessFound(pid=found.pid, start=found.start, boot=found.boot, machine=found.machine, name=found.name)
    return session_event(session, payload, now, f"{found.pid}.{found.start}.{session.seq}")


def lost_sessions(sessions: Iterable[Session], now: int) -> Iterator[Event]:
    """A process that is gone is gone: within seconds, whatever the clock says."""
    for session in sessions:
        process = session.process
        if process and liveness.is_alive(process) is False:
            once = f"{process.pid}.{process.start}.{session.restarts}"
            yield session_event(session, SessionLost(pid=process.pid, start=process.start), now, once)


class AwakeClock:
    """How long the machine was awake since a moment: neither suspend nor a changed clock is inactivity."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._offset = wall() - steady()
        self._jumps: list[tuple[float, float]] = []

    def check(self) -> None:
        """Called every few seconds: the steady clock stands still while the machine sleeps."""
        now = self._wall()
        jump = now - self._steady() - self._offset
        if abs(jump) * 1000 > JUMP_MS:
            self._offset += jump
            self._jumps = [*self._jumps, (now, jump)][-100:]

    def ms_since(self, at: int, now: int) -> int:
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


AWAKE = AwakeClock()
PACE = Pace()
