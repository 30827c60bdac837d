"""Token use from the transcript an agent names: only what was added since the last look, and only numbers.

The path comes from a payload, so it may name anything: only a regular file is opened, and nothing of it is kept
but counts, message ids and times. Lines nobody understands are passed over.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec

from holdfast.features.sessions.state.activity import TOKEN_SUMS as TOKENS
from holdfast.features.sessions.state.documents import TranscriptPosition

MOST_BYTES = 32 << 20
"""Read at one go; the rest the next time."""
REMEMBERED_MESSAGES = 3


class Usage(msgspec.Struct, frozen=True):
    message: str
    at: int
    tokens: dict[str, int]


class Reading(msgspec.Struct):
    """Where the reading stands, and what it found: (time, tokens) of each message."""

    path: str
    offset: int
    last: int
    ids: dict[str, list[int]]
    found: list[tuple[int, dict[str, int]]] = []


def read(path: str, before: TranscriptPosition | None, not_before: int = 0) -> Reading | None:
    """None when there is nothing new. Lines older than `not_before` are another session's (a fork copies them)."""
    known = before if before and before.path == path else TranscriptPosition()
    reading = Reading(path, known.offset, known.last, dict(known.ids))
    chunk = _new_bytes(reading)
    if not chunk:
        return None
    counted_until = reading.last if reading.offset == len(chunk) else 0
    for usage in usages(chunk):
        if usage.at >= not_before and usage.at > counted_until:
            _count(reading, usage)
    return reading


def _new_bytes(reading: Reading) -> bytes | None:
    """Whole lines only: the last one may still be being written."""
    try:
        with open(reading.path, "rb", opener=open_regular) as file:
            if os.fstat(file.fileno()).st_size < reading.offset:
                reading.offset = 0  # Written anew: what was counted before is known by its time.
            chunk = os.pread(file.fileno(), MOST_BYTES, reading.offset)
    except (OSError, ValueError):
        return None
    end = chunk.rfind(b"\n") + 1
    if not end and len(chunk) == MOST_BYTES:
        end = len(chunk)  # One endless line is no reason to stand still.
    reading.offset += end
    return chunk[:end]


def open_regular(path: str, flags: int) -> int:
    """For `open`: never waits for a pipe, never reads a device."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(f"not a plain file: {path}")


def usages(chunk: bytes) -> Iterator[Usage]:
    for line in chunk.split(b"\n"):
        if b"_tokens" in line:  # Most of a transcript is text: do not parse it.
            with suppress(msgspec.DecodeError, ValueError, TypeError, AttributeError, RecursionError):
                if found := _claude(line := msgspec.json.decode(line)) or _codex(line):
                    yield found


def _claude(line: Any) -> Usage | None:
    if line.get("type") != "assistant" or not isinstance(line.get("message"), dict):
        return None
    message = line["message"]
    usage = message.get("usage") or {}
    fields = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return Usage(
        str(message.get("id") or line.get("uuid"))[:100], milliseconds(line.get("timestamp")), _tokens(usage, fields)
    )


def _codex(line: Any) -> Usage | None:
    payload = line.get("payload")
    if line.get("type") != "event_msg" or not isinstance(payload, dict) or payload.get("type") != "token_count":
        return None
    usage = (payload.get("info") or {}).get("last_token_usage") or {}
    fields = ("input_tokens", "output_tokens", "cached_input_tokens", "")
    tokens = _tokens(usage, fields)
    tokens["input"] = max(0, tokens["input"] - tokens["cache_read"])  # There the cached ones are counted in.
    return Usage("", milliseconds(line.get("timestamp")), tokens)


def _tokens(usage: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, int]:
    values = (usage.get(field) for field in fields)
    return {name: v if isinstance(v, int) and 0 <= v < 1 << 40 else 0 for name, v in zip(TOKENS, values, strict=True)}


def milliseconds(timestamp: Any) -> int:
    return int(datetime.fromisoformat(str(timestamp).replace("Z", "+00:00")).timestamp() * 1000)


def _count(reading: Reading, usage: Usage) -> None:
    """A message comes as several lines, each with the use of the whole so far: only what grew is counted."""
    so_far = reading.ids.get(usage.message, [0] * len(TOKENS)) if usage.message else [0] * len(TOKENS)
    grown = {name: max(0, usage.tokens[name] - had) for name, had in zip(TOKENS, so_far, strict=True)}
    if usage.message:
        most = [max(usage.tokens[name], had) for name, had in zip(TOKENS, so_far, strict=True)]
        kept = {k: v for k, v in reading.ids.items() if k != usage.message} | {usage.message: most}
        reading.ids = dict(list(kept.items())[-REMEMBERED_MESSAGES:])
    reading.last = max(reading.last, usage.at)
    if any(grown.values()):
        reading.found.append((usage.at, grown))
