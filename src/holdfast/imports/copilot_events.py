"""GitHub Copilot CLI's events: `~/.copilot/session-state/SESSION/events.jsonl`. Subagents are in the same file."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from holdfast.agents import normal
from holdfast.agents.copilot import TABLES
from holdfast.core.event import Event
from holdfast.imports.history import History, UsageSide, read_lines
from holdfast.imports.source import Found, Importer, ImportLocation, parse_milliseconds
from holdfast.usage.reader import Position
from holdfast.usage.readers import copilot as usage

NAME = "copilot"
REFUSED = "Denied by preToolUse hook:"


class Line(msgspec.Struct, rename={"agent": "agentId"}):
    type: str = ""
    id: str = ""
    timestamp: Any = None
    agent: str | None = None
    data: Any = None


decode = msgspec.json.Decoder(Line).decode


def find_event_files(location: ImportLocation) -> Iterable[Path]:
    return usage.find_usage_files(location.home)


def read_event_file(path: Path, _place: ImportLocation) -> Iterator[Found]:
    events = _Events(path)
    yield from read_lines(path, events.read_entry, events.close)


class _Events:
    def __init__(self, path: Path) -> None:
        context = usage.context_of_file(path)
        self.main = History(NAME, path, TABLES, session=context.session)
        self.side = UsageSide(NAME, Position(str(path), context=context))
        self.lanes: dict[str, History] = {}

    def read_entry(self, line: bytes, _number: int) -> Iterator[Event]:
        record = decode(line)
        statement = usage.parse_copilot_usage(line, self.side.position)
        context, data, at = (
            self.side.position.context,
            normal.mapping_or_empty(record.data),
            parse_milliseconds(record.timestamp),
        )
        self.main.project, self.main.branch = context.project, context.branch
        yield from self.main.begin(at)
        history = self._history(record.agent or "", str(data.get("agentName") or ""))
        yield from history.begin(at)
        handle = HANDLERS.get(record.type)
        if handle:
            yield from handle(history, data, at, record.id)
        yield from self.side.event(statement, history)

    def _history(self, lane: str, lane_type: str) -> History:
        if not lane:
            return self.main
        if lane not in self.lanes:
            # A subagent has calls and an answer of its own; session,
            # project and branch are those of the main one.
            self.lanes[lane] = replace(self.main, lane=lane, lane_type=lane_type, begun=False, answer="", calls={})
        return self.lanes[lane]

    def close(self) -> Iterator[Event]:
        for history in (*self.lanes.values(), self.main):
            yield from history.close()


def _read_prompt(history: History, data: Mapping[str, Any], at: int, ident: str) -> Iterator[Event]:
    # Copilot's own messages name another source.
    typed = data.get("source") in (None, "user")
    # A subagent's prompt is what the main agent asked of it.
    yield from history.prompt(
        at, str(data.get("messageId") or ident), str(data.get("content") or ""), synthetic=not (typed or history.lane)
    )


def _read_answer(history: History, data: Mapping[str, Any], at: int, _ident: str) -> Iterator[Event]:
    history.model = str(data.get("model") or history.model)
    history.answered(at, str(data.get("content") or ""))
    yield from ()


def _read_subagent_end(history: History, _data: Mapping[str, Any], at: int, _ident: str) -> Iterator[Event]:
    if history.lane:
        history.last = max(history.last, at)
        yield from history.close()


def _read_tool_start(history: History, data: Mapping[str, Any], at: int, ident: str) -> Iterator[Event]:
    call, tool = str(data.get("toolCallId") or ident), str(data.get("toolName") or "")
    yield from history.call(at, call, tool, data.get("arguments"))


def _read_tool_end(history: History, data: Mapping[str, Any], at: int, ident: str) -> Iterator[Event]:
    result, failed = normal.mapping_or_empty(data.get("result")), data.get("success") is False
    code = normal.number_or_none(normal.mapping_or_empty(data.get("shellExecution")).get("exitCode"))
    problem = normal.mapping_or_empty(data.get("error")).get("message")
    output = problem if failed and problem else result.get("content")
    call = str(data.get("toolCallId") or ident)
    if failed and isinstance(problem, str) and problem.startswith(REFUSED):
        yield history.denied(at, call, problem.removeprefix(REFUSED).strip())
        return
    yield history.result(at, call, output, failed=failed, code=int(code) if code is not None else None)


def _read_compaction(history: History, data: Mapping[str, Any], at: int, ident: str) -> Iterator[Event]:
    yield history.compacted(at, ident, summary=str(data.get("summaryContent") or ""))


HANDLERS = {
    "user.message": _read_prompt,
    "assistant.message": _read_answer,
    "tool.execution_start": _read_tool_start,
    "tool.execution_complete": _read_tool_end,
    "session.compaction_complete": _read_compaction,
    **dict.fromkeys(("subagent.completed", "subagent.failed"), _read_subagent_end),
}

IMPORTER = Importer(NAME, "GitHub Copilot CLI sessions", find_event_files, read_event_file, whole_sessions=True)
