"""Token use in GitHub Copilot CLI's events."""

# A record per call of the model; versions before it wrote only the sums by model, when the session shut down.

from pathlib import Path

from holdfast.agents.copilot.transcript import Data, Line, Tokens, decode, find_files
from holdfast.analysis.usage.model import Usage, parse_milliseconds
from holdfast.analysis.usage.reader import FileContext, Position, Statement, UsageReader, lines_reader

NAME = "copilot"
MARKS = (b'"session.start"', b'"session.usage_record"', b'"session.shutdown"', b'"user.message"')


def context_of_file(path: Path) -> FileContext:
    return FileContext(session=path.parent.name)


def statement_of(entry: Line, position: Position) -> Statement | None:
    data, context = entry.data, position.context
    if data is None:
        return None
    if entry.type == "session.usage_record" and data.usage:
        # The sums at the shutdown repeat what single records said.
        context.detailed = True
        return _call_statement(entry, data.usage)
    if entry.type == "session.shutdown" and not context.detailed:
        return _total_statement(entry, data, context)
    _note_context(entry, data, context)
    return None


def _note_context(entry: Line, data: Data, context: FileContext) -> None:
    if entry.type == "session.start" and data.context:
        context.project = data.context.git_root or data.context.cwd or ""
        context.branch = data.context.branch or ""
    # A message to a subagent begins no turn of the user.
    elif entry.type == "user.message" and not entry.agent_id:
        context.turn = data.message_id or ""


def _call_statement(entry: Line, usage: Tokens) -> Statement:
    return Statement(
        id=usage.api_call_id or entry.id,
        said=usage.usage(),
        at=parse_milliseconds(entry.timestamp),
        model=usage.model or "",
        lane=entry.agent_id or "",
    )


def _total_statement(entry: Line, data: Data, context: FileContext) -> Statement | None:
    """With several models the sum cannot be split into statements of one line: the largest names it."""
    metrics = {model: one.usage.usage() for model, one in (data.model_metrics or {}).items() if one.usage}
    if not metrics:
        return None
    total = Usage()
    for usage in metrics.values():
        total = total.plus(usage)
    model = max(metrics, key=lambda name: metrics[name].total or 0)
    # The same id at each shutdown, so that only what grew since the last one is counted.
    id_, at = f"{context.session}:sum", parse_milliseconds(entry.timestamp)
    return Statement(id=id_, said=total, at=at, model=model, summed=True)


READER = UsageReader(NAME, (".jsonl",), find_files, lines_reader(NAME, decode, statement_of, MARKS, context_of_file))
