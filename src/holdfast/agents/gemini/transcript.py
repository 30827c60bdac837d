"""Gemini CLI's chats: `~/.gemini/tmp/PROJECT/chats/session-*.jsonl` (older: `.json`), subagents in a folder below."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

CHATS = ".gemini/tmp"


class Tokens(msgspec.Struct):
    input: Any = None
    output: Any = None
    cached: Any = None
    thoughts: Any = None
    tool: Any = None
    total: Any = None


class Message(msgspec.Struct, rename="camel"):
    id: str = ""
    type: str = ""
    timestamp: Any = None
    content: Any = None
    model: str | None = None
    tokens: Tokens | None = None
    tool_calls: list[Any] = []


class Changes(msgspec.Struct):
    messages: list[Message] = []


class Line(Message, rename={"session_id": "sessionId", "tool_calls": "toolCalls", "changes": "$set"}):
    session_id: str | None = None
    kind: str | None = None
    changes: Changes | None = None


class Chat(msgspec.Struct, rename="camel"):
    """A chat that is one document."""

    session_id: str = ""
    kind: str | None = None
    messages: list[Line] = []


decode = msgspec.json.Decoder(Line).decode
decode_chat = msgspec.json.Decoder(Chat).decode


def find_files(home: Path) -> Iterable[Path]:
    return sorted((home / CHATS).glob("*/chats/**/*.jsonl"))


def find_documents(home: Path) -> Iterable[Path]:
    return sorted((home / CHATS).glob("*/chats/**/session-*.json"))
