"""What was done in which session."""

from typing import Annotated, Any

from fastapi import Query

from holdfast.web.api.requests import (
    Asked,
    Cursor,
    Id,
    Limit,
    Number,
    Project,
    Time,
    Word,
    parse_number_cursor,
    parse_pair_cursor,
)


async def sessions(
    ask: Asked, every: Annotated[bool, Query(alias="all", description="Also those that ended.")] = False,
    project: Project = "", limit: Limit = 50, cursor: Cursor = "",
) -> Any:  # fmt: skip
    """Sessions, the latest activity first."""
    arguments = {"all": every, "project": project, "limit": limit, "before": parse_pair_cursor(cursor)}
    return await ask("sessions.list", arguments)


async def table(
    ask: Asked, project: Project = "", agent: Word = "", state: Word = "", branch: Word = "", model: Word = "",
    text: Word = "", since: Time = 0, until: Time = 0, min_tokens: Number = 0, sort: Word = "last",
    reverse: bool = False, offset: Number = 0, limit: Limit = 100,
) -> Any:  # fmt: skip
    """Sessions filtered and sorted, with how many fit."""
    arguments = {"project": project, "agent": agent, "state": state, "branch": branch, "model": model, "text": text}
    figures = {"since": since, "until": until, "min_tokens": min_tokens, "offset": offset, "limit": limit}
    return await ask("sessions.table", {**arguments, **figures, "sort": sort, "reverse": reverse})


async def who(ask: Asked) -> Any:
    """Every live session, those that wait for you first."""
    return await ask("sessions.who", {})


async def session(ask: Asked, id: Id, turns: Annotated[int, Query(ge=1, le=500)] = 10) -> Any:
    """One session whole."""
    return await ask("sessions.show", {"id": id, "turns": turns})


async def timeline(ask: Asked, id: Id, limit: Limit = 100, cursor: Cursor = "") -> Any:
    """What happened in a session, newest page first, each page oldest first."""
    return await ask("sessions.timeline", {"id": id, "limit": limit, "before": parse_number_cursor(cursor)})


async def rows(
    ask: Asked, id: Id, start: Number = 0, before: Number = 0, only: Word = "", q: Word = "", limit: Limit = 200,
) -> Any:  # fmt: skip
    """A range of a session's rows: from one on, before one, or the last."""
    arguments = {"id": id, "start": start, "before": before, "only": only, "q": q, "limit": limit}
    return await ask("sessions.rows", arguments)


async def marks(ask: Asked, id: Id, only: Word = "") -> Any:
    """Where every two-hundredth row is, for lists that scroll."""
    return await ask("sessions.marks", {"id": id, "only": only})


async def overview(ask: Asked, id: Id) -> Any:
    """Turns, lanes and answers of a session at a glance."""
    return await ask("sessions.overview", {"id": id})


async def outline(ask: Asked, id: Id, only: Word = "", turn: Number = 0) -> Any:
    """The turns of a session with the number of rows in each, for pages that fold and scroll."""
    return await ask("sessions.outline", {"id": id, "only": only, "turn": turn})


async def moment(
    ask: Asked, id: Id, seq: Number = 0, start: Number = 0, offset: Number = 0, only: Word = "",
) -> Any:  # fmt: skip
    """A session as it was right after one of its events."""
    return await ask("sessions.moment", {"id": id, "seq": seq, "start": start, "offset": offset, "only": only})


async def activity(ask: Asked, days: Annotated[int, Query(ge=1, le=730)] = 371) -> Any:
    """What was done per day, and in the last thirty by which agent in which project."""
    return await ask("sessions.activity", {"days": days})


ADDRESSES = {
    "sessions": sessions,
    "sessions/table": table,
    "sessions/who": who,
    "sessions/{id:path}/timeline": timeline,
    "sessions/{id:path}/rows": rows,
    "sessions/{id:path}/marks": marks,
    "sessions/{id:path}/overview": overview,
    "sessions/{id:path}/outline": outline,
    "sessions/{id:path}/moment": moment,
    "sessions/{id:path}": session,
    "activity": activity,
}
"""An id may hold anything, also a slash: the longer addresses come first."""
