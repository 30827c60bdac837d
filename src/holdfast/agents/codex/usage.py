"""Token use in Codex's rollouts."""

# Since 0.166 a record per answer (`token_usage_record`) with the answer's id; before, only a running total of the
# thread (`token_count`), which a forked rollout goes on with.

from holdfast.agents.codex.transcript import Line, Payload, decode, find_files
from holdfast.agents.source import session_name
from holdfast.analysis.usage.model import parse_milliseconds
from holdfast.analysis.usage.reader import FileContext, Position, Statement, UsageReader, begin_empty, lines_reader

NAME = "codex"
MARKS = (b'"session_meta"', b'"turn_context"', b'"token_usage_record"', b'"token_count"')


def statement_of(entry: Line, position: Position) -> Statement | None:
    payload, context = entry.payload, position.context
    if payload is None:
        return None
    if entry.type == "session_meta":
        _begin_session(payload, context)
    elif entry.type == "turn_context":
        context.model, context.turn = payload.model or context.model, payload.turn_id or context.turn
    elif entry.type == "token_usage_record" and payload.response_id:
        return _answer_statement(payload, payload.response_id, context, parse_milliseconds(entry.timestamp))
    elif payload.type == "token_count" and not context.detailed:
        return _running_total(payload, position, parse_milliseconds(entry.timestamp))
    return None


def _answer_statement(payload: Payload, id_: str, context: FileContext, at: int) -> Statement | None:
    if payload.usage is None:
        return None
    # From here on the running totals of the same file would count everything twice.
    context.detailed = True
    return Statement(id=id_, said=payload.usage.usage(), at=at, model=payload.model or "")


def _begin_session(payload: Payload, context: FileContext) -> None:
    """Only the first: a fork repeats what its parent began with."""
    if context.session or not payload.id:
        return
    context.session = session_name(payload.whole_session)
    # A rollout whose own id differs from the session's is a subagent's.
    context.lane = payload.id if payload.subagent or payload.id != context.session else ""
    context.project = payload.cwd or ""
    context.branch = (payload.git.branch if payload.git else None) or ""
    # A fork goes on with its parent's total, so both count under the parent's id.
    context.thread = payload.forked_from_id or payload.id


def _running_total(payload: Payload, position: Position, at: int) -> Statement | None:
    total = payload.info.total_token_usage if payload.info else None
    if total is None:
        return None
    context, usage = position.context, total.usage()
    last = payload.info.last_token_usage if payload.info else None
    earlier = position.known.get(_thread_id(context))
    if earlier is None and last:
        # What the total held before the first answer of this file was spent elsewhere.
        position.known[_thread_id(context)] = usage.beyond(last.usage())
    # A total that shrank was restarted; under a new id it is counted from 0.
    elif earlier and (usage.total or 0) < (earlier.total or 0):
        context.epoch += 1
    return Statement(id=_thread_id(context), said=usage, at=at)


def _thread_id(context: FileContext) -> str:
    return f"{context.thread}#{context.epoch}"


READER = UsageReader(NAME, (".jsonl",), find_files, lines_reader(NAME, decode, statement_of, MARKS, begin_empty))
