"""Qwen Code's chats: `~/.qwen/projects/PROJECT/chats/SESSION.jsonl`, and those of its subagents next to them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec


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


class Message(msgspec.Struct):
    parts: Any = None


class Line(msgspec.Struct, rename="camel"):
    type: str = ""
    subtype: str | None = None
    uuid: str = ""
    session_id: str = ""
    timestamp: Any = None
    provenance: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    agent_id: str | None = None
    agent_name: str | None = None
    model: str | None = None
    message: Message | None = None
    tool_call_result: Any = None
    usage_metadata: Metadata | None = None
    system_payload: SystemPayload | None = None


decode = msgspec.json.Decoder(Line).decode


def find_files(home: Path) -> Iterable[Path]:
    return sorted((home / ".qwen" / "projects").glob("*/chats/*.jsonl"))
