"""The MCP server: Holdfast's tools, resources and prompts for agents, over stdio or HTTP.

It implements the protocol itself with light imports, so that it starts quickly; the daemon does the work.
"""
