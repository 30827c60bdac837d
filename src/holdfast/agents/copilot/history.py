"""GitHub Copilot CLI's events as the events that its hooks would have been."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from holdfast.agents import normalise
from holdfast.agents.copilot.hooks import TABLES
from holdfast.agents.copilot.transcript import SPEECH, Data, decode, find_files, spoken
from holdfast.agents.copilot.usage import READER, context_of_file, statement_of
from holdfast.agents.history import History, UsageSide, read_lines
from holdfast.analysis.transcripts import Found, Importer, ImportLocation, Transcripts
from holdfast.analysis.usage.model import parse_milliseconds
from holdfast.analysis.usage.reader import Position
from holdfast.core.event import Event

NAME = "copilot"
REFUSED = "Denied by preToolUse hook:"


def read_event_file(path: Path, _place: ImportLocation) -> Iterator[Found]:
    events = _Events(path)
    yield from read_lines(path, events.read_entry, events.close)


class _Events:
    def __init__(self, path: Path) -> None:
        context = context_of_file(path)
        self.main = History(NAME, path, TABLES, session=context.session)
        self.side = UsageSide(NAME, Position(str(path), context=context))
        self.lanes: dict[str, History] = {}

    def read_entry(self, line: bytes, _number: int) -> Iterator[Event]:
        record = decode(line)
        statement = statement_of(record, self.side.position)
        context, data = self.side.position.context, record.data or Data()
        at = parse_milliseconds(record.timestamp)
        self.main.project, self.main.branch = context.project, context.branch
        yield from self.main.begin(at)
        history = self._history(record.agent_id or "", str(data.agent_name or ""))
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


def _read_prompt(history: History, data: Data, at: int, ident: str) -> Iterator[Event]:
    # Copilot's own messages name another source.
    typed = data.source in (None, "user")
    # A subagent's prompt is what the main agent asked of it.
    yield from history.prompt(
        at, str(data.message_id or ident), str(data.content or ""), synthetic=not (typed or history.lane)
    )


def _read_answer(history: History, data: Data, at: int, _ident: str) -> Iterator[Event]:
    history.model = str(data.model or history.model)
    history.answered(at, str(data.content or ""))
    yield from ()


def _read_subagent_end(history: History, _data: Data, at: int, _ident: str) -> Iterator[Event]:
    if history.lane:
        history.last = max(history.last, at)
        yield from history.close()


def _read_abort(history: History, _data: Data, at: int, _ident: str) -> Iterator[Event]:
    history.answered(at, "")
    yield from history.end_turn(at, "turn.interrupted")


def _read_tool_start(history: History, data: Data, at: int, ident: str) -> Iterator[Event]:
    call, tool = str(data.tool_call_id or ident), str(data.tool_name or "")
    yield from history.call(at, call, tool, data.arguments)


def _read_tool_end(history: History, data: Data, at: int, ident: str) -> Iterator[Event]:
    result, failed = normalise.mapping_or_empty(data.result), data.success is False
    code = normalise.number_or_none(normalise.mapping_or_empty(data.shell_execution).get("exitCode"))
    problem = normalise.mapping_or_empty(data.error).get("message")
    output = problem if failed and problem else result.get("content")
    call = str(data.tool_call_id or ident)
    if failed and isinstance(problem, str) and problem.startswith(REFUSED):
        yield history.denied(at, call, problem.removeprefix(REFUSED).strip())
        return
    yield history.result(at, call, output, failed=failed, code=int(code) if code is not None else None)


def _read_compaction(history: History, data: Data, at: int, ident: str) -> Iterator[Event]:
    yield history.compacted(at, ident, summary=str(data.summary_content or ""))


HANDLERS = {
    "user.message": _read_prompt,
    "assistant.message": _read_answer,
    "tool.execution_start": _read_tool_start,
    "tool.execution_complete": _read_tool_end,
    "session.compaction_complete": _read_compaction,
    "abort": _read_abort,
    **dict.fromkeys(("subagent.completed", "subagent.failed"), _read_subagent_end),
}

TRANSCRIPTS = Transcripts(
    importer=Importer(
        NAME,
        "GitHub Copilot CLI sessions",
        lambda location: find_files(location.home),
        read_event_file,
        whole_sessions=True,
    ),
    usage=(READER,),
    speech=SPEECH,
    spoken=spoken,
)
