"""Factory droid's sessions: `~/.factory/sessions/PROJECT/SESSION.jsonl`, with the sums of tokens next to them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from holdfast.agents.normalise import mapping_or_empty
from holdfast.analysis.transcripts import PARSE_ERRORS, Failure, Spoken
from holdfast.analysis.usage.model import parse_milliseconds

SESSIONS = ".factory/sessions"
SUFFIX = ".settings.json"
"""Of the file with the sums."""


class Message(msgspec.Struct, rename="camel"):
    role: str = ""
    content: Any = None
    visibility: str | None = None
    model_id: str | None = None

    def parts(self, kind: str) -> list[dict[str, Any]]:
        parts = self.content if isinstance(self.content, list) else []
        return [dict(part) for part in map(mapping_or_empty, parts) if part.get("type") == kind]


class Line(msgspec.Struct, rename="camel"):
    type: str = ""
    id: str = ""
    calling_session_id: str | None = None
    cwd: str | None = None
    timestamp: Any = None
    message: Message | None = None


class Tokens(msgspec.Struct, rename="camel"):
    input_tokens: Any = None
    output_tokens: Any = None
    cache_creation_tokens: Any = None
    cache_read_tokens: Any = None
    thinking_tokens: Any = None


class TagMetadata(msgspec.Struct, rename="camel"):
    calling_session_id: str | None = None


class Tag(msgspec.Struct):
    name: str = ""
    metadata: TagMetadata | None = None


class Sums(msgspec.Struct, rename="camel"):
    model: str | None = None
    tags: list[Tag] = []
    token_usage: Tokens | None = None


decode = msgspec.json.Decoder(Line).decode
decode_sums = msgspec.json.Decoder(Sums).decode


def find_files(home: Path) -> Iterable[Path]:
    return (home / SESSIONS).glob("**/*.jsonl")


def find_sums(home: Path) -> Iterable[Path]:
    return sorted((home / SESSIONS).glob(f"**/*{SUFFIX}"))


SPEECH = (b'"role"',)


def spoken(line: bytes) -> Spoken | None:
    """0.225.2. Results of tools and reports of hooks are messages of the user too."""
    entry = decode(line)
    message = entry.message
    if message is None:
        return None
    texts, at = [str(part.get("text") or "") for part in message.parts("text")], parse_milliseconds(entry.timestamp)
    if message.role == "assistant":
        return Spoken(at, False, "\n".join(texts), bool(message.parts("tool_use")))
    # Reports of hooks are shown to the user only, and begin no turn.
    return Spoken(at, True) if texts and message.visibility != "user_only" else None


def failures(lines: Iterable[bytes]) -> Sequence[Failure]:
    """In order, 0.225.2. A result whose call is not among the lines is passed over."""
    calls: dict[Any, dict[str, Any]] = {}
    found: list[Failure] = []
    for line in lines:
        with suppress(*PARSE_ERRORS):  # The first line may be cut.
            found += _failures_of(decode(line), calls)
    return found


def _failures_of(entry: Line, calls: dict[Any, dict[str, Any]]) -> Iterator[Failure]:
    if entry.message is None:
        return
    calls.update((part.get("id"), part) for part in entry.message.parts("tool_use"))
    for part in entry.message.parts("tool_result"):
        made = calls.get(part.get("tool_use_id"))
        if made and part.get("is_error") is True:
            text, tool_input = part.get("content"), mapping_or_empty(made.get("input"))
            at = parse_milliseconds(entry.timestamp)
            yield Failure(str(made.get("name") or ""), tool_input, text if isinstance(text, str) else "", at)
