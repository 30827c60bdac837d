"""Pi: its sessions are imported."""

# It has no hooks of Holdfast's.
