"""Team work: this machine's log forwarded to a server, and the team's decisions returned as local events."""

# `protocol` and `core` are pure and shared by both sides and the simulation; `server/` runs on PostgreSQL; `forwarder`
# is the machine's side, a separate process next to the daemon.
