"""`holdfast mcp`: the official SDK over stdio: whoever may start it may ask it, and nobody else."""

from holdfast import __version__
from holdfast.core.errors import HoldfastError
from holdfast.mcp.tools import TOOLS

ABOUT = "State and memory of the coding sessions in this project. Search first; ask for details by id."


class NoMcp(HoldfastError):
    """The MCP server is not installed."""


def serve() -> None:
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        raise NoMcp(fix="Install it with: pip install 'holdfast[mcp]'") from None
    server: MCPServer = MCPServer("holdfast", instructions=ABOUT, version=__version__, log_level="ERROR")
    for tool in TOOLS:
        server.tool(structured_output=False)(tool)
    server.run("stdio")
