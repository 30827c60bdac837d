"""Codex's rollouts: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`.

Since 0.166 a record per answer (`token_usage_record`) with the answer's id; before, only a running total of the thread
(`token_count`), which a forked rollout goes on with.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.usage.model import Usage, parse_milliseconds, usage_of_prompt
from holdfast.usage.reader import FileContext, Position, Statement, UsageReader, begin_empty, lines_reader

NAME = "codex"
MARKS = (b'"session_meta"', b'"turn_context"', b'"token_usage_record"', b'"token_count"')


class Tokens(msgspec.Struct):
    input_tokens: Any = None
    cached_input_tokens: Any = None
    cache_write_input_tokens: Any = None
    output_tokens: Any = None
    reasoning_output_tokens: Any = None

    def usage(self) -> Usage:
        cached, written = self.cached_input_tokens, self.cache_write_input_tokens
        return usage_of_prompt(self.input_tokens, self.output_tokens, cached, written, self.reasoning_output_tokens)


class Counts(msgspec.Struct):
    total_token_usage: Tokens | None = None


class Git(msgspec.Struct):
    branch: str | None = None


class Payload(msgspec.Struct):
    type: str | None = None
    id: str | None = None
    session_id: str | None = None
    forked_from_id: str | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    response_id: str | None = None
    cwd: str | None = None
    git: Git | None = None
    model: str | None = None
    usage: Tokens | None = None
    info: Counts | None = None


class Line(msgspec.Struct):
    type: str = ""
    timestamp: Any = None
    payload: Payload | None = None


decode = msgspec.json.Decoder(Line).decode


def find_usage_files(home: Path) -> Iterable[Path]:
    return sorted((home / ".codex").rglob("rollout-*.jsonl"))


def parse_codex_usage(line: bytes, position: Position) -> Statement | None:
    entry, context = decode(line), position.context
    payload = entry.payload
    if payload is None:
        return None
    if entry.type == "session_meta":
        _begin_session(payload, context)
    elif entry.type == "turn_context":
        context.model, context.turn = payload.model or context.model, payload.turn_id or context.turn
    elif entry.type == "token_usage_record" and payload.usage and payload.response_id:
        # From here on the running totals of the same file would count everything twice.
        context.detailed = True
        usage, at = payload.usage.usage(), parse_milliseconds(entry.timestamp)
        return Statement(id=payload.response_id, said=usage, at=at, model=payload.model or "")
    elif payload.type == "token_count" and not context.detailed:
        return _running_total(payload, position, parse_milliseconds(entry.timestamp))
    return None


def _begin_session(payload: Payload, context: FileContext) -> None:
    """Only the first: a fork repeats what its parent began with."""
    if context.session or not payload.id:
        return
    context.session = payload.session_id or payload.id
    # A rollout whose own id differs from the session's is a subagent's.
    context.lane = payload.id if payload.id != context.session else ""
    context.project = payload.cwd or ""
    context.branch = (payload.git.branch if payload.git else None) or ""
    # A fork goes on with its parent's total, so both count under the parent's id.
    context.thread = payload.forked_from_id or payload.id


def _running_total(payload: Payload, position: Position, at: int) -> Statement | None:
    total = payload.info.total_token_usage if payload.info else None
    if total is None:
        return None
    context, usage = position.context, total.usage()
    earlier = position.known.get(_thread_id(context))
    # A total that shrank began anew; under a new id it is counted from 0.
    if earlier and (usage.total or 0) < (earlier.total or 0):
        context.epoch += 1
    return Statement(id=_thread_id(context), said=usage, at=at)


def _thread_id(context: FileContext) -> str:
    return f"{context.thread}#{context.epoch}"


READER = UsageReader(NAME, (".jsonl",), find_usage_files, lines_reader(NAME, parse_codex_usage, MARKS, begin_empty))
