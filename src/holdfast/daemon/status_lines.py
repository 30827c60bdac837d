"""Builds the line that an agent shows below its screen."""

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.app import App
from holdfast.core.decision import Delivery
from holdfast.core.ports import Reader, Store

VIEW = "sessions.statusline"
# Bytes of the agent's JSON.
LARGEST_INPUT = 256 << 10


class Window(msgspec.Struct):
    used_percentage: float | None = None


class Cost(msgspec.Struct):
    total_cost_usd: float | None = None


class AgentStatus(msgspec.Struct):
    """What an agent says on stdin about the session it wants a line for, as Claude Code does."""

    session_id: str = ""
    context_window: Window | None = None
    cost: Cost | None = None


decode = msgspec.json.Decoder(AgentStatus, strict=False).decode


class StatusLines:
    def __init__(self, app: Callable[[], App], troubles: Callable[[Reader], list[dict[str, Any]]]) -> None:
        self._app, self._troubles = app, troubles
        self._reader: Reader | None = None
        self._store: Store | None = None

    def line(self, delivery: Delivery) -> str:
        app = self._app()
        try:
            reader = self._reader_of(app)
            line = app.view(VIEW, app.call(VIEW, _view_arguments(delivery), reader))["text"]
            troubled = ["Holdfast: " + one["line"] for one in self._troubles(reader)[:1]]
        except Exception:
            self._reader = None
            raise
        parts = [part for part in (line, *troubled) if part]
        return f"{' · '.join(parts)}\n" if parts else ""

    def _reader_of(self, app: App) -> Reader:
        """A repaired store is a different one."""
        if self._reader is None or self._store is not app.store:
            self._store, self._reader = app.store, app.store.reader()
        return self._reader


def _view_arguments(delivery: Delivery) -> dict[str, Any]:
    try:
        agent_status = decode(delivery.body[:LARGEST_INPUT])
    # RecursionError: JSON nested too deeply.
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        agent_status = AgentStatus()
    return {
        "id": agent_status.session_id,
        "context": agent_status.context_window.used_percentage if agent_status.context_window else None,
        "reported": agent_status.cost.total_cost_usd if agent_status.cost else None,
    }
