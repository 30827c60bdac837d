"""Token use in Qwen Code's chats."""

# Every call of a model, those of subagents and side requests too, is a telemetry record of the session's chat. Where a
# version writes none, the answers themselves carry figures.

from holdfast.agents.qwen.transcript import ApiResponse, Line, decode, find_files
from holdfast.analysis.usage.model import parse_milliseconds, usage_of_prompt
from holdfast.analysis.usage.reader import Position, Statement, UsageReader, begin_empty, lines_reader

NAME = "qwen"
MARKS = (b'"usageMetadata"', b"api_response")


def statement_of(entry: Line, position: Position) -> Statement | None:
    context, system = position.context, entry.system_payload
    context.session, context.project = entry.session_id or context.session, entry.cwd or context.project
    context.branch = entry.git_branch or context.branch
    response = system.ui_event if system else None
    if response and response.name.endswith("api_response") and response.response_id:
        # The answers repeat these figures.
        context.detailed = True
        return _response_statement(response, response.response_id, parse_milliseconds(entry.timestamp))
    return None if context.detailed else _answer_statement(entry)


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


def _answer_statement(entry: Line) -> Statement | None:
    metadata = entry.usage_metadata
    if entry.type != "assistant" or metadata is None:
        return None
    usage = usage_of_prompt(
        metadata.prompt_token_count,
        metadata.candidates_token_count,
        metadata.cached_content_token_count,
        reasoning=metadata.thoughts_token_count,
        total=metadata.total_token_count,
    )
    return Statement(id=entry.uuid, said=usage, at=parse_milliseconds(entry.timestamp), model=entry.model or "")


READER = UsageReader(NAME, (".jsonl",), find_files, lines_reader(NAME, decode, statement_of, MARKS, begin_empty))
