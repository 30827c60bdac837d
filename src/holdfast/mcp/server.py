"""`holdfast mcp`: the official SDK. Over stdio whoever may start it may ask it, and nobody else; over HTTP see `http`."""

from collections.abc import Callable
from typing import Any

from holdfast import __version__
from holdfast.core.errors import HoldfastError
from holdfast.mcp.tools import tools

ABOUT = "State and memory of the coding sessions in this project. Search first; ask for details by id."


class NoMcp(HoldfastError):
    """The MCP server is not installed."""


def serve() -> None:
    _server(alone=True).run("stdio")


def serve_http(port: int, token: str, tell: Callable[[str], None]) -> None:
    from holdfast.mcp import http

    server = _server(alone=False)
    sock = http.listening(port)
    tell(f"http://{http.HOST}:{sock.getsockname()[1]}{http.PATH}")
    http.serve(server, sock, token)


def _server(*, alone: bool) -> Any:
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        raise NoMcp(fix="Install it with: pip install 'holdfast[mcp]'") from None
    server: MCPServer = MCPServer("holdfast", instructions=ABOUT, version=__version__, log_level="ERROR")
    for tool in tools(alone=alone):
        server.tool(structured_output=False)(tool)
    return server
