"""The OpenAI Responses API, as Codex uses it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..turns import Call, Spent, Turn
from ..wire import Reply, Request, all_strings, as_json, as_sse

SPAWNED = "collab_spawn"


def accepts(path: str) -> bool:
    """The one address of this API."""
    return path.endswith("/responses")


def audience(request: Request) -> str:
    """Side requests, such as compaction and review, offer no tools or are marked as some other kind of helper."""
    helper = request.headers.get("x-openai-subagent")
    if not request.body.get("tools") or helper not in (None, SPAWNED):
        return "side"
    return "subagent" if helper else "main"


def task(request: Request) -> str:
    """Everything said so far, the task of a sub-agent included."""
    return "\n".join(all_strings(request.body.get("input", [])))


def reply(request: Request, turn: Turn) -> Reply:
    """One response object, streamed."""
    if turn.status != 200:
        return as_json({"error": {"type": "server_error", "message": turn.say}}, turn.status)
    return as_sse(_stream(request, list(_items(request, turn)), _usage(turn.spent)))


def _stream(request: Request, items: list[dict[str, Any]], usage: Any) -> Iterator[tuple[str, Any]]:
    response = {"id": f"resp_{request.id}", "object": "response", "status": "in_progress", "output": []}
    yield "response.created", {"type": "response.created", "response": response}
    for index, item in enumerate(items):
        yield "response.output_item.added", {"type": "response.output_item.added", "output_index": index, "item": item}
        yield "response.output_item.done", {"type": "response.output_item.done", "output_index": index, "item": item}
    done = {**response, "status": "completed", "output": items, "usage": usage}
    yield "response.completed", {"type": "response.completed", "response": done}


def _usage(spent: Spent) -> dict[str, Any]:
    """Cached tokens are part of the input, reasoning is part of the output."""
    whole = spent.input + spent.cache_read
    return {
        "input_tokens": whole,
        "input_tokens_details": {"cached_tokens": spent.cache_read},
        "output_tokens": spent.output,
        "output_tokens_details": {"reasoning_tokens": spent.reasoning},
        "total_tokens": whole + spent.output,
    }


def _items(request: Request, turn: Turn) -> Iterator[dict[str, Any]]:
    if turn.say:
        content = [{"type": "output_text", "text": turn.say, "annotations": []}]
        yield {"type": "message", "id": f"msg_{request.id}", "role": "assistant", "content": content}
    for number, one in enumerate(turn.calls):
        yield {"id": f"fc_{request.id}_{number}", "call_id": f"call_{request.id}_{number}"} | _call(request, one)


def _call(request: Request, one: Call) -> dict[str, Any]:
    """A tool declared as "custom" takes plain text, given in a script as its only input."""
    if one.name == "tool_search":
        return {"type": "tool_search_call", "execution": "client", "arguments": one.input}
    if one.name in _custom_tools(request):
        return {"type": "custom_tool_call", "name": one.name, "input": "".join(map(str, one.input.values()))}
    space, _, name = one.name.rpartition(".")
    named = {"namespace": space, "name": name} if space else {"name": name}
    return {"type": "function_call", "arguments": json.dumps(one.input)} | named


def _custom_tools(request: Request) -> set[str]:
    return {tool["name"] for tool in request.body.get("tools", []) if tool.get("type") == "custom"}
