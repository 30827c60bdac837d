"""Code search as a library: words, chunks, embeddings, the index of a checkout and the ranking of answers."""

# It depends on `core` only. `features/reindex` decides when to index and runs `worker.py`, which loads no features.

import os

# One thread for numpy, set before it is loaded: a query takes milliseconds, and on a busy machine a second thread that
# waits for a core makes it ten times slower.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
