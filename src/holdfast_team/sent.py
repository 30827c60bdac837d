"""The log of what left the machine."""

import contextlib
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from holdfast.analysis.redact import redact
from holdfast.core.erase import INSTEAD
from holdfast.paths import private_folder, write_atomically
from holdfast_team.membership import T, TeamConnection, TeamFiles
from holdfast_team.protocol import LEVELS, Batch, Level, SharedEvent
from holdfast_team.sharing import LEVEL_TEXT

MOST_BYTES = 64 << 20
"""Then the file becomes `sent.1.jsonl`, and the previous one is removed."""


class SentEvent(msgspec.Struct, array_like=True, frozen=True):
    """One sent event: which, at which level, and a digest of what left. No text."""

    stream: int
    seq: int
    key: str
    level: str
    digest: str
    session: str


def digest_of(event: SharedEvent) -> str:
    # `level` is only set if it differs from the batch's, so the digest leaves it out.
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(event, level=""))).hexdigest()[:20]


class SentLog:
    """Written before a batch is sent: what may have left is on record even without an answer."""

    def __init__(self, files: TeamFiles) -> None:
        self._files = files
        self._last: tuple[int, int, int] | None = None

    def note_batch(self, batch: Batch, encoded: bytes) -> None:
        """`encoded` is what leaves; `batch` is the same before redaction, as it can be rebuilt from the log."""
        which = batch.stream, batch.after, batch.upto
        # A batch without an answer is resent with the same bounds: it is noted once.
        if which == self._last or not batch.events:
            return
        private_folder(self._files.folder)
        for path in (self._files.sent_file, self._files.index_file):
            _rotate_file(path)
        _append_durably(self._files.sent_file, encoded + b"\n")
        rows = (
            SentEvent(batch.stream, e.seq, e.key, e.level or batch.level, digest_of(e), e.session) for e in batch.events
        )
        _append_durably(self._files.index_file, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        self._last = which

    def batches(self) -> Iterator[Batch]:
        """From the oldest kept."""
        return _decode_lines(self._files.sent_file, Batch)

    def events(self) -> Iterator[SentEvent]:
        return _decode_lines(self._files.index_file, SentEvent)

    def common_prefix(self, key_at: Callable[[int], str], bound: int) -> int:
        """The last number up to `bound` at which the log still has what was sent."""
        return max((one.seq for one in self.events() if one.seq <= bound and key_at(one.seq) == one.key), default=0)

    def drop_events(self, gone: frozenset[tuple[int, int]]) -> None:
        """Forgotten events are not kept here either."""
        _rewrite_lines(self._files.sent_file, lambda line: _remove_events(line, gone))
        _rewrite_lines(self._files.index_file, lambda line: b"" if _row_key(line) in gone else line + b"\n")


class SentWords(msgspec.Struct, frozen=True, omit_defaults=True):
    """Words sent to the team by a command: a hand-over, a memory, a lease."""

    at: int
    path: str
    """The server address that it went to."""
    body: dict[str, Any]
    id: str = ""
    folder: str = ""
    """The local folder. It did not leave: it is here so that erasing the project changes this line too."""
    digest: str = ""
    """Of the original body and folder: a line that differs from it was changed by an erasure."""

    @property
    def number(self) -> str:
        return self.id or str(self.body.get("id") or "")

    def was_changed(self) -> bool:
        # Lines of the previous version had no digest.
        text = msgspec.json.encode(self.body).decode()
        return self.digest != digest_of_words(self.body, self.folder) if self.digest else INSTEAD in text


def digest_of_words(body: dict[str, Any], folder: str) -> str:
    return hashlib.sha256(msgspec.json.encode((body, folder), order="deterministic")).hexdigest()[:20]


def send_words(
    files: TeamFiles, connection: TeamConnection, path: str, answer: type[T], body: Any, now: int, folder: str = ""
) -> T:
    """Redacted and recorded before it leaves, as events are, at every level."""
    plain = msgspec.to_builtins(body)
    # A memory has its own id.
    number = plain.get("id") or secrets.token_hex(8)
    clean, _ = redact(msgspec.json.encode({**plain, **({} if "id" in plain else {"words": number})}))
    private_folder(files.folder)
    _rotate_file(files.words_file)
    sent: dict[str, Any] = msgspec.json.decode(clean)
    words = SentWords(now, path, sent, number, folder, digest_of_words(sent, folder))
    with files.locked("words.lock"):
        _append_durably(files.words_file, msgspec.json.encode(words) + b"\n")
    return connection.request("POST", path, answer, sent)


def list_words(files: TeamFiles) -> list[SentWords]:
    """From the oldest."""
    return list(_decode_lines(files.words_file, SentWords))


def drop_words(files: TeamFiles, gone: frozenset[str]) -> None:
    """Forgotten words are not kept here either."""
    with files.locked("words.lock"):
        _rewrite_lines(files.words_file, lambda line: b"" if _words_id(line) in gone else line + b"\n")


def _words_id(line: bytes) -> str:
    try:
        return msgspec.json.decode(line, type=SentWords).number
    except msgspec.DecodeError:
        return ""


def describe_level(level: Level) -> str:
    """Everything that leaves at a level: each adds to those before it."""
    shared = "; ".join(LEVEL_TEXT[one] for one in LEVELS[: LEVELS.index(level) + 1])
    return f"{shared}; no text" if level in ("presence", "facts") else shared


def _row_key(line: bytes) -> tuple[int, int]:
    try:
        row = msgspec.json.decode(line, type=SentEvent)
    except msgspec.DecodeError:
        # No event has these numbers: an unreadable line stays in the index, which has no text.
        return 0, 0
    return row.stream, row.seq


def _remove_events(line: bytes, gone: frozenset[tuple[int, int]]) -> bytes:
    try:
        batch = msgspec.json.decode(line, type=Batch)
    except msgspec.DecodeError:
        # It may hold erased text, and nobody can tell: the line is dropped.
        return b""
    remaining = tuple(event for event in batch.events if (batch.stream, event.seq) not in gone)
    return msgspec.json.encode(msgspec.structs.replace(batch, events=remaining)) + b"\n" if remaining else b""


def _rotate_file(path: Path) -> None:
    if path.exists() and path.stat().st_size > MOST_BYTES:
        path.replace(_rotated_path(path))


def _rotated_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.1{path.suffix}")


def _complete_lines(path: Path) -> Iterator[bytes]:
    """A line torn by a crash was repeated whole by the next attempt."""
    for one in (_rotated_path(path), path):
        if one.exists():
            with one.open("rb") as file:
                yield from (line for line in file if line.endswith(b"\n") and len(line) > 2)


def _decode_lines(path: Path, type_: type[T]) -> Iterator[T]:
    for line in _complete_lines(path):
        with contextlib.suppress(msgspec.DecodeError):
            yield msgspec.json.decode(line, type=type_)


def _rewrite_lines(path: Path, rewrite: Callable[[bytes], bytes]) -> None:
    """Replace every line of the file and of its rotated predecessor."""
    for one in (_rotated_path(path), path):
        if one.exists():
            write_atomically(one, b"".join(rewrite(line) for line in one.read_bytes().splitlines() if line))


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
