"""Pure readers of text: shell commands, secrets, search, statements, token use, summaries. No state."""
