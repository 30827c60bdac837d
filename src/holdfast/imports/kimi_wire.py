"""Kimi Code's wire records: `~/.kimi-code/sessions/WORKSPACE/SESSION/agents/AGENT/wire.jsonl`."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from holdfast.agents import normal
from holdfast.agents.kimi import TABLES
from holdfast.core.event import Event
from holdfast.imports.history import History, UsageSide, read_lines, text_of
from holdfast.imports.source import Found, Importer, ImportLocation, merge_by_time, parse_milliseconds
from holdfast.usage.reader import Position
from holdfast.usage.readers import kimi as usage

NAME = "kimi"


class Line(msgspec.Struct, rename="camel"):
    type: str = ""
    input: Any = None
    origin: Any = None
    prompt_id: str | None = None
    turn_id: Any = None
    reason: str | None = None
    model_alias: str | None = None
    profile_name: str | None = None
    event: Any = None
    time: Any = None


decode = msgspec.json.Decoder(Line).decode


def find_wire_files(location: ImportLocation) -> Iterable[Path]:
    # Only the main agent's file; those of subagents are read with it.
    return [path for path in usage.find_usage_files(location.home) if path.parent.name == usage.MAIN]


def read_wire_file(path: Path, _place: ImportLocation) -> Iterator[Found]:
    subagents = sorted(file for file in path.parents[1].glob(f"*/{path.name}") if file != path)
    return merge_by_time(map(_read_file, (path, *subagents)))


def _read_file(path: Path) -> Iterator[Found]:
    wire = _Wire(path)
    yield from read_lines(path, wire.read_entry, wire.history.close)


class _Wire:
    def __init__(self, path: Path) -> None:
        context = usage.context_of_file(path)
        self.history = History(NAME, path, TABLES, session=context.session, lane=context.lane)
        self.side = UsageSide(NAME, Position(str(path), context=context))

    def read_entry(self, line: bytes, number: int) -> Iterator[Event]:
        record, history, at = decode(line), self.history, 0
        statement, at = usage.parse_kimi_usage(line, self.side.position), parse_milliseconds(record.time)
        history.project = self.side.position.context.project
        if record.type == "profile.bind":
            history.model, history.lane_type = (
                record.model_alias or "",
                (record.profile_name or "") if history.lane else "",
            )
            yield from history.begin(at)
        elif record.type == "turn.prompt":
            synthetic = normal.mapping_or_empty(record.origin).get("kind") != "user"
            yield from history.begin(at)
            yield from history.prompt(at, record.prompt_id or str(number), text_of(record.input), synthetic=synthetic)
        elif record.type == "context.append_loop_event":
            yield from self._loop(normal.mapping_or_empty(record.event), at)
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
            result = normal.mapping_or_empty(event.get("result"))
            output, failed = result.get("output"), result.get("isError") is True
            code = normal.exit_code_in(output) if failed else None
            yield history.result(at, call, output, failed=failed, code=code)


IMPORTER = Importer(NAME, "Kimi Code sessions", find_wire_files, read_wire_file, whole_sessions=True)
