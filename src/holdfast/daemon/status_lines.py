"""Serves status lines from a thread of its own, so that no hook waits."""

import _socket
import queue
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.app import App
from holdfast.core.decision import Delivery
from holdfast.core.ports import Reader, Store
from holdfast.daemon.ingest.frames import answer_frame
from holdfast.daemon.ingest.log import Log

VIEW = "sessions.statusline"
# Waiting requests; further ones are refused.
LONGEST_QUEUE = 64
# Bytes of the agent's JSON.
LARGEST_INPUT = 256 << 10
# In seconds.
SEND_S = 0.2


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
    def __init__(self, app: Callable[[], App], troubles: Callable[[Reader], list[dict[str, Any]]], log: Log) -> None:
        self._app, self._troubles, self._log = app, troubles, log
        self._waiting: queue.Queue[tuple[_socket.socket, Delivery]] = queue.Queue(LONGEST_QUEUE)
        self._reader: Reader | None = None
        self._store: Store | None = None

    def start(self) -> None:
        threading.Thread(target=self._serve, name="status-lines", daemon=True).start()

    def show(self, sock: _socket.socket, delivery: Delivery) -> None:
        try:
            self._waiting.put_nowait((sock, delivery))
        except queue.Full:
            # No line at all: waiting for room would hold up the hook thread.
            sock.close()

    def _serve(self) -> None:
        while True:
            sock, delivery = self._waiting.get()
            try:
                sock.settimeout(SEND_S)
                sock.sendall(answer_frame(self._line(delivery).encode()))
            except OSError:
                pass
            finally:
                sock.close()

    def _line(self, delivery: Delivery) -> str:
        """Nothing rather than an error: it is on somebody's screen."""
        try:
            app = self._app()
            reader = self._reader_of(app)
            line = app.view(VIEW, app.call(VIEW, _view_arguments(delivery), reader))["text"]
            troubled = ["Holdfast: " + one["line"] for one in self._troubles(reader)[:1]]
            parts = [part for part in (line, *troubled) if part]
            return f"{' · '.join(parts)}\n" if parts else ""
        except Exception as error:
            self._log.error("statusline.failed", error)
            self._reader = None
            return ""

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
