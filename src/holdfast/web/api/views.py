"""The read side: each address is one view of a room, with the words that view understands."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Path, Query
from fastapi.responses import Response

from holdfast.core.errors import CommandRefused
from holdfast.web.api.answers import ERRORS, Answer, answered, uncursor
from holdfast.web.routes import Permission, Routes

if TYPE_CHECKING:
    from holdfast.web.server import House

LARGEST = (1 << 53) - 1

Limit = Annotated[int, Query(ge=1, le=500, description="So many at most.")]
Hundred = Annotated[int, Query(ge=1, le=100, description="So many at most.")]
Cursor = Annotated[str, Query(max_length=2000, description="`next` of the page before.")]
Project = Annotated[str, Query(max_length=5000, description="The project's folder.")]
Session = Annotated[str, Query(max_length=600, description="A session's id.")]
Word = Annotated[str, Query(max_length=200)]
Words = Annotated[str, Query(max_length=2000)]
Moment = Annotated[str, Query(max_length=100, description="A time, or the number of an event.")]
Time = Annotated[int, Query(ge=0, le=LARGEST, description="Milliseconds since 1970.")]
Number = Annotated[int, Query(ge=0, le=LARGEST, description="The number of an event.")]
Id = Annotated[str, Path(max_length=600)]
Seq = Annotated[int, Path(ge=1, le=LARGEST)]


class Views:
    """Asks one view and gives its answer, with the page's cursor taken out of it."""

    def __init__(self, house: "House") -> None:
        self._asking = house.asking

    async def __call__(self, name: str, args: Mapping[str, Any], project: str = "", session: str = "") -> Response:
        given = {key: value for key, value in args.items() if value not in ("", None, 0, False)}
        told = await self._asking.run(lambda: self._ask(name, given, project, session))
        return answered(told, told.get("next") if isinstance(told, dict) else None)

    def _ask(self, name: str, args: Mapping[str, Any], project: str, session: str) -> Any:
        try:
            return self._asking.view(name, args, project=project, session=session)
        except (ValueError, OverflowError) as error:
            raise CommandRefused(f"{name} cannot read that: {str(error)[:200]}") from None


