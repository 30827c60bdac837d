"""Getting started: hooks installed, history imported, problems found, the recorded demo."""
