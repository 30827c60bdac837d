"""Claude Code's transcripts: `~/.claude/projects/*/SESSION.jsonl`, and those of its subagents below them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

ROOTS = (".claude/projects", ".config/claude/projects")
SUBAGENTS = "subagents"


class CacheCreation(msgspec.Struct):
    ephemeral_5m_input_tokens: Any = None
    ephemeral_1h_input_tokens: Any = None


class OutputDetails(msgspec.Struct):
    thinking_tokens: Any = None


class Tokens(msgspec.Struct):
    input_tokens: Any = None
    output_tokens: Any = None
    cache_read_input_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_creation: CacheCreation | None = None
    output_tokens_details: OutputDetails | None = None
    speed: Any = None
    """`fast` where the answer came at the price of fast mode."""


class Message(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    usage: Tokens | None = None
    content: msgspec.Raw = msgspec.Raw()
    """Decoded only where it is needed: it is most of the file."""

    def parts(self) -> list[Any]:
        """A message is one text or a list of parts."""
        content = msgspec.json.decode(self.content) if bytes(self.content) else None
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        return content if isinstance(content, list) else []


class ToolUseResult(msgspec.Struct, rename="camel"):
    """How a call ended, and what a command printed."""

    interrupted: Any = None
    background_task_id: Any = None
    is_async: Any = None
    return_code_interpretation: Any = None
    stdout: Any = None
    stderr: Any = None


class Attachment(msgspec.Struct, rename="camel"):
    """What Claude Code puts into the conversation itself; a `queued_command` has words of the person."""

    type: Any = None
    prompt: Any = None
    command_mode: Any = None


class CompactMetadata(msgspec.Struct):
    trigger: Any = None


class Line(msgspec.Struct, rename="camel"):
    type: str = ""
    subtype: Any = None
    """Of a `system` record."""
    compact_metadata: CompactMetadata | None = None
    uuid: str = ""
    session_id: str = ""
    agent_id: str | None = None
    prompt_id: str | None = None
    request_id: str | None = None
    timestamp: Any = None
    cwd: str | None = None
    git_branch: str | None = None
    cost_usd: Any = msgspec.field(name="costUSD", default=None)
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    tool_denial_kind: Any = None
    """Set where a hook, a rule or a person refused the call whose result this is."""
    tool_use_result: msgspec.Raw = msgspec.Raw()
    message: Message | None = None
    attachment: Attachment | None = None
    operation: Any = None
    content: Any = None
    """Of a `queue-operation`: what was typed while the agent worked."""
    is_api_error_message: bool | None = None
    """The text is not the agent's: its model could not be asked."""
    pr_url: Any = None
    ai_title: Any = None
    custom_title: Any = None
    summary: Any = None
    leaf_uuid: Any = None
    """Of a `summary`: the last record of what it sums up, maybe in another file."""

    def ending(self) -> ToolUseResult | None:
        """None in older versions, which do not record how a call ended."""
        raw = bytes(self.tool_use_result)
        return _decode_result(raw) if raw.startswith(b"{") else None


_decode_result = msgspec.json.Decoder(ToolUseResult).decode
decode = msgspec.json.Decoder(Line).decode


def find_files(home: Path) -> Iterable[Path]:
    return sorted(file for root in ROOTS for file in (home / root).rglob("*.jsonl"))
