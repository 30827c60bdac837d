"""A lock that allows one index run at a time."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds it, for people. `beat` is its last heartbeat and decides nothing."""

    pid: int
    start: float
    run: str
    at: int
    beat: int = 0


class Claimed(Exception):
    def __init__(self, holder: Holder | None) -> None:
        self.holder = holder
        super().__init__(f"held by process {holder.pid}" if holder else "held by another process")


class Claim:
    def __init__(self, fd: int, holder: Holder) -> None:
        self._fd, self._holder = fd, holder

    def beat(self) -> None:
        self._holder = msgspec.structs.replace(self._holder, beat=_now_ms())
        text = msgspec.json.encode(self._holder)
        os.pwrite(self._fd, text, 0)
        # The file is rewritten, not replaced: the lock belongs to this very file.
        os.ftruncate(self._fd, len(text))


@contextlib.contextmanager
def hold_claim(path: Path, run: str, patience_s: float = 0.0) -> Iterator[Claim]:
    """Raises Claimed if a live process holds it for longer than `patience_s`."""
    # A link in its place could make us overwrite another file.
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _lock_file(fd, time.monotonic() + patience_s)
        claim = Claim(fd, Holder(pid=os.getpid(), start=psutil.Process().create_time(), run=run, at=_now_ms()))
        claim.beat()
        yield claim
    finally:
        os.close(fd)


def claim_holder(path: Path) -> Holder | None:
    """The current holder; None if it is free."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        # Taking the lock is the test: closing the file releases it at once.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return None
    except OSError:
        return _read_holder(fd)
    finally:
        os.close(fd)


def _lock_file(fd: int, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if time.monotonic() >= deadline:
                raise Claimed(_read_holder(fd)) from None
            time.sleep(0.05)


def _read_holder(fd: int) -> Holder | None:
    try:
        return msgspec.json.decode(os.pread(fd, 4096, 0), type=Holder)
    except (OSError, msgspec.DecodeError):
        return None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
