"""After Esc Claude Code fires no hook at all: that the turn is over stands only in its transcript."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.sessions.model import is_open, said
from holdfast.features.sessions.transcript import milliseconds, open_regular

MARK = b"[Request interrupted by user"
TEXTS = ("[Request interrupted by user]", "[Request interrupted by user for tool use]")
FIRST_LOOK = 256 << 10
MOST_BYTES = 8 << 20
MOST_FILES = 500


class Interrupts:
    """Remembers how far it has read, so that a look costs one `stat` where nothing was written."""

    def __init__(self) -> None:
        self._offsets: dict[str, int] = {}

    def found(self, docs: Iterable[Doc], now: int) -> Iterator[Event]:
        for doc in docs:
            turn = doc["turn"]
            if not is_open(turn) or not doc["transcript"]:
                continue
            at = self._latest(doc["transcript"], turn)
            if at:
                yield said(doc, "turn.escaped", now, f"{turn['n']}.{at}", n=turn["n"], when=at)

    def _latest(self, path: str, turn: Doc) -> int:
        """When this turn was interrupted, if the new part of the file says so."""
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


def _is_of(turn: Doc, prompt: str, at: int) -> bool:
    return prompt == turn["id"] if prompt and turn["id"] else at >= turn["at"]


def _interrupt(line: bytes) -> tuple[str, int]:
    """(prompt id, time). A person may type the same words, but only as plain text."""
    with suppress(msgspec.DecodeError, ValueError, TypeError, AttributeError, RecursionError):
        found: Any = msgspec.json.decode(line)
        parts = found["message"]["content"] if found.get("type") == "user" else None
        if isinstance(parts, list) and any(isinstance(p, dict) and p.get("text") in TEXTS for p in parts):
            return str(found.get("promptId") or ""), milliseconds(found.get("timestamp"))
    return "", 0


INTERRUPTS = Interrupts()
