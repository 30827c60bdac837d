"""Augment auggie's sessions: `~/.augment/sessions/SESSION.json`, as the code of version 0.36.0 writes them. Not verified:
the program runs only with a login."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from holdfast.usage.model import Usage, parse_milliseconds, token_count
from holdfast.usage.reader import LiveSession, Position, Statement, UsageReader, begin_empty, document_reader

NAME = "auggie"


class Tokens(msgspec.Struct):
    input_tokens: Any = None
    output_tokens: Any = None
    cache_read_input_tokens: Any = None
    cache_creation_input_tokens: Any = None


class Billing(msgspec.Struct):
    effective_model_name: str | None = None


class Node(msgspec.Struct):
    token_usage: Tokens | None = None
    billing_metadata: Billing | None = None


class Exchange(msgspec.Struct):
    request_id: str | None = None
    response_nodes: list[Node] = []


class Entry(msgspec.Struct, rename="camel"):
    exchange: Exchange | None = None
    finished_at: Any = None


class Session(msgspec.Struct, rename="camel"):
    session_id: str = ""
    chat_history: list[Entry] = []


decode = msgspec.json.Decoder(Session).decode


def find_usage_files(home: Path) -> Iterable[Path]:
    return sorted((home / ".augment" / "sessions").glob("*.json"))


def parse_session(content: bytes, position: Position) -> Iterator[Statement]:
    session = decode(content)
    position.context.session = session.session_id
    for entry in session.chat_history:
        exchange = entry.exchange
        if exchange and exchange.request_id:
            yield from _exchange_statements(exchange, exchange.request_id, parse_milliseconds(entry.finished_at))


def _exchange_statements(exchange: Exchange, id_: str, at: int) -> Iterator[Statement]:
    nodes = exchange.response_nodes
    models = [node.billing_metadata.effective_model_name for node in nodes if node.billing_metadata]
    for node in nodes:
        # Several nodes of one exchange share an id: `record_of` counts only what grows.
        if node.token_usage:
            yield Statement(
                id=id_, said=_usage_of_tokens(node.token_usage), at=at, model=next(filter(None, models), "")
            )


def _usage_of_tokens(tokens: Tokens) -> Usage:
    return Usage(
        input=token_count(tokens.input_tokens),
        output=token_count(tokens.output_tokens),
        cache_read=token_count(tokens.cache_read_input_tokens),
        cache_write_5m=token_count(tokens.cache_creation_input_tokens),
    )


def session_files(session: LiveSession) -> Iterable[Path]:
    """Its hooks name no file: it has the session's id."""
    return (session.home / ".augment" / "sessions").glob(f"{session.file_name}.json") if session.file_name else []


READER = UsageReader(
    NAME, (".json",), find_usage_files, document_reader(NAME, parse_session, begin_empty), session_files
)
