"""Logs starts and ends of sessions (S4-20)."""

from typing import TYPE_CHECKING

from holdfast.core.engine import Committed
from holdfast.core.event import Event
from holdfast.core.kinds import SESSION_ENDS
from holdfast.daemon.ingest.log import Log

if TYPE_CHECKING:
    pass

LOGGED_KINDS = SESSION_ENDS | {"session.started", "session.reopened"}
DETAILS = ("source", "reason", "pid", "to")


class LifecycleLog:
    def __init__(self, log: Log) -> None:
        self._log = log

    def write(self, committed: Committed) -> None:
        for event in committed.events:
            if event.kind in LOGGED_KINDS and not event.get("imported"):
                self._write(event)

    def _write(self, event: Event) -> None:
        details = {name: value for name in DETAILS if (value := event.get(name))}
        self._log(event.kind, session=event.session, agent=event.agent, project=event.project, **details)
