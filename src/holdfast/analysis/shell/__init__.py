"""What a shell command does: parsed whole, followed along every way it can take."""
