"""opencode's database: `~/.local/share/opencode/opencode.db`, read only. A subagent is a session with a parent."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import apsw
import msgspec

from holdfast.agents import normal
from holdfast.agents.opencode import TABLES
from holdfast.core.event import Event
from holdfast.imports.history import History, UsageSide
from holdfast.imports.source import PARSE_ERRORS, Found, Importer, ImportLocation, Skipped, merge_by_time
from holdfast.usage.reader import Position
from holdfast.usage.readers import opencode as usage
from holdfast.usage.readers.opencode import decode as decode_message
from holdfast.usage.readers.opencode import statement_of

NAME = "opencode"
SESSIONS = "SELECT id, coalesce(parent_id, ''), directory FROM session ORDER BY time_created"
MESSAGES = "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id"
PARTS = "SELECT id, data FROM part WHERE message_id = ? ORDER BY id"


def find_databases(location: ImportLocation) -> Iterable[Path]:
    return usage.opencode_find_usage_files(location.home)


def read_database(path: Path, _place: ImportLocation) -> Iterator[Found]:
    try:
        database = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error as error:
        yield Skipped(str(path), str(error))
        return
    try:
        # opencode may be writing: it is waited for.
        database.set_busy_timeout(usage.BUSY_MS)
        yield from _read_sessions(path, database)
    except apsw.Error as error:
        yield Skipped(str(path), str(error))
    finally:
        database.close()


def _read_sessions(path: Path, database: apsw.Connection) -> Iterator[Found]:
    """Each with its subagents; one whose session is gone stands alone."""
    rows = [(str(id_), str(parent), str(folder)) for id_, parent, folder in database.execute(SESSIONS)]
    known_ids = {own for own, _, _ in rows}
    families: dict[str, list[Iterator[Found]]] = {}
    for own, parent, folder in rows:
        head = parent if parent in known_ids else own
        families.setdefault(head, []).append(_Session(path, database, own, parent, folder).events())
    for family in families.values():
        yield from merge_by_time(family)


class _Session:
    def __init__(self, path: Path, database: apsw.Connection, own: str, parent: str, directory: str) -> None:
        self.database, self.own = database, own
        self.history = History(NAME, path, TABLES, session=parent or own, lane=own if parent else "", project=directory)
        self.side = UsageSide(NAME, Position(str(path)))

    def events(self) -> Iterator[Found]:
        # Fetched as a whole: the connection runs other statements meanwhile.
        for id_, at, data in self.database.execute(MESSAGES, (self.own,)).fetchall():
            try:
                yield from self._message(str(id_), at if isinstance(at, int) else 0, str(data))
            except PARSE_ERRORS as error:
                yield Skipped(f"{self.history.path}: message {id_}", f"not a record: {str(error)[:120]}")
        yield from self.history.close()

    def _message(self, id_: str, at: int, data: str) -> Iterator[Event]:
        history, message = self.history, decode_message(data)
        yield from history.begin(at)
        history.model = message.model or history.model
        parts = [normal.mapping_or_empty(msgspec.json.decode(row[1])) for row in self.database.execute(PARTS, (id_,))]
        if message.role == "user":
            typed = [part.get("text") for part in parts if part.get("type") == "text" and not part.get("synthetic")]
            text = "\n".join(text for text in typed if isinstance(text, str))
            yield from history.prompt(at, id_, text, synthetic=bool(history.lane) or not text)
        for part in parts if message.role == "assistant" else ():
            yield from self._part(part, at)
        statement = statement_of(message, id_, history.session, history.lane)
        yield from self.side.event(statement, history)

    def _part(self, part: Mapping[str, Any], at: int) -> Iterator[Event]:
        if part.get("type") == "text":
            self.history.answered(at, str(part.get("text") or ""))
        elif part.get("type") == "tool" and part.get("callID"):
            yield from self._call(
                str(part["callID"]), str(part.get("tool") or ""), normal.mapping_or_empty(part.get("state")), at
            )

    def _call(self, call: str, tool: str, state: Mapping[str, Any], at: int) -> Iterator[Event]:
        times = normal.mapping_or_empty(state.get("time"))
        begun, ended = (int(normal.number_or_none(times.get(name)) or at) for name in ("start", "end"))
        yield from self.history.call(begun, call, tool, state.get("input"))
        if state.get("status") in ("completed", "error"):
            code = normal.number_or_none(normal.mapping_or_empty(state.get("metadata")).get("exit"))
            failed = state.get("status") == "error"
            output = state.get("error") if failed else state.get("output")
            yield self.history.result(ended, call, output, failed=failed, code=None if code is None else int(code))


IMPORTER = Importer(NAME, "opencode sessions", find_databases, read_database, whole_sessions=True)
