"""Imports OAK's database, `.oak/ci/activities.db`: sessions, prompt batches, activities, memories. A copy of it is read."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import apsw
import msgspec

from holdfast.agents import normalise, payload_reader
from holdfast.agents.claude_code.hooks import TABLES
from holdfast.agents.source import key_of, session_name
from holdfast.analysis.transcripts import Found, Importer, ImportLocation, Skipped
from holdfast.analysis.usage.model import parse_milliseconds
from holdfast.core.event import Event
from holdfast.core.ids import bounded_name

OAK_NAME = "oak"
OAK_FILE = ".oak/ci/activities.db"
AGENTS = {"claude": "claude-code"}
MEMORY_TYPES = ("gotcha", "decision", "bug_fix", "discovery", "trade_off", "session_summary")
Row = Mapping[str, Any]


def find_oak_database(location: ImportLocation) -> Iterable[Path]:
    return [file] if (file := location.project / OAK_FILE).is_file() else []


def read_oak_database(path: Path, location: ImportLocation) -> Iterator[Found]:
    """Opening a database can write to its folder, so even a read could change something."""
    with tempfile.TemporaryDirectory(prefix="holdfast-import-") as folder:
        # Including the write-ahead log, which may have rows that the database file lacks.
        for suffix in ("", "-wal"):
            if (part := path.with_name(path.name + suffix)).is_file():
                shutil.copyfile(part, Path(folder) / (path.name + suffix))
        try:
            db = apsw.Connection(str(Path(folder) / path.name))
            yield from _Database(db, path, location).events()
            db.close()
        except apsw.Error as error:
            yield Skipped(str(path), f"not a database of OAK: {error}")


class _Database:
    def __init__(self, db: apsw.Connection, path: Path, location: ImportLocation) -> None:
        self.db, self.path, self.place = db, path, location
        self.agents: dict[str, str] = {}
        self.numbers: dict[Any, str] = {}

    def events(self) -> Iterator[Found]:
        # Sessions first: rows of the other tables name the agent only by their session.
        for row in self._rows("sessions"):
            yield from self._session(row)
        for row in self._rows("prompt_batches"):
            yield self._batch(row)
        for row in self._rows("activities"):
            yield self._activity(row)
        for row in self._rows("memory_observations"):
            yield self._observation(row)
        for row in self._rows("sessions"):
            if row.get("status") == "completed" and session_name(row.get("id")):
                yield self._event(
                    "session.ended", row, row["id"], row["id"], _row_time(row, "ended_at"), reason="import"
                )

    def _rows(self, table: str) -> Iterator[Row]:
        """By name: later versions of OAK have more columns."""
        if not self.db.execute("select 1 from sqlite_schema where name = ?", (table,)).fetchall():
            return  # Earlier versions of OAK have fewer tables.
        cursor = self.db.execute(f'select * from "{table}" order by rowid')
        for values in cursor:
            names = [column[0] for column in cursor.getdescription()]
            yield dict(zip(names, values, strict=True))

    def _session(self, row: Row) -> Iterator[Found]:
        session = session_name(row.get("id"))
        if not session:
            yield Skipped(f"{self.path}: sessions", "a session without id")
            return
        self.agents[session] = str(row.get("agent") or "claude")
        at = _row_time(row, "started_at", "created_at")
        yield self._event("session.started", row, session, session, at, source="import")
        if title := normalise.cap_text(str(row.get("title") or ""), normalise.NAME):
            yield self._event("session.titled", row, session, session, at, title=title)
        if row.get("summary"):
            ended = _row_time(row, "ended_at", "started_at", "created_at")
            yield self._memory(row, session, f"summary/{session}", ended, "session_summary", row["summary"])

    def _observation(self, row: Row) -> Found:
        session, text = session_name(row.get("session_id")), row.get("observation")
        if not session or not text or row.get("status") in ("resolved", "superseded"):
            return Skipped(
                f"{self.path}: memory_observations", "without text or session, or no longer valid", expected=True
            )
        type_ = str(row.get("memory_type") or "")
        return self._memory(row, session, row.get("id"), _row_time(row, "created_at"), type_, text)

    def _memory(self, row: Row, session: str, which: Any, at: int, type_: str, text: Any) -> Event:
        """Words of another system: found by those who search, injected once a person vouches for them."""
        path = normalise.one_path(row.get("file_path")) or ""
        return self._event(
            "memory.observed", row, which, session, at, id=f"m{key_of(OAK_NAME, which)[:12]}", origin="outside",
            type=type_ if type_ in MEMORY_TYPES else "discovery", text=normalise.cap_text(str(text), normalise.MESSAGE),
            files=[path] if path else [],
        )  # fmt: skip

    def _batch(self, row: Row) -> Found:
        session, number = session_name(row.get("session_id")), str(row.get("id"))
        self.numbers[row.get("id")] = number
        if not session:
            return Skipped(f"{self.path}: prompt_batches {number}", "it has no session")
        prompt = normalise.cap_text(str(row.get("user_prompt") or ""), normalise.PROMPT)
        at = _row_time(row, "started_at", "created_at")
        return self._event("prompt.submitted", row, number, session, at, prompt=prompt, turn=number)

    def _activity(self, row: Row) -> Found:
        session, tool = session_name(row.get("session_id")), str(row.get("tool_name") or "")
        if not session or not tool:
            return Skipped(f"{self.path}: activities {row.get('id')}", "it has no session or no tool")
        data: dict[str, Any] = {"cwd": str(self.place.project)}
        payload_reader.add_tool(TABLES, data, {"tool_name": tool, "tool_input": _decode_json(row.get("tool_input"))})
        ok = row.get("success") not in (0, False)
        outcome = {"ok": ok, "call": f"oak-{row.get('id')}", "turn": self.numbers.get(row.get("prompt_batch_id"), "")}
        if row.get("tool_output_summary"):
            outcome["output"] = normalise.cap_text(str(row["tool_output_summary"]), normalise.OUTPUT)
        if not ok:
            outcome["error"] = normalise.cap_text(str(row.get("error_message") or ""), normalise.ERROR)
        kind = "tool.finished" if ok else "tool.failed"
        return self._event(kind, row, row.get("id"), session, _row_time(row, "timestamp"), tool=tool, **data, **outcome)

    def _event(self, kind: str, row: Row, which: Any, session: str, at: int, tool: str = "", **data: Any) -> Event:
        agent = self.agents.get(session, "claude")
        root = normalise.one_path(row.get("project_root")) or str(self.place.project)
        return Event(
            key=key_of(OAK_NAME, session, kind, which),
            kind=kind,
            at=at,
            session=session_name(session),
            project=root,
            agent=AGENTS.get(agent, agent),
            tool=bounded_name(tool),
            data={**{k: v for k, v in data.items() if v != ""}, "imported": OAK_NAME},
        )


def _row_time(row: Row, *names: str) -> int:
    candidates = [row.get(suffixed) for name in names for suffixed in (f"{name}_epoch", name)]
    return next((at for value in candidates if (at := parse_milliseconds(value))), 0)


def _decode_json(text: Any) -> Any:
    try:
        return msgspec.json.decode(text) if isinstance(text, str) else text
    except msgspec.DecodeError:
        return {}


OAK_IMPORTER = Importer(OAK_NAME, "OAK's sessions", find_oak_database, read_oak_database, whole_sessions=True)
