"""The Anthropic Messages API, as Claude Code uses it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..turns import Spent, Turn, text
from ..wire import Reply, Request, all_strings, as_json, as_sse

# Every conversation with an agent, main or sub-agent, offers at least one of these.
CODING_TOOLS = {"Bash", "Read", "Write", "Edit", "Agent", "ToolSearch", "Grep", "Glob", "Skill"}
# Compaction asks again, twice, when the answer is not in these tags.
SUMMARY = text("<analysis>scripted</analysis>\n<summary>scripted summary</summary>")


def accepts(path: str) -> bool:
    """Messages and token counting."""
    return path.startswith("/v1/messages")


def audience(request: Request) -> str:
    """Side requests (titles, summaries, counting, classifiers) offer no tools, or ask for a summary."""
    tools = {tool.get("name") for tool in request.body.get("tools", [])}
    if request.path.endswith("/count_tokens") or not tools & CODING_TOOLS or _wants_summary(request):
        return "side"
    return "subagent" if "x-claude-code-agent-id" in request.headers else "main"


def task(request: Request) -> str:
    """What the conversation was first asked to do."""
    return "\n".join(all_strings(request.body.get("messages", [])[:1]))


def _wants_summary(request: Request) -> bool:
    last = "\n".join(all_strings(request.body.get("messages", [])[-1:]))
    return "<summary>" in last and "Do NOT call any tools" in last


def reply(request: Request, turn: Turn) -> Reply:
    """One assistant message."""
    if request.path.endswith("/count_tokens"):
        return as_json({"input_tokens": 10})
    if turn.status != 200:
        return as_json({"type": "error", "error": {"type": "api_error", "message": turn.say}}, turn.status)
    message = _message(request, turn if not _wants_summary(request) else SUMMARY)
    return as_sse(_stream(message)) if request.body.get("stream") else as_json(message)


def _message(request: Request, turn: Turn) -> dict[str, Any]:
    return {
        "id": f"msg_{request.id}",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model", "scripted"),
        "content": list(_content(request, turn)),
        "stop_reason": "tool_use" if turn.calls else "end_turn",
        "stop_sequence": None,
        "usage": _usage(turn.spent),
    }


def _usage(spent: Spent) -> dict[str, Any]:
    return {
        "input_tokens": spent.input,
        "cache_creation_input_tokens": spent.cache_write_5m + spent.cache_write_1h,
        "cache_read_input_tokens": spent.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": spent.cache_write_5m,
            "ephemeral_1h_input_tokens": spent.cache_write_1h,
        },
        "output_tokens": spent.output,
    }


def _content(request: Request, turn: Turn) -> Iterator[dict[str, Any]]:
    if turn.say:
        yield {"type": "text", "text": turn.say}
    for number, one in enumerate(turn.calls):
        yield {"type": "tool_use", "id": f"toolu_{request.id}_{number}", "name": one.name, "input": one.input}


def _stream(message: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    begun = {**message["usage"], "output_tokens": 1}
    start = {**message, "content": [], "stop_reason": None, "usage": begun}
    yield "message_start", {"type": "message_start", "message": start}
    for index, block in enumerate(message["content"]):
        yield from _block(index, block)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": message["usage"]}
    yield "message_stop", {"type": "message_stop"}


def _block(index: int, block: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if block["type"] == "text":
        empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
    yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": index}
