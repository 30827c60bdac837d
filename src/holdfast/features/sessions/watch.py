"""Jobs that look at processes: find the agent above a hook, notice when it is gone, and keep the pace of recovery."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.ports import Doc, Reader, Ref, StateQuery
from holdfast.features.sessions import liveness
from holdfast.features.sessions.model import ACTIVE, SESSION, WATCHED, said

PAGE = 200
JUMP_MS = 30_000


def pages(reader: Reader, status: str, until: int = 0) -> Iterator[Doc]:
    """Sessions of one status, the latest first; with `until` only those quiet since then."""
    before = (until, "") if until else None
    while page := reader.states(StateQuery(kind=SESSION, status=status, before=before, limit=PAGE)):
        yield from (doc for _, doc in page)
        last = page[-1]
        before = (int(last[1]["at"]), last[0].key)


def live(reader: Reader, until: int = 0) -> Iterator[Doc]:
    """Every session that has not ended."""
    return chain(pages(reader, WATCHED, until), pages(reader, ACTIVE, until))


def find_process(call: JobCall) -> list[Event]:
    """Soon after the first event of a session, for the shell between agent and hook may be short-lived."""
    payload = call.job.payload
    doc = call.reader.state(Ref(SESSION, str(payload["session"])))
    return [*found(doc, int(payload["pid"]), int(payload.get("start") or 0), call.now)] if doc else []


def found(doc: Doc, pid: int, start: int, now: int) -> Iterator[Event]:
    process = liveness.agent_above(pid, start)
    record = process.record() if process else None
    if record and record != doc["process"]:
        yield said(doc, "session.process", now, f"{record['pid']}.{record['start']}.{doc['seq']}", **record)


def lost(docs: Iterable[Doc], now: int) -> Iterator[Event]:
    """A process that is gone is gone: within seconds, whatever the clock says."""
    for doc in docs:
        process = doc["process"]
        if process and liveness.alive(process) is False:
            once = f"{process['pid']}.{process['start']}.{doc['restarts']}"
            yield said(doc, "session.lost", now, once, pid=process["pid"], start=process["start"])


class Awake:
    """How long the machine was awake since a moment: neither suspend nor a changed clock is inactivity."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._offset = wall() - steady()
        self._jumps: list[tuple[float, float]] = []

    def look(self) -> None:
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

    def due(self, every: float) -> bool:
        with self._lock:
            now = self._steady()
            if now < self._next:
                return False
            self._next = now + every
            return True


AWAKE = Awake()
PACE = Pace()
