"""What the shell offers after a Tab: ids of sessions, gates, agents, scenarios, projects' tasks.

Values come from the running daemon. Where none runs nothing is offered, and none is started.
"""

from collections.abc import Callable, Iterable
from typing import Any

from holdfast.cli.options import Command, CompletionItem, Context, Group, Parameter

MOST = 50
Source = Callable[[], Iterable[tuple[str, str]]]


def offer_values(path: str, command: Command) -> None:
    """Every parameter whose name and command say what it stands for gets the values it may have."""
    if isinstance(command, Group):
        for name, inner in command.commands.items():
            offer_values(f"{path} {name}", inner)
    for parameter in command.params:
        source = _source(path, parameter.name or "")
        if source:
            parameter._custom_shell_complete = _completer(source)


def _source(path: str, parameter: str) -> Source | None:
    if parameter == "session":
        return sessions
    if parameter == "agent":
        return agents
    if path.startswith("gate ") and parameter in ("name", "names"):
        return gates
    if path.startswith("uat ") and parameter == "scenario":
        return scenarios
    if path.startswith("task ") and parameter in ("id", "task", "ids"):
        return tasks
    return None


def _completer(source: Source) -> Callable[[Context, Parameter, str], list[CompletionItem]]:
    def complete(_context: Context, _parameter: Parameter, incomplete: str) -> list[CompletionItem]:
        matches = (item for item in source() if item[0].startswith(incomplete))
        return [CompletionItem(value, help=label or None) for value, label in matches][:MOST]

    return complete


def sessions() -> Iterable[tuple[str, str]]:
    for row in _view("sessions.list", all=True, limit=MOST).get("sessions", ()):
        yield str(row["alias"]), f"{row['state']}: {' '.join(str(row['title'] or row['prompt']).split())[:60]}"


def gates() -> Iterable[tuple[str, str]]:
    for one in _view("gates.list").get("requirements", ()):
        yield str(one["name"]), str(one["type"])


def agents() -> Iterable[tuple[str, str]]:
    from holdfast.agents import AGENTS

    return ((name, "") for name in AGENTS)


def scenarios() -> Iterable[tuple[str, str]]:
    for one in _view("uat.scenarios").get("scenarios", ()):
        yield str(one["name"]), str(one.get("title") or "")


def tasks() -> Iterable[tuple[str, str]]:
    for one in _view("project.tasks").get("tasks", ()):
        yield str(one["id"]), " ".join(str(one.get("description") or "").split())[:60]


def _view(name: str, **args: Any) -> dict[str, Any]:
    from holdfast import client
    from holdfast.core.errors import HoldfastError

    try:
        answer = client.ask("view", start=False, name=name, args=args)
    except HoldfastError:
        return {}
    return answer if isinstance(answer, dict) else {}
