"""The interfaces for people and tools: command line, dashboard, HTTP API, MCP. They show views and send commands."""
