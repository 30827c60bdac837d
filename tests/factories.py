"""Small builders for tests: everything has a sensible value, a test says only what it is about."""

import hashlib
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from holdfast.core.decision import Decision, Delivery
from holdfast.core.engine import Engine, Ports
from holdfast.core.event import Event
from holdfast.core.feature import Feature, version_key
from holdfast.core.job import Job
from holdfast.core.ports import Doc, Ref, StateRow, Store
from holdfast.core.state import encode

NOON = 1_760_000_000_000
"""Some day at noon, in milliseconds: tests do not look at the clock."""

_numbers = itertools.count(1)


class AClock:
    """Stands still until told: `clock.tick(1000)`."""

    def __init__(self, now: int = NOON) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def tick(self, ms: int = 1) -> int:
        self.now += ms
        return self.now


def a_key() -> str:
    return f"key-{next(_numbers):06}"


def an_event(**given: Any) -> Event:
    """A tool call in session `s-1` of `/home/ada/engine`; a given body gets its length and hash."""
    number = next(_numbers)
    fields: dict[str, Any] = {
        "key": f"key-{number:06}",
        "kind": "tool.finished",
        "at": NOON + number,
        "session": "s-1",
        "project": "/home/ada/engine",
        "agent": "claude-code",
        "tool": "Bash",
        "data": {"call": f"call-{number}", "ok": True},
    }
    if body := given.get("body"):
        fields |= {"body_size": len(body), "body_hash": hashlib.sha256(body).hexdigest()}
    return Event(**fields | given)


def events(count: int, **given: Any) -> list[Event]:
    return [an_event(**given) for _ in range(count)]


def a_delivery(**given: Any) -> Delivery:
    fields: dict[str, Any] = {"key": a_key(), "agent": "claude-code", "event": "PostToolUse", "at": NOON}
    return Delivery(**fields | given)


def a_job(**given: Any) -> Job:
    return Job(**{"kind": "index", "run_at": NOON} | given)


def a_row(kind: str = "session", key: str = "s-1", doc: Doc | None = None, **given: Any) -> StateRow:
    doc = {"n": 1} if doc is None else doc
    fields = {"feature": "counter", "version": 1, "project": "", "status": "", "at": NOON} | given
    return StateRow(ref=Ref(kind, key), doc=encode(doc), **fields)


def counted(session: str = "s-1") -> Ref:
    return Ref("count", session)


def a_counter(**given: Any) -> Feature:
    """Counts a session's events, in the document `counted(session)`."""
    fields: dict[str, Any] = {
        "name": "counter",
        "keys": lambda event: [counted(event.session)],
        "reduce": _count,
        "stream": lambda ref: {"session": ref.key},
    }
    return Feature(**fields | given)


def _count(doc: Doc | None, event: Event, _ref: Ref) -> Doc:
    n = (doc or {}).get("n", 0) + 1
    return {"n": n, "last": event.key, "project": event.project, "status": "odd" if n % 2 else "even", "at": event.at}


def an_engine(store: Store, *features: Feature, **given: Any) -> Engine:
    """With a counting feature if none is named. An error in a feature fails the test unless `report` is given."""
    ports: dict[str, Any] = {
        "read": _read,
        "write": _write,
        "settings": _no_settings,
        "clock": AClock(),
        "report": fail,
    }
    return Engine(store, features or (a_counter(),), Ports(**ports | given))


def mark_made(store: Store, features: Iterable[Feature]) -> None:
    """As the first start of a daemon leaves a store: else the next start would make all documents anew."""
    with store.transaction():
        for feature in features:
            store.set_meta(version_key(feature), str(feature.version))


def fail(feature: str, _event: Event, error: Exception) -> None:
    raise AssertionError(f"{feature} failed") from error


def collect(into: list[tuple[str, Exception]]) -> Callable[[str, Event, Exception], None]:
    """A `report` that keeps what it hears."""
    return lambda feature, _event, error: into.append((feature, error))


def _read(delivery: Delivery) -> Event:
    return an_event(key=delivery.key, agent=delivery.agent, at=delivery.at, body=delivery.body)


def _write(_event: Event, decision: Decision) -> bytes:
    return "; ".join([decision.verdict, *decision.reasons]).encode()


def _no_settings(_project: str) -> Mapping[str, Any]:
    return {}
