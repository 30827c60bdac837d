"""After Esc Claude Code fires no hook at all: that the turn is over stands only in its transcript."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.kinds.session_events import TurnEscaped
from holdfast.features.sessions.events import session_event
from holdfast.features.sessions.state.documents import Session, Turn
from holdfast.usage.fields import milliseconds
from holdfast.usage.follow import open_regular

MARK = b"[Request interrupted by user"
TEXTS = ("[Request interrupted by user]", "[Request interrupted by user for tool use]")
FIRST_LOOK = 256 << 10
MOST_BYTES = 8 << 20
MOST_FILES = 500


class Interrupts:
    """Remembers how far it has read, so that a look costs one `stat` where nothing was written."""

    def __init__(self) -> None:
        self._offsets: dict[str, int] = {}

    def find(self, sessions: Iterable[Session], now: int) -> Iterator[Event]:
        for session in sessions:
            turn = session.turn
            if turn is None or not turn.is_open or not session.transcript:
                continue
            at = self.latest(session.transcript, turn)
            if at:
                yield session_event(session, TurnEscaped(n=turn.n, when=at), now, f"{turn.n}.{at}")

    def latest(self, path: str, turn: Turn) -> int:
        """When this turn was interrupted, if the new part of the file says so; else 0."""
        marks = [_interrupt(line) for line in self._new_part(path).split(b"\n") if MARK in line]
        return max((at for prompt, at in marks if _is_of(turn, prompt, at)), default=0)

    def _new_part(self, path: str) -> bytes:
        with suppress(OSError, ValueError), open(path, "rb", opener=open_regular) as file:
            size = os.fstat(file.fileno()).st_size
            offset = self._offsets.get(path, max(0, size - FIRST_LOOK))
            part = os.pread(file.fileno(), MOST_BYTES, min(offset, size))
            self._remember(path, min(offset, size) + part.rfind(b"\n") + 1)
            return part
        return b""

    def _remember(self, path: str, offset: int) -> None:
        self._offsets.pop(path, None)
        self._offsets[path] = offset
        if len(self._offsets) > MOST_FILES:
            del self._offsets[next(iter(self._offsets))]


def _is_of(turn: Turn, prompt: str, at: int) -> bool:
    return prompt == turn.id if prompt and turn.id else at >= turn.at


def _interrupt(line: bytes) -> tuple[str, int]:
    """(prompt id, time). A person may type the same words, but only as plain text."""
    with suppress(msgspec.DecodeError, ValueError, TypeError, AttributeError, RecursionError):
        found: Any = msgspec.json.decode(line)
        parts = found["message"]["content"] if found.get("type") == "user" else None
        if isinstance(parts, list) and any(isinstance(p, dict) and p.get("text") in TEXTS for p in parts):
            return str(found.get("promptId") or ""), milliseconds(found.get("timestamp"))
    return "", 0


INTERRUPTS = Interrupts()
