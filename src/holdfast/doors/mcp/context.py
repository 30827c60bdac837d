"""One call of an agent: the caller, cancellation, progress, and the shape of answers."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from holdfast import client
from holdfast.core.errors import CommandRefused

Report = Callable[[float, float, str], None]


class CallCancelled(Exception):
    """The agent cancelled the call; nobody reads an answer."""


class Caller(msgspec.Struct, frozen=True):
    """The other end of a connection. `pid` is 0 where several agents share it and it must be given."""

    project: str
    session: str = ""
    pid: int = 0


class Context(msgspec.Struct):
    """`undo` reverts the call if it is cancelled after it ended."""

    caller: Caller
    report: Report
    cancelled: threading.Event = msgspec.field(default_factory=threading.Event)
    undo: Callable[[], None] | None = None

    def view(self, name: str, **args: Any) -> Any:
        return self._ask_daemon("view", name, args)

    def command(self, name: str, **args: Any) -> Any:
        return self._ask_daemon("command", name, args)

    def wait(self, seconds: float) -> None:
        if self.cancelled.wait(seconds):
            raise CallCancelled

    def _ask_daemon(self, op: str, name: str, args: dict[str, Any]) -> Any:
        self.wait(0)
        return client.ask_daemon(op, name=name, args=args, project=self.caller.project, session=self.caller.session)


def resolve_project(named: str, context: Context) -> str:
    """The root folder of a project, by path or name."""
    projects = context.view("project.list")["projects"]
    if named.startswith("/"):
        from holdfast.core.git_context import locate

        root = locate(named).get("root", named)
        if not Path(root).is_dir() and root not in (one["root"] for one in projects):
            raise CommandRefused(f"there is no folder {named!r}, and no project of that path is known")
        return root
    roots = [one["root"] for one in projects if named in (one["name"], one["root"].rpartition("/")[2])]
    if len(roots) != 1:
        names = ", ".join(one["root"] for one in projects[:20]) or "none yet"
        raise CommandRefused(f"{len(roots)} projects are called {named!r}", fix=f"Give a path. Known: {names}")
    return str(roots[0])
