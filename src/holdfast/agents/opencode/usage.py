"""Token use in opencode's messages."""

# Rows that changed since the last look are read again; only growth is counted.

from collections.abc import Iterable, Iterator
from glob import escape
from pathlib import Path

import apsw
import msgspec

from holdfast.agents.opencode.transcript import (
    BUSY_MS,
    Message,
    SessionFile,
    Tokens,
    decode,
    find_databases,
    find_message_files,
)
from holdfast.analysis.usage.model import Usage, micro_dollars, parse_milliseconds, token_count
from holdfast.analysis.usage.reader import (
    PARSE_ERRORS,
    LiveSession,
    Position,
    Reading,
    Statement,
    UsageReader,
    begin_empty,
    document_reader,
    record_of,
)


def statement_of(message: Message, id_: str, session: str, lane: str) -> Statement | None:
    """`parentID` is the user's message that it answers, which is what we call a turn."""
    if message.role != "assistant" or message.tokens is None or not id_:
        return None
    folder = message.path
    return Statement(
        id=id_,
        said=_usage_of_tokens(message.tokens),
        at=parse_milliseconds(message.time.created) if message.time else 0,
        model=message.model or "",
        session=session,
        lane=lane,
        turn=message.parent or "",
        project=(folder.root or folder.cwd or "") if folder else "",
        reported=micro_dollars(message.cost),
    )


def _usage_of_tokens(tokens: Tokens) -> Usage:
    """Its output leaves the reasoning out."""
    output, thought = token_count(tokens.output), token_count(tokens.reasoning)
    return Usage(
        input=token_count(tokens.input),
        output=None if output is None else output + (thought or 0),
        cache_read=token_count(tokens.cache.read) if tokens.cache else None,
        cache_write_5m=token_count(tokens.cache.write) if tokens.cache else None,
        reasoning=thought,
    )


NAME = "opencode"
MOST_ROWS = 5_000
# (time, row) pairs as a cursor: several rows may have the same time of change.
CHANGED = """
    SELECT m.id, m.session_id, coalesce(s.parent_id, ''), m.time_updated, m.rowid, m.data
    FROM message m LEFT JOIN session s ON s.id = m.session_id
    WHERE (m.time_updated, m.rowid) > (?, ?) ORDER BY m.time_updated, m.rowid LIMIT ?
"""


def read_changes(position: Position) -> Reading:
    """`stamp` and `offset` are the time and the number of the last row that was read."""
    reading = Reading(Position(position.path, stamp=position.stamp, offset=position.offset), [])
    # Copied: the caller may go back to the position it came from.
    reading.position.known = dict(position.known)
    try:
        rows = _changed_rows(position)
    except (apsw.Error, OSError):
        return reading
    for id_, session, parent, updated, row, data in rows:
        _take_message(reading, id_, session, parent, data)
        reading.position.stamp, reading.position.offset = updated, row
    reading.more = len(rows) == MOST_ROWS
    return reading


Row = tuple[str, str, str, int, int, str]


def _changed_rows(position: Position) -> list[Row]:
    if not Path(position.path).is_file():
        return []
    # opencode may be writing to it now.
    database = apsw.Connection(position.path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        database.set_busy_timeout(BUSY_MS)
        rows: list[Row] = list(database.execute(CHANGED, (position.stamp, position.offset, MOST_ROWS)))
        return rows
    finally:
        database.close()


def _take_message(reading: Reading, id_: str, session: str, parent: str, data: str) -> None:
    try:
        # A session with a parent is a subagent of it.
        statement = statement_of(decode(data), id_, parent or session, session if parent else "")
    except PARSE_ERRORS:
        reading.bad += 1
        return
    if statement and (record := record_of(NAME, statement, reading.position)):
        reading.records.append(record)


def session_files(session: LiveSession) -> Iterable[Path]:
    return find_databases(session.home)


READER = UsageReader(NAME, (".db",), find_databases, read_changes, session_files, shared=True)


def parse_message_file(content: bytes, position: Position) -> Iterator[Statement]:
    message, path = decode(content), Path(position.path)
    session = message.session or path.parent.name
    parent = _parent_of(session, path.parents[2]) if len(path.parents) > 2 else ""
    statement = statement_of(message, message.id or path.stem, parent or session, session if parent else "")
    if statement:
        yield statement


def _parent_of(session: str, storage: Path) -> str:
    for file in (storage / "session").glob(f"*/{escape(session)}.json"):
        try:
            return msgspec.json.decode(file.read_bytes(), type=SessionFile).parent or ""
        except (OSError, msgspec.DecodeError, msgspec.ValidationError):
            return ""
    return ""


FILES_READER = UsageReader(
    NAME,
    (".json",),
    find_message_files,
    document_reader(NAME, parse_message_file, begin_empty),
)
