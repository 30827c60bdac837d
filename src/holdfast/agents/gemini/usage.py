"""Token use in Gemini CLI's chats."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from holdfast.agents.gemini.transcript import (
    Line,
    Message,
    Tokens,
    decode,
    decode_chat,
    find_documents,
    find_files,
)
from holdfast.analysis.usage.model import parse_milliseconds, usage_of_prompt
from holdfast.analysis.usage.reader import (
    FileContext,
    LiveSession,
    Position,
    Statement,
    UsageReader,
    document_reader,
    lines_reader,
)
from holdfast.paths import open_regular

NAME = "gemini"
LONGEST_PATH = 4096


def context_of_file(path: Path) -> FileContext:
    """The project's folder is named in a file next to the chats; a subagent's chat is in a folder of its session."""
    # Subagents' chats lie one folder deeper.
    chats = next((folder for folder in path.parents if folder.name == "chats"), path.parent)
    return FileContext(
        project=_first_line(chats.parent / ".project_root"), session=path.parent.name if path.parent != chats else ""
    )


def _first_line(path: Path) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace", opener=open_regular) as file:
            return file.readline(LONGEST_PATH).strip()
    except OSError:
        return ""


def statement_of(entry: Line, position: Position) -> Statement | None:
    context = position.context
    if entry.session_id:
        if entry.kind == "subagent":
            context.lane = entry.session_id
        # The folder's name, where there is one, is the session; the id in the file is the subagent's.
        context.session = context.session or entry.session_id
    return _message_statement(entry)


def _message_statement(message: Message) -> Statement | None:
    tokens = message.tokens
    if tokens is None or not message.id:
        return None
    usage = usage_of_prompt(
        _with_tools(tokens), tokens.output, tokens.cached, reasoning=tokens.thoughts, total=tokens.total
    )
    return Statement(id=message.id, said=usage, at=parse_milliseconds(message.timestamp), model=message.model or "")


def _with_tools(tokens: Tokens) -> Any:
    """Tokens of the prompt, with those that tools added, which are reported separately."""
    both = isinstance(tokens.input, int) and isinstance(tokens.tool, int)
    return tokens.input + tokens.tool if both else tokens.input


def parse_document(content: bytes, position: Position) -> Iterator[Statement]:
    chat = decode_chat(content)
    statement_of(Line(session_id=chat.session_id, kind=chat.kind), position)
    yield from filter(None, map(_message_statement, chat.messages))


MARKS = (b'"tokens"', b'"sessionId"')


def session_files(session: LiveSession) -> Iterable[Path]:
    """Subagents' chats lie in a folder with the session's id."""
    own, name = Path(session.transcript), session.file_name
    return [own, *sorted(own.parent.glob(f"{name}/*.jsonl") if name else [])] if session.transcript else []


READER = UsageReader(
    NAME, (".jsonl",), find_files, lines_reader(NAME, decode, statement_of, MARKS, context_of_file), session_files
)
DOCUMENT_READER = UsageReader(NAME, (".json",), find_documents, document_reader(NAME, parse_document, context_of_file))
