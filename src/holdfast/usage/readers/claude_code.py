"""Claude Code's transcripts: `~/.claude/projects/*/SESSION.jsonl`, and those of its subagents below them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.usage.model import Usage, larger_count, micro_dollars, parse_milliseconds, part_of, token_count
from holdfast.usage.prices import fast_name
from holdfast.usage.reader import LiveSession, Position, Statement, UsageReader, begin_empty, lines_reader

NAME = "claude-code"
# What Claude Code names as the model of messages that it made up itself.
NOT_A_MODEL = "<synthetic>"


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


class Line(msgspec.Struct, rename="camel"):
    type: str = ""
    uuid: str = ""
    session_id: str = ""
    agent_id: str | None = None
    prompt_id: str | None = None
    request_id: str | None = None
    timestamp: Any = None
    cwd: str | None = None
    git_branch: str | None = None
    cost_usd: Any = msgspec.field(name="costUSD", default=None)
    message: Message | None = None


decode = msgspec.json.Decoder(Line).decode


def find_usage_files(home: Path) -> Iterable[Path]:
    roots = (home / ".claude" / "projects", home / ".config" / "claude" / "projects")
    return sorted(file for root in roots for file in root.rglob("*.jsonl"))


def parse_claude_code_usage(line: bytes, position: Position) -> Statement | None:
    entry = decode(line)
    if entry.prompt_id:
        position.context.turn = entry.prompt_id
    # The first folder is the project; later ones follow `cd`.
    position.context.project = position.context.project or entry.cwd or ""
    message = entry.message
    if entry.type != "assistant" or message is None or message.usage is None or message.model == NOT_A_MODEL:
        return None
    # A message is written in several lines with its figures so far: one id for all of them.
    return Statement(
        id=f"{message.id or entry.uuid}:{entry.request_id or ''}",
        said=usage_of(message.usage),
        at=parse_milliseconds(entry.timestamp),
        model=fast_name(message.model or "") if message.usage.speed == "fast" else message.model or "",
        session=entry.session_id,
        lane=entry.agent_id or "",
        branch=entry.git_branch or "",
        reported=micro_dollars(entry.cost_usd),
    )


def usage_of(tokens: Tokens) -> Usage:
    written, tiers = token_count(tokens.cache_creation_input_tokens), tokens.cache_creation
    hour = token_count(tiers.ephemeral_1h_input_tokens) if tiers else None
    short = token_count(tiers.ephemeral_5m_input_tokens) if tiers else None
    details = tokens.output_tokens_details
    return Usage(
        input=token_count(tokens.input_tokens),
        output=token_count(tokens.output_tokens),
        cache_read=token_count(tokens.cache_read_input_tokens),
        # The figure for cache writes includes the hour tier. Where it and the tiers disagree the larger counts.
        cache_write_5m=larger_count(part_of(written, hour), short),
        cache_write_1h=hour,
        reasoning=token_count(details.thinking_tokens) if details else None,
    )


def session_files(session: LiveSession) -> Iterable[Path]:
    """Subagents by their folder: one that was killed has told of no file."""
    own = Path(session.transcript)
    return [own, *sorted((own.with_suffix("") / "subagents").glob("*.jsonl"))] if session.transcript else []


READER = UsageReader(
    NAME,
    (".jsonl",),
    find_usage_files,
    lines_reader(NAME, parse_claude_code_usage, (b'"usage"', b'"promptId"'), begin_empty),
    session_files,
)
