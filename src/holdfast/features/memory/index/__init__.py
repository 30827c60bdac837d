"""Finding memories: an index in the daemon's memory, made from the log and kept in step with it."""
