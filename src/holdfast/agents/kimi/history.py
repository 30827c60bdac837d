"""Kimi Code's wire records as the events that its hooks would have been."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from holdfast.agents import normalise
from holdfast.agents.history import History, UsageSide, read_lines, text_of
from holdfast.agents.kimi.hooks import TABLES
from holdfast.agents.kimi.transcript import MAIN, SPEECH, decode, find_files, spoken
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
        record, history, at = decode(line), self.history, 0
        statement, at = statement_of(record, self.side.position), parse_milliseconds(record.time)
        history.project = self.side.position.context.project
        if record.type == "profile.bind":
            history.model, history.lane_type = (
                record.model_alias or "",
                (record.profile_name or "") if history.lane else "",
            )
            yield from history.begin(at)
        elif record.type == "turn.prompt":
            synthetic = normalise.mapping_or_empty(record.origin).get("kind") != "user"
            yield from history.begin(at)
            yield from history.prompt(at, record.prompt_id or str(number), text_of(record.input), synthetic=synthetic)
        elif record.type == "context.append_loop_event":
            yield from self._loop(normalise.mapping_or_empty(record.event), at)
        elif record.type == "turn.ended":
            yield from history.end_turn(at, "turn.interrupted" if record.reason == "cancelled" else "turn.ended")
        elif record.type == "full_compaction.completed":
            yield history.compacted(at, str(number))
        yield from self.side.event(statement, history)

    def _loop(self, event: Any, at: int) -> Iterator[Event]:
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


TRANSCRIPTS = Transcripts(
    importer=Importer(NAME, "Kimi Code sessions", find_wire_files, read_wire_file, whole_sessions=True),
    usage=(READER,),
    speech=SPEECH,
    spoken=spoken,
    answers_in=MAIN,
)
