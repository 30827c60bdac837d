"""One run at a time for each index. The claim is a lock the kernel holds: it ends with its owner and not before (D3)."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """For people: who holds it. `beat` is when it last said so; it decides nothing."""

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
        self._holder = msgspec.structs.replace(self._holder, beat=_now())
        text = msgspec.json.encode(self._holder)
        os.pwrite(self._fd, text, 0)
        os.ftruncate(self._fd, len(text))


@contextlib.contextmanager
def held(path: Path, run: str, patience_s: float = 0.0) -> Iterator[Claim]:
    """Raises Claimed when a live process has it for longer than `patience_s`."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _lock(fd, path, time.monotonic() + patience_s)
        claim = Claim(fd, Holder(pid=os.getpid(), start=psutil.Process().create_time(), run=run, at=_now()))
        claim.beat()
        yield claim
    finally:
        os.close(fd)


def holder(path: Path) -> Holder | None:
    """Who holds it now; None when it is free."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return None
    except OSError:
        return _read(fd)
    finally:
        os.close(fd)


def _lock(fd: int, _path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if time.monotonic() >= deadline:
                raise Claimed(_read(fd)) from None
            time.sleep(0.05)


def _read(fd: int) -> Holder | None:
    try:
        return msgspec.json.decode(os.pread(fd, 4096, 0), type=Holder)
    except (OSError, msgspec.DecodeError):
        return None


def _now() -> int:
    return time.time_ns() // 1_000_000
