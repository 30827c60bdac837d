"""Code search as a library: words, chunks, embeddings, the index of one checkout and the ranking of its answers.

It knows `core` and nothing else of ours. The room that decides when to index is `features/reindex`; `worker.py` is the
program that room runs. It stands apart from the rooms so that starting that program loads none of them.
"""
