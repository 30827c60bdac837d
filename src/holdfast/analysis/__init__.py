"""Pure readers of text: shell commands, secrets, search, usage, summaries."""
