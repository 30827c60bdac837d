"""`holdfast mcp`: memory, gates, tasks, state, leases, UAT and code search as tools for agents."""

from typing import Annotated

import typer

from holdfast import client
from holdfast.cli import render


def register(app: typer.Typer) -> None:
    app.command()(mcp)


def mcp(
    http: Annotated[bool, typer.Option("--http", help="Over streamable HTTP on 127.0.0.1 instead of stdio.")] = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="With --http; 0 = any free one.")] = 0,
) -> None:
    """Serve MCP on stdio; agents start it themselves (`holdfast install` tells them how)."""
    from holdfast.mcp import server

    if not http:
        server.serve()
        return
    from holdfast.web import keys

    client.start_daemon()
    place = client.paths()
    server.serve_http(port, keys.secret(place), lambda address: _tell(address, str(place.run / "http.token")))


def _tell(address: str, token_file: str) -> None:
    render.out.print(f"Listening on {address} for {client.project()} (Ctrl-C ends it)")
    render.out.print(f'Header: "Authorization: Bearer …" with what is in {token_file}')
