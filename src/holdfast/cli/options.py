"""Options that mean the same in every command."""

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Machine-readable, with a schema version.")]
AgentName = Annotated[
    str, typer.Option("--agent", help="The coding agent, e.g. claude-code. Default: all that are found.")
]
AtProject = Annotated[bool, typer.Option("--project", help="Only in this project (.claude/settings.json here).")]
AtUser = Annotated[bool, typer.Option("--user", help="For all your projects (the default).")]
WithMcp = Annotated[
    bool, typer.Option("--mcp/--no-mcp", help="Also name our MCP server to agents that look for one in a file.")
]
WithStatusline = Annotated[
    bool, typer.Option("--statusline", help="Also a status line where the agent shows one and none is set.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change and stop.")]
