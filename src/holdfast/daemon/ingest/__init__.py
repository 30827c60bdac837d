"""The ingest path: a delivery is accepted, journaled, applied, stored and published."""
