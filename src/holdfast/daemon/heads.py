"""Notes the head of the log outside the store, so that a removed or changed event shows."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from holdfast.core.chain import Head

EVERY_EVENTS = 1_000
EVERY_MS = 10 * 60_000
MOST_BYTES = 1 << 20


class HeadNotes:
    """Appends to one file; half of the older notes are dropped when it is large."""

    def __init__(self, path: Path) -> None:
        self._path, self._seq, self._at = path, 0, 0

    def saw(self, head: tuple[int, bytes], now: int) -> None:
        """Called after each commit: notes a head now and then."""
        if head[0] >= self._seq + EVERY_EVENTS or now >= self._at + EVERY_MS:
            self.note(head, now)

    def note(self, head: tuple[int, bytes], now: int) -> None:
        seq, link = head
        if not link or seq == self._seq:
            return
        self._seq, self._at = seq, now
        with contextlib.suppress(OSError):  # A full disk: a later head covers the same events.
            _append(self._path, f"\n{now} {seq} {link.hex()}\n".encode())
            if self._path.lstat().st_size > MOST_BYTES:
                _thin(self._path)


def read_heads(path: Path) -> list[Head]:
    """Oldest first. Torn lines are skipped."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return []
    with os.fdopen(fd, "r", encoding="ascii", errors="replace") as file:
        return list(parse_heads(file))


def parse_heads(lines: Iterable[str]) -> Iterable[Head]:
    for line in lines:
        parts = line.split()
        if len(parts) == 3 and parts[0].isdigit() and parts[1].isdigit() and len(parts[2]) == 64:
            yield Head(int(parts[0]), int(parts[1]), parts[2])


def _append(path: Path, line: bytes) -> None:
    # A line break first: after a torn line the next one is whole.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, line)
    finally:
        os.close(fd)


def _thin(path: Path) -> None:
    from holdfast.paths import write_atomically

    heads = read_heads(path)
    older, newer = heads[: len(heads) // 2], heads[len(heads) // 2 :]
    kept = [*older[::2], *newer]
    write_atomically(path, "".join(f"{one.at} {one.seq} {one.link}\n" for one in kept).encode())
