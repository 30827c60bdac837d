"""Qwen Code's chats: `~/.qwen/projects/PROJECT/chats/SESSION.jsonl`, and those of its subagents beside them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from holdfast.agents import normal
from holdfast.agents.gemini import exit_code_in
from holdfast.agents.qwen import TABLES
from holdfast.core.event import Event
from holdfast.imports.history import History, UsageSide, read_lines, text_of
from holdfast.imports.source import Found, Importer, ImportLocation, merge_by_time, parse_milliseconds
from holdfast.usage.reader import Position
from holdfast.usage.readers import qwen as usage

NAME = "qwen"
REMINDER = "<system-reminder>"
NOT_TYPED = frozenset({"system", "hook", "notification", "cron"})


class Message(msgspec.Struct):
    parts: Any = None


class Line(msgspec.Struct, rename="camel"):
    uuid: str = ""
    session_id: str = ""
    timestamp: Any = None
    type: str = ""
    subtype: str | None = None
    provenance: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    agent_id: str | None = None
    agent_name: str | None = None
    model: str | None = None
    message: Message | None = None
    tool_call_result: Any = None


decode = msgspec.json.Decoder(Line).decode


def find_chats(location: ImportLocation) -> Iterable[Path]:
    return usage.find_usage_files(location.home)


def read_chat(path: Path, _place: ImportLocation) -> Iterator[Found]:
    subagents = sorted((path.parents[1] / "subagents" / path.stem).glob("**/*.jsonl"))
    return merge_by_time(map(_read_file, (path, *subagents)))


def _read_file(path: Path) -> Iterator[Found]:
    chat = _Chat(path)
    yield from read_lines(path, chat.read_entry, chat.history.close)


class _Chat:
    def __init__(self, path: Path) -> None:
        self.history = History(NAME, path, TABLES)
        self.side = UsageSide(NAME, Position(str(path)))
        self.counts = "subagents" not in path.parts
        """The session's own chat has the figures of its subagents, too."""

    def read_entry(self, line: bytes, _number: int) -> Iterator[Event]:
        record, history = decode(line), self.history
        history.session, history.lane = record.session_id or history.session, record.agent_id or ""
        history.lane_type = record.agent_name or ""
        history.project, history.branch = record.cwd or history.project, record.git_branch or history.branch
        history.model = record.model or history.model
        at = parse_milliseconds(record.timestamp)
        yield from history.begin(at)
        parts = record.message.parts if record.message else None
        if record.type == "user":
            synthetic = bool(history.lane) or record.provenance in NOT_TYPED
            yield from history.prompt(at, record.uuid, _typed_text(parts), synthetic=synthetic)
        elif record.type == "assistant":
            yield from self._answer(record, parts, at)
        elif record.type == "tool_result":
            yield from self._result(record, parts, at)
        elif record.subtype == "chat_compression":
            yield history.compacted(at, record.uuid)
        if self.counts:
            yield from self.side.event(usage.parse_qwen_usage(line, self.side.position), history)

    def _answer(self, record: Line, parts: Any, at: int) -> Iterator[Event]:
        self.history.answered(at, text_of(parts))
        for n, part in enumerate(parts if isinstance(parts, list) else ()):
            made = normal.mapping_or_empty(normal.mapping_or_empty(part).get("functionCall"))
            if made:
                call = str(made.get("id") or f"{record.uuid}.{n}")
                yield from self.history.call(at, call, str(made.get("name") or ""), made.get("args"))

    def _result(self, record: Line, parts: Any, at: int) -> Iterator[Event]:
        status = normal.mapping_or_empty(record.tool_call_result).get("status")
        for part in parts if isinstance(parts, list) else ():
            made = normal.mapping_or_empty(normal.mapping_or_empty(part).get("functionResponse"))
            reply = normal.mapping_or_empty(made.get("response"))
            output = str(reply.get("output") or reply.get("error") or "")
            call = str(made.get("id") or record.uuid)
            yield self.history.result(at, call, output, failed=status == "error", code=exit_code_in(output))


def _typed_text(parts: Any) -> str:
    """Without what Qwen itself puts before a prompt."""
    texts = [text_of([part]) for part in parts] if isinstance(parts, list) else [text_of(parts)]
    return "\n".join(text for text in texts if text and not text.startswith(REMINDER))


IMPORTER = Importer(NAME, "Qwen Code chats", find_chats, read_chat, whole_sessions=True)
