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
    if not http:
        from holdfast.mcp import stdio

        stdio.serve()
        return
    from holdfast.mcp import http as http_server
    from holdfast.web import keys

    client.start_daemon()
    paths = client.paths()
    token, sock = keys.secret(paths), http_server.listening(port)
    _tell(f"http://{http_server.HOST}:{sock.getsockname()[1]}{http_server.PATH}", str(paths.run / "http.token"))
    http_server.serve(sock, token, client.project())


def _tell(address: str, token_file: str) -> None:
    render.out.print(f"Listening on {address} for {client.project()} (Ctrl-C ends it)")
    render.out.print(f'Header: "Authorization: Bearer …" with what is in {token_file}')
