"""One way in: a delivery is accepted, journaled, applied, stored and published. See docs/protocol.md and ARCHITECTURE.md."""
