"""A team: this machine's log forwarded to a server, and what the team decided coming back as local events.

`protocol` and `core` are pure and shared by both sides and by the simulation; `server/` is the server on PostgreSQL;
`forwarder` is the machine's side, a process of its own beside the daemon.
"""
