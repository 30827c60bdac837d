"""Pi's sessions: `~/.pi/agent/sessions/FOLDER/TIME_ID.jsonl`, one JSON object per line, each with the id of its parent."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

SESSIONS = ".pi/agent/sessions"


class Cost(msgspec.Struct):
    total: Any = None


class Tokens(msgspec.Struct, rename="camel"):
    input: Any = None
    output: Any = None
    cache_read: Any = None
    cache_write: Any = None
    cost: Cost | None = None


class Message(msgspec.Struct, rename="camel"):
    role: str = ""
    content: Any = None
    model: str | None = None
    usage: Tokens | None = None
    stop_reason: str | None = None
    tool_call_id: str = ""
    is_error: bool = False
    command: str | None = None
    """Of a `bashExecution`: what the person ran with `!`."""


class Line(msgspec.Struct, rename="camel"):
    type: str = ""
    id: str = ""
    timestamp: Any = None
    cwd: str | None = None
    model_id: str | None = None
    summary: str | None = None
    name: str | None = None
    message: Message | None = None


decode = msgspec.json.Decoder(Line).decode


def find_files(home: Path) -> Iterable[Path]:
    return sorted((home / SESSIONS).rglob("*.jsonl"))
