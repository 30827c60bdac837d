"""The index of one checkout: a SQLite file of its own, always local, and nothing that could not be made again."""