def register(routes: Routes, house: "House", prefix: str) -> None:
    ask = Views(house)
    add = _adder(routes, prefix)

    async def sessions(
        every: Annotated[bool, Query(alias="all", description="Also those that ended.")] = False,
        project: Project = "", limit: Limit = 50, cursor: Cursor = "",
    ) -> Any:  # fmt: skip
        """Sessions, the latest activity first."""
        before = _pair(uncursor(cursor)) if cursor else None
        return await ask("sessions.list", {"all": every, "project": project, "limit": limit, "before": before})

    async def who() -> Any:
        """Every live session, those that wait for you first."""
        return await ask("sessions.who", {})

    async def session(id: Id, turns: Annotated[int, Query(ge=1, le=500)] = 10) -> Any:
        """One session whole."""
        return await ask("sessions.show", {"id": id, "turns": turns})

    async def timeline(id: Id, limit: Limit = 100, cursor: Cursor = "") -> Any:
        """What happened in a session, newest page first, each page oldest first."""
        return await ask("sessions.timeline", {"id": id, "limit": limit, "before": _number(cursor)})

    async def rows(
        id: Id, start: Number = 0, before: Number = 0, only: Word = "", q: Word = "", limit: Limit = 200,
    ) -> Any:  # fmt: skip
        """A range of a session's rows: from one on, before one, or the last."""
        asked = {"id": id, "start": start, "before": before, "only": only, "q": q, "limit": limit}
        return await ask("sessions.rows", asked)

    async def marks(id: Id, only: Word = "") -> Any:
        """Where every two-hundredth row is, for lists that scroll."""
        return await ask("sessions.marks", {"id": id, "only": only})

    async def overview(id: Id) -> Any:
        """Turns, lanes and answers of a session at a glance."""
        return await ask("sessions.overview", {"id": id})

    async def events(
        session: Session = "", project: Project = "", kind: Annotated[list[str] | None, Query(max_length=50)] = None,
        tool: Word = "", since: Time = 0, until: Time = 0, after: Number = 0,
        limit: Limit = 100, cursor: Cursor = "",
    ) -> Any:  # fmt: skip
        """The log. Without `after` the newest page first; with it, forwards from there."""
        args = {"session": session, "project": project, "kinds": kind, "tool": tool, "since": since, "until": until}
        page = _page(cursor) if cursor else {"after": after}
        return await ask("log.events", {**args, "limit": limit, **page})

    async def event(seq: Seq) -> Any:
        """One event whole, with the agent's own payload as far as it is kept."""
        return await ask("log.event", {"seq": seq})

    async def gates(project: Project = "", session: Session = "", branch: Word = "") -> Any:
        """Each requirement, whether it is met, and why."""
        return await ask("gates.status", {"session": session, "branch": branch}, project, session)

    async def explain(seq: Seq, project: Project = "") -> Any:
        """Why a call was refused or allowed."""
        return await ask("gates.explain", {"seq": seq}, project)

    async def tasks(project: Project = "") -> Any:
        """What needs doing, the most pressing first."""
        return await ask("project.tasks", {}, project)

    async def leases() -> Any:
        """Who holds which shared thing."""
        return await ask("project.leases", {})

    async def state(project: Project = "", at: Moment = "") -> Any:
        """The project's document, now or as it was."""
        return await ask("project.state", {"at": at}, project)

    async def uat(
        project: Project = "", every: Annotated[bool, Query(alias="all")] = False, limit: Hundred = 20, cursor: Cursor = "",
    ) -> Any:  # fmt: skip
        """UAT runs, newest first."""
        before = _pair(uncursor(cursor)) if cursor else None
        return await ask("uat.list", {"all": every, "limit": limit, "before": before}, project)

    async def uat_run(id: Id, project: Project = "") -> Any:
        """One UAT run with its steps."""
        return await ask("uat.show", {"run": id}, project)

    async def memory(project: Project = "", status: Word = "", everywhere: bool = False, limit: Hundred = 20) -> Any:
        """What is remembered, newest first."""
        return await ask("memory.listed", {"status": status, "everywhere": everywhere, "limit": limit}, project)

    async def told(project: Project = "", session: Session = "", everywhere: bool = False, limit: Hundred = 10) -> Any:
        """What agents were told from memory."""
        args = {"session": session, "everywhere": everywhere, "limit": limit}
        return await ask("memory.injected", args, project)

    async def memory_search(q: Words, project: Project = "", everywhere: bool = False, limit: Hundred = 10) -> Any:
        """What was said, decided, fixed and learned."""
        return await ask("memory.search", {"query": q, "everywhere": everywhere, "limit": limit}, project)

    async def code_search(
        q: Words, project: Project = "", path: Words = "", lang: Word = "", limit: Hundred = 10
    ) -> Any:
        """Places in a project's code, by meaning or by name."""
        return await ask("reindex.search", {"query": q, "path": path, "lang": lang, "limit": limit}, project)

    async def activity(days: Annotated[int, Query(ge=1, le=730)] = 371) -> Any:
        """What was done per day, and in the last thirty by which agent in which project."""
        return await ask("sessions.activity", {"days": days})

    add("sessions", sessions, "sessions")
    add("sessions/who", who, "sessions")
    # An agent may call its session what it likes, also with a slash; so the longer addresses come first.
    add("sessions/{id:path}/timeline", timeline, "sessions")
    add("sessions/{id:path}/rows", rows, "sessions")
    add("sessions/{id:path}/marks", marks, "sessions")
    add("sessions/{id:path}/overview", overview, "sessions")
    add("sessions/{id:path}", session, "sessions")
    add("events", events, "log")
    add("events/{seq}", event, "log")
    add("events/{seq}/why", explain, "gates")
    add("gates", gates, "gates")
    add("tasks", tasks, "project")
    add("leases", leases, "project")
    add("state", state, "project")
    add("uat", uat, "uat")
    add("uat/{id}", uat_run, "uat")
    add("memory", memory, "memory")
    add("memory/told", told, "memory")
    add("memory/search", memory_search, "memory")
    add("search", code_search, "search")
    add("activity", activity, "sessions")


def _adder(routes: Routes, prefix: str) -> Callable[[str, Callable[..., Any], str], None]:
    def add(path: str, handler: Callable[..., Any], tag: str) -> None:
        routes.add(
            "GET", f"{prefix}/{path}", Permission.READ, handler, response_model=Answer, responses=ERRORS, tags=[tag]
        )

    return add


def _pair(found: Any) -> list[Any]:
    if isinstance(found, list) and len(found) == 2 and isinstance(found[0], int) and isinstance(found[1], str):
        return found
    raise _not_ours()


def _number(cursor: str) -> int:
    found = uncursor(cursor) if cursor else 0
    if isinstance(found, int) and 0 <= found <= LARGEST:
        return found
    raise _not_ours()


def _page(cursor: str) -> dict[str, int]:
    found = uncursor(cursor)
    if isinstance(found, dict) and len(found) == 1 and {*found} <= {"before", "after"}:
        (value,) = found.values()
        if isinstance(value, int) and 0 <= value <= LARGEST:
            return found
    raise _not_ours()


def _not_ours() -> CommandRefused:
    return CommandRefused("this cursor is none of ours", fix="Use `next` of the page before.")
