"""`holdfast mcp`: memory, gates, tasks, state, UAT and code search as tools for agents."""

import typer


def register(app: typer.Typer) -> None:
    app.command()(mcp)


def mcp() -> None:
    """Serve MCP on stdio; agents start it themselves (docs/features/memory.md says how)."""
    from holdfast.mcp.server import serve

    serve()
