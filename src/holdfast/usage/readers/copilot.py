"""GitHub Copilot CLI's events: `~/.copilot/session-state/SESSION/events.jsonl`.

A record per call of the model; versions before it wrote only the sums by model, when the session shut down.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.usage.model import Usage, parse_milliseconds, usage_of_prompt
from holdfast.usage.reader import FileContext, Position, Statement, UsageReader, lines_reader

NAME = "copilot"
MARKS = (b'"session.start"', b'"session.usage_record"', b'"session.shutdown"', b'"user.message"')


class Tokens(msgspec.Struct, rename="camel"):
    input_tokens: Any = None
    output_tokens: Any = None
    cache_read_tokens: Any = None
    cache_write_tokens: Any = None
    reasoning_tokens: Any = None
    model: str | None = None
    api_call_id: str | None = None

    def usage(self) -> Usage:
        read, written = self.cache_read_tokens, self.cache_write_tokens
        return usage_of_prompt(self.input_tokens, self.output_tokens, read, written, self.reasoning_tokens)


class Metrics(msgspec.Struct):
    usage: Tokens | None = None


class SessionFolder(msgspec.Struct, rename="camel"):
    cwd: str | None = None
    git_root: str | None = None
    branch: str | None = None


class Data(msgspec.Struct, rename="camel"):
    context: SessionFolder | None = None
    usage: Tokens | None = None
    message_id: str | None = None
    model_metrics: dict[str, Metrics] | None = None


class Line(msgspec.Struct, rename="camel"):
    type: str = ""
    id: str = ""
    timestamp: Any = None
    agent_id: str | None = None
    data: Data | None = None


decode = msgspec.json.Decoder(Line).decode


def find_usage_files(home: Path) -> Iterable[Path]:
    return sorted((home / ".copilot" / "session-state").glob("*/events.jsonl"))


def context_of_file(path: Path) -> FileContext:
    return FileContext(session=path.parent.name)


def parse_copilot_usage(line: bytes, position: Position) -> Statement | None:
    entry, context = decode(line), position.context
    data = entry.data
    if data is None:
        return None
    if entry.type == "session.start" and data.context:
        context.project = data.context.git_root or data.context.cwd or ""
        context.branch = data.context.branch or ""
    # A message to a subagent begins no turn of the user.
    elif entry.type == "user.message" and not entry.agent_id:
        context.turn = data.message_id or ""
    elif entry.type == "session.usage_record" and data.usage:
        # The sums at the shutdown repeat what single records said.
        context.detailed = True
        return _call_statement(entry, data.usage)
    elif entry.type == "session.shutdown" and not context.detailed:
        return _total_statement(entry, data, context)
    return None


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


READER = UsageReader(
    NAME, (".jsonl",), find_usage_files, lines_reader(NAME, parse_copilot_usage, MARKS, context_of_file)
)
