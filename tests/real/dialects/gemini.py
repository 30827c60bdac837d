"""The Gemini generateContent API, as Gemini CLI uses it."""

from __future__ import annotations

import json
from typing import Any

from ..turns import Spent, Turn, text
from ..wire import Reply, Request, all_strings, as_json, as_sse, fitting

METHODS = (":generateContent", ":streamGenerateContent", ":countTokens")


def accepts(path: str) -> bool:
    """The method is the last part of the path."""
    return path.endswith(METHODS)


def audience(request: Request) -> str:
    """Side requests (routing, who speaks next, summaries) offer no tools; only sub-agents can complete a task."""
    tools = _tools(request)
    if not tools:
        return "side"
    return "subagent" if "complete_task" in tools else "main"


def task(request: Request) -> str:
    """What the conversation was first asked to do."""
    return "\n".join(all_strings(request.body.get("contents", [])[:1]))


def reply(request: Request, turn: Turn) -> Reply:
    """One candidate, whole or as the only piece of a stream."""
    if request.path.endswith(":countTokens"):
        return as_json({"totalTokens": 10})
    if turn.status != 200:
        return as_json({"error": {"code": turn.status, "message": turn.say, "status": "SCRIPTED"}}, turn.status)
    schema = request.body.get("generationConfig", {}).get("responseJsonSchema")
    answer = _answer(request, text(json.dumps(fitting(schema))) if schema else turn)
    return as_sse([(None, answer)]) if request.path.endswith(":streamGenerateContent") else as_json(answer)


def _answer(request: Request, turn: Turn) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": turn.say}] if turn.say else []
    parts += [{"functionCall": {"name": one.name, "args": one.input}} for one in turn.calls]
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    return {"candidates": [candidate], "usageMetadata": _usage(turn.spent), "responseId": request.id}


def _usage(spent: Spent) -> dict[str, int]:
    """The cached ones are part of the prompt, thoughts are not part of the candidates."""
    prompt, answer = spent.input + spent.cache_read, spent.output - spent.reasoning
    return {
        "promptTokenCount": prompt,
        "cachedContentTokenCount": spent.cache_read,
        "candidatesTokenCount": answer,
        "thoughtsTokenCount": spent.reasoning,
        "totalTokenCount": prompt + spent.output,
    }


def _tools(request: Request) -> set[str]:
    groups = request.body.get("tools", [])
    return {one["name"] for group in groups for one in group.get("functionDeclarations", [])}
