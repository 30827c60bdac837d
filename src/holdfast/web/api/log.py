"""The log itself, and why Holdfast answered as it did."""

from typing import Annotated, Any

from fastapi import Query

from holdfast.web.api.requests import Asked, Cursor, Limit, Number, Project, Seq, Session, Time, Word, parse_page_cursor


async def events(
    ask: Asked, session: Session = "", project: Project = "", kind: Annotated[list[str] | None, Query(max_length=50)] = None,
    tool: Word = "", since: Time = 0, until: Time = 0, after: Number = 0,
    limit: Limit = 100, cursor: Cursor = "",
) -> Any:  # fmt: skip
    """The log. Without `after` the newest page first; with it, forwards from there."""
    args = {"session": session, "project": project, "kinds": kind, "tool": tool, "since": since, "until": until}
    position = parse_page_cursor(cursor) if cursor else {"after": after}
    return await ask("log.events", {**args, "limit": limit, **position})


async def event(ask: Asked, seq: Seq) -> Any:
    """One event whole, with the agent's own payload as far as it is kept."""
    return await ask("log.event", {"seq": seq})


async def explain(ask: Asked, seq: Seq, project: Project = "") -> Any:
    """Why a call was refused or allowed."""
    return await ask("gates.explain", {"seq": seq}, project)


ADDRESSES = {
    "events": events,
    "events/{seq}": event,
    "events/{seq}/why": explain,
}
