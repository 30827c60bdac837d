"""The tools: each one view or command of a feature, asked through the daemon's side door. Small answers first."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast import client
from holdfast.core import fence
from holdfast.core.errors import HoldfastError
from holdfast.git_context import locate
from holdfast.mcp.leases import lease_tools
from holdfast.mcp.told import told


def _view(name: str, **args: Any) -> str:
    return told(lambda: client.view(name, **args))


def memory_search(query: str, limit: int = 8, type: str = "", everywhere: bool = False) -> str:
    """First layer: find what was said, decided, fixed and learned in this project. Short lines with ids; then use
    memory_timeline or memory_details with an id. `type`: decision, bug_fix, gotcha, discovery, trade_off, preference,
    session_summary."""
    try:
        found = client.view("memory.search", query=query, limit=limit, type=type, everywhere=everywhere)
    except HoldfastError as error:
        return f"holdfast: {error.message}"
    lines = [f"{hit['id']} {hit['type'] or hit['kind']}: {hit['text']}" for hit in found["hits"]]
    return fence.harmless("\n".join(lines)) or "Nothing found."


def memory_timeline(id: str, limit: int = 5) -> str:
    """Second layer: what was said before and after the thing with this id."""
    return _view("memory.around", id=id, limit=limit)


def memory_details(id: str) -> str:
    """Third layer: one memory whole, with the events it comes from."""
    return _view("memory.show", id=id)


def memory_add(text: str, type: str = "discovery", files: list[str] | None = None) -> str:
    """Remember something. It can be searched at once; other sessions are told it when a person has promoted it."""
    return told(lambda: client.command("memory.add", text=text, type=type, files=files or [], by="agent"))


def gates() -> str:
    """What must be done here before certain actions, and what resolves it."""
    around = locate(str(Path.cwd()))
    return _view("gates.status", branch=around.get("branch", ""), repo=around.get("repo", ""), by="agent")


def tasks() -> str:
    """What needs doing in this project, derived from what is true."""
    return _view("project.tasks")


def state() -> str:
    """The project as it is: branch, changes, tests, gaps."""
    return _view("project.state")


def leases() -> str:
    """Which shared things other sessions hold now."""
    return _view("project.leases")


def uat_runs(limit: int = 5) -> str:
    """The newest UAT runs of this project."""
    return _view("uat.list", limit=limit)


def uat_show(run: str = "") -> str:
    """One UAT run: steps, assertions, problems."""
    return _view("uat.show", run=run)


def code_search(query: str, path: str = "", limit: int = 5) -> str:
    """Places in this code base, by meaning or by name."""
    return _view("reindex.search", query=query, path=path, limit=limit)


def tools(*, alone: bool) -> tuple[Callable[..., str], ...]:
    return (
        memory_search, memory_timeline, memory_details, memory_add, gates, tasks, state, leases,
        *lease_tools(alone=alone), uat_runs, uat_show, code_search,
    )  # fmt: skip
