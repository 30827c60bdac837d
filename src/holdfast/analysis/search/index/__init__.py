"""The index of one checkout: a local SQLite file that can always be rebuilt."""
