"""The MCP door: the daemon's views as tools for agents. It has no logic of its own."""
