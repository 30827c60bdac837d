"""opencode's database as the events that its hooks would have been."""

# A subagent is a session with a parent.

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec

from holdfast.agents import normalise
from holdfast.agents.history import History, UsageSide, text_of
from holdfast.agents.opencode.hooks import TABLES
from holdfast.agents.opencode.transcript import (
    BUSY_MS,
    EXPORTS,
    IDS,
    Export,
    ExportInfo,
    decode,
    decode_export,
    decode_head,
    find_databases,
    find_exports,
)
from holdfast.agents.opencode.usage import FILES_READER, READER, statement_of
from holdfast.agents.source import group_by_session, is_document, merge_by_time, read_document
from holdfast.analysis.transcripts import Found, Importer, ImportLocation, Skipped, Transcripts
from holdfast.analysis.usage.model import parse_milliseconds
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


def find_sessions(location: ImportLocation) -> list[Path]:
    """Databases, and sessions that were exported to the same folder. A subagent's export is read with its session's."""
    folders = {path.parent for path in find_exports(location.home)}
    return [*find_databases(location.home), *(path for folder in sorted(folders) for path in _exports_in(folder))]


def read_sessions(path: Path, _place: ImportLocation) -> Iterator[Found]:
    if not is_document(path):
        return _read_database(path)
    return merge_by_time(map(_read_export, (path, *_exports_in(path.parent).get(path, ()))))


def _exports_in(folder: Path) -> Mapping[Path, list[Path]]:
    return group_by_session(folder, folder.stat().st_mtime_ns, EXPORTS, _ids_of)


def _ids_of(path: Path) -> tuple[str, str]:
    try:
        row = _row_of(path, decode_head(read_document(path)).info)
    except (OSError, *PARSE_ERRORS):
        return "", ""
    return row.parent or row.id, row.id


def _row_of(path: Path, info: ExportInfo) -> SessionRow:
    own = info.id if info.id.startswith(IDS) else path.stem
    # A subagent whose session is not named is a lane of itself.
    parent = info.parent if not info.parent or info.parent.startswith(IDS) else own
    return SessionRow(own, parent or "", info.directory, info.title)


def _read_export(path: Path) -> Iterator[Found]:
    try:
        export = decode_export(read_document(path))
    except PARSE_ERRORS as error:
        yield Skipped(str(path), f"not a session: {str(error)[:120]}")
        return
    yield from _Session(path, _row_of(path, export.info)).events(_exported_messages(export))


def _exported_messages(export: Export) -> Iterator["StoredMessage"]:
    for message in export.messages:
        yield StoredMessage("", 0, bytes(message.info), message.parts)


def _read_database(path: Path) -> Iterator[Found]:
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
        families.setdefault(head, []).append(_Session(path, row).events(_stored_messages(database, row.id)))
    for family in families.values():
        yield from merge_by_time(family)


def _stored_messages(database: apsw.Connection, session: str) -> Iterator["StoredMessage"]:
    # Fetched as a whole: the connection runs other statements meanwhile.
    for id_, at, data in database.execute(MESSAGES, (session,)).fetchall():
        parts = [_decoded(row[1]) for row in database.execute(PARTS, (id_,))]
        yield StoredMessage(str(id_), at if isinstance(at, int) else 0, str(data).encode(), parts)


def _decoded(data: Any) -> Any:
    try:
        return msgspec.json.decode(data)
    except PARSE_ERRORS:
        return None


class StoredMessage(NamedTuple):
    id: str
    at: int
    data: bytes
    parts: list[Any]


class _Session:
    def __init__(self, path: Path, row: SessionRow) -> None:
        self.title = row.title
        lane = row.id if row.parent else ""
        self.history = History(NAME, path, TABLES, session=row.parent or row.id, lane=lane, project=row.folder)
        self.side = UsageSide(NAME, Position(str(path)))

    def events(self, messages: Iterable[StoredMessage]) -> Iterator[Found]:
        for message in messages:
            try:
                yield from self._message(message)
            except PARSE_ERRORS as error:
                yield Skipped(f"{self.history.path}: message {message.id}", f"not a record: {str(error)[:120]}")
        if not self.title.startswith(UNTITLED):
            yield from self.history.titled(self.title)
        yield from self.history.close()

    def _message(self, stored: StoredMessage) -> Iterator[Event]:
        history, message = self.history, decode(stored.data)
        at = stored.at or parse_milliseconds(message.time.created if message.time else None)
        id_ = history.own_name(stored.id or message.id, message.role, at)
        yield from history.begin(at)
        history.model = message.model or history.model
        parts = [normalise.mapping_or_empty(part) for part in stored.parts]
        if message.role == "user":
            text = _typed_words(parts)
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
        call = self.history.own_name(call, begun, tool, state.get("input"))
        yield from self.history.call(begun, call, tool, state.get("input"))
        if state.get("status") in ("completed", "error"):
            code = normalise.number_or_none(normalise.mapping_or_empty(state.get("metadata")).get("exit"))
            failed = state.get("status") == "error"
            output = state.get("error") if failed else state.get("output")
            yield self.history.result(ended, call, output, failed=failed, code=None if code is None else int(code))


def _typed_words(parts: list[Mapping[str, Any]]) -> str:
    """Parts that opencode adds itself are no words of the person."""
    return text_of([part for part in parts if part.get("type") == "text" and not part.get("synthetic")])


TRANSCRIPTS = Transcripts(
    importer=Importer(NAME, "opencode sessions", find_sessions, read_sessions, whole_sessions=True),
    usage=(
        READER,
        FILES_READER,
    ),
)
