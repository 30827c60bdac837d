"""Token use in Qwen Code's chats.

Every call of a model, those of subagents and side requests too, is a telemetry record of the session's chat. Where a
version writes none, the answers themselves carry figures.
"""

from holdfast.agents.qwen.transcript import ApiResponse, Line, Metadata, decode, find_files
from holdfast.analysis.usage.model import parse_milliseconds, usage_of_prompt
from holdfast.analysis.usage.reader import Position, Statement, UsageReader, begin_empty, lines_reader

NAME = "qwen"
MARKS = (b'"usageMetadata"', b"api_response")


def statement_of(entry: Line, position: Position) -> Statement | None:
    context = position.context
    context.session, context.project = entry.session_id or context.session, entry.cwd or context.project
    context.branch = entry.git_branch or context.branch
    at, response = parse_milliseconds(entry.timestamp), entry.system_payload.ui_event if entry.system_payload else None
    if response and response.name.endswith("api_response") and response.response_id:
        # The answers repeat these figures.
        context.detailed = True
        return _response_statement(response, response.response_id, at)
    if entry.type == "assistant" and entry.usage_metadata and not context.detailed:
        return _answer_statement(entry, entry.usage_metadata, at)
    return None


def _response_statement(response: ApiResponse, id_: str, at: int) -> Statement:
    usage = usage_of_prompt(
        response.input_token_count,
        response.output_token_count,
        response.cached_content_token_count,
        reasoning=response.thoughts_token_count,
        total=response.total_token_count,
    )
    lane = response.subagent_id or ""
    return Statement(id=id_, said=usage, at=at, model=response.model or "", lane=lane, turn=response.prompt_id or "")


def _answer_statement(entry: Line, metadata: Metadata, at: int) -> Statement:
    usage = usage_of_prompt(
        metadata.prompt_token_count,
        metadata.candidates_token_count,
        metadata.cached_content_token_count,
        reasoning=metadata.thoughts_token_count,
        total=metadata.total_token_count,
    )
    return Statement(id=entry.uuid, said=usage, at=at, model=entry.model or "")


READER = UsageReader(NAME, (".jsonl",), find_files, lines_reader(NAME, decode, statement_of, MARKS, begin_empty))
