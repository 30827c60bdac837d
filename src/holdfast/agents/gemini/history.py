"""Gemini CLI's chats as the events that its hooks would have been."""

from collections.abc import Iterable, Iterator
from glob import escape
from pathlib import Path
from typing import Any

from holdfast.agents import normalise
from holdfast.agents.gemini.hooks import TABLES, exit_code_in, plain_output
from holdfast.agents.gemini.transcript import Line, decode, decode_chat, find_documents, find_files
from holdfast.agents.gemini.usage import DOCUMENT_READER, READER, context_of_file, statement_of
from holdfast.agents.history import History, UsageSide, read_lines, text_of
from holdfast.agents.source import is_document, merge_by_time, read_document
from holdfast.analysis.transcripts import Found, Importer, ImportLocation, Skipped, Transcripts
from holdfast.analysis.usage.model import parse_milliseconds
from holdfast.analysis.usage.reader import PARSE_ERRORS, Position
from holdfast.core.event import Event

NAME = "gemini"
REFUSED = "Tool execution blocked:"
GO_ON = "System: Please continue."
SET_UP = "<session_context>"
"""Beginning of the first message, which Gemini writes."""


def find_chats(location: ImportLocation) -> Iterable[Path]:
    files = [*find_files(location.home), *find_documents(location.home)]
    return [path for path in files if path.parent.name == "chats"]


def read_chat(path: Path, _place: ImportLocation) -> Iterator[Found]:
    """The folder of its subagents is named by the session's whole id, the chat by the beginning of it."""
    alias = path.stem.rpartition("-")[2]
    subagents = sorted(path.parent.glob(f"{escape(alias)}*/*.json*")) if alias else []
    return merge_by_time(map(_read_file, (path, *subagents)))


def _read_file(path: Path) -> Iterator[Found]:
    chat = _Chat(path)
    if path.suffix == ".jsonl" and not is_document(path):
        yield from read_lines(path, lambda line, _number: chat.read_entry(decode(line)), chat.history.close)
    else:
        yield from _read_document(path, chat)


def _read_document(path: Path, chat: "_Chat") -> Iterator[Found]:
    """An older version: the whole chat is one document."""
    try:
        document = decode_chat(read_document(path))
    except PARSE_ERRORS as error:
        yield Skipped(str(path), f"not a chat: {str(error)[:120]}")
        return
    for record in (Line(session_id=document.session_id, kind=document.kind), *document.messages):
        yield from chat.read_entry(record)
    yield from chat.history.close()


class _Chat:
    def __init__(self, path: Path) -> None:
        context = context_of_file(path)
        self.history = History(NAME, path, TABLES, project=context.project)
        self.side = UsageSide(NAME, Position(str(path), context=context))
        self.seen: set[str] = set()

    def read_entry(self, record: Line) -> Iterator[Event]:
        history, context = self.history, self.side.position.context
        statement = statement_of(record, self.side.position)
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
        """Results of tools are user messages too, and a resumed chat repeats its beginning."""
        text = text_of(record.content)
        if text and not text.startswith(SET_UP):
            synthetic = bool(self.history.lane) or text == GO_ON
            yield from self.history.prompt(at, record.id, text, synthetic=synthetic)

    def _answer(self, record: Line, at: int) -> Iterator[Event]:
        self.history.answered(at, text_of(record.content))
        for made in map(normalise.mapping_or_empty, record.tool_calls):
            call, tool = str(made.get("id") or ""), str(made.get("name") or "")
            if call and call not in self.seen:
                self.seen.add(call)
                yield from self.history.call(at, call, tool, made.get("args"))
                yield self._result(made, call, parse_milliseconds(made.get("timestamp")) or at)

    def _result(self, made: Any, call: str, at: int) -> Event:
        parts = [normalise.mapping_or_empty(part).get("functionResponse") for part in made.get("result") or ()]
        responses = [normalise.mapping_or_empty(normalise.mapping_or_empty(one).get("response")) for one in parts]
        output = "\n".join(str(one.get("output") or one.get("error") or "") for one in responses)
        failed = made.get("status") == "error"
        if failed and output.startswith(REFUSED):
            return self.history.denied(at, call, output.removeprefix(REFUSED).strip())
        return self.history.result(at, call, plain_output(output), failed=failed, code=exit_code_in(output))


TRANSCRIPTS = Transcripts(
    importer=Importer(NAME, "Gemini CLI chats", find_chats, read_chat, whole_sessions=True),
    usage=(
        READER,
        DOCUMENT_READER,
    ),
)
