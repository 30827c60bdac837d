"""Gemini CLI's chats: `~/.gemini/tmp/PROJECT/chats/session-*.jsonl`, subagents in a folder of their session."""

from collections.abc import Iterable, Iterator
from glob import escape
from pathlib import Path
from typing import Any

import msgspec

from holdfast.agents import normal
from holdfast.agents.gemini import TABLES, exit_code_in, plain_output
from holdfast.core.event import Event
from holdfast.imports.history import History, UsageSide, read_lines, text_of
from holdfast.imports.source import Found, Importer, ImportLocation, merge_by_time, parse_milliseconds
from holdfast.usage.reader import Position
from holdfast.usage.readers import gemini as usage

NAME = "gemini"
REFUSED = "Tool execution blocked:"
SET_UP = "<session_context>"
"""How the first message begins, which nobody typed."""


class Line(msgspec.Struct, rename={"session_id": "sessionId", "tool_calls": "toolCalls"}):
    id: str = ""
    type: str = ""
    timestamp: Any = None
    content: Any = None
    model: str | None = None
    session_id: str | None = None
    kind: str | None = None
    tool_calls: list[Any] = []


decode = msgspec.json.Decoder(Line).decode


def find_chats(location: ImportLocation) -> Iterable[Path]:
    return [path for path in usage.find_usage_files(location.home) if path.parent.name == "chats"]


def read_chat(path: Path, _place: ImportLocation) -> Iterator[Found]:
    """The folder of its subagents is named by the session's whole id, the chat by the beginning of it."""
    alias = path.stem.rpartition("-")[2]
    subagents = sorted(path.parent.glob(f"{escape(alias)}*/*.jsonl")) if alias else []
    return merge_by_time(map(_read_file, (path, *subagents)))


def _read_file(path: Path) -> Iterator[Found]:
    chat = _Chat(path)
    yield from read_lines(path, chat.read_entry, chat.history.close)


class _Chat:
    def __init__(self, path: Path) -> None:
        context = usage.context_of_file(path)
        self.history = History(NAME, path, TABLES, project=context.project)
        self.side = UsageSide(NAME, Position(str(path), context=context))
        self.seen: set[str] = set()

    def read_entry(self, line: bytes, _number: int) -> Iterator[Event]:
        record, history, context = decode(line), self.history, self.side.position.context
        statement = usage.parse_gemini_usage(line, self.side.position)
        history.session, history.lane = context.session, context.lane
        at = parse_milliseconds(record.timestamp)
        if record.type:
            yield from history.begin(at)
            history.model = record.model or history.model
        if record.type == "user" and record.id not in self.seen:
            yield from self._user(record, at)
        elif record.type == "gemini":
            yield from self._answer(record, at)
        self.seen.add(record.id)
        yield from self.side.event(statement, history)

    def _user(self, record: Line, at: int) -> Iterator[Event]:
        """What tools gave back comes as a user's message, too; a resumed chat repeats what it began with."""
        text = text_of(record.content)
        if text and not text.startswith(SET_UP):
            yield from self.history.prompt(at, record.id, text, synthetic=bool(self.history.lane))

    def _answer(self, record: Line, at: int) -> Iterator[Event]:
        self.history.answered(at, text_of(record.content))
        for made in map(normal.mapping_or_empty, record.tool_calls):
            call, tool = str(made.get("id") or ""), str(made.get("name") or "")
            if call and call not in self.seen:
                self.seen.add(call)
                yield from self.history.call(at, call, tool, made.get("args"))
                yield self._result(made, call, parse_milliseconds(made.get("timestamp")) or at)

    def _result(self, made: Any, call: str, at: int) -> Event:
        parts = [normal.mapping_or_empty(part).get("functionResponse") for part in made.get("result") or ()]
        responses = [normal.mapping_or_empty(normal.mapping_or_empty(one).get("response")) for one in parts]
        output = "\n".join(str(one.get("output") or one.get("error") or "") for one in responses)
        failed = made.get("status") == "error"
        if failed and output.startswith(REFUSED):
            return self.history.denied(at, call, output.removeprefix(REFUSED).strip())
        return self.history.result(at, call, plain_output(output), failed=failed, code=exit_code_in(output))


IMPORTER = Importer(NAME, "Gemini CLI chats", find_chats, read_chat, whole_sessions=True)
