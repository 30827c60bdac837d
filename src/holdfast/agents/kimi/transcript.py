"""Kimi Code's wire records: `~/.kimi-code/sessions/WORKSPACE/SESSION/agents/AGENT/wire.jsonl`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.agents.normalise import mapping_or_empty
from holdfast.analysis.transcripts import Spoken
from holdfast.analysis.usage.model import parse_milliseconds

MAIN = "main"
"""The folder of the session itself; every other one is a subagent's."""
SESSIONS = ".kimi-code/sessions"


class Tokens(msgspec.Struct, rename="camel"):
    input_other: Any = None
    output: Any = None
    input_cache_read: Any = None
    input_cache_creation: Any = None


class Disclosure(msgspec.Struct):
    cwd: str | None = None


class Line(msgspec.Struct, rename="camel"):
    type: str = ""
    agent_id: str = MAIN
    input: Any = None
    origin: Any = None
    prompt_id: str | None = None
    reason: str | None = None
    model: str | None = None
    model_alias: str | None = None
    profile_name: str | None = None
    environment_disclosure: Disclosure | None = None
    event: Any = None
    usage: Tokens | None = None
    time: Any = None


decode = msgspec.json.Decoder(Line).decode


def find_files(home: Path) -> Iterable[Path]:
    return sorted((home / SESSIONS).glob("*/*/agents/*/wire.jsonl"))


SPEECH = (b'"turn.prompt"', b'"content.part"', b'"tool.call"')


def spoken(line: bytes) -> Spoken | None:
    """2.1.0: words and calls of tools are records of their own."""
    entry = decode(line)
    at, event = parse_milliseconds(entry.time), mapping_or_empty(entry.event)
    if entry.type == "turn.prompt":
        return Spoken(at, True)
    if entry.type != "context.append_loop_event" or event.get("type") not in ("content.part", "tool.call"):
        return None
    part, calls = mapping_or_empty(event.get("part")), event.get("type") == "tool.call"
    if not calls and part.get("type") != "text":
        return None  # Thinking.
    return Spoken(at, False, str(part.get("text") or ""), calls)
