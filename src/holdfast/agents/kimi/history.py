"""Kimi Code's wire records as the events that its hooks would have been."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.agents import normalise
from holdfast.agents.history import History, UsageSide, read_lines, text_of
from holdfast.agents.kimi.hooks import TABLES
from holdfast.agents.kimi.transcript import MAIN, SPEECH, Line, decode, find_files, spoken
from holdfast.agents.kimi.usage import READER, context_of_file, statement_of
from holdfast.agents.source import merge_by_time
from holdfast.analysis.transcripts import Found, Importer, ImportLocation, Transcripts
from holdfast.analysis.usage.model import parse_milliseconds
from holdfast.analysis.usage.reader import Position
from holdfast.core.event import Event

NAME = "kimi"


def find_wire_files(location: ImportLocation) -> Iterable[Path]:
    # Only the main agent's file; those of subagents are read with it.
    return [path for path in find_files(location.home) if path.parent.name == MAIN]


def read_wire_file(path: Path, _place: ImportLocation) -> Iterator[Found]:
    subagents = sorted(file for file in path.parents[1].glob(f"*/{path.name}") if file != path)
    return merge_by_time(map(_read_file, (path, *subagents)))


def _read_file(path: Path) -> Iterator[Found]:
    wire = _Wire(path)
    yield from read_lines(path, wire.read_entry, wire.history.close)


class _Wire:
    def __init__(self, path: Path) -> None:
        context = context_of_file(path)
        self.history = History(NAME, path, TABLES, session=context.session, lane=context.lane)
        self.side = UsageSide(NAME, Position(str(path), context=context))

    def read_entry(self, line: bytes, number: int) -> Iterator[Event]:
        record, history = decode(line), self.history
        statement = statement_of(record, self.side.position)
        history.project = self.side.position.context.project
        if read := _READERS.get(record.type):
            yield from read(self, record, parse_milliseconds(record.time), number)
        yield from self.side.event(statement, history)

    def _bind(self, record: Line, at: int, _number: int) -> Iterator[Event]:
        self.history.model = record.model_alias or ""
        self.history.lane_type = (record.profile_name or "") if self.history.lane else ""
        yield from self.history.begin(at)

    def _prompt(self, record: Line, at: int, number: int) -> Iterator[Event]:
        synthetic = normalise.mapping_or_empty(record.origin).get("kind") != "user"
        yield from self.history.begin(at)
        text = text_of(record.input)
        yield from self.history.prompt(at, record.prompt_id or str(number), text, synthetic=synthetic)

    def _end(self, record: Line, at: int, _number: int) -> Iterator[Event]:
        yield from self.history.end_turn(at, "turn.interrupted" if record.reason == "cancelled" else "turn.ended")

    def _compacted(self, _record: Line, at: int, number: int) -> Iterator[Event]:
        yield self.history.compacted(at, str(number))

    def _loop(self, record: Line, at: int, _number: int) -> Iterator[Event]:
        event = normalise.mapping_or_empty(record.event)
        kind, history, call = event.get("type"), self.history, str(event.get("toolCallId") or "")
        if kind == "content.part":
            history.answered(at, text_of([event.get("part")]))
        elif kind == "tool.call" and call:
            yield from history.call(at, call, str(event.get("name") or ""), event.get("args"))
        elif kind == "tool.result" and call:
            result = normalise.mapping_or_empty(event.get("result"))
            output, failed = result.get("output"), result.get("isError") is True
            code = normalise.exit_code_in(output) if failed else None
            yield history.result(at, call, output, failed=failed, code=code)


_READERS = {
    "profile.bind": _Wire._bind,
    "turn.prompt": _Wire._prompt,
    "context.append_loop_event": _Wire._loop,
    "turn.ended": _Wire._end,
    "full_compaction.completed": _Wire._compacted,
}

TRANSCRIPTS = Transcripts(
    importer=Importer(NAME, "Kimi Code sessions", find_wire_files, read_wire_file, whole_sessions=True),
    usage=(READER,),
    speech=SPEECH,
    spoken=spoken,
    answers_in=MAIN,
)
