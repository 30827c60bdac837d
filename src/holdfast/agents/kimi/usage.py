"""Token use in Kimi Code's wire records."""

from collections.abc import Iterable
from pathlib import Path

from holdfast.agents.kimi.transcript import MAIN, SESSIONS, Line, Tokens, decode, find_files
from holdfast.analysis.usage.model import Usage, parse_milliseconds, token_count
from holdfast.analysis.usage.reader import FileContext, LiveSession, Position, Statement, UsageReader, lines_reader

NAME = "kimi"
MARKS = (b'"usage.record"', b'"profile.bind"', b'"turn.prompt"')


def context_of_file(path: Path) -> FileContext:
    """agents/main is the session itself, every other folder a subagent."""
    agent = path.parent.name
    # SESSION/agents/AGENT/wire.jsonl.
    session = path.parents[2].name if len(path.parents) > 2 else ""
    return FileContext(session=session, lane="" if agent == MAIN else agent)


def statement_of(entry: Line, position: Position) -> Statement | None:
    context = position.context
    if entry.type == "profile.bind" and entry.environment_disclosure:
        context.project = entry.environment_disclosure.cwd or context.project
    elif entry.type == "turn.prompt":
        context.turn = entry.prompt_id or ""
    elif entry.type == "usage.record" and entry.usage:
        return _usage_statement(entry, entry.usage)
    return None


def _usage_statement(entry: Line, tokens: Tokens) -> Statement:
    """It has no id of its own: agent and time identify it, also in a fork's copy."""
    usage = Usage(
        input=token_count(tokens.input_other),
        output=token_count(tokens.output),
        cache_read=token_count(tokens.input_cache_read),
        cache_write_5m=token_count(tokens.input_cache_creation),
    )
    return Statement(
        id=f"{entry.agent_id}@{entry.time}", said=usage, at=parse_milliseconds(entry.time), model=entry.model or ""
    )


def session_files(session: LiveSession) -> Iterable[Path]:
    """Its hooks name no file: the folder has the session's id."""
    name = session.file_name
    return sorted((session.home / SESSIONS).glob(f"*/{name}/agents/*/wire.jsonl")) if name else []


READER = UsageReader(
    NAME, (".jsonl",), find_files, lines_reader(NAME, decode, statement_of, MARKS, context_of_file), session_files
)
