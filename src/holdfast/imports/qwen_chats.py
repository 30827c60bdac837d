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
from holdfast.imports.source import Found, Importer, Place, merged, milliseconds
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


def find(place: Place) -> Iterable[Path]:
    return usage.find(place.home)


def read(path: Path, _place: Place) -> Iterator[Found]:
    subagents = sorted((path.parents[1] / "subagents" / path.stem).glob("**/*.jsonl"))
    return merged(map(_read_file, (path, *subagents)))


def _read_file(path: Path) -> Iterator[Found]:
    chat = _Chat(path)
    yield from read_lines(path, chat.take, chat.history.close)


class _Chat:
    def __init__(self, path: Path) -> None:
        self.history = History(NAME, path, TABLES)
        self.side = UsageSide(NAME, Position(str(path)))
        self.counts = "subagents" not in path.parts
        """The session's own chat has the figures of its subagents, too."""

    def take(self, line: bytes, _number: int) -> Iterator[Event]:
        told, history = decode(line), self.history
        history.session, history.lane = told.session_id or history.session, told.agent_id or ""
        history.lane_type = told.agent_name or ""
        history.project, history.branch = told.cwd or history.project, told.git_branch or history.branch
        history.model = told.model or history.model
        at = milliseconds(told.timestamp)
        yield from history.begin(at)
        parts = told.message.parts if told.message else None
        if told.type == "user":
            synthetic = bool(history.lane) or told.provenance in NOT_TYPED
            yield from history.prompt(at, told.uuid, _typed(parts), synthetic=synthetic)
        elif told.type == "assistant":
            yield from self._answer(told, parts, at)
        elif told.type == "tool_result":
            yield from self._result(told, parts, at)
        elif told.subtype == "chat_compression":
            yield history.compacted(at, told.uuid)
        if self.counts:
            yield from self.side.event(usage.parse(line, self.side.position), history)

    def _answer(self, told: Line, parts: Any, at: int) -> Iterator[Event]:
        self.history.answer = text_of(parts) or self.history.answer
        for n, part in enumerate(parts if isinstance(parts, list) else ()):
            made = normal.mapping(normal.mapping(part).get("functionCall"))
            if made:
                call = str(made.get("id") or f"{told.uuid}.{n}")
                yield from self.history.call(at, call, str(made.get("name") or ""), made.get("args"))

    def _result(self, told: Line, parts: Any, at: int) -> Iterator[Event]:
        status = normal.mapping(told.tool_call_result).get("status")
        for part in parts if isinstance(parts, list) else ():
            made = normal.mapping(normal.mapping(part).get("functionResponse"))
            reply = normal.mapping(made.get("response"))
            output = str(reply.get("output") or reply.get("error") or "")
            call = str(made.get("id") or told.uuid)
            yield self.history.result(at, call, output, failed=status == "error", code=exit_code_in(output))


def _typed(parts: Any) -> str:
    """Without what Qwen itself puts before a prompt."""
    texts = [text_of([part]) for part in parts] if isinstance(parts, list) else [text_of(parts)]
    return "\n".join(text for text in texts if text and not text.startswith(REMINDER))


IMPORTER = Importer(NAME, "Qwen Code chats", find, read, whole_sessions=True)
