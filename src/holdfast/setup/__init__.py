"""Getting started: hooks, import of history, diagnosis, the demo."""
