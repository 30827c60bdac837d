"""Qwen Code's chats: `~/.qwen/projects/PROJECT/chats/SESSION.jsonl`.

Every call of a model, those of subagents and side requests too, is a telemetry record of the session's chat. Where a
version writes none, the answers themselves carry figures.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.usage.model import parse_milliseconds, usage_of_prompt
from holdfast.usage.reader import Position, Statement, UsageReader, begin_empty, lines_reader

NAME = "qwen"
MARKS = (b'"usageMetadata"', b"api_response")


class ApiResponse(msgspec.Struct, rename={"name": "event.name"}):
    name: str = ""
    response_id: str | None = None
    model: str | None = None
    input_token_count: Any = None
    output_token_count: Any = None
    cached_content_token_count: Any = None
    thoughts_token_count: Any = None
    total_token_count: Any = None
    prompt_id: str | None = None
    subagent_id: str | None = None


class SystemPayload(msgspec.Struct, rename="camel"):
    ui_event: ApiResponse | None = None


class Metadata(msgspec.Struct, rename="camel"):
    prompt_token_count: Any = None
    candidates_token_count: Any = None
    cached_content_token_count: Any = None
    thoughts_token_count: Any = None
    total_token_count: Any = None


class Line(msgspec.Struct, rename="camel"):
    type: str = ""
    uuid: str = ""
    session_id: str = ""
    timestamp: Any = None
    cwd: str | None = None
    git_branch: str | None = None
    model: str | None = None
    usage_metadata: Metadata | None = None
    system_payload: SystemPayload | None = None


decode = msgspec.json.Decoder(Line).decode


def find_usage_files(home: Path) -> Iterable[Path]:
    return sorted((home / ".qwen" / "projects").glob("*/chats/*.jsonl"))


def parse_qwen_usage(line: bytes, position: Position) -> Statement | None:
    entry, context = decode(line), position.context
    context.session, context.project = entry.session_id or context.session, entry.cwd or context.project
    context.branch = entry.git_branch or context.branch
    at, response = parse_milliseconds(entry.timestamp), entry.system_payload.ui_event if entry.system_payload else None
    if response and response.name.endswith("api_response") and response.response_id:
        # The answers repeat these figures.
        context.detailed = True
        return _response_statement(response, response.response_id, at)
    if entry.type == "assistant" and entry.usage_metadata and not context.detailed:
        return _answer_statement(entry, entry.usage_metadata, at)
    return None


def _response_statement(response: ApiResponse, id_: str, at: int) -> Statement:
    usage = usage_of_prompt(
        response.input_token_count,
        response.output_token_count,
        response.cached_content_token_count,
        reasoning=response.thoughts_token_count,
        total=response.total_token_count,
    )
    lane = response.subagent_id or ""
    return Statement(id=id_, said=usage, at=at, model=response.model or "", lane=lane, turn=response.prompt_id or "")


def _answer_statement(entry: Line, metadata: Metadata, at: int) -> Statement:
    usage = usage_of_prompt(
        metadata.prompt_token_count,
        metadata.candidates_token_count,
        metadata.cached_content_token_count,
        reasoning=metadata.thoughts_token_count,
        total=metadata.total_token_count,
    )
    return Statement(id=entry.uuid, said=usage, at=at, model=entry.model or "")


READER = UsageReader(NAME, (".jsonl",), find_usage_files, lines_reader(NAME, parse_qwen_usage, MARKS, begin_empty))
