"""Tracks what the model cost and may still cost, and which turns wait for it.

The meter is one document for all projects, changed by one writer, so two jobs cannot both take the last tokens of a
day. No call starts without its tokens reserved here. The queue itself is the log (`memory.queued`); its document says
how far it was read. A failure moves nothing: the same turns are asked about later.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.core.document import DocumentType
from holdfast.core.event import Event
from holdfast.core.ids import bounded_name
from holdfast.core.kinds.memory_events import ModelAsked, ModelCallEnded, TurnQueued
from holdfast.core.ports import Ref
from holdfast.core.times import DAY

# Milliseconds of a day; days of use kept; characters of an error kept.
MOST_DAYS, LONGEST_ERROR = 31, 300
WAITING = "waiting"


class OpenCall(msgspec.Struct, frozen=True):
    """Tokens reserved for a running call."""

    project: str
    tokens: int
    day: int


class DayUse(msgspec.Struct, frozen=True):
    tokens: int = 0
    calls: int = 0
    failed: int = 0
    beyond: int = 0
    """By how much calls exceeded their maximum, e.g. an endpoint that thinks aloud."""


class Meter(msgspec.Struct, kw_only=True, frozen=True):
    day: int
    open: dict[str, OpenCall] = {}
    days: dict[int, DayUse] = {}
    at: int = 0

    def day_of(self, at: int) -> int:
        """A clock that goes back does not repeat a day."""
        return max(self.day, at // DAY)

    def use_of(self, at: int) -> DayUse:
        return self.days.get(self.day_of(at)) or DayUse()

    @property
    def reserved_tokens(self) -> int:
        return sum(one.tokens for one in self.open.values())

    def remaining_tokens(self, at: int, limit: int) -> int:
        """Tokens that can still be reserved today. Open reservations count, whenever they were made."""
        return limit - self.use_of(at).tokens - self.reserved_tokens

    def is_busy(self, project: str) -> bool:
        return any(one.project == project for one in self.open.values())


class Queue(msgspec.Struct, kw_only=True, frozen=True):
    project: str
    status: str = ""
    # Event numbers: the newest queued turn, and the last processed one.
    last: int = 0
    cursor: int = 0
    waiting: int = 0
    failures: int = 0
    bad: int = 0
    error: str = ""
    next_at: int = 0
    at: int = 0


METER = DocumentType("memory.meter", Meter)
QUEUE = DocumentType("memory.queue", Queue)
METER_REF = METER.ref("all")


def queue_ref(project: str) -> Ref:
    return QUEUE.ref(bounded_name(project))


def new_meter(at: int) -> Meter:
    return Meter(day=at // DAY, at=at)


def keys(event: Event) -> Iterable[Ref]:
    if not isinstance(event.data, TurnQueued):
        yield METER_REF
    if not isinstance(event.data, ModelAsked):
        yield queue_ref(event.project)


def reduce(doc: Any, event: Event, ref: Ref) -> Meter | Queue | None:
    if ref.kind == QUEUE.kind:
        return _reduce_queue(doc or Queue(project=event.project, at=event.at), event)
    meter = doc or new_meter(event.at)
    return _set_aside(meter, event) if isinstance(event.data, ModelAsked) else _settle_call(meter, event)


# ── the meter ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _set_aside(meter: Meter, event: Event) -> Meter:
    """Reserve if enough is left and no other call for this project is running; else nothing changes."""
    reservation: ModelAsked = event.data
    # Checked again in the reducer: two jobs may have read the same meter before either event.
    enough = 0 < reservation.tokens <= meter.remaining_tokens(event.at, reservation.limit)
    if not enough or meter.is_busy(event.project):
        return meter
    day = meter.day_of(event.at)
    mine = OpenCall(event.project, reservation.tokens, day)
    return replace(meter, day=day, open={**meter.open, reservation.id: mine}, at=event.at)


def _settle_call(meter: Meter, event: Event) -> Meter:
    """On the day of the reservation; never negative, whatever the endpoint reports."""
    ended: ModelCallEnded = event.data
    mine = meter.open.get(ended.id)
    if mine is None:
        return meter
    before, tokens = meter.days.get(mine.day) or DayUse(), max(0, ended.tokens)
    # `beyond` never falls: a cheap call does not prove that the endpoint stopped overrunning.
    after = DayUse(
        tokens=before.tokens + tokens, calls=before.calls + 1, failed=before.failed + (not ended.ok),
        beyond=max(before.beyond, before.beyond + tokens - mine.tokens),
    )  # fmt: skip
    days = dict(sorted({**meter.days, mine.day: after}.items())[-MOST_DAYS:])
    still = {name: one for name, one in meter.open.items() if name != ended.id}
    return replace(meter, open=still, days=days, at=event.at)


def meter_view(meter: Meter | None, at: int, limit: int) -> dict[str, Any]:
    current = meter or new_meter(at)
    today = current.use_of(at)
    return {
        "limit": limit, "used": today.tokens, "left": max(0, current.remaining_tokens(at, limit)), "held": current.reserved_tokens,
        "calls": today.calls, "failed": today.failed,
        "days": [{"at": day * DAY, **msgspec.to_builtins(use)} for day, use in reversed(current.days.items())],
    }  # fmt: skip


# ── the queue ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _reduce_queue(queue: Queue, event: Event) -> Queue:
    data = event.data
    if isinstance(data, TurnQueued):
        return replace(queue, last=event.seq, waiting=queue.waiting + 1, status=WAITING, at=event.at)
    ended: ModelCallEnded = data
    return _advance_queue(queue, ended, event.at) if ended.ok or ended.given_up else _held_back(queue, ended, event.at)


def _advance_queue(queue: Queue, ended: ModelCallEnded, at: int) -> Queue:
    until = max(queue.cursor, ended.until)
    # Counted down, and 0 once the cursor reached the newest turn.
    waiting = max(0, queue.waiting - ended.turns) if until < queue.last else 0
    return replace(
        queue, cursor=until, waiting=waiting, status=WAITING if waiting else "", failures=0, bad=0,
        error=ended.error[:LONGEST_ERROR], next_at=0, at=at,
    )  # fmt: skip


def _held_back(queue: Queue, ended: ModelCallEnded, at: int) -> Queue:
    return replace(
        queue, failures=queue.failures + 1, bad=queue.bad + ended.bad, error=ended.error[:LONGEST_ERROR],
        next_at=ended.next_at, at=at,
    )  # fmt: skip
