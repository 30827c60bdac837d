"""Codex's rollouts: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.agents.normalise import mapping_or_empty
from holdfast.analysis.usage.model import Usage, usage_of_prompt


class Tokens(msgspec.Struct):
    input_tokens: Any = None
    cached_input_tokens: Any = None
    cache_write_input_tokens: Any = None
    output_tokens: Any = None
    reasoning_output_tokens: Any = None

    def usage(self) -> Usage:
        cached, written = self.cached_input_tokens, self.cache_write_input_tokens
        return usage_of_prompt(self.input_tokens, self.output_tokens, cached, written, self.reasoning_output_tokens)


class Counts(msgspec.Struct):
    total_token_usage: Tokens | None = None


class Git(msgspec.Struct):
    branch: str | None = None


class Payload(msgspec.Struct):
    type: str | None = None
    id: str | None = None
    session_id: str | None = None
    forked_from_id: str | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    response_id: str | None = None
    call_id: str | None = None
    cwd: str | None = None
    git: Git | None = None
    agent_role: str | None = None
    model: str | None = None
    usage: Tokens | None = None
    info: Counts | None = None
    item: Any = None
    completed_at_ms: Any = None
    message: Any = None
    last_agent_message: Any = None
    name: Any = None
    arguments: Any = None
    input: Any = None
    action: Any = None
    output: Any = None


class Line(msgspec.Struct):
    type: str = ""
    timestamp: Any = None
    payload: Payload | None = None


decode = msgspec.json.Decoder(Line).decode


def find_files(home: Path) -> Iterable[Path]:
    return sorted((home / ".codex").rglob("rollout-*.jsonl"))


def exit_code(line: bytes, call: str, ended_at: int) -> int | None:
    """Of the command itself, from 0.153.0 to 0.166.0.

    Not of the result that the model gets: a long command has its end in the result of another call. The model may
    count its calls from 0 again, so a later command of that name is another one.
    """
    entry = decode(line)
    payload = entry.payload
    if payload is None or (entry.type, payload.type) != ("event_msg", "item_completed"):
        return None
    item, completed = mapping_or_empty(payload.item), payload.completed_at_ms or 0
    if (item.get("type"), item.get("id")) != ("CommandExecution", call):
        return None
    code = item.get("exit_code")
    # A 32-bit exit status; anything else is no record of this kind.
    is_status = type(code) is int and -(1 << 31) <= code < 1 << 31
    return code if is_status and type(completed) is int and completed <= ended_at else None
