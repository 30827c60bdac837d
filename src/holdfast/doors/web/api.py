"""The API: /api/v1, the same views as the command line's --json, described by OpenAPI 3.1."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from fastapi import Header, Path, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from holdfast.core.agent import Agent
from holdfast.core.errors import CommandRefused
from holdfast.doors.web import api_answers
from holdfast.doors.web.api_answers import ERRORS, Answer, json_answer
from holdfast.doors.web.health import collect_health
from holdfast.doors.web.peers import refuse_agents
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


# The read side: a route for each view.

Parameter = tuple[Any, Any]
"""A query or path parameter: its type, and its default."""
REQUIRED = inspect.Parameter.empty
WORD, NUMBER, FLAG = (Word, ""), (Number, 0), (bool, False)
PARAMETERS: dict[str, Parameter] = {
    "id": (Id, REQUIRED), "seq": (Seq, REQUIRED), "q": (Words, REQUIRED), "project": (Project, ""),
    "session": (Session, ""), "at": (Moment, ""), "path": (Words, ""), "file": (Words, ""), "cursor": (Cursor, ""),
    "since": (Time, 0), "until": (Time, 0), "limit": (Limit, 100), "every": (Annotated[bool, Query(alias="all")], False),
    **dict.fromkeys(("agent", "state", "branch", "model", "text", "only", "tool", "lang", "status"), WORD),
    **dict.fromkeys(("min_tokens", "offset", "start", "before", "turn"), NUMBER),
    **dict.fromkeys(("reverse", "everywhere", "failed"), FLAG),
}  # fmt: skip
"""What a parameter is unless its route says otherwise."""


class Read(NamedTuple):
    """A route that shows one view. `takes` names its parameters; `own` has those that differ from PARAMETERS."""

    name: str
    path: str
    view: str
    about: str
    takes: str = ""
    own: Mapping[str, Parameter] = {}
    renamed: Mapping[str, str] = {"every": "all"}
    cursor: Callable[[str], Any] = str
    of_project: bool = False
    """The project says where to ask; otherwise it is an argument of the view."""

    def handler(self) -> Callable[..., Any]:
        async def ask_view(ask: Views, **given: Any) -> Any:
            project = given.pop("project", "") if self.of_project else ""
            if "cursor" in given:
                given["before"] = self.cursor(given.pop("cursor"))
            arguments = {self.renamed.get(name, name): value for name, value in given.items()}
            return await ask(self.view, arguments, project)

        ask_view.__name__, ask_view.__doc__ = self.name, self.about
        # FastAPI reads the parameters of a route from its signature.
        ask_view.__signature__ = inspect.Signature([_parameter("ask", (Asked, REQUIRED)), *self._parameters()])  # type: ignore[attr-defined]
        return ask_view

    def _parameters(self) -> list[inspect.Parameter]:
        return [_parameter(name, self.own.get(name) or PARAMETERS[name]) for name in self.takes.split()]


def _parameter(name: str, parameter: Parameter) -> inspect.Parameter:
    annotation, default = parameter
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


QUERY = {"q": "query"}
LISTED, FOUND = {"limit": (Hundred, 20)}, {"limit": (Hundred, 10)}

SESSIONS = (
    Read("sessions", "sessions", "sessions.list", "Sessions, the latest activity first.", "every project limit cursor",
         {"every": (Annotated[bool, Query(alias="all", description="Also those that ended.")], False), "limit": (Limit, 50)},
         cursor=parse_pair_cursor),
    Read("table", "sessions/table", "sessions.table", "Sessions, filtered and sorted, with the total count.",
         "project agent state branch model text since until min_tokens sort reverse offset limit", {"sort": (Word, "last")}),
    Read("who", "sessions/who", "sessions.who", "Every live session, those that wait for you first."),
    Read("timeline", "sessions/{id:path}/timeline", "sessions.timeline",
         "The timeline of a session: newest page first, each page oldest first.", "id limit cursor",
         cursor=parse_number_cursor),
    Read("rows", "sessions/{id:path}/rows", "sessions.rows", "A range of a session's rows: after one, before one, or the last.",
         "id start before only q limit", {"q": WORD, "limit": (Limit, 200)}),
    Read("marks", "sessions/{id:path}/marks", "sessions.marks",
         "The position of every two-hundredth row, for scrolling lists.", "id only"),
    Read("overview", "sessions/{id:path}/overview", "sessions.overview",
         "Turns, lanes and answers of a session at a glance.", "id"),
    Read("outline", "sessions/{id:path}/outline", "sessions.outline",
         "The turns of a session with their row counts, for folding and scrolling.", "id only turn"),
    Read("moment", "sessions/{id:path}/moment", "sessions.moment", "A session as it was right after one of its events.",
         "id seq start offset only", {"seq": NUMBER}),
    Read("session", "sessions/{id:path}", "sessions.show", "One session in full.", "id turns",
         {"turns": (Annotated[int, Query(ge=1, le=500)], 10)}),
    Read("activity", "activity", "sessions.activity",
         "Activity per day, and in the last thirty days by agent and project.", "days",
         {"days": (Annotated[int, Query(ge=1, le=730)], 371)}),
)  # fmt: skip
"""An id may contain a slash, so the longer routes come first."""

PROJECTS = (
    Read("attention", "attention", "attention.list", "What needs you, the most urgent first.", "project"),
    Read("tasks", "tasks", "project.tasks", "Open tasks, the most pressing first.", "project", of_project=True),
    Read("leases", "leases", "project.leases", "Holders of leases."),
    Read("state", "state", "project.state", "The project's document, now or as of a moment.", "project at", of_project=True),
    Read("uat", "uat", "uat.list", "UAT runs, newest first.", "project every limit cursor", LISTED,
         cursor=parse_pair_cursor, of_project=True),
    Read("uat_run", "uat/{id}", "uat.show", "One UAT run with its steps.", "id project", renamed={"id": "run"},
         of_project=True),
)  # fmt: skip

LOG = (
    Read("event", "events/{seq}", "log.event", "One event in full, with the agent's payload while it is kept.", "seq"),
    Read("explain", "events/{seq}/why", "gates.explain", "Why a call was refused or allowed.", "seq project",
         of_project=True),
)  # fmt: skip

SEARCH = (
    Read("memory", "memory", "memory.listed", "Memories, newest first.", "project status everywhere limit", LISTED,
         of_project=True),
    Read("told", "memory/told", "memory.injected", "What was injected from memory.", "project session everywhere limit",
         FOUND, of_project=True),
    Read("memory_search", "memory/search", "memory.search", "What was said, decided, fixed and learned.",
         "q project everywhere limit", FOUND, QUERY, of_project=True),
    Read("code_search", "search", "reindex.search", "Places in a project's code, by meaning or name.",
         "q project path lang limit", FOUND, QUERY, of_project=True),
    Read("history", "history", "log.history",
         "History of all sessions: prompts, answers, commands, outputs, files, errors.",
         "q project agent session tool file failed since before limit", {"q": (Words, ""), **LISTED}, QUERY),
    Read("cost", "cost", "cost.report",
         "Tokens and money by day, month, session, project, agent, model, branch or five-hour block.",
         "by project agent session model branch since until", {"by": (Word, "day")}),
)  # fmt: skip


async def gates(ask: Asked, project: Project = "", session: Session = "", branch: Word = "") -> Any:
    """Each requirement, whether it is met, and why."""
    return await ask("gates.status", {"session": session, "branch": branch}, project, session)


async def events(
    ask: Asked, session: Session = "", project: Project = "", kind: Annotated[list[str] | None, Query(max_length=50)] = None,
    tool: Word = "", since: Time = 0, until: Time = 0, after: Number = 0,
    limit: Limit = 100, cursor: Cursor = "",
) -> Any:  # fmt: skip
    """The log. Without `after` the newest page first; with it, forward from there."""
    args = {"session": session, "project": project, "kinds": kind, "tool": tool, "since": since, "until": until}
    position = parse_page_cursor(cursor) if cursor else {"after": after}
    return await ask("log.events", {**args, "limit": limit, **position})


ADDRESSES: dict[str, dict[str, Callable[..., Any]]] = {
    "sessions": {one.path: one.handler() for one in SESSIONS},
    "log": {"events": events, **{one.path: one.handler() for one in LOG}},
    "projects": {"gates": gates, **{one.path: one.handler() for one in PROJECTS}},
    "search": {one.path: one.handler() for one in SEARCH},
}
"""Every view by tag and path."""


def _register_views(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    routes.web.state.views = Views(web_context.client)
    for tag, addresses in ADDRESSES.items():
        for path, handler in addresses.items():
            routes.add("GET", f"{prefix}/{path}", Permission.READ, handler, **_documented(tag))


def _documented(tag: str) -> dict[str, Any]:
    return {"response_model": Answer, "responses": ERRORS, "tags": [tag]}


# Health of Holdfast itself.


def _register_health(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    async def health() -> Any:
        """The daemon, the store, jobs and errors."""
        return json_answer(await web_context.client.run(lambda: collect_health(web_context.client)))

    routes.add("GET", f"{prefix}/health", Permission.READ, health, **_documented("health"))


# Commands that a page may send, each named here. Only the daemon runs them.

ALLOWED_COMMANDS = frozenset(
    (
        "sessions.close", "sessions.reopen", "log.note",
        "gates.satisfy", "gates.approve", "gates.accept", "gates.pause", "gates.resume", "gates.clear",
        "memory.add", "memory.pin", "memory.promote", "memory.keep", "memory.drop", "memory.forget",
        "attention.answer", "attention.mute", "project.look", "project.add_task", "project.finish_task", "project.dismiss_task",
        "workspace.undo",
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
    async def command(name: Annotated[str, Path(max_length=100)], order: Order, request: Request) -> Any:
        """Run one command of a feature. It becomes an event in the log."""
        if name not in ALLOWED_COMMANDS:
            raise CommandRefused(f"{name} cannot be done from a page", fix="Use the command line.")
        fields: dict[str, Any] = order.model_dump() | {"name": name}
        peer = request.client

        def run() -> Any:
            if name.startswith("attention."):
                refuse_agents(web_context.client, (peer.host, peer.port) if peer else None, web_context.port)
            return web_context.client.daemon("command", **fields)

        return json_answer(await web_context.client.run(run))

    routes.add("POST", f"{prefix}/commands/{{name}}", Permission.WRITE, command, **_documented("commands"))


# Server-sent events: the log from a number on.

AfterSeq = Annotated[int | None, Query(ge=0, le=1 << 53, description="The last event that is known already.")]
# A proxy must forward lines at once.
STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def _register_live(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    async def live(
        after: AfterSeq = None,
        session: Annotated[str, Query(max_length=600)] = "",
        kinds: Annotated[str, Query(max_length=600, description="How kinds begin, e.g. `tool. decision.`")] = "",
        away: Annotated[bool, Query(description="The page is hidden: nobody looks at it.")] = False,
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> StreamingResponse:
        """Every event after `after` (or the header Last-Event-ID), then each as it is committed."""
        # A reconnecting browser names its last event.
        again = int(last_event_id) if last_event_id and last_event_id.isdecimal() and len(last_event_id) < 17 else after
        wanted_kinds = tuple(k for k in kinds.split() if k != "*")
        return StreamingResponse(
            web_context.live.stream(again, session, wanted_kinds, away=away), 200, STREAM_HEADERS, "text/event-stream"
        )

    routes.add("GET", f"{prefix}/live", Permission.READ, live, response_class=StreamingResponse, tags=["live"])


# The server itself: new links, and stopping it. Only for callers that can read the token file.


def _register_server(routes: Routes, web_context: "WebContext", prefix: str) -> None:
    async def link() -> dict[str, str]:
        return {"link": web_context.new_link(), "address": web_context.address}

    async def stop() -> dict[str, bool]:
        asyncio.get_running_loop().call_later(0.05, web_context.stop)
        return {"stopping": True}

    routes.add("POST", f"{prefix}/link", Permission.TOKEN, link)
    routes.add("POST", f"{prefix}/stop", Permission.TOKEN, stop)


PREFIX = "/api/v1"


def register(routes: Routes, web_context: "WebContext", _agents: Mapping[str, Agent]) -> None:
    api_answers.register_error_handlers(routes.web, web_context.log)
    for add_part in (_register_views, _register_health, _register_commands, _register_live, _register_server):
        add_part(routes, web_context, PREFIX)

    async def openapi() -> dict[str, Any]:
        return routes.web.openapi()

    routes.add("GET", f"{PREFIX}/openapi.json", Permission.READ, openapi)
