"""What holds for a project: gates, tasks, leases, its state, its UAT runs."""

from typing import Annotated, Any

from fastapi import Query

from holdfast.web.api.requests import Asked, Cursor, Hundred, Id, Moment, Project, Session, Word, parse_pair_cursor


async def gates(ask: Asked, project: Project = "", session: Session = "", branch: Word = "") -> Any:
    """Each requirement, whether it is met, and why."""
    return await ask("gates.status", {"session": session, "branch": branch}, project, session)


async def tasks(ask: Asked, project: Project = "") -> Any:
    """What needs doing, the most pressing first."""
    return await ask("project.tasks", {}, project)


async def leases(ask: Asked) -> Any:
    """Who holds which shared thing."""
    return await ask("project.leases", {})


async def state(ask: Asked, project: Project = "", at: Moment = "") -> Any:
    """The project's document, now or as it was."""
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


ADDRESSES = {
    "gates": gates,
    "tasks": tasks,
    "leases": leases,
    "state": state,
    "uat": uat,
    "uat/{id}": uat_run,
}
