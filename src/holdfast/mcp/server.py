"""`holdfast mcp`: the official SDK over stdio (or streamable HTTP on loopback)."""

from holdfast import __version__
from holdfast.core.errors import HoldfastError
from holdfast.mcp.tools import TOOLS

ABOUT = "State and memory of the coding sessions in this project. Search first; ask for details by id."
LOOPBACK = "127.0.0.1"


class NoMcp(HoldfastError):
    """The MCP server is not installed."""


def serve(port: int = 0) -> None:
    """Stdio unless a port is named; HTTP listens on loopback alone."""
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        raise NoMcp(fix="Install it with: pip install 'holdfast[mcp]'") from None
    server: MCPServer = MCPServer("holdfast", instructions=ABOUT, version=__version__, log_level="ERROR")
    for tool in TOOLS:
        server.tool(structured_output=False)(tool)
    if port:
        server.run("streamable-http", host=LOOPBACK, port=port)
    else:
        server.run("stdio")
