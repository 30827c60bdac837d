"""Augment auggie's sessions: `~/.augment/sessions/SESSION.json`, as the code of version 0.36.0 writes them.

Not verified: the program runs only with a login. An exchange is one request to the model; the results of the tools that it asked
for stand in the request of the next one. No file says which project it belongs to: the folder of the first command does.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from holdfast.agents import normal
from holdfast.agents.auggie import TABLES
from holdfast.core.event import Event
from holdfast.imports.history import History
from holdfast.imports.source import (
    PARSE_ERRORS,
    Found,
    Importer,
    ImportLocation,
    Skipped,
    load_session,
    parse_milliseconds,
)
from holdfast.usage.events import usage_event
from holdfast.usage.readers import auggie as usage
from holdfast.usage.scan import records_of

NAME = "auggie"


class ToolResult(msgspec.Struct):
    tool_use_id: str = ""
    content: Any = None
    is_error: bool = False


class RequestNode(msgspec.Struct):
    tool_result_node: ToolResult | None = None


class ToolUse(msgspec.Struct):
    tool_use_id: str = ""
    tool_name: str = ""
    input_json: str = ""


class ResponseNode(msgspec.Struct):
    tool_use: ToolUse | None = None


class Exchange(msgspec.Struct):
    request_id: str | None = None
    request_message: str | None = None
    response_text: str | None = None
    request_nodes: list[RequestNode] = []
    response_nodes: list[ResponseNode] = []


class Entry(msgspec.Struct, rename="camel"):
    exchange: Exchange | None = None
    finished_at: Any = None


class Session(msgspec.Struct, rename="camel"):
    session_id: str = ""
    created: Any = None
    chat_history: list[Entry] = []


decode = msgspec.json.Decoder(Session).decode


def find_sessions(location: ImportLocation) -> Iterable[Path]:
    return usage.find_usage_files(location.home)


def read_session(path: Path, _place: ImportLocation) -> Iterator[Found]:
    session = load_session(path, decode)
    if isinstance(session, Skipped):
        yield session
        return
    exchanges = [
        (entry.exchange, parse_milliseconds(entry.finished_at)) for entry in session.chat_history if entry.exchange
    ]
    history = History(
        NAME, path, TABLES, session=session.session_id, project=_find_project([one for one, _ in exchanges])
    )
    yield from history.begin(parse_milliseconds(session.created))
    for number, (exchange, at) in enumerate(exchanges):
        yield from _read_exchange(history, exchange, at or history.last, exchange.request_id or str(number))
    for record in records_of(usage.READER, path):
        yield usage_event(msgspec.structs.replace(record, project=history.project), imported=NAME)
    yield from history.close()


def _read_exchange(history: History, exchange: Exchange, at: int, ident: str) -> Iterator[Event]:
    if exchange.request_message:
        yield from history.prompt(at, ident, exchange.request_message)
    for request in exchange.request_nodes:
        result = request.tool_result_node
        if result and result.tool_use_id:
            yield history.result(at, result.tool_use_id, result.content, failed=result.is_error)
    history.answered(at, exchange.response_text or "")
    for response in exchange.response_nodes:
        use = response.tool_use
        if use and use.tool_use_id:
            yield from history.call(at, use.tool_use_id, use.tool_name, _tool_input(use))


def _tool_input(use: ToolUse) -> dict[str, Any]:
    try:
        return dict(normal.mapping_or_empty(msgspec.json.decode(use.input_json)))
    except PARSE_ERRORS:
        return {}


def _find_project(exchanges: Iterable[Exchange]) -> str:
    uses = (node.tool_use for exchange in exchanges for node in exchange.response_nodes if node.tool_use)
    folders = (_tool_input(use).get("cwd") for use in uses)
    return next((folder for folder in folders if isinstance(folder, str) and folder.startswith("/")), "")


IMPORTER = Importer(NAME, "Augment auggie sessions (not verified)", find_sessions, read_session, whole_sessions=True)
