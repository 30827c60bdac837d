"""Pi's sessions as the events that hooks would have been."""

import re
from collections.abc import Iterator
from pathlib import Path

from holdfast.agents import normalise
from holdfast.agents.definition import load_tables
from holdfast.agents.history import History, UsageSide, read_lines, text_of
from holdfast.agents.pi.transcript import Line, Message, decode, find_files
from holdfast.agents.source import session_name
from holdfast.analysis.transcripts import Found, Importer, ImportLocation
from holdfast.analysis.usage.model import Usage, micro_dollars, parse_milliseconds, token_count
from holdfast.analysis.usage.reader import Position, Statement
from holdfast.core.event import Event

NAME = "pi"
TABLES = load_tables(__file__)
_EXITED = re.compile(r"^Command exited with code (\d{1,3})$", re.MULTILINE)
ABORTED = "aborted"


def read_session(path: Path, _place: ImportLocation) -> Iterator[Found]:
    session = _Session(path)
    return read_lines(path, session.read_entry, session.history.close)


class _Session:
    def __init__(self, path: Path) -> None:
        self.history = History(NAME, path, TABLES)
        self.side = UsageSide(NAME, Position(str(path)))

    def read_entry(self, line: bytes, _number: int) -> Iterator[Event]:
        record, history = decode(line), self.history
        at = parse_milliseconds(record.timestamp)
        if record.type == "session" and not history.session:
            history.session, history.project = session_name(record.id), normalise.one_path(record.cwd) or ""
        elif record.message and history.session:
            yield from history.begin(at)
            yield from self._message(record, record.message, at)
        else:
            yield from self._other(record, at)

    def _other(self, record: Line, at: int) -> Iterator[Event]:
        history = self.history
        if record.type == "model_change":
            history.model = record.model_id or history.model
        elif record.type == "compaction" and history.begun:
            yield history.compacted(at, record.id, record.summary or "")
        elif record.type == "session_info":
            yield from history.titled(record.name or "")

    def _message(self, record: Line, message: Message, at: int) -> Iterator[Event]:
        history = self.history
        if message.role == "user":
            yield from history.prompt(at, record.id, text_of(message.content))
        elif message.role == "bashExecution":
            text = f"! {message.command or ''}"
            yield history.event("prompt.submitted", at, record.id, prompt=text, source="shell", synthetic=True)
        elif message.role == "assistant":
            yield from self._answer(record, message, at)
        elif message.role == "toolResult":
            output = text_of(message.content)
            code = int(found[1]) if (found := _EXITED.search(output[-200:])) else None if message.is_error else 0
            yield history.result(at, message.tool_call_id, output, failed=message.is_error, code=code)

    def _answer(self, record: Line, message: Message, at: int) -> Iterator[Event]:
        history = self.history
        history.model = message.model or history.model
        history.answered(at, text_of(message.content))
        for part in map(normalise.mapping_or_empty, message.content if isinstance(message.content, list) else ()):
            if part.get("type") == "toolCall":
                yield from history.call(
                    at, str(part.get("id") or record.id), str(part.get("name") or ""), part.get("arguments")
                )
        yield from self.side.event(_statement_of(record, message, history), history)
        if message.stop_reason == ABORTED:
            yield from history.end_turn(at, "turn.interrupted")


def _statement_of(record: Line, message: Message, history: History) -> Statement | None:
    tokens = message.usage
    if tokens is None or not record.id:
        return None
    usage = Usage(
        input=token_count(tokens.input), output=token_count(tokens.output), cache_read=token_count(tokens.cache_read),
        cache_write_5m=token_count(tokens.cache_write),
    )  # fmt: skip
    return Statement(
        id=f"{history.session}/{record.id}", said=usage, at=parse_milliseconds(record.timestamp),
        model=message.model or "", session=history.session, project=history.project,
        reported=micro_dollars(tokens.cost.total if tokens.cost else None),
    )  # fmt: skip


IMPORTER = Importer(NAME, "Pi sessions", lambda location: find_files(location.home), read_session, whole_sessions=True)
