"""The HTTP interface, on loopback only; requests take the same path as hooks."""
