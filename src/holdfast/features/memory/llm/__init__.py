"""A model reads finished turns, for those who switched one on: batched, within a daily budget, never in a hook's way."""
