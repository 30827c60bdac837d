"""Vectors of chunks: packed in the index (one scale, then half a byte per dimension), and unpacked in memory to be compared.

A whole byte finds nothing better (0.640 against 0.639, tests/bench/search.py) and would be a third of the index.
"""

from collections.abc import Iterable
from typing import Any

import apsw

SCALE = 4
"""Bytes in front of each row."""
STEPS = 7
"""To each side of nought."""


def pack_vectors(rows: Any) -> list[bytes]:
    import numpy as np

    scales = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-9).astype(np.float32) / STEPS
    steps = (np.rint(rows / scales) + STEPS).astype(np.uint8)
    if steps.shape[1] % 2:
        steps = np.pad(steps, ((0, 0), (0, 1)), constant_values=STEPS)
    halves = (steps[:, 0::2] << 4) | steps[:, 1::2]
    return [scales[n].tobytes() + halves[n].tobytes() for n in range(len(rows))]


def unpack_vectors(blobs: Iterable[bytes]) -> tuple[Any, Any]:
    """(int8 rows, their scales). A row of an odd length comes back with a nought at its end."""
    import numpy as np

    blobs = list(blobs)
    if not blobs:
        return np.zeros((0, 0), np.int8), np.zeros(0, np.float32)
    whole = np.frombuffer(b"".join(blobs), np.uint8).reshape(-1, len(blobs[0]))
    halves = whole[:, SCALE:]
    rows = np.empty((len(blobs), 2 * halves.shape[1]), np.int8)
    rows[:, 0::2], rows[:, 1::2] = halves >> 4, halves & 15
    rows -= STEPS
    return rows, np.ascontiguousarray(whole[:, :SCALE]).view(np.float32)[:, 0]


BLOCK = 1_024
"""Rows made floats at a time: small enough to stay in the processor's cache."""


class Vectors:
    def __init__(self, model: str) -> None:
        import numpy as np

        self._np, self.model = np, model
        self.ids: Any = np.zeros(0, np.int64)
        self._rows: Any = None
        self._scales: Any = None

    def refresh(self, db: apsw.Connection, model: int) -> None:
        """Ids only grow: what is new lies behind the last one known, what is missing was removed."""
        np = self._np
        now = np.fromiter((r[0] for r in db.execute("select chunk from vectors where model = ?", (model,))), np.int64)
        last = int(self.ids[-1]) if len(self.ids) else 0
        fresh = list(
            db.execute("select chunk, vector from vectors where model = ? and chunk > ? order by chunk", (model, last))
        )
        rows, scales = unpack_vectors(row[1] for row in fresh)
        if self._rows is None or not len(self.ids):
            self.ids, self._rows, self._scales = np.array([r[0] for r in fresh], np.int64), rows, scales
            return
        still_present = np.isin(self.ids, now, assume_unique=True)
        self.ids = np.concatenate([self.ids[still_present], np.array([row[0] for row in fresh], np.int64)])
        if fresh:
            self._rows = np.concatenate([self._rows[still_present], rows])
            self._scales = np.concatenate([self._scales[still_present], scales])
        elif not still_present.all():
            self._rows, self._scales = self._rows[still_present], self._scales[still_present]

    def nearest(self, chunk: int, limit: int) -> list[tuple[int, float]]:
        """Chunks nearest to one of them; nothing where it has no vector yet."""
        at = self._np.flatnonzero(self.ids == chunk)
        if not len(at):
            return []
        row = self._rows[at[0]].astype(self._np.float32)
        return self.best(row / max(1e-9, float(self._np.linalg.norm(row))), limit)

    def best(self, query: Any, limit: int, allowed: Any = None) -> list[tuple[int, float]]:
        np = self._np
        if not len(self.ids):
            return []
        scores = np.empty(len(self.ids), np.float32)
        for at in range(0, len(self.ids), BLOCK):
            scores[at : at + BLOCK] = self._rows[at : at + BLOCK, : len(query)].astype(np.float32) @ query
        scores *= self._scales
        if allowed is not None:
            scores[~np.isin(self.ids, allowed)] = -np.inf
        top = np.argpartition(-scores, min(limit, len(scores) - 1))[:limit]
        top = top[np.argsort(-scores[top], kind="stable")]
        return [(int(self.ids[n]), float(scores[n])) for n in top if np.isfinite(scores[n])]
