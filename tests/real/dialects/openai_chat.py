"""The OpenAI Chat Completions API, as Copilot, Qwen Code and opencode use it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ..turns import Spent, Turn
from ..wire import Reply, Request, all_strings, as_json, as_sse

# A sub-agent is told what it is in its first sentence; further down every agent's instructions mention sub-agents.
OPENING = 200


def accepts(path: str) -> bool:
    """The one address of this API."""
    return path.endswith("/chat/completions")


def audience(request: Request) -> str:
    """Side requests (titles, summaries) offer no tools; opencode marks a sub-agent, the others only instruct it."""
    if not request.body.get("tools"):
        return "side"
    instructed = re.search(r"\bsub-?agent\b", _instructions(request)[:OPENING])
    return "subagent" if instructed or "x-parent-session-id" in request.headers else "main"


def task(request: Request) -> str:
    """What the conversation was first asked to do."""
    asked = [one for one in request.body.get("messages", []) if one.get("role") == "user"]
    return "\n".join(all_strings(asked[:1]))


def _instructions(request: Request) -> str:
    return "\n".join(
        all_strings([one.get("content") for one in request.body["messages"] if one.get("role") == "system"])
    )


def reply(request: Request, turn: Turn) -> Reply:
    """One choice, whole or streamed."""
    if turn.status != 200:
        return as_json({"error": {"type": "server_error", "message": turn.say}}, turn.status)
    message = _message(request, turn)
    reason = "tool_calls" if turn.calls else "stop"
    if request.body.get("stream"):
        return as_sse(_stream(request, message, reason, _usage(turn.spent)))
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return as_json(_envelope(request, "chat.completion") | {"choices": [choice], "usage": _usage(turn.spent)})


def _message(request: Request, turn: Turn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": turn.say or None}
    if turn.calls:
        message["tool_calls"] = [
            {
                "index": number,
                "id": f"call_{request.id}_{number}",
                "type": "function",
                "function": {"name": one.name, "arguments": json.dumps(one.input)},
            }
            for number, one in enumerate(turn.calls)
        ]
    return message


def _stream(request: Request, message: dict[str, Any], reason: str, usage: Any) -> Iterator[tuple[None, Any]]:
    head = _envelope(request, "chat.completion.chunk")
    yield None, head | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]}
    yield None, head | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    yield None, head | {"choices": [], "usage": usage}
    yield None, "[DONE]"


def _usage(spent: Spent) -> dict[str, Any]:
    """Cached tokens are part of the prompt's, reasoning is part of the completion's."""
    prompt = spent.input + spent.cache_read
    return {
        "prompt_tokens": prompt,
        "completion_tokens": spent.output,
        "total_tokens": prompt + spent.output,
        "prompt_tokens_details": {"cached_tokens": spent.cache_read},
        "completion_tokens_details": {"reasoning_tokens": spent.reasoning},
    }


def _envelope(request: Request, kind: str) -> dict[str, Any]:
    model = request.body.get("model", "scripted")
    return {"id": f"chatcmpl-{request.id}", "object": kind, "created": 1, "model": model}
