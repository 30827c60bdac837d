"""The same happening told twice, by two registrations of our hooks, is one event: which ones were told just now."""

from collections.abc import Iterable

from holdfast.core.event import Event
from holdfast.core.kinds import HookPayload


def dedupe_key(event: Event) -> str:
    """Which happening an event tells of; events without one are never taken for another."""
    return event.data.dedupe_key if isinstance(event.data, HookPayload) else ""


WINDOW_MS = 10_000
"""Two hooks of one happening start together; how far apart they come is up to the agent and a busy machine."""

AT_ONCE, AT_ONCE_MS = "~", 100
"""How the name of a happening begins that may really happen again: no model answers within this time."""

KEPT = 4_096
REMEMBERED = 256
"""How many of the log's last events are looked at when memory begins anew."""


def near(same: str, before: int | None, at: int) -> bool:
    return before is not None and abs(at - before) <= (AT_ONCE_MS if same[0] == AT_ONCE else WINDOW_MS)


class Deduplicator:
    """What is committed. What a transaction is about to add it keeps itself until then."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def knows(self, same: str, at: int) -> bool:
        return near(same, self._seen.get(same), at)

    def add(self, told: Iterable[tuple[str, int]]) -> None:
        self._seen.update(told)
        while len(self._seen) > KEPT:
            del self._seen[next(iter(self._seen))]

    def begin_anew(self, events: Iterable[Event]) -> None:
        self._seen.clear()
        self.add((key, event.at) for event in events if (key := dedupe_key(event)))
