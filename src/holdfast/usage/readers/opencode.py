"""opencode's database: `~/.local/share/opencode/opencode.db`. Opened for reading only; rows changed since the last look
are read again, and only what grew is told."""

from collections.abc import Iterable
from pathlib import Path

import apsw

from holdfast.usage.reader import PARSE_ERRORS, LiveSession, Position, Reading, UsageReader, record_of
from holdfast.usage.readers.opencode_message import decode, statement_of

NAME = "opencode"
MOST_ROWS = 5_000
BUSY_MS = 2_000
CHANGED = """
    SELECT m.id, m.session_id, coalesce(s.parent_id, ''), m.time_updated, m.rowid, m.data
    FROM message m LEFT JOIN session s ON s.id = m.session_id
    WHERE (m.time_updated, m.rowid) > (?, ?) ORDER BY m.time_updated, m.rowid LIMIT ?
"""


def find_usage_files(home: Path) -> Iterable[Path]:
    return sorted((home / ".local" / "share" / "opencode").glob("opencode*.db"))


def read_changes(position: Position) -> Reading:
    """`stamp` and `offset` are the time and the number of the last row that was read."""
    reading = Reading(Position(position.path, stamp=position.stamp, offset=position.offset), [])
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
    database = apsw.Connection(position.path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        database.set_busy_timeout(BUSY_MS)
        rows: list[Row] = list(database.execute(CHANGED, (position.stamp, position.offset, MOST_ROWS)))
        return rows
    finally:
        database.close()


def _take_message(reading: Reading, id_: str, session: str, parent: str, data: str) -> None:
    try:
        statement = statement_of(decode(data), id_, parent or session, session if parent else "")
    except PARSE_ERRORS:
        reading.bad += 1
        return
    if statement and (record := record_of(NAME, statement, reading.position)):
        reading.records.append(record)


def session_files(session: LiveSession) -> Iterable[Path]:
    return find_usage_files(session.home)


READER = UsageReader(NAME, (".db",), find_usage_files, read_changes, session_files, shared=True)
