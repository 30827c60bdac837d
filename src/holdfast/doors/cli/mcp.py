"""`holdfast mcp`: Holdfast's tools for agents."""

from typing import Annotated

import typer

from holdfast import client
from holdfast.doors.cli import render


def mcp(
    http: Annotated[bool, typer.Option("--http", help="Over streamable HTTP on 127.0.0.1 instead of stdio.")] = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="With --http; 0 = any free one.")] = 0,
) -> None:
    """Serve MCP on stdio. Agents start it themselves (see `holdfast install`)."""
    if not http:
        from holdfast.doors.mcp.stdio import serve_stdio

        serve_stdio()
        return
    from holdfast.doors.mcp import http as http_server
    from holdfast.doors.web import keys

    client.start_daemon()
    paths = client.state_paths()
    token, sock = keys.read_or_create_token(paths), http_server.listen_on_port(port)
    _show_mcp_address(
        f"http://{http_server.HOST}:{sock.getsockname()[1]}{http_server.PATH}", str(paths.run / "http.token")
    )
    http_server.serve_http(sock, token, client.current_project())


def _show_mcp_address(address: str, token_file: str) -> None:
    render.out.print(f"Listening on {address} for {client.current_project()} (Ctrl-C ends it)")
    render.out.print(f'Header: "Authorization: Bearer …" with what is in {token_file}')
