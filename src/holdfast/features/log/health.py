"""What is wrong with Holdfast itself, shown to the person when a session starts."""

from collections.abc import Iterable

import msgspec

from holdfast.core.decision import Decision
from holdfast.core.document import DocumentType
from holdfast.core.event import Event
from holdfast.core.feature import Settings, State
from holdfast.core.kinds.engine_events import DaemonStarted, HealthChanged, Trouble
from holdfast.core.ports import Doc, Ref
from holdfast.core.times import HOUR, MINUTE, time_ago

KINDS = frozenset(("health.changed", "daemon.started"))
SESSION_START = "session.started"
THE_HEALTH = "holdfast"


class Health(msgspec.Struct, frozen=True):
    at: int = 0
    troubles: list[Trouble] = []
    down_from: int = 0
    """When the first start failed before the last one that succeeded; 0 where none did."""
    up_again: int = 0


HEALTH = DocumentType("log.health", Health)


def keys(event: Event) -> Iterable[Ref]:
    return (HEALTH.ref(THE_HEALTH),) if event.kind in KINDS else ()


def reduce(doc: Doc | None, event: Event, _ref: Ref) -> Health | None:
    before = doc if isinstance(doc, Health) else Health()
    if isinstance(event.data, HealthChanged):
        return msgspec.structs.replace(before, at=event.at, troubles=event.data.troubles)
    if isinstance(event.data, DaemonStarted) and event.data.failing_since:
        return msgspec.structs.replace(before, at=event.at, down_from=event.data.failing_since, up_again=event.at)
    return before if doc else None


def decide(state: State, event: Event, _settings: Settings) -> Decision | None:
    health = HEALTH.get(state, THE_HEALTH) if event.kind == SESSION_START else None
    lines = list(_lines(health, event.at)) if health else []
    return Decision(notices=tuple(lines)) if lines else None


def _lines(health: Health, now: int) -> Iterable[str]:
    if health.up_again and 0 <= now - health.up_again < HOUR:
        minutes = max(1, (health.up_again - health.down_from) // MINUTE)
        until = time_ago(health.up_again, now)
        yield f"Holdfast could not start for {minutes} min, until {until}: hooks were spooled, gates were not asked"
    for one in health.troubles:
        yield f"Holdfast: {trouble_line(one, now)}"


def trouble_line(one: Trouble, now: int) -> str:
    """For every place that shows it."""
    fix = f": {one.fix}" if one.fix else ""
    return f"{one.text} (since {time_ago(one.since, now)}){fix}"
