"""opencode's database as the events that its hooks would have been. A subagent is a session with a parent."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec

from holdfast.agents import normalise
from holdfast.agents.history import History, UsageSide, text_of
from holdfast.agents.opencode.hooks import TABLES
from holdfast.agents.opencode.transcript import BUSY_MS, decode, find_databases
from holdfast.agents.opencode.usage import FILES_READER, READER, statement_of
from holdfast.agents.source import merge_by_time
from holdfast.analysis.transcripts import Found, Importer, ImportLocation, Skipped, Transcripts
from holdfast.analysis.usage.reader import PARSE_ERRORS, Position
from holdfast.core.event import Event

NAME = "opencode"
SESSIONS = "SELECT id, coalesce(parent_id, ''), directory, title FROM session ORDER BY time_created"
UNTITLED = "New session"
MESSAGES = "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id"
PARTS = "SELECT id, data FROM part WHERE message_id = ? ORDER BY id"


class SessionRow(NamedTuple):
    id: str
    parent: str
    folder: str
    title: str


def read_database(path: Path, _place: ImportLocation) -> Iterator[Found]:
    try:
        database = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error as error:
        yield Skipped(str(path), str(error))
        return
    try:
        # opencode may be writing: it is waited for.
        database.set_busy_timeout(BUSY_MS)
        yield from _read_sessions(path, database)
    except apsw.Error as error:
        yield Skipped(str(path), str(error))
    finally:
        database.close()


def _read_sessions(path: Path, database: apsw.Connection) -> Iterator[Found]:
    """Each session with its subagents; a subagent whose session is gone comes alone."""
    rows = [SessionRow(*(str(value or "") for value in row)) for row in database.execute(SESSIONS)]
    known_ids = {row.id for row in rows}
    families: dict[str, list[Iterator[Found]]] = {}
    for row in rows:
        head = row.parent if row.parent in known_ids else row.id
        families.setdefault(head, []).append(_Session(path, database, row).events())
    for family in families.values():
        yield from merge_by_time(family)


class _Session:
    def __init__(self, path: Path, database: apsw.Connection, row: SessionRow) -> None:
        self.database, self.own, self.title = database, row.id, row.title
        lane = row.id if row.parent else ""
        self.history = History(NAME, path, TABLES, session=row.parent or row.id, lane=lane, project=row.folder)
        self.side = UsageSide(NAME, Position(str(path)))

    def events(self) -> Iterator[Found]:
        # Fetched as a whole: the connection runs other statements meanwhile.
        for id_, at, data in self.database.execute(MESSAGES, (self.own,)).fetchall():
            try:
                yield from self._message(str(id_), at if isinstance(at, int) else 0, str(data))
            except PARSE_ERRORS as error:
                yield Skipped(f"{self.history.path}: message {id_}", f"not a record: {str(error)[:120]}")
        if not self.title.startswith(UNTITLED):
            yield from self.history.titled(self.title)
        yield from self.history.close()

    def _message(self, id_: str, at: int, data: str) -> Iterator[Event]:
        history, message = self.history, decode(data)
        yield from history.begin(at)
        history.model = message.model or history.model
        rows = self.database.execute(PARTS, (id_,))
        parts = [normalise.mapping_or_empty(msgspec.json.decode(row[1])) for row in rows]
        if message.role == "user":
            # Parts that opencode adds itself are no words of the person.
            text = text_of([part for part in parts if part.get("type") == "text" and not part.get("synthetic")])
            yield from history.prompt(at, id_, text, synthetic=bool(history.lane) or not text)
        elif message.role == "assistant":
            for part in parts:
                yield from self._part(part, at)
        statement = statement_of(message, id_, history.session, history.lane)
        yield from self.side.event(statement, history)

    def _part(self, part: Mapping[str, Any], at: int) -> Iterator[Event]:
        if part.get("type") == "text":
            self.history.answered(at, str(part.get("text") or ""))
        elif part.get("type") == "tool" and part.get("callID"):
            yield from self._call(
                str(part["callID"]), str(part.get("tool") or ""), normalise.mapping_or_empty(part.get("state")), at
            )

    def _call(self, call: str, tool: str, state: Mapping[str, Any], at: int) -> Iterator[Event]:
        times = normalise.mapping_or_empty(state.get("time"))
        begun, ended = (int(normalise.number_or_none(times.get(name)) or at) for name in ("start", "end"))
        yield from self.history.call(begun, call, tool, state.get("input"))
        if state.get("status") in ("completed", "error"):
            code = normalise.number_or_none(normalise.mapping_or_empty(state.get("metadata")).get("exit"))
            failed = state.get("status") == "error"
            output = state.get("error") if failed else state.get("output")
            yield self.history.result(ended, call, output, failed=failed, code=None if code is None else int(code))


TRANSCRIPTS = Transcripts(
    importer=Importer(
        NAME, "opencode sessions", lambda location: find_databases(location.home), read_database, whole_sessions=True
    ),
    usage=(
        READER,
        FILES_READER,
    ),
)
