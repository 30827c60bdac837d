"""Ingests what hooks spooled, exactly once per delivery key."""

import contextlib
import fcntl
import os
import stat
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

import msgspec

from holdfast.analysis.redact import redact
from holdfast.core.decision import Delivery
from holdfast.daemon.ingest.frames import (
    HEAD,
    LARGE_FRAME,
    SPOOLED,
    BadFrame,
    as_delivery,
    as_record,
    open_large_frame,
    split_spool_records,
)
from holdfast.paths import Paths, emergency_spools, overwrite_file, private_folder, write_atomically

# Deliveries stored in one transaction.
CHUNK = 256
# Bytes of bodies held until they are stored, and bytes read at once.
MOST_HELD, PIECE = 16 << 20, 1 << 20
DRAINING = ".draining"

Take = Callable[[Sequence[Delivery]], int | None]
"""Stores them and returns how many were new; None if the store refuses and the log must stay."""


class Drained(msgspec.Struct):
    taken: int = 0
    known: int = 0
    torn: int = 0
    files: int = 0
    failed: list[str] = msgspec.field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.files)


class Spool:
    def __init__(self, paths: Paths, take: Take) -> None:
        self._paths, self._take = paths, take

    def waiting(self) -> int:
        """Bytes not yet ingested."""
        return sum(size for _, size in self._files())

    def drain(self) -> Drained:
        done = Drained()
        for path, _ in self._files():
            try:
                if not self._drain_file(path, done):
                    break
            except OSError as error:
                # A file that cannot be read or removed now must not block the others.
                done.failed.append(f"{path.name}: {error.strerror or error}")
        return done

    def _files(self) -> list[tuple[Path, int]]:
        elsewhere = [file for folder in emergency_spools() for file in _spool_files(folder)]
        return [*_spool_files(self._paths.spool), *(file for file in elsewhere if self._is_ours(file[0]))]

    def _is_ours(self, path: Path) -> bool:
        """The emergency places are shared by all state directories of a user."""
        try:
            with open(path, "rb", opener=_no_symlink) as log:
                first = next(_read_records(log), b"")
            # A delivery's state folder was decoded the same way, so odd bytes compare equal.
            mine = Path(_utf8_path(self._paths.state.resolve()))
            return isinstance(first, Delivery) and Path(first.state).resolve() == mine
        except (OSError, BadFrame, struct.error):
            return False

    def _drain_file(self, path: Path, done: Drained) -> bool:
        # Renamed first: new hooks start a new file; those still writing hold the lock.
        held = path if path.suffix == DRAINING else path.with_name(f"{path.name}.{time.time_ns()}{DRAINING}")
        try:
            if held != path:
                path.rename(held)
            log = _open_written(held)
        except (FileNotFoundError, BlockingIOError):
            return True  # Gone already, or still being written to: the next round takes it.
        torn: list[bytes] = []
        with log:
            for batch in _batches(_read_records(log), torn):
                new = self._take(batch)
                # The file keeps its new name and is read again; keys stored by then are recognised.
                if new is None:
                    return False
                done.taken += new
                done.known += len(batch) - new
        done.files += 1
        done.torn += len(torn)
        # Before the file is removed: what could not be read exists nowhere else.
        self._set_aside(held, torn)
        with contextlib.suppress(FileNotFoundError):
            # Its frames hold secrets in plain text; unlinking alone would leave them on the disk.
            overwrite_file(held)
            held.unlink()
        return True

    def _set_aside(self, held: Path, torn: list[bytes]) -> None:
        """A torn record is a hook that died while writing, nothing acknowledged. It is kept anyway; the rest is in the
        log, without its secrets."""
        if torn:
            private_folder(self._paths.quarantine)
            write_atomically(self._paths.quarantine / held.name, redact(b"".join(torn))[0])


def _utf8_path(path: Path) -> str:
    """As a delivery encodes it."""
    return os.fsencode(path).decode("utf-8", "replace")


def _batches(records: Iterator[Delivery | bytes], torn: list[bytes]) -> Iterator[list[Delivery]]:
    """Yield deliveries in batches; unreadable stretches are added to `torn`."""
    batch: list[Delivery] = []
    held = 0
    for record in records:
        if isinstance(record, bytes):
            torn.append(record)
            continue
        batch.append(record)
        held += len(record.body)
        if len(batch) == CHUNK or held >= MOST_HELD:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _read_records(log: BinaryIO) -> Iterator[Delivery | bytes]:
    """Read record by record, so that a log of any length takes little memory; an unreadable stretch is yielded as
    bytes."""
    size = os.fstat(log.fileno()).st_size
    at = 0
    while at < size:
        length = _sound_length(log, at)
        if length is None:
            # After damage the rest is searched for records, which needs all of it.
            log.seek(at)
            frames, torn = split_spool_records(log.read())
            yield from (_decode_frame(frame) for frame in frames)
            yield from torn
            return
        yield (
            _decode_large(log, at + HEAD.size, length)
            if length > LARGE_FRAME
            else _decode_frame(_read_at(log, at + HEAD.size, length))
        )
        at += HEAD.size + length


def _sound_length(log: BinaryIO, at: int) -> int | None:
    """The length of the frame in the record that begins here; None if its checksum fails."""
    head = _read_at(log, at, HEAD.size)
    if len(head) < HEAD.size:
        return None
    magic, crc, length = HEAD.unpack(head)
    found, left = 0, int(length)
    while magic == SPOOLED and left and (piece := log.read(min(left, PIECE))):
        found, left = crc32(piece, found), left - len(piece)
    return length if magic == SPOOLED and not left and found == crc else None


def _read_at(log: BinaryIO, at: int, length: int) -> bytes:
    log.seek(at)
    return log.read(length)


def _decode_frame(frame: bytes) -> Delivery | bytes:
    try:
        # Nobody waits any more, and an answer that was never given must not be recorded.
        return as_delivery(frame).unanswered()
    except (BadFrame, ValueError, struct.error):
        return as_record(frame)


def _decode_large(log: BinaryIO, at: int, length: int) -> Delivery | bytes:
    """Shortened while it is read, like one from the socket."""
    large = open_large_frame(_read_at(log, at, HEAD.size), length)
    if large is None:
        return _decode_frame(_read_at(log, at, length))
    while not large.is_complete and (piece := log.read(min(PIECE, length - large.taken))):
        large.add(piece)
    try:
        return large.as_delivery().unanswered()
    except (BadFrame, ValueError, struct.error):
        return as_record(_read_at(log, at, length))


def _spool_files(folder: Path) -> list[tuple[Path, int]]:
    """Our regular files, oldest name first; anything else in the folder is ignored."""
    try:
        entries = [e for e in os.scandir(folder) if e.name.endswith((".log", DRAINING))]
        plain = [(Path(e.path), e.stat(follow_symlinks=False)) for e in entries]
    except OSError:
        return []
    mine = [(p, s.st_size) for p, s in plain if stat.S_ISREG(s.st_mode) and s.st_uid == os.geteuid() and s.st_size]
    # Files of an interrupted drain come first: they are older than the logs.
    return sorted(mine, key=lambda item: (item[0].suffix != DRAINING, item[0].name))


def _open_written(path: Path) -> BinaryIO:
    """Raises BlockingIOError while a hook that opened the log under its old name is still writing."""
    log = open(path, "rb", opener=_no_symlink)  # noqa: SIM115 - the caller closes it
    try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A hook that waited for the lock finds another file under the name and leaves this one alone.
        fcntl.flock(log, fcntl.LOCK_UN)
    except OSError:
        log.close()
        raise
    return log


def _no_symlink(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
