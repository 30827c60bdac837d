"""Kimi Code's wire records: `~/.kimi-code/sessions/WORKSPACE/SESSION/agents/AGENT/wire.jsonl`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.usage.model import Usage, parse_milliseconds, token_count
from holdfast.usage.reader import FileContext, LiveSession, Position, Statement, UsageReader, lines_reader

NAME = "kimi"
MAIN = "main"
SESSIONS = ".kimi-code/sessions"
MARKS = (b'"usage.record"', b'"profile.bind"', b'"turn.prompt"')


class Tokens(msgspec.Struct, rename="camel"):
    input_other: Any = None
    output: Any = None
    input_cache_read: Any = None
    input_cache_creation: Any = None


class Disclosure(msgspec.Struct):
    cwd: str | None = None


class Line(msgspec.Struct, rename="camel"):
    type: str = ""
    agent_id: str = MAIN
    model: str | None = None
    prompt_id: str | None = None
    usage: Tokens | None = None
    environment_disclosure: Disclosure | None = None
    time: Any = None


decode = msgspec.json.Decoder(Line).decode


def find_usage_files(home: Path) -> Iterable[Path]:
    return sorted((home / SESSIONS).glob("*/*/agents/*/wire.jsonl"))


def context_of_file(path: Path) -> FileContext:
    """agents/main is the session itself, every other folder a subagent."""
    agent = path.parent.name
    # SESSION/agents/AGENT/wire.jsonl.
    session = path.parents[2].name if len(path.parents) > 2 else ""
    return FileContext(session=session, lane="" if agent == MAIN else agent)


def parse_kimi_usage(line: bytes, position: Position) -> Statement | None:
    entry, context = decode(line), position.context
    if entry.type == "profile.bind" and entry.environment_disclosure:
        context.project = entry.environment_disclosure.cwd or context.project
    elif entry.type == "turn.prompt":
        context.turn = entry.prompt_id or ""
    elif entry.type == "usage.record" and entry.usage:
        return _usage_statement(entry, entry.usage)
    return None


def _usage_statement(entry: Line, tokens: Tokens) -> Statement:
    """It has no id of its own: agent and time tell it from every other, also in a fork's copy."""
    usage = Usage(
        input=token_count(tokens.input_other),
        output=token_count(tokens.output),
        cache_read=token_count(tokens.input_cache_read),
        cache_write_5m=token_count(tokens.input_cache_creation),
    )
    return Statement(
        id=f"{entry.agent_id}@{entry.time}", said=usage, at=parse_milliseconds(entry.time), model=entry.model or ""
    )


def session_files(session: LiveSession) -> Iterable[Path]:
    """Its hooks name no file: the folder has the session's id."""
    name = session.file_name
    return sorted((session.home / SESSIONS).glob(f"*/{name}/agents/*/wire.jsonl")) if name else []


READER = UsageReader(
    NAME, (".jsonl",), find_usage_files, lines_reader(NAME, parse_kimi_usage, MARKS, context_of_file), session_files
)
