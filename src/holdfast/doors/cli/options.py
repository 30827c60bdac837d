"""Options that mean the same in every command."""

from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Machine-readable, with a schema version.")]
AgentName = Annotated[
    str, typer.Option("--agent", help="The coding agent, e.g. claude-code. Default: all that are found.")
]
AtProject = Annotated[bool, typer.Option("--project", help="Only in this project (.claude/settings.json here).")]
AtUser = Annotated[bool, typer.Option("--user", help="For all your projects (the default).")]
WithMcp = Annotated[
    bool,
    typer.Option("--mcp/--no-mcp", help="Also register the MCP server with agents that look for servers in a file."),
]
WithStatusline = Annotated[
    bool, typer.Option("--statusline", help="Also a status line where the agent shows one and none is set.")
]
OfProject = Annotated[str, typer.Option("--project", "-p", help="Only of this project (its folder).")]
OfThisProject = Annotated[bool, typer.Option("--here", help="Only of this project.")]
OfAgent = Annotated[str, typer.Option("--agent", help="Only of this agent, e.g. codex.")]
Since = Annotated[str, typer.Option("--since", help="From then on: 2026-11-01, 10:45, 2h, 3d.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change and stop.")]


def since_ms(text: str) -> int:
    """0 for all of time."""
    from holdfast.core.times import now_ms, parse_moment

    return parse_moment(text, now_ms()) if text else 0


# The click that typer uses: newer versions of typer bundle it, older ones import `click`.

if TYPE_CHECKING:
    from typer._click import ClickException, Command, Context, HelpFormatter, Parameter
    from typer._click.shell_completion import CompletionItem
    from typer.core import TyperGroup as Group
else:
    ClickException = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
    _package = ClickException.__module__.rpartition(".")[0]
    _core = import_module(f"{_package}.core")
    Command, Context, Group, Parameter = _core.Command, _core.Context, typer.core.TyperGroup, _core.Parameter
    HelpFormatter = import_module(f"{_package}.formatting").HelpFormatter
    CompletionItem = import_module(f"{_package}.shell_completion").CompletionItem

__all__ = ["ClickException", "Command", "CompletionItem", "Context", "Group", "HelpFormatter", "Parameter"]
