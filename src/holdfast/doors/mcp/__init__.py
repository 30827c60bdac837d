"""The MCP server: what Holdfast knows as tools, resources and prompts for agents, over stdio or HTTP.

It speaks the protocol itself, with light imports only, so that an agent that starts it waits for nothing; the work is
done by the daemon.
"""
