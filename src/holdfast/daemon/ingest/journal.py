"""Keeps acknowledged deliveries that are not in the store yet, in one preallocated file that is overwritten in laps."""

# Its full size is allocated from the start, so a sync writes nothing but the record. Contents are cut and redacted. A
# record counts if it is whole and of the same lap as the first one.

import contextlib
import fcntl
import os
import re
import struct
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from zlib import crc32

import msgspec

from holdfast.core.decision import Delivery
from holdfast.core.event import Event
from holdfast.stores.body_cipher import JOURNAL_PLACE, READING, BodyCipher, BodyUnreadable

FIRST_SIZE, SIZE = 64 << 10, 4 << 20
"""Small at first, so that no start waits for it; it grows in the background."""
HEAD = struct.Struct(">4sQII")
"""A mark, the lap, the checksum of lap and content, the length of the content."""
MAGIC = b"HFJ1"


class JournalEntry(msgspec.Struct, array_like=True, frozen=True):
    """Either a delivery that is not applied yet, or applied events with everything derived from them."""

    delivery: Delivery | None = None
    events: tuple[Event, ...] = ()

    @property
    def key(self) -> str:
        # Applied events are keyed by the first, which is the delivery's own.
        return self.delivery.key if self.delivery else self.events[0].key


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(JournalEntry).decode


class Journal:
    def __init__(self, path: Path, cipher: BodyCipher = READING) -> None:
        self._path, self._fd, self._cipher = path, -1, cipher
        # The generation starts from the time, so it differs from those an earlier process left in the file.
        self._at, self._size, self._generation = 0, 0, time.time_ns()
        self._growing = threading.Lock()

    def pending_entries(self, *, ask: bool = True) -> list[JournalEntry]:
        """Return what the previous daemon acknowledged; most or all of it is in the log. Raises `KeyUnavailable` if it
        is encrypted and the keyring is locked; the keyring is asked only if the caller may wait (`ask`)."""
        try:
            with self._path.open("rb") as file:
                head = file.read(HEAD.size)
                # After an orderly end nothing is left, and a start need not read the whole file: `close` blanks the
                # first record.
                if not head.startswith(MAGIC):
                    return []
                # The first record alone shows whether there is a key; without one this is asked repeatedly.
                first = head + file.read(HEAD.unpack(head)[3]) if len(head) == HEAD.size else head
                _parse_entries(first, self._open_record(ask))
                return _parse_entries(first + file.read(), self._open_record(ask))
        except OSError:
            return []

    def _open_record(self, ask: bool) -> Callable[[bytes], bytes]:
        return lambda record: self._cipher.open(record, JOURNAL_PLACE, ask=ask)

    def open(self) -> None:
        """Open the journal once its entries are in the log. If this fails, hooks wait for the store instead."""
        with contextlib.suppress(OSError):
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(self._path, flags, 0o600)
            self._size = SIZE
            # Another size: a new file, or one whose growth was interrupted.
            if os.fstat(self._fd).st_size != SIZE:
                self._size = FIRST_SIZE
                self._blank(0)

    def grow(self) -> None:
        """Grow in another thread, beyond the part being written."""
        # The lock keeps `close` from closing the descriptor during this write.
        with self._growing, contextlib.suppress(OSError):
            if 0 < self._size < SIZE and self._fd >= 0:
                os.pwrite(self._fd, bytes(SIZE - FIRST_SIZE), FIRST_SIZE)
                _on_disk(self._fd)
                self._size = SIZE

    @property
    def half_full(self) -> bool:
        return self._at > self._size // 2

    def add(self, promised: Sequence[JournalEntry]) -> bool:
        """Durable when it returns True; otherwise nothing was acknowledged."""
        seal = self._cipher.sealer()
        records = b"".join([self._record(one, seal) for one in promised])
        # No space, or no key for encryption, is no error: the caller waits for the store instead.
        if self._fd < 0 or not records or self._at + len(records) > self._size:
            return False
        try:
            if os.pwrite(self._fd, records, self._at) != len(records):
                return False
            _on_disk(self._fd)
        except OSError:
            # Whether later writes would reach the disk is unknown, so hooks now wait for the store.
            self.close()
            return False
        self._at += len(records)
        return True

    def clear(self) -> None:
        """Mark everything as durably in the log. Old records are recognised by their lap and overwritten in time."""
        if self._at:
            self._at = 0
            self._generation += 1

    def wipe(self) -> bool:
        """Overwrite the contents for an erasure. False if some of it is not in the log yet."""
        if self._fd < 0:
            return not self._path.exists()
        # Not truncated: the next syncs would have to allocate its blocks again.
        self._blank(self._size)
        _on_disk(self._fd)
        self.clear()
        return True

    def _blank(self, size: int) -> None:
        os.ftruncate(self._fd, size)
        os.pwrite(self._fd, bytes(self._size), 0)

    def close(self) -> None:
        with self._growing, contextlib.suppress(OSError):
            fd, self._fd = self._fd, -1
            if fd >= 0 and not self._at:
                os.pwrite(fd, bytes(HEAD.size), 0)  # Nothing is left to be read at the next start.
            if fd >= 0:
                os.close(fd)

    def _record(self, promised: JournalEntry, seal: Callable[[bytes, bytes], bytes]) -> bytes:
        content = seal(encode(promised), JOURNAL_PLACE)
        if not content:
            return b""
        return HEAD.pack(MAGIC, self._generation, _entry_checksum(self._generation, content), len(content)) + content


