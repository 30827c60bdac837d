"""`holdfast mcp`: memory, gates, tasks, state, UAT and code search as tools for agents."""

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command()(mcp)


def mcp(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Streamable HTTP on loopback; 0: stdio.")] = 0,
) -> None:
    """Serve MCP (agents start this themselves). Put it into .mcp.json: {"mcpServers": {"holdfast": …}}."""
    from holdfast.mcp.server import serve

    serve(port)
