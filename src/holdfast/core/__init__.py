"""The pure core of the engine; it imports nothing else of Holdfast."""
