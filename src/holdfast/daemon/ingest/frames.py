"""Reads and writes the wire format of docs/protocol.md."""

import ctypes
import struct
from functools import lru_cache
from typing import Any
from zlib import crc32

import msgspec

from holdfast.analysis.redact.native_library import load_library
from holdfast.core.decision import Delivery

# The first bytes of a request, an answer and a spooled record.
ASK = b"HFQ1"
ANSWER = b"HFA1"
SPOOLED = b"HFS1"
# Magic and two lengths (header, body); in the spool the checksum and length of a frame.
HEAD = struct.Struct(">4sII")
LENGTH = struct.Struct(">I")
# Bounds what a client can make the daemon hold in memory.
LARGEST_HEADER = 256 * 1024
LARGEST_BODY = 256 * 1024 * 1024
LARGE_FRAME = 8 << 20
"""From this size on a body is shortened while it arrives, as the native client does before sending."""
SHORTENED_ROOM = 16 << 20
WAIT = "wait"
"""A client in this mode asks, and may be answered much later."""
EMPTY_ANSWER = ANSWER + LENGTH.pack(0)


class BadFrame(ValueError):
    """Not a valid frame."""


def frame_length(start: bytes) -> int:
    """The whole length once the first 12 bytes have arrived; 0 before."""
    if len(start) < HEAD.size:
        # A wrong beginning is refused at once, before all twelve bytes arrive.
        if not ASK.startswith(start[:4]):
            raise BadFrame("wrong magic")
        return 0
    magic, header, body = HEAD.unpack_from(start)
    if magic != ASK or header > LARGEST_HEADER or body > LARGEST_BODY:
        raise BadFrame("wrong magic or length")
    value: int = HEAD.size + header + body
    return value


def as_delivery(frame: bytes, *more: bytes, ancestors: tuple[int, ...] = ()) -> Delivery:
    """`more`: the further chunks of the frame."""
    _, header_length, _ = HEAD.unpack_from(frame)
    split = HEAD.size + header_length
    if len(frame) < split:
        frame, more = b"".join((frame, *more)), ()
    # The part before the folder belongs to this call; the rest is the same for every hook of a session.
    own, _, shared = frame[HEAD.size : split].partition(_FOLDER)
    fields = _parse_fields(own)
    own_env = fields.get("env")
    fields |= (_repeated_fields if len(shared) < LONGEST_REMEMBERED else _shared_fields)(shared)
    if own_env:
        fields["env"] = {**own_env, **fields["env"]}
    _check_key(fields.setdefault("key", ""))
    if fields.get("mode") == WAIT:
        fields |= {"mode": "ask", "waits": True}
    body = b"".join((memoryview(frame)[split:], *more)) if more else frame[split:]
    return Delivery(**{"agent": "", "event": "", **fields, "body": body, "ancestors": ancestors})


def _parse_number(text: str) -> int:
    # Up to 18 digits fit a 64-bit column.
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


_FOLDER = b"\0cwd="
REMEMBERED_SURROUNDINGS, LONGEST_REMEMBERED = 256, 4096
_TEXTS = {name: name for name in ("key", "agent", "event", "mode", "cwd", "client", "via", "state")}
_TEXTS["told"] = "client_verdict"
_NUMBERS = frozenset(("at", "pid", "start", "whole"))


def _parse_fields(header: bytes) -> dict[str, Any]:
    """The fields of a `Delivery`. Unknown names come from a newer client."""
    fields: dict[str, Any] = {}
    # Paths may be any bytes; stored text must be UTF-8.
    for pair in header.decode("utf-8", "replace").split("\0"):
        name, equals, value = pair.partition("=")
        if not equals:
            continue
        if name in _TEXTS:
            fields[_TEXTS[name]] = value
        elif name in _NUMBERS:
            fields[name] = _parse_number(value)
        elif name.startswith("env."):
            fields.setdefault("env", {})[name[4:]] = value
        elif name == "confirms":
            fields["confirms"] = value == "1"
    return fields


def _shared_fields(shared: bytes) -> dict[str, Any]:
    return {"env": {}} | (_parse_fields(_FOLDER + shared) if shared else {})


