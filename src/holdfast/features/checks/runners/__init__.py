"""One small description for each check tool."""
