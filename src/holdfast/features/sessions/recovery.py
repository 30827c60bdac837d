"""Nothing is left dangling (S4-10 to S4-14). Each finder only reads; what it finds is told by events, once."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from math import inf
from typing import Any

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.ports import Doc, Reader, Ref
from holdfast.features.sessions import liveness, watch
from holdfast.features.sessions.interrupts import INTERRUPTS
from holdfast.features.sessions.model import ACTIVE, DEFAULTS, SESSION, WATCHED, is_open, said
from holdfast.features.sessions.process import go_through

Finder = Callable[[Reader, Any, int], Iterable[Event]]
"""(reader, the room's settings, now) → what is to be told."""

MOST_AT_ONCE = 100
"""Told in one go: they are one transaction, and no hook shall wait for it. The rest comes with the next round."""
MOST_SWEPT = 500
CLOCKS_DIFFER_MS = 1000
"""Linux tells the time of boot, which process start times are counted from, in whole seconds."""
LONGER_THAN_A_HOOK_MS = 2000


def stuck_turns(reader: Reader, settings: Any, now: int) -> Iterator[Event]:
    """S4-11: an open turn, or a lane left open behind it, without a sign of life."""
    limit = settings.batch_active_timeout_seconds * 1000
    for doc in watch.live(reader, until=now - limit + 1):
        if _dangles(doc) and _quiet_ms(doc, now) >= limit and not _busy(doc):
            n = doc["turn"]["n"]
            yield said(doc, "turn.recovered", now, f"{n}.{doc['seq']}", n=n, last=doc["at"])


def _dangles(doc: Doc) -> bool:
    lane_open = any(not lane["end"] for lane in doc["lanes"].values())
    return doc["turn"] is not None and not doc["asks"] and (is_open(doc["turn"]) or lane_open)


def _busy(doc: Doc) -> bool:
    """A command that runs for an hour is work; the agent's child says so."""
    process, running = doc["process"], doc["running"].values()
    return bool(process and running) and _runs_since(process, min(r["at"] for r in running))


def granted(reader: Reader, _settings: Any, now: int) -> Iterator[Event]:
    """No agent tells that you said yes before the tool has ended; but then the command runs already."""
    for doc in watch.pages(reader, WATCHED):
        ask = doc["asks"][0] if doc["asks"] else None
        if ask and ask["shell"] and _runs_since(doc["process"], ask["at"], now - LONGER_THAN_A_HOOK_MS):
            yield said(doc, "permission.granted", now, ask["at"], asked=ask["at"])


def _runs_since(process: Doc, at: int, until: float = inf) -> bool:
    since = at - CLOCKS_DIFFER_MS
    return bool(liveness.alive(process)) and liveness.has_child_since(process["pid"], since, until)


def stale_sessions(reader: Reader, settings: Any, now: int) -> Iterator[Event]:
    """S4-12, only where no process is known: `at` is the last activity, or the start where there was none."""
    limit = settings.session_inactive_timeout_seconds * 1000
    for doc in watch.pages(reader, ACTIVE, until=now - limit + 1):
        if _quiet_ms(doc, now) >= limit:
            yield said(doc, "session.stale", now, doc["seq"], last=doc["at"])


def _quiet_ms(doc: Doc, now: int) -> int:
    return watch.AWAKE.ms_since(doc["at"], now)


def orphans(reader: Reader, _settings: Any, now: int) -> Iterator[Event]:
    """S4-13: activities before any prompt are in a turn of their own; here that is put on record."""
    for doc in islice(watch.live(reader), MOST_SWEPT):
        yield from adopted(doc, now)


def adopted(doc: Doc, now: int) -> Iterator[Event]:
    turn = doc["turn"]
    if turn and turn["origin"] == "recovery" and not turn.get("adopted"):
        yield said(doc, "turn.adopted", now, turn["n"], n=turn["n"], first=turn["first"])


def pending_turns(reader: Reader, settings: Any, now: int) -> Iterator[Event]:
    """S4-14: closed turns nobody has gone through."""
    for doc in islice(watch.live(reader), MOST_SWEPT):
        yield from go_through(doc, reader, now, transcripts=settings.transcripts)


def lost_sessions(reader: Reader, _settings: Any, now: int) -> Iterator[Event]:
    return watch.lost(watch.pages(reader, WATCHED), now)


def interrupted_turns(reader: Reader, settings: Any, now: int) -> Iterable[Event]:
    """What Esc leaves behind."""
    return INTERRUPTS.found(watch.pages(reader, WATCHED), now) if settings.transcripts else ()


FINDERS: dict[str, Finder] = {
    "lost": lost_sessions,
    "interrupted": interrupted_turns,
    "granted": granted,
    "stuck": stuck_turns,
    "stale": stale_sessions,
    "orphans": orphans,
    "pending": pending_turns,
}


def found(name: str, reader: Reader, settings: Any, now: int) -> list[Event]:
    return list(islice(FINDERS[name](reader, settings or DEFAULTS, now), MOST_AT_ONCE))


def as_job(name: str) -> Callable[[JobCall], list[Event]]:
    return lambda call: found(name, call.reader, call.settings(""), call.now)


def keep_watch(call: JobCall) -> list[Event]:
    """Every few seconds who is gone, was interrupted or got its permission; all else at the pace of recovery."""
    watch.AWAKE.look()
    settings = call.settings("") or DEFAULTS
    events = found("lost", call.reader, settings, call.now)
    gone = {event.session for event in events}
    events += found("interrupted", call.reader, settings, call.now) + found("granted", call.reader, settings, call.now)
    if watch.PACE.due(settings.background_processing_interval):
        for name in ("stuck", "stale", "orphans", "pending"):
            events += [e for e in found(name, call.reader, settings, call.now) if e.session not in gone]
    return events


def adopt(call: JobCall) -> list[Event]:
    doc = call.reader.state(Ref(SESSION, str(call.job.payload["session"])))
    return list(adopted(doc, call.now)) if doc else []
