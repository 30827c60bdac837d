"""Taking in what hooks had to leave behind: rename, lock, ingest, remove. Exactly once by delivery key."""

import contextlib
import fcntl
import os
import stat
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from holdfast.core.decision import Delivery
from holdfast.ingest.frames import BadFrame, as_delivery, as_record, split_spool_records
from holdfast.paths import Paths, emergency_spools, overwrite_file, private_folder, write_atomically
from holdfast.redact import redact

# Deliveries stored in one transaction.
CHUNK = 256
DRAINING = ".draining"

Take = Callable[[Sequence[Delivery]], int | None]
"""Stores them and says how many were new; None when the store refuses, so that the log must stay."""


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
        """Bytes that are not yet in the log."""
        return sum(size for _, size in self._files())

    def drain(self) -> Drained:
        done = Drained()
        for path, _ in self._files():
            try:
                if not self._drain_file(path, done):
                    break
            except OSError as error:
                # A file that cannot be read or removed today must not stand in front of the others.
                done.failed.append(f"{path.name}: {error.strerror or error}")
        return done

    def _files(self) -> list[tuple[Path, int]]:
        elsewhere = [file for folder in emergency_spools() for file in _spool_files(folder)]
        return [*_spool_files(self._paths.spool), *(file for file in elsewhere if self._is_ours(file[0]))]

    def _is_ours(self, path: Path) -> bool:
        """The emergency places are shared by all state directories of a user."""
        try:
            frames, _ = split_spool_records(path.read_bytes())
            # A delivery's state folder was decoded the same way, so odd bytes compare equal.
            mine = Path(_utf8_path(self._paths.state.resolve()))
            return bool(frames) and Path(as_delivery(frames[0]).state).resolve() == mine
        except (OSError, BadFrame, struct.error):
            return False

    def _drain_file(self, path: Path, done: Drained) -> bool:
        # Renamed first: hooks that come from now on begin a new file; those still writing hold the lock.
        held = path if path.suffix == DRAINING else path.with_name(f"{path.name}.{time.time_ns()}{DRAINING}")
        try:
            if held != path:
                path.rename(held)
            log = _locked_read(held)
        except (FileNotFoundError, BlockingIOError):
            return True  # Gone already, or still being written to: the next round takes it.
        frames, torn = split_spool_records(log)
        deliveries, unreadable = _decode_deliveries(frames)
        for start in range(0, len(deliveries), CHUNK):
            batch = deliveries[start : start + CHUNK]
            new = self._take(batch)
            # The file stays under its new name and is taken again; keys that are stored by then are known.
            if new is None:
                return False
            done.taken += new
            done.known += len(batch) - new
        done.files += 1
        done.torn += len(torn) + len(unreadable)
        # Before the file goes: what could not be read exists nowhere else.
        self._set_aside(held, [*torn, *unreadable])
        with contextlib.suppress(FileNotFoundError):
            # Its frames hold secrets in plain text; only unlinked, they would stay on the disk.
            overwrite_file(held)
            held.unlink()
        return True

    def _set_aside(self, held: Path, torn: list[bytes]) -> None:
        """A torn record is a hook that died while writing, nothing acknowledged; still, nothing is thrown away.

        Only what could not be read: the rest is in the log by now, and there without its secrets."""
        if torn:
            private_folder(self._paths.quarantine)
            write_atomically(self._paths.quarantine / held.name, redact(b"".join(torn))[0])


def _utf8_path(path: Path) -> str:
    """As a delivery tells it."""
    return os.fsencode(path).decode("utf-8", "replace")


def _decode_deliveries(frames: Sequence[bytes]) -> tuple[list[Delivery], list[bytes]]:
    deliveries: list[Delivery] = []
    unreadable: list[bytes] = []
    for frame in frames:
        try:
            # Nobody waits for an answer any more, and an answer that was never given must not be on record.
            deliveries.append(as_delivery(frame).unanswered())
        except (BadFrame, ValueError, struct.error):
            unreadable.append(as_record(frame))
    return deliveries, unreadable


def _spool_files(folder: Path) -> list[tuple[Path, int]]:
    """Plain files of ours, oldest name first; anything else in the folder is not for us."""
    try:
        entries = [e for e in os.scandir(folder) if e.name.endswith((".log", DRAINING))]
        plain = [(Path(e.path), e.stat(follow_symlinks=False)) for e in entries]
    except OSError:
        return []
    mine = [(p, s.st_size) for p, s in plain if stat.S_ISREG(s.st_mode) and s.st_uid == os.geteuid() and s.st_size]
    # Files of a drain that was cut short come first: they are older than the logs.
    return sorted(mine, key=lambda item: (item[0].suffix != DRAINING, item[0].name))


def _locked_read(path: Path) -> bytes:
    """Raises BlockingIOError while a hook that opened the log under its old name is still writing."""
    with open(path, "rb", opener=_no_symlink) as log:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return log.read()


def _no_symlink(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
