"""The two sides of an exchange with the scripted model, and the server-sent-events format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4


@dataclass
class Request:
    """One request as it came; `audience` is main, subagent or side once the dialect has looked at it."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    dialect: str = ""
    audience: str = ""
    # Tool call ids are built from it; they must be unique across servers too, since sessions get resumed.
    id: str = field(default_factory=lambda: uuid4().hex[:12])


@dataclass(frozen=True)
class Reply:
    """One complete HTTP answer."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200


def as_json(value: Any, status: int = 200) -> Reply:
    """A plain JSON answer."""
    return Reply(json.dumps(value).encode(), status=status)


def as_sse(events: Iterable[tuple[str | None, Any]]) -> Reply:
    """A whole event stream in one piece: (event name or None, data) pairs."""
    return Reply("".join(_frame(name, data) for name, data in events).encode(), "text/event-stream")


def _frame(name: str | None, data: Any) -> str:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n"


def all_strings(value: Any) -> Iterator[str]:
    """Every string inside a JSON value, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from all_strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from all_strings(inner)


def fitting(schema: dict[str, Any]) -> Any:
    """Some value that a JSON schema allows; agents ask again for ever when an answer does not parse."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = str(schema.get("type", "string")).lower()
    if kind == "object":
        return {name: fitting(inner) for name, inner in schema.get("properties", {}).items()}
    return {"integer": 1, "number": 1, "boolean": False, "array": []}.get(kind, "ok")
