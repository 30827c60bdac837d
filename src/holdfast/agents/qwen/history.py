"""Qwen Code's chats as the events that its hooks would have been."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.agents import normalise
from holdfast.agents.gemini.hooks import exit_code_in
from holdfast.agents.history import History, UsageSide, read_lines, text_of
from holdfast.agents.qwen.hooks import TABLES
from holdfast.agents.qwen.transcript import Line, decode, find_files
from holdfast.agents.qwen.usage import READER, statement_of
from holdfast.agents.source import merge_by_time
from holdfast.analysis.transcripts import Found, Importer, ImportLocation, Transcripts
from holdfast.analysis.usage.model import parse_milliseconds
from holdfast.analysis.usage.reader import Position
from holdfast.core.event import Event

NAME = "qwen"
REMINDER = "<system-reminder>"
NOT_TYPED = frozenset({"system", "hook", "notification", "cron"})


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
        history.lane_type, history.model = record.agent_name or "", record.model or history.model
        history.project, history.branch = record.cwd or history.project, record.git_branch or history.branch
        at = parse_milliseconds(record.timestamp)
        yield from history.begin(at)
        parts = record.message.parts if record.message else None
        if read := _READERS.get(record.type):
            yield from read(self, record, parts, at)
        elif record.subtype == "chat_compression":
            yield history.compacted(at, record.uuid)
        if self.counts:
            yield from self.side.event(statement_of(record, self.side.position), history)

    def _user(self, record: Line, parts: Any, at: int) -> Iterator[Event]:
        synthetic = bool(self.history.lane) or record.provenance in NOT_TYPED
        yield from self.history.prompt(at, record.uuid, _typed_text(parts), synthetic=synthetic)

    def _assistant(self, record: Line, parts: Any, at: int) -> Iterator[Event]:
        self.history.answered(at, text_of(parts))
        for n, part in enumerate(parts if isinstance(parts, list) else ()):
            made = normalise.mapping_or_empty(normalise.mapping_or_empty(part).get("functionCall"))
            if made:
                call = str(made.get("id") or f"{record.uuid}.{n}")
                yield from self.history.call(at, call, str(made.get("name") or ""), made.get("args"))

    def _tool_result(self, record: Line, parts: Any, at: int) -> Iterator[Event]:
        status = normalise.mapping_or_empty(record.tool_call_result).get("status")
        for part in parts if isinstance(parts, list) else ():
            made = normalise.mapping_or_empty(normalise.mapping_or_empty(part).get("functionResponse"))
            reply = normalise.mapping_or_empty(made.get("response"))
            output = str(reply.get("output") or reply.get("error") or "")
            call = str(made.get("id") or record.uuid)
            yield self.history.result(at, call, output, failed=status == "error", code=exit_code_in(output))


_READERS = {"user": _Chat._user, "assistant": _Chat._assistant, "tool_result": _Chat._tool_result}


def _typed_text(parts: Any) -> str:
    """Without what Qwen itself puts before a prompt."""
    texts = [text_of([part]) for part in parts] if isinstance(parts, list) else [text_of(parts)]
    return "\n".join(text for text in texts if text and not text.startswith(REMINDER))


TRANSCRIPTS = Transcripts(
    importer=Importer(
        NAME, "Qwen Code chats", lambda location: find_files(location.home), read_chat, whole_sessions=True
    ),
    usage=(READER,),
)