_TORN = re.compile(r"[0-9a-f]{0,31}")
"""An incomplete delivery key."""
LEDGER_BYTES = 128 << 10
"""About four thousand keys; as many of the previous file are kept."""


class AckLedger:
    """The keys of the latest acknowledged deliveries, one per line, outside the store: `verify` compares both.

    Written after the answer and before the journal is overwritten, so each acknowledged key is in one of the two. Not
    synced: a kill loses nothing, and after a power cut keys may be missing but never wrong.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._fd = path, -1
        self._keys: dict[str, None] = {}

    def note(self, keys: Iterable[str]) -> None:
        self._keys.update(dict.fromkeys(keys))

    def drop(self, keys: Iterable[str]) -> None:
        """Drop keys of duplicates, which have no events of their own."""
        for key in keys:
            self._keys.pop(key, None)

    def write(self) -> None:
        if not self._keys:
            return
        lines = "".join([f"{key}\n" for key in self._keys]).encode()
        self._keys.clear()
        with contextlib.suppress(OSError):  # a full disk: fewer keys are checked
            if self._fd < 0:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                self._fd = os.open(self._path, flags, 0o600)
            # A line break first: after a torn line the next ones are whole.
            os.write(self._fd, b"\n" + lines)
            # Appending leaves the position at the end, so this is the file's size.
            if os.lseek(self._fd, 0, os.SEEK_CUR) > LEDGER_BYTES:
                self.close()
                self._path.replace(_older_ledger(self._path))

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def read_ledger(path: Path) -> list[str]:
    """Oldest first. A torn line is ignored."""
    keys: list[str] = []
    for file in (_older_ledger(path), path):
        with contextlib.suppress(OSError):
            keys += file.read_text("ascii", "replace").split("\n")[:-1]
    return [key for key in keys if not _TORN.fullmatch(key)]


def forget_ledger(path: Path) -> None:
    """Forget the keys after a deliberate return to an older state: later events are not missing."""
    for file in (_older_ledger(path), path):
        file.unlink(missing_ok=True)


def _older_ledger(path: Path) -> Path:
    return path.with_name(f"{path.name}.1")


def _parse_entries(content: bytes, open_record: Callable[[bytes], bytes]) -> list[JournalEntry]:
    entries: list[JournalEntry] = []
    at, first = 0, -1
    while at + HEAD.size <= len(content):
        mark, lap, checksum, length = HEAD.unpack_from(content, at)
        record = content[at + HEAD.size : at + HEAD.size + length]
        # A record of another generation is left from an earlier pass: the entries end here.
        if mark != MAGIC or first not in (-1, lap) or len(record) != length or checksum != _entry_checksum(lap, record):
            break
        # The checksum is valid: it was written by another version, or with a key that is gone.
        with contextlib.suppress(msgspec.MsgspecError, BodyUnreadable):
            entries.append(decode(open_record(record)))
        at, first = at + HEAD.size + length, lap
    return entries


def _entry_checksum(lap: int, content: bytes) -> int:
    # The generation is included, so that an old record with a damaged head cannot pass for a new one.
    return crc32(content, lap & 0xFFFFFFFF)


def _on_disk(fd: int) -> None:
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync stops at the drive's cache
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(fd)
