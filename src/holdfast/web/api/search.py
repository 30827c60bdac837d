"""Memory, code and history."""

from typing import Any

from holdfast.web.api.requests import Asked, Hundred, Number, Project, Session, Time, Word, Words


async def memory(
    ask: Asked, project: Project = "", status: Word = "", everywhere: bool = False, limit: Hundred = 20
) -> Any:
    """What is remembered, newest first."""
    return await ask("memory.listed", {"status": status, "everywhere": everywhere, "limit": limit}, project)


async def told(
    ask: Asked, project: Project = "", session: Session = "", everywhere: bool = False, limit: Hundred = 10
) -> Any:
    """What agents were told from memory."""
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
    """Places in a project's code, by meaning or by name."""
    return await ask("reindex.search", {"query": q, "path": path, "lang": lang, "limit": limit}, project)


async def history(
    ask: Asked, q: Words = "", project: Project = "", agent: Word = "", session: Session = "", tool: Word = "",
    file: Words = "", failed: bool = False, since: Time = 0, before: Number = 0, limit: Hundred = 20,
) -> Any:  # fmt: skip
    """What happened in all sessions: prompts, answers, commands, outputs, files, errors."""
    args = {"query": q, "project": project, "agent": agent, "session": session, "tool": tool, "file": file}
    return await ask("log.history", {**args, "failed": failed, "since": since, "before": before, "limit": limit})


async def cost(
    ask: Asked, by: Word = "day", project: Project = "", agent: Word = "", session: Session = "", model: Word = "",
    branch: Word = "", since: Time = 0, until: Time = 0,
) -> Any:  # fmt: skip
    """Tokens and money by day, month, session, project, agent, model, branch or five-hour block."""
    args = {"by": by, "project": project, "agent": agent, "session": session, "model": model, "branch": branch}
    return await ask("cost.report", {**args, "since": since, "until": until})


ADDRESSES = {
    "memory": memory,
    "memory/told": told,
    "memory/search": memory_search,
    "search": code_search,
    "history": history,
    "cost": cost,
}
