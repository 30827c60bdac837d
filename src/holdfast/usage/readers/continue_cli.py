"""Continue CLI's sessions: `~/.continue/sessions/SESSION.json`, figures with every answer, no times but the file's."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from holdfast.usage.model import micro_dollars, usage_of_prompt
from holdfast.usage.reader import LiveSession, Position, Statement, UsageReader, begin_empty, document_reader

NAME = "continue"
LIST_OF_SESSIONS = "sessions.json"
NS_PER_MS = 1_000_000


class PromptDetails(msgspec.Struct):
    cached_tokens: Any = None
    cache_write_tokens: Any = None


class OutputDetails(msgspec.Struct):
    reasoning_tokens: Any = None


class Tokens(msgspec.Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: OutputDetails | None = None
    model: str | None = None
    cost_cents: Any = None


class Message(msgspec.Struct):
    role: str = ""
    usage: Tokens | None = None


class Item(msgspec.Struct):
    message: Message | None = None


class Session(msgspec.Struct, rename="camel"):
    session_id: str = ""
    workspace_directory: str | None = None
    history: list[Item] = []


decode = msgspec.json.Decoder(Session).decode


def find_usage_files(home: Path) -> Iterable[Path]:
    return sorted(f for f in (home / ".continue" / "sessions").glob("*.json") if f.name != LIST_OF_SESSIONS)


def parse_session(content: bytes, position: Position) -> Iterator[Statement]:
    session, context = decode(content), position.context
    context.session, context.project = session.session_id, session.workspace_directory or ""
    first, context.count = context.count, len(session.history)
    if first > context.count:
        first = 0  # The history was rewritten: what was counted is known by its place in it.
    for number, item in enumerate(session.history[first:], first):
        if item.message and item.message.usage:
            yield _usage_statement(f"{session.session_id}:{number}", item.message.usage, position.stamp // NS_PER_MS)


def _usage_statement(id_: str, tokens: Tokens, at: int) -> Statement:
    prompt, output = tokens.prompt_tokens_details, tokens.completion_tokens_details
    usage = usage_of_prompt(
        tokens.prompt_tokens,
        tokens.completion_tokens,
        prompt.cached_tokens if prompt else None,
        prompt.cache_write_tokens if prompt else None,
        output.reasoning_tokens if output else None,
    )
    # 0 means unknown to `micro_dollars`.
    cents = tokens.cost_cents if isinstance(tokens.cost_cents, int | float) else 0
    return Statement(id=id_, said=usage, at=at, model=tokens.model or "", reported=micro_dollars(cents / 100))


def session_files(session: LiveSession) -> Iterable[Path]:
    """Its hooks name no file: it has the session's id."""
    return (session.home / ".continue" / "sessions").glob(f"{session.file_name}.json") if session.file_name else []


READER = UsageReader(
    NAME, (".json",), find_usage_files, document_reader(NAME, parse_session, begin_empty), session_files
)
