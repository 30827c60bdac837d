"""Memory and code."""

from typing import Any

from holdfast.web.api.asked import Asked, Hundred, Project, Session, Word, Words


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


ADDRESSES = {
    "memory": memory,
    "memory/told": told,
    "memory/search": memory_search,
    "search": code_search,
}
