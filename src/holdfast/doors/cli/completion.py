"""Shell completion: ids of sessions, gates, agents, scenarios and tasks, from the running daemon."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from holdfast.doors.cli.options import Command, CompletionItem, Context, Group, Parameter

MOST = 50
Row = Mapping[str, Any]
Source = Callable[[], Iterable[tuple[str, str]]]


class Values(NamedTuple):
    """The rows of a view that are the values of a parameter, in commands that begin so."""

    command: str
    parameters: tuple[str, ...]
    view: str
    rows: str
    value: str
    label: Callable[[Row], str]
    args: Mapping[str, Any] = {}

    def offered(self) -> Iterable[tuple[str, str]]:
        for row in _view_or_empty(self.view, self.args).get(self.rows, ()):
            yield str(row[self.value]), self.label(row)


OFFERED = (
    Values("", ("session",), "sessions.list", "sessions", "alias",
           lambda row: f"{row['state']}: {_short_text(row['title'] or row['prompt'])}", {"all": True, "limit": MOST}),
    Values("gate ", ("name", "names"), "gates.list", "requirements", "name", lambda row: str(row["type"])),
    Values("uat ", ("scenario",), "uat.scenarios", "scenarios", "name", lambda row: str(row.get("title") or "")),
    Values("task ", ("id", "task", "ids"), "project.tasks", "tasks", "id",
           lambda row: _short_text(row.get("description") or "")),
)  # fmt: skip


def offer_values(path: str, command: Command) -> None:
    """Add completion to every parameter whose name and command identify its values."""
    if isinstance(command, Group):
        for name, inner in command.commands.items():
            offer_values(f"{path} {name}", inner)
    for parameter in command.params:
        source = _value_source(path, parameter.name or "")
        if source:
            # Typer has no public way to set it on an existing command.
            parameter._custom_shell_complete = _make_completer(source)


def _value_source(path: str, parameter: str) -> Source | None:
    if parameter == "agent":
        return _agent_values
    return next((one.offered for one in OFFERED if parameter in one.parameters and path.startswith(one.command)), None)


def _make_completer(source: Source) -> Callable[[Context, Parameter, str], list[CompletionItem]]:
    def complete(_context: Context, _parameter: Parameter, incomplete: str) -> list[CompletionItem]:
        matches = (item for item in source() if item[0].startswith(incomplete))
        return [CompletionItem(value, help=label or None) for value, label in matches][:MOST]

    return complete


def _agent_values() -> Iterable[tuple[str, str]]:
    from holdfast.agents import AGENTS

    return ((name, "") for name in AGENTS)


def _short_text(text: Any) -> str:
    return " ".join(str(text).split())[:60]


def _view_or_empty(name: str, args: Mapping[str, Any]) -> dict[str, Any]:
    from holdfast import client
    from holdfast.core.errors import HoldfastError

    try:
        # Never starts a daemon: a Tab must have no effects.
        answer = client.ask_daemon("view", start=False, name=name, args=dict(args))
    except HoldfastError:
        return {}
    return answer if isinstance(answer, dict) else {}
