"""The contract of a usage reader: where an agent keeps its figures, and how a file is read from a position."""

import os
from collections.abc import Callable, Iterable, Iterator
from glob import escape
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import msgspec

from holdfast.analysis.usage.model import NOTHING, Usage, UsageRecord
from holdfast.paths import open_regular

T = TypeVar("T")

REMEMBERED = 512
"""Messages of one file whose figures may still grow. Agents write the lines of one message close together."""


class FileContext(msgspec.Struct, omit_defaults=True):
    """What earlier lines of a file imply for later ones."""

    session: str = ""
    lane: str = ""
    model: str = ""
    turn: str = ""
    project: str = ""
    branch: str = ""
    thread: str = ""
    """The thread whose running total it continues."""
    detailed: bool = False
    """The file has the agent's finer record, so the coarser one is skipped."""
    epoch: int = 0
    """How often a running total restarted at 0."""
    count: int = 0
    """Records of a rewritten file that are already read."""


class Position(msgspec.Struct, omit_defaults=True):
    """How far a file was read. Small JSON, kept between runs."""

    path: str
    inode: int = 0
    offset: int = 0
    tail: int = 0
    """Checksum of the bytes before the offset, to recognise a rewritten file."""
    stamp: int = 0
    """Time of the last change, for files that are read whole."""
    skipping: bool = False
    """Inside a line that is too long to keep."""
    context: FileContext = msgspec.field(default_factory=FileContext)
    known: dict[str, Usage] = msgspec.field(default_factory=dict)


class Statement(msgspec.Struct, kw_only=True):
    """What a file says of one message so far."""

    id: str
    said: Usage
    at: int = 0
    model: str = ""
    session: str = ""
    lane: str = ""
    turn: str = ""
    project: str = ""
    branch: str = ""
    reported: int | None = None
    summed: bool = False


class Reading(msgspec.Struct):
    position: Position
    records: list[UsageRecord]
    more: bool = False
    """There is more in the file; read again from the position."""
    bad: int = 0
    """Lines that were no records."""


class LiveSession(msgspec.Struct, frozen=True):
    """A session whose figures are read while it runs."""

    id: str
    home: Path
    transcript: str = ""
    """The file that the agent's hooks name; empty if they name none."""
    lane_transcripts: tuple[str, ...] = ()
    """Files of its subagents, as hooks named them."""
    began: int = 0

    @property
    def file_name(self) -> str:
        """Its id for use in a file pattern; empty if it is no plain name."""
        # The id goes into a glob: no parent folder, hidden file or wildcard.
        return "" if not self.id or "/" in self.id or self.id.startswith(".") else escape(self.id)


def named_files(session: LiveSession) -> Iterable[Path]:
    return [Path(path) for path in (session.transcript, *session.lane_transcripts) if path]


class UsageReader(msgspec.Struct, frozen=True):
    name: str
    endings: tuple[str, ...]
    find_files: Callable[[Path], Iterable[Path]]
    """The files below a home folder."""
    read: Callable[[Position], Reading]
    """Reads on from a position; never raises for the contents of a file."""
    session_files: Callable[[LiveSession], Iterable[Path]] = named_files
    """The files of one running session and its subagents, which need not exist."""
    shared: bool = False
    """A file holds many sessions: `stamp` of a new position is the session's start."""

    def accepts(self, path: str) -> bool:
        return path.endswith(self.endings) and "\0" not in path


def record_of(agent: str, statement: Statement, position: Position) -> UsageRecord | None:
    """What the statement adds to its message; None if nothing."""
    # Moved to the end, so that the messages seen last stay.
    before = position.known.pop(statement.id, NOTHING)
    # A later line may say less; what was counted stays.
    position.known[statement.id] = statement.said.at_least(before)
    while len(position.known) > REMEMBERED:
        # Dicts keep insertion order, so the oldest goes.
        position.known.pop(next(iter(position.known)))
    spent = statement.said.beyond(before)
    if spent.is_empty:
        return None
    # What the line itself does not say follows from earlier ones.
    known = {name: getattr(statement, name) or getattr(position.context, name) for name in FROM_CONTEXT}
    return UsageRecord(
        agent=agent, id=statement.id, at=statement.at, spent=spent, said=statement.said, reported=statement.reported,
        summed=statement.summed, **known,
    )  # fmt: skip


FROM_CONTEXT = ("model", "session", "lane", "turn", "project", "branch")

# Reads growing files: whole lines only, in bounded chunks, from the last position.

# Bytes of one read.
CHUNK = 4 << 20
MOST_PER_READ = 32 << 20
"""Bytes per call; the rest is read next time."""
LONGEST_LINE = 64 << 20
# Bytes before the offset that are compared.
TAIL = 256
LARGEST_DOCUMENT = 256 << 20

StatementOf = Callable[[T, Position], Statement | None]
ParseDocument = Callable[[bytes, Position], Iterator[Statement]]
Begin = Callable[[Path], FileContext]
PARSE_ERRORS = (msgspec.DecodeError, msgspec.ValidationError, RecursionError, ValueError, TypeError, AttributeError)


