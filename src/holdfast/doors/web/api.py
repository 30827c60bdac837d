"""The API: /api/v1, the same views as the command line's --json, described by OpenAPI 3.1."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Header, Path, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from holdfast.core.agent import Agent
from holdfast.core.errors import CommandRefused
from holdfast.doors.web import api_answers
from holdfast.doors.web.api_answers import ERRORS, Answer, json_answer
from holdfast.doors.web.health import collect_health
from holdfast.doors.web.permissions import Permission, Routes
from holdfast.doors.web.requests import (
    Asked,
    Cursor,
    Hundred,
    Id,
    Limit,
    Moment,
    Number,
    Project,
    Seq,
    Session,
    Time,
    Views,
    Word,
    Words,
    parse_number_cursor,
    parse_page_cursor,
    parse_pair_cursor,
)

if TYPE_CHECKING:
    from holdfast.doors.web.server import WebContext


# Views as routes: sessions, projects, the log, and search in all of them.

Addresses = dict[str, Callable[..., Any]]


# Sessions and their contents.


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
    """Sessions, filtered and sorted, with the total count."""
    arguments = {"project": project, "agent": agent, "state": state, "branch": branch, "model": model, "text": text}
    figures = {"since": since, "until": until, "min_tokens": min_tokens, "offset": offset, "limit": limit}
    return await ask("sessions.table", {**arguments, **figures, "sort": sort, "reverse": reverse})


async def who(ask: Asked) -> Any:
    """Every live session, those that wait for you first."""
    return await ask("sessions.who", {})


async def session(ask: Asked, id: Id, turns: Annotated[int, Query(ge=1, le=500)] = 10) -> Any:
    """One session in full."""
    return await ask("sessions.show", {"id": id, "turns": turns})


async def timeline(ask: Asked, id: Id, limit: Limit = 100, cursor: Cursor = "") -> Any:
    """The timeline of a session: newest page first, each page oldest first."""
    return await ask("sessions.timeline", {"id": id, "limit": limit, "before": parse_number_cursor(cursor)})


async def rows(
    ask: Asked, id: Id, start: Number = 0, before: Number = 0, only: Word = "", q: Word = "", limit: Limit = 200,
) -> Any:  # fmt: skip
    """A range of a session's rows: after one, before one, or the last."""
    arguments = {"id": id, "start": start, "before": before, "only": only, "q": q, "limit": limit}
    return await ask("sessions.rows", arguments)


async def marks(ask: Asked, id: Id, only: Word = "") -> Any:
    """The position of every two-hundredth row, for scrolling lists."""
    return await ask("sessions.marks", {"id": id, "only": only})


async def overview(ask: Asked, id: Id) -> Any:
    """Turns, lanes and answers of a session at a glance."""
    return await ask("sessions.overview", {"id": id})


async def outline(ask: Asked, id: Id, only: Word = "", turn: Number = 0) -> Any:
    """The turns of a session with their row counts, for folding and scrolling."""
    return await ask("sessions.outline", {"id": id, "only": only, "turn": turn})


async def moment(
    ask: Asked, id: Id, seq: Number = 0, start: Number = 0, offset: Number = 0, only: Word = "",
) -> Any:  # fmt: skip
    """A session as it was right after one of its events."""
    return await ask("sessions.moment", {"id": id, "seq": seq, "start": start, "offset": offset, "only": only})


async def activity(ask: Asked, days: Annotated[int, Query(ge=1, le=730)] = 371) -> Any:
    """Activity per day, and in the last thirty days by agent and project."""
    return await ask("sessions.activity", {"days": days})


