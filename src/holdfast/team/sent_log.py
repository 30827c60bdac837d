"""What left this machine, word for word; and an index by which is found what of it was erased here since."""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from holdfast.paths import private_folder, write_atomically
from holdfast.team.membership import TeamFiles
from holdfast.team.protocol import Batch, SharedEvent

MOST_BYTES = 64 << 20
"""Then the file becomes `sent.1.jsonl`, and the one before that goes."""


class SentEvent(msgspec.Struct, array_like=True, frozen=True):
    """One event that was sent: which, at which level, and a digest of what left. No text."""

    stream: int
    seq: int
    key: str
    level: str
    digest: str
    session: str


def digest_of(event: SharedEvent) -> str:
    # `level` is only set where it differs from the batch's, so the digest of an event leaves it out.
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(event, level=""))).hexdigest()[:20]


class SentLog:
    """Written before a batch is sent: what may have left is on record, even where no answer came."""

    def __init__(self, files: TeamFiles) -> None:
        self._files = files
        self._last: tuple[int, int, int] | None = None

    def note_batch(self, batch: Batch, encoded: bytes) -> None:
        """`encoded` is what leaves; `batch` is the same before redaction, as it can be made again from the log."""
        which = batch.stream, batch.after, batch.upto
        # A batch without an answer is sent again with the same bounds: it is noted once.
        if which == self._last or not batch.events:
            return
        private_folder(self._files.folder)
        self._rotate()
        _append_durably(self._files.sent_file, encoded + b"\n")
        rows = (
            SentEvent(batch.stream, e.seq, e.key, e.level or batch.level, digest_of(e), e.session) for e in batch.events
        )
        _append_durably(self._files.index_file, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        self._last = which

    def _rotate(self) -> None:
        for path in (self._files.sent_file, self._files.index_file):
            if path.exists() and path.stat().st_size > MOST_BYTES:
                path.replace(_rotated_path(path))

    def batches(self) -> Iterator[Batch]:
        """From the oldest that is kept."""
        for line in _complete_lines(self._files.sent_file):
            with contextlib.suppress(msgspec.DecodeError):
                yield msgspec.json.decode(line, type=Batch)

    def events(self) -> Iterator[SentEvent]:
        for line in _complete_lines(self._files.index_file):
            with contextlib.suppress(msgspec.DecodeError):
                yield msgspec.json.decode(line, type=SentEvent)

    def common_prefix(self, key_at: Callable[[int], str]) -> int:
        """The last number at which the log still has what was sent."""
        return max((one.seq for one in self.events() if key_at(one.seq) == one.key), default=0)

    def drop_events(self, gone: frozenset[tuple[int, int]]) -> None:
        """What was forgotten is not kept here either."""
        for path in (_rotated_path(self._files.sent_file), self._files.sent_file):
            if path.exists():
                write_atomically(
                    path, b"".join(_remove_events(line, gone) for line in path.read_bytes().splitlines() if line)
                )
        for path in (_rotated_path(self._files.index_file), self._files.index_file):
            if path.exists():
                remaining = [line for line in path.read_bytes().splitlines() if _row_key(line) not in gone]
                write_atomically(path, b"".join(line + b"\n" for line in remaining))


def _row_key(line: bytes) -> tuple[int, int]:
    try:
        row = msgspec.json.decode(line, type=SentEvent)
    except msgspec.DecodeError:
        # No event has these numbers: a line that cannot be read is kept in the index, which has no text.
        return 0, 0
    return row.stream, row.seq


def _remove_events(line: bytes, gone: frozenset[tuple[int, int]]) -> bytes:
    try:
        batch = msgspec.json.decode(line, type=Batch)
    except msgspec.DecodeError:
        # It may hold text that is to be gone, and nobody can tell: the line is dropped.
        return b""
    remaining = tuple(event for event in batch.events if (batch.stream, event.seq) not in gone)
    return msgspec.json.encode(msgspec.structs.replace(batch, events=remaining)) + b"\n" if remaining else b""


def _rotated_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.1{path.suffix}")


def _complete_lines(path: Path) -> Iterator[bytes]:
    """A line that was cut off by a crash left with the next attempt, and stands there again as a whole."""
    for one in (_rotated_path(path), path):
        if one.exists():
            with one.open("rb") as file:
                yield from (line for line in file if line.endswith(b"\n") and len(line) > 2)


def _append_durably(path: Path, content: bytes) -> None:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "r+b", buffering=0) as file:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":  # A crash cut the last line off.
            content = b"\n" + content
        view = memoryview(content)
        while view:
            view = view[file.write(view) or 0 :]
        os.fdatasync(fd)