def lines_reader(
    agent: str, decode: Callable[[bytes], T], statement_of: StatementOf[T], marks: tuple[bytes, ...], begin: Begin
) -> Callable[[Position], Reading]:
    """For JSON Lines. Only lines with one of the marks are decoded, because most are text."""

    def parse(line: bytes, position: Position) -> Statement | None:
        return statement_of(decode(line), position)

    def read(position: Position) -> Reading:
        reading = Reading(_copy_position(position), [])
        for line in _new_lines(reading, begin):
            if any(mark in line for mark in marks):
                _take_line(agent, parse, line, reading)
        return reading

    return read


def document_reader(agent: str, parse: ParseDocument, begin: Begin) -> Callable[[Position], Reading]:
    """For files that the agent rewrites whole: read again after a change; only growth is reported."""

    def read(position: Position) -> Reading:
        reading = Reading(_copy_position(position), [])
        content = _changed_document(reading.position, begin)
        if content is None:
            return reading
        try:
            for statement in parse(content, reading.position):
                _add_record(agent, statement, reading)
        except PARSE_ERRORS:
            reading.bad += 1
        return reading

    return read


def _take_line(agent: str, parse: Callable[[bytes, Position], Statement | None], line: bytes, reading: Reading) -> None:
    try:
        statement = parse(line, reading.position)
    except PARSE_ERRORS:
        reading.bad += 1
        return
    if statement is not None:
        _add_record(agent, statement, reading)


def _add_record(agent: str, statement: Statement, reading: Reading) -> None:
    if record := record_of(agent, statement, reading.position):
        reading.records.append(record)


def _copy_position(position: Position) -> Position:
    return msgspec.structs.replace(
        position, context=msgspec.structs.replace(position.context), known=dict(position.known)
    )


def _new_lines(reading: Reading, begin: Begin) -> Iterator[bytes]:
    position = reading.position
    try:
        with open(position.path, "rb", opener=open_regular) as file:
            _find_place(file.fileno(), position, begin)
            yield from _lines_from(file.fileno(), reading)
    except OSError:
        return


def _find_place(fd: int, position: Position, begin: Begin) -> None:
    """Start over if the file is new, rotated, cut or rewritten; counted messages stay known by id."""
    status = os.fstat(fd)
    # Shorter than the offset: it was cut.
    same = position.inode == status.st_ino and status.st_size >= position.offset
    if same and position.offset and _tail_at(fd, position.offset) == position.tail:
        return
    position.inode, position.offset, position.tail, position.skipping = status.st_ino, 0, 0, False
    position.context = begin(Path(position.path))


def _tail_at(fd: int, offset: int) -> int:
    length = min(TAIL, offset)
    return crc32(os.pread(fd, length, offset - length))


def _lines_from(fd: int, reading: Reading) -> Iterator[bytes]:
    """The offset only moves over complete lines; a torn last line waits for its rest."""
    position = reading.position
    start, pending = position.offset, b""
    while True:
        chunk = os.pread(fd, CHUNK, position.offset + len(pending))
        whole, newline, rest = chunk.rpartition(b"\n")
        if newline:
            yield from _split_lines(pending + whole, position)
            position.offset += len(pending) + len(whole) + 1
            pending, position.skipping = rest, False
        elif position.skipping:
            position.offset += len(chunk)  # Not kept: the rest of such a line may be gigabytes.
        else:
            pending += chunk
        if len(chunk) < CHUNK:
            yield from _last_line(pending, position)
            break
        if len(pending) > LONGEST_LINE:
            # Give up this line and skip to the next line end.
            position.offset, pending, position.skipping = position.offset + len(pending), b"", True
        if position.offset - start >= MOST_PER_READ:
            reading.more = True
            break
    position.tail = _tail_at(fd, position.offset)


def _split_lines(text: bytes, position: Position) -> Iterator[bytes]:
    lines = text.split(b"\n")
    # The first piece is the rest of the skipped line.
    yield from lines[1:] if position.skipping else lines


def _last_line(pending: bytes, position: Position) -> Iterator[bytes]:
    """A line without its end is complete if it parses: a cut object never does."""
    text = pending.strip()
    if position.skipping or not (text.startswith(b"{") and text.endswith(b"}")):
        return
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except PARSE_ERRORS:
        return
    yield text
    position.offset += len(pending)


def _changed_document(position: Position, begin: Begin) -> bytes | None:
    try:
        with open(position.path, "rb", opener=open_regular) as file:
            status = os.fstat(file.fileno())
            mark = (status.st_ino, status.st_mtime_ns, status.st_size)
            # Inode, time and size represent the content.
            if mark == (position.inode, position.stamp, position.offset) or status.st_size > LARGEST_DOCUMENT:
                return None
            content = file.read(LARGEST_DOCUMENT)
    except OSError:
        return None
    if not position.stamp:
        position.context = begin(Path(position.path))
    position.inode, position.stamp, position.offset = mark
    return content


def begin_empty(_path: Path) -> FileContext:
    return FileContext()


def records_of(reader: UsageReader, path: Path) -> Iterator[UsageRecord]:
    """Reads all records of a file, never holding more than one chunk of it in memory."""
    position, more = Position(str(path)), True
    while more:
        reading = reader.read(position)
        position, more = reading.position, reading.more
        yield from reading.records
