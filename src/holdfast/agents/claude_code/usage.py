"""Token use in Claude Code's transcripts."""

from collections.abc import Iterable
from pathlib import Path

from holdfast.agents.claude_code.transcript import SUBAGENTS, Line, Tokens, decode, find_files
from holdfast.analysis.usage.model import Usage, larger_count, micro_dollars, parse_milliseconds, part_of, token_count
from holdfast.analysis.usage.prices import fast_name
from holdfast.analysis.usage.reader import (
    FileContext,
    LiveSession,
    Position,
    Statement,
    UsageReader,
    begin_empty,
    lines_reader,
)

NAME = "claude-code"
# What Claude Code names as the model of messages that it made up itself.
NOT_A_MODEL = "<synthetic>"


def statement_of(entry: Line, position: Position) -> Statement | None:
    _note_context(entry, position.context)
    message = entry.message
    if entry.type != "assistant" or message is None or message.usage is None or message.model == NOT_A_MODEL:
        return None
    model, lane = message.model or "", entry.agent_id or ""
    # A message is written in several lines with its figures so far: one id for all of them.
    return Statement(
        id=f"{message.id or entry.uuid}:{entry.request_id or ''}",
        said=usage_of(message.usage),
        at=parse_milliseconds(entry.timestamp),
        model=fast_name(model) if message.usage.speed == "fast" else model,
        session=entry.session_id,
        lane=lane,
        branch=entry.git_branch or "",
        reported=micro_dollars(entry.cost_usd),
    )


def _note_context(entry: Line, context: FileContext) -> None:
    context.turn = entry.prompt_id or context.turn
    # The first folder is the project; later ones follow `cd`.
    context.project = context.project or entry.cwd or ""


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
    """Subagents by their folder: one that was killed has reported no file."""
    own = Path(session.transcript)
    return [own, *sorted((own.with_suffix("") / SUBAGENTS).glob("*.jsonl"))] if session.transcript else []


READER = UsageReader(
    NAME,
    (".jsonl",),
    find_files,
    lines_reader(NAME, decode, statement_of, (b'"usage"', b'"promptId"'), begin_empty),
    session_files,
)