SESSIONS_ADDRESSES: Addresses = {
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
"""An id may contain a slash, so the longer routes come first."""


# Project views: gates, tasks, leases, state, UAT runs.


async def gates(ask: Asked, project: Project = "", session: Session = "", branch: Word = "") -> Any:
    """Each requirement, whether it is met, and why."""
    return await ask("gates.status", {"session": session, "branch": branch}, project, session)


async def tasks(ask: Asked, project: Project = "") -> Any:
    """Open tasks, the most pressing first."""
    return await ask("project.tasks", {}, project)


async def leases(ask: Asked) -> Any:
    """Holders of leases."""
    return await ask("project.leases", {})


async def state(ask: Asked, project: Project = "", at: Moment = "") -> Any:
    """The project's document, now or as of a moment."""
    return await ask("project.state", {"at": at}, project)


async def uat(
    ask: Asked, project: Project = "", every: Annotated[bool, Query(alias="all")] = False, limit: Hundred = 20, cursor: Cursor = "",
) -> Any:  # fmt: skip
    """UAT runs, newest first."""
    before = parse_pair_cursor(cursor)
    return await ask("uat.list", {"all": every, "limit": limit, "before": before}, project)


async def uat_run(ask: Asked, id: Id, project: Project = "") -> Any:
    """One UAT run with its steps."""
    return await ask("uat.show", {"run": id}, project)


PROJECTS_ADDRESSES: Addresses = {
    "gates": gates,
    "tasks": tasks,
    "leases": leases,
    "state": state,
    "uat": uat,
    "uat/{id}": uat_run,
}


# The log, and explanations of answers.


async def events(
    ask: Asked, session: Session = "", project: Project = "", kind: Annotated[list[str] | None, Query(max_length=50)] = None,
    tool: Word = "", since: Time = 0, until: Time = 0, after: Number = 0,
    limit: Limit = 100, cursor: Cursor = "",
) -> Any:  # fmt: skip
    """The log. Without `after` the newest page first; with it, forward from there."""
    args = {"session": session, "project": project, "kinds": kind, "tool": tool, "since": since, "until": until}
    position = parse_page_cursor(cursor) if cursor else {"after": after}
    return await ask("log.events", {**args, "limit": limit, **position})


async def event(ask: Asked, seq: Seq) -> Any:
    """One event in full, with the agent's payload while it is kept."""
    return await ask("log.event", {"seq": seq})


async def explain(ask: Asked, seq: Seq, project: Project = "") -> Any:
    """Why a call was refused or allowed."""
    return await ask("gates.explain", {"seq": seq}, project)


LOG_ADDRESSES: Addresses = {
    "events": events,
    "events/{seq}": event,
    "events/{seq}/why": explain,
}


# Memory, code and history.


async def memory(
    ask: Asked, project: Project = "", status: Word = "", everywhere: bool = False, limit: Hundred = 20
) -> Any:
    """Memories, newest first."""
    return await ask("memory.listed", {"status": status, "everywhere": everywhere, "limit": limit}, project)


async def told(
    ask: Asked, project: Project = "", session: Session = "", everywhere: bool = False, limit: Hundred = 10
) -> Any:
    """What was injected from memory."""
    args = {"session": session, "everywhere": everywhere, "limit": limit}
    return await ask("memory.injected", args, project)


async def memory_search(
    ask: Asked, q: Words, project: Project = "", everywhere: bool = False, limit: Hundred = 10
) -> Any:
    """What was said, decided, fixed and learned."""
    return await ask("memory.search", {"query": q, "everywhere": everywhere, "limit": limit}, project)


async def code_search(
    ask: Asked, q: Words, project: Project = "", path: Words = "", lang: Word = "", limit: Hundred = 10
) -> Any:
    """Places in a project's code, by meaning or name."""
    return await ask("reindex.search", {"query": q, "path": path, "lang": lang, "limit": limit}, project)


async def history(
    ask: Asked, q: Words = "", project: Project = "", agent: Word = "", session: Session = "", tool: Word = "",
    file: Words = "", failed: bool = False, since: Time = 0, before: Number = 0, limit: Hundred = 20,
) -> Any:  # fmt: skip
    """History of all sessions: prompts, answers, commands, outputs, files, errors."""
    args = {"query": q, "project": project, "agent": agent, "session": session, "tool": tool, "file": file}
    return await ask("log.history", {**args, "failed": failed, "since": since, "before": before, "limit": limit})


async def cost(
    ask: Asked, by: Word = "day", project: Project = "", agent: Word = "", session: Session = "", model: Word = "",
    branch: Word = "", since: Time = 0, until: Time = 0,
) -> Any:  # fmt: skip
    """Tokens and money by day, month, session, project, agent, model, branch or five-hour block."""
    args = {"by": by, "project": project, "agent": agent, "session": session, "model": model, "branch": branch}
    return await ask("cost.report", {**args, "since": since, "until": until})


SEARCH_ADDRESSES: Addresses = {
    "memory": memory,
    "memory/told": told,
    "memory/search": memory_search,
    "search": code_search,
    "history": history,
    "cost": cost,
}


# The read side, route by route.

ADDRESSES: dict[str, Addresses] = {
    "sessions": SESSIONS_ADDRESSES,
    "log": LOG_ADDRESSES,
    "projects": PROJECTS_ADDRESSES,
    "search": SEARCH_ADDRESSES,
}


def _register_views(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    routes.web.state.views = Views(web_context.client)
    for tag, addresses in ADDRESSES.items():
        for path, handler in addresses.items():
            how = {"response_model": Answer, "responses": ERRORS, "tags": [tag]}
            routes.add("GET", f"{prefix}/{path}", Permission.READ, handler, **how)


# Health of Holdfast itself.


def _register_health(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    async def health() -> Any:
        """The daemon, the store, jobs and errors."""
        return json_answer(await web_context.client.run(lambda: collect_health(web_context.client)))

    routes.add(
        "GET", f"{prefix}/health", Permission.READ, health, response_model=Answer, responses=ERRORS, tags=["health"]
    )


# Commands that a page may send, each named here. Only the daemon runs them.

ALLOWED_COMMANDS = frozenset(
    (
        "sessions.close", "sessions.reopen", "log.note",
        "gates.satisfy", "gates.approve", "gates.accept", "gates.pause", "gates.resume", "gates.clear",
        "memory.add", "memory.pin", "memory.promote", "memory.keep", "memory.drop", "memory.forget",
        "project.look", "project.add_task", "project.finish_task", "project.dismiss_task",
    )
)  # fmt: skip
"""Nothing that imports or runs a program of the caller's choice; `memory.forget` erases, and its page asks first."""


class Order(BaseModel):
    """A command with its arguments, project and session."""

    model_config = ConfigDict(extra="forbid")

    args: dict[str, Any] = Field(default_factory=dict)
    project: str = Field("", max_length=5000)
    session: str = Field("", max_length=600)


def _register_commands(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    async def command(name: Annotated[str, Path(max_length=100)], order: Order) -> Any:
        """Run one command of a feature. It becomes an event in the log."""
        if name not in ALLOWED_COMMANDS:
            raise CommandRefused(f"{name} cannot be done from a page", fix="Use the command line.")
        request: dict[str, Any] = order.model_dump() | {"name": name}
        return json_answer(await web_context.client.run(lambda: web_context.client.daemon("command", **request)))

    routes.add(
        "POST", f"{prefix}/commands/{{name}}", Permission.WRITE, command,
        response_model=Answer, responses=ERRORS, tags=["commands"],
    )  # fmt: skip


# Server-sent events: the log from a number on.

AfterSeq = Annotated[int | None, Query(ge=0, le=1 << 53, description="The last event that is known already.")]
# A proxy must forward lines at once.
STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def _register_live(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    async def live(
        after: AfterSeq = None,
        session: Annotated[str, Query(max_length=600)] = "",
        kinds: Annotated[str, Query(max_length=600, description="How kinds begin, e.g. `tool. decision.`")] = "",
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> StreamingResponse:
        """Every event after `after` (or the header Last-Event-ID), then each as it is committed."""
        # A reconnecting browser names its last event.
        again = int(last_event_id) if last_event_id and last_event_id.isdecimal() and len(last_event_id) < 17 else after
        wanted_kinds = tuple(k for k in kinds.split() if k != "*")
        return StreamingResponse(
            web_context.live.stream(again, session, wanted_kinds), 200, STREAM_HEADERS, "text/event-stream"
        )

    routes.add("GET", f"{prefix}/live", Permission.READ, live, response_class=StreamingResponse, tags=["live"])


# The server itself: new links, and stopping it. Only for callers that can read the token file.


def _register_server(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    async def link() -> dict[str, str]:
        return {"link": web_context.new_link(), "address": web_context.address}

    async def stop() -> dict[str, bool]:
        asyncio.get_running_loop().call_later(0.05, web_context.stop)
        return {"stopping": True}

    routes.add("POST", f"{prefix}/link", Permission.TOKEN, link, include_in_schema=False)
    routes.add("POST", f"{prefix}/stop", Permission.TOKEN, stop, include_in_schema=False)


PREFIX = "/api/v1"


def register(routes: Routes, web_context: "WebContext", _agents: Mapping[str, Agent]) -> None:
    api_answers.register_error_handlers(routes.web, web_context.log)
    for add_part in (_register_views, _register_health, _register_commands, _register_live, _register_server):
        add_part(routes, web_context, PREFIX)

    async def openapi() -> dict[str, Any]:
        return routes.web.openapi()

    routes.add("GET", f"{PREFIX}/openapi.json", Permission.READ, openapi, include_in_schema=False)
