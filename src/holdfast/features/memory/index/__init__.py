"""The search index of memory."""
