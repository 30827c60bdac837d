"""An answer as opencode writes it down, in its database and, before 1.2, in a file of its own."""

from typing import Any

import msgspec

from holdfast.usage.model import Usage, micro_dollars, parse_milliseconds, token_count
from holdfast.usage.reader import Statement


class Cache(msgspec.Struct):
    read: Any = None
    write: Any = None


class Tokens(msgspec.Struct):
    input: Any = None
    output: Any = None
    reasoning: Any = None
    cache: Cache | None = None


class Time(msgspec.Struct):
    created: Any = None


class Folder(msgspec.Struct):
    root: str | None = None
    cwd: str | None = None


class Message(msgspec.Struct, rename={"parent": "parentID", "model": "modelID", "session": "sessionID"}):
    role: str = ""
    id: str = ""
    session: str = ""
    parent: str | None = None
    model: str | None = None
    time: Time | None = None
    path: Folder | None = None
    cost: Any = None
    tokens: Tokens | None = None


decode = msgspec.json.Decoder(Message).decode


def statement_of(message: Message, id_: str, session: str, lane: str) -> Statement | None:
    """`parentID` is the user's message that it answers, which is what we call a turn."""
    if message.role != "assistant" or message.tokens is None or not id_:
        return None
    folder = message.path
    return Statement(
        id=id_,
        said=_usage_of_tokens(message.tokens),
        at=parse_milliseconds(message.time.created) if message.time else 0,
        model=message.model or "",
        session=session,
        lane=lane,
        turn=message.parent or "",
        project=(folder.root or folder.cwd or "") if folder else "",
        reported=micro_dollars(message.cost),
    )


def _usage_of_tokens(tokens: Tokens) -> Usage:
    """Its output leaves the reasoning out."""
    output, thought = token_count(tokens.output), token_count(tokens.reasoning)
    return Usage(
        input=token_count(tokens.input),
        output=None if output is None else output + (thought or 0),
        cache_read=token_count(tokens.cache.read) if tokens.cache else None,
        cache_write_5m=token_count(tokens.cache.write) if tokens.cache else None,
        reasoning=thought,
    )
