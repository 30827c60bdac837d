"""Code search as a library: words, chunks, embeddings, the index of one checkout and the ranking of its answers.

It knows `core` and nothing else of ours. The feature that decides when to index is `features/reindex`; `worker.py` is the
program that feature runs. It stands apart from the features so that starting that program loads none of them.
"""

import os

# One thread for numpy, said before it is loaded: a question takes milliseconds, and on a busy machine a second thread
# that waits for a free core makes it ten times slower.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
