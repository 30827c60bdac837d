"""GitHub Copilot CLI's events: `~/.copilot/session-state/SESSION/events.jsonl`."""

# Subagents are in the same file.

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.analysis.transcripts import Spoken
from holdfast.analysis.usage.model import Usage, parse_milliseconds, usage_of_prompt


class Tokens(msgspec.Struct, rename="camel"):
    input_tokens: Any = None
    output_tokens: Any = None
    cache_read_tokens: Any = None
    cache_write_tokens: Any = None
    reasoning_tokens: Any = None
    model: str | None = None
    api_call_id: str | None = None

    def usage(self) -> Usage:
        read, written = self.cache_read_tokens, self.cache_write_tokens
        return usage_of_prompt(self.input_tokens, self.output_tokens, read, written, self.reasoning_tokens)


class Metrics(msgspec.Struct):
    usage: Tokens | None = None


class SessionFolder(msgspec.Struct, rename="camel"):
    cwd: str | None = None
    git_root: str | None = None
    branch: str | None = None


class Data(msgspec.Struct, rename="camel"):
    context: SessionFolder | None = None
    usage: Tokens | None = None
    message_id: str | None = None
    model_metrics: dict[str, Metrics] | None = None
    content: Any = None
    source: Any = None
    model: Any = None
    agent_name: Any = None
    tool_requests: list[msgspec.Raw] | None = None
    tool_call_id: Any = None
    tool_name: Any = None
    arguments: Any = None
    success: Any = None
    result: Any = None
    error: Any = None
    shell_execution: Any = None
    summary_content: Any = None


class Line(msgspec.Struct, rename="camel"):
    type: str = ""
    id: str = ""
    timestamp: Any = None
    agent_id: str | None = None
    data: Data | None = None


decode = msgspec.json.Decoder(Line).decode


def find_files(home: Path) -> Iterable[Path]:
    return sorted((home / ".copilot" / "session-state").glob("*/events.jsonl"))


SPEECH = (b'"user.message"', b'"assistant.message"')


def spoken(line: bytes) -> Spoken | None:
    """1.0.102."""
    entry = decode(line)
    data = entry.data
    if data is None or entry.type not in ("user.message", "assistant.message"):
        return None
    text = data.content if isinstance(data.content, str) else ""
    by_user, calls = entry.type == "user.message", bool(data.tool_requests)
    return Spoken(parse_milliseconds(entry.timestamp), by_user, text, calls, entry.agent_id or "")
