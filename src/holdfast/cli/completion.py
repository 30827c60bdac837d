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
        source = _value_source(path, parameter.name or "")
        if source:
            # Typer has no public way to set it after a command was made.
            parameter._custom_shell_complete = _make_completer(source)


def _value_source(path: str, parameter: str) -> Source | None:
    if parameter == "session":
        return session_values
    if parameter == "agent":
        return agent_values
    if path.startswith("gate ") and parameter in ("name", "names"):
        return gate_values
    if path.startswith("uat ") and parameter == "scenario":
        return scenario_values
    if path.startswith("task ") and parameter in ("id", "task", "ids"):
        return task_values
    return None


def _make_completer(source: Source) -> Callable[[Context, Parameter, str], list[CompletionItem]]:
    def complete(_context: Context, _parameter: Parameter, incomplete: str) -> list[CompletionItem]:
        matches = (item for item in source() if item[0].startswith(incomplete))
        return [CompletionItem(value, help=label or None) for value, label in matches][:MOST]

    return complete


def session_values() -> Iterable[tuple[str, str]]:
    for row in _view_or_empty("sessions.list", all=True, limit=MOST).get("sessions", ()):
        yield str(row["alias"]), f"{row['state']}: {' '.join(str(row['title'] or row['prompt']).split())[:60]}"


def gate_values() -> Iterable[tuple[str, str]]:
    for one in _view_or_empty("gates.list").get("requirements", ()):
        yield str(one["name"]), str(one["type"])


def agent_values() -> Iterable[tuple[str, str]]:
    from holdfast.agents import AGENTS

    return ((name, "") for name in AGENTS)


def scenario_values() -> Iterable[tuple[str, str]]:
    for one in _view_or_empty("uat.scenarios").get("scenarios", ()):
        yield str(one["name"]), str(one.get("title") or "")


def task_values() -> Iterable[tuple[str, str]]:
    for one in _view_or_empty("project.tasks").get("tasks", ()):
        yield str(one["id"]), " ".join(str(one.get("description") or "").split())[:60]


def _view_or_empty(name: str, **args: Any) -> dict[str, Any]:
    from holdfast import client
    from holdfast.core.errors import HoldfastError

    try:
        # Never starts a daemon: a Tab must not have effects.
        answer = client.ask_daemon("view", start=False, name=name, args=args)
    except HoldfastError:
        return {}
    return answer if isinstance(answer, dict) else {}