_repeated_fields = lru_cache(REMEMBERED_SURROUNDINGS)(_shared_fields)
"""Folder, client and environment, parsed once for all hooks of a session. Callers must not change them."""


class LargeFrame:
    """A frame of many megabytes of which only a shortened body is held (native/shorten.h)."""

    def __init__(self, library: ctypes.CDLL, start: bytes, wanted: int) -> None:
        self._library, self._wanted, self._taken = library, wanted, 0
        self._body_at = HEAD.size + HEAD.unpack_from(start)[1]
        self._head = b""
        self._state = ctypes.create_string_buffer(library.holdfast_shortener_size())
        self._body = ctypes.create_string_buffer(SHORTENED_ROOM)
        library.holdfast_begin_shorten(self._state, self._body)
        self.add(start)

    @property
    def taken(self) -> int:
        return self._taken

    @property
    def is_complete(self) -> bool:
        return self._taken >= self._wanted

    def add(self, chunk: bytes) -> None:
        self._taken += len(chunk)
        missing = self._body_at - len(self._head)
        # The head is needed whole; of the body only what the shortener keeps.
        self._head += chunk[:missing]
        body = chunk[missing:] if missing else chunk
        self._library.holdfast_feed_shorten(self._state, body, len(body))

    def as_delivery(self, ancestors: tuple[int, ...] = ()) -> Delivery:
        size = self._library.holdfast_finish_shorten(self._state)
        found = as_delivery(self._head + ctypes.string_at(self._body, size), ancestors=ancestors)
        return msgspec.structs.replace(found, whole=found.whole or self._taken - self._body_at)


def open_large_frame(start: bytes, wanted: int) -> LargeFrame | None:
    """None without the native library; then the frame is held whole."""
    library = load_library()
    if library is None or len(start) < HEAD.size:
        return None
    # ctypes assumes 32-bit results by default.
    library.holdfast_shortener_size.restype = library.holdfast_finish_shorten.restype = ctypes.c_size_t
    library.holdfast_feed_shorten.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
    return LargeFrame(library, start, wanted)


def _check_key(key: str) -> None:
    # It becomes a unique key of the store and part of derived keys, where `/` separates.
    if not key.isalnum() or len(key) > 64 or not key.isascii():
        raise BadFrame("no delivery key")


def answer_frame(reply: bytes) -> bytes:
    return ANSWER + LENGTH.pack(len(reply)) + reply if reply else EMPTY_ANSWER


def as_frame(header: dict[str, str], body: bytes) -> bytes:
    """Build a frame, for tests, the importer and `holdfast` itself."""
    packed = b"".join(f"{name}={value}".encode("utf-8", "surrogateescape") + b"\0" for name, value in header.items())
    return HEAD.pack(ASK, len(packed), len(body)) + packed + body


def as_record(frame: bytes) -> bytes:
    return HEAD.pack(SPOOLED, crc32(frame), len(frame)) + frame


def split_spool_records(log: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return (frames of a spool log, torn stretches). Continues after damage."""
    frames: list[bytes] = []
    torn: list[bytes] = []
    at = 0
    while at < len(log):
        frame = _record_at(log, at)
        if frame is not None:
            frames.append(frame)
            at += HEAD.size + len(frame)
            continue
        begin, at = at, _next_record(log, at + 1)
        torn.append(log[begin:at])
    return frames, torn


def _record_at(log: bytes, at: int) -> bytes | None:
    if len(log) - at < HEAD.size:
        return None
    magic, crc, length = HEAD.unpack_from(log, at)
    # A length beyond the end gives a shorter slice, which the comparison refuses.
    frame = log[at + HEAD.size : at + HEAD.size + length]
    return frame if magic == SPOOLED and len(frame) == length and crc32(frame) == crc else None


def _next_record(log: bytes, at: int) -> int:
    # The magic may occur inside a body: only a record with a valid checksum counts.
    while (at := log.find(SPOOLED, at)) >= 0:
        if _record_at(log, at) is not None:
            return at
        at += 1
    return len(log)
