"""Continue CLI's sessions: `~/.continue/sessions/SESSION.json`. They have no times: the file's own stands for all."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.agents import normal
from holdfast.agents.continue_cli import TABLES
from holdfast.core.event import Event
from holdfast.imports.history import History, text_of
from holdfast.imports.source import Found, Importer, ImportLocation, Skipped, load_session
from holdfast.usage.events import usage_event
from holdfast.usage.readers import continue_cli as usage
from holdfast.usage.scan import records_of

NAME = "continue"


class Session(msgspec.Struct, rename="camel"):
    session_id: str = ""
    workspace_directory: str | None = None
    history: list[Any] = []


decode = msgspec.json.Decoder(Session).decode


def find_sessions(location: ImportLocation) -> Iterable[Path]:
    return usage.find_usage_files(location.home)


def read_session(path: Path, _place: ImportLocation) -> Iterator[Found]:
    session = load_session(path, decode)
    if isinstance(session, Skipped):
        yield session
        return
    at = int(path.stat().st_mtime * 1000)
    history = History(NAME, path, TABLES, session=session.session_id, project=session.workspace_directory or "")
    yield from history.begin(at)
    for number, item in enumerate(map(normal.mapping_or_empty, session.history)):
        yield from _read_item(history, item, at, number)
    for record in records_of(usage.READER, path):
        yield usage_event(record, imported=NAME)
    yield from history.close()


def _read_item(history: History, item: Mapping[str, Any], at: int, number: int) -> Iterator[Event]:
    message = normal.mapping_or_empty(item.get("message"))
    if message.get("role") == "user":
        yield from history.prompt(at, str(number), text_of(message.get("content")))
        return
    history.model = str(normal.mapping_or_empty(message.get("usage")).get("model") or history.model)
    history.answered(at, text_of(message.get("content")))
    states = item.get("toolCallStates")
    for state in map(normal.mapping_or_empty, states if isinstance(states, list) else ()):
        call = str(state.get("toolCallId") or number)
        tool = str(
            normal.mapping_or_empty(normal.mapping_or_empty(state.get("toolCall")).get("function")).get("name") or ""
        )
        yield from history.call(at, call, tool, state.get("parsedArgs"))
        if state.get("status") in ("done", "errored"):
            output = text_of(state.get("output"), "content")
            yield history.result(at, call, output, failed=state.get("status") == "errored")


IMPORTER = Importer(NAME, "Continue CLI sessions", find_sessions, read_session, whole_sessions=True)
