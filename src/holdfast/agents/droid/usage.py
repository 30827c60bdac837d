"""Factory droid's sessions: only sums of the whole session, in `~/.factory/sessions/PROJECT/SESSION.settings.json`."""

# A subagent is a session of its own whose tags name the one that began it. There is no time in the file: its last
# change is when the session last spent something.

from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.agents.droid.transcript import SUFFIX, Tokens, decode_sums, find_sums
from holdfast.analysis.usage.model import Usage, token_count
from holdfast.analysis.usage.reader import FileContext, LiveSession, Position, Statement, UsageReader, document_reader

NAME = "droid"
NS_PER_MS = 1_000_000


def context_of_file(path: Path) -> FileContext:
    return FileContext(session=path.name.removesuffix(SUFFIX))


def parse_settings(content: bytes, position: Position) -> Iterator[Statement]:
    session_file, own = decode_sums(content), position.context.session
    if session_file.token_usage is None:
        return
    callers = [tag.metadata.calling_session_id for tag in session_file.tags if tag.metadata]
    caller = next(filter(None, callers), "")
    yield Statement(
        id=own,
        said=_usage_of_tokens(session_file.token_usage),
        at=position.stamp // NS_PER_MS,
        # Prefix of models that the user configured.
        model=(session_file.model or "").removeprefix("custom:"),
        session=caller or own,
        lane=own if caller else "",
        summed=True,
    )


def _usage_of_tokens(tokens: Tokens) -> Usage:
    return Usage(
        input=token_count(tokens.input_tokens),
        output=token_count(tokens.output_tokens),
        cache_read=token_count(tokens.cache_read_tokens),
        cache_write_5m=token_count(tokens.cache_creation_tokens),
        reasoning=token_count(tokens.thinking_tokens),
    )


def session_files(session: LiveSession) -> Iterable[Path]:
    """The sums are next to the transcript that hooks name."""
    return [Path(session.transcript).with_suffix(SUFFIX)] if session.transcript.endswith(".jsonl") else []


READER = UsageReader(NAME, (SUFFIX,), find_sums, document_reader(NAME, parse_settings, context_of_file), session_files)
