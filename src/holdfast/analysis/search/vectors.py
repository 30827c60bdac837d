"""Packs the vectors of chunks and compares them."""

from collections.abc import Iterable, Sequence
from typing import Any

import apsw

SCALE = 4
"""Bytes before each row."""
STEPS = 7
"""On each side of zero."""


def pack_vectors(rows: Any) -> list[bytes]:
    import numpy as np

    scales = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-9).astype(np.float32) / STEPS
    # Shifted by STEPS so that a value fits an unsigned half byte: 0 to 14.
    steps = (np.rint(rows / scales) + STEPS).astype(np.uint8)
    if steps.shape[1] % 2:
        # STEPS stands for zero, so the padding dimension counts nothing.
        steps = np.pad(steps, ((0, 0), (0, 1)), constant_values=STEPS)
    halves = (steps[:, 0::2] << 4) | steps[:, 1::2]
    return [scales[n].tobytes() + halves[n].tobytes() for n in range(len(rows))]


def unpack_vectors(blobs: Iterable[bytes]) -> tuple[Any, Any]:
    """(int8 rows, their scales). A row of odd length comes back with a zero at its end."""
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
"""Rows converted to floats at a time: few enough for the processor's cache."""


def cut_before_tie(scored: Sequence[tuple[int, float]], limit: int) -> list[tuple[int, float]]:
    """At most so many. Ties that do not all fit are all dropped: their order only reflects the indexing order, and an
    answer must not depend on it."""
    best = list(scored[:limit])
    if len(scored) > limit and (above := [one for one in best if one[1] > scored[limit][1]]):
        return above
    return best


class Vectors:
    def __init__(self, model: str) -> None:
        import numpy as np

        self._np, self.model = np, model
        self.ids: Any = np.zeros(0, np.int64)
        self._rows: Any = None
        self._scales: Any = None

    def refresh(self, db: apsw.Connection, model: int) -> None:
        """Ids only grow: new ones come after the last known, missing ones were removed."""
        np = self._np
        # Only ids for what is known: the vectors themselves are the large part.
        now = np.fromiter((r[0] for r in db.execute("select chunk from vectors where model = ?", (model,))), np.int64)
        last = int(self.ids[-1]) if len(self.ids) else 0
        fresh = list(
            db.execute("select chunk, vector from vectors where model = ? and chunk > ? order by chunk", (model, last))
        )
        rows, scales = unpack_vectors(row[1] for row in fresh)
        if self._rows is None or not len(self.ids):
            self.ids, self._rows, self._scales = np.array([r[0] for r in fresh], np.int64), rows, scales
            return
        # Ids are unique in both, which saves a sort.
        still_present = np.isin(self.ids, now, assume_unique=True)
        self.ids = np.concatenate([self.ids[still_present], np.array([row[0] for row in fresh], np.int64)])
        if fresh:
            self._rows = np.concatenate([self._rows[still_present], rows])
            self._scales = np.concatenate([self._scales[still_present], scales])
        elif not still_present.all():
            self._rows, self._scales = self._rows[still_present], self._scales[still_present]

    def nearest(self, chunk: int, limit: int) -> list[tuple[int, float]]:
        """Chunks nearest to one of them; nothing if it has no vector yet."""
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
            # A row of odd length was padded by one.
            scores[at : at + BLOCK] = self._rows[at : at + BLOCK, : len(query)].astype(np.float32) @ query
        scores *= self._scales
        if allowed is not None:
            scores[~np.isin(self.ids, allowed)] = -np.inf
        # Selects the best without sorting all; only those are sorted. One more than requested shows whether the last is
        # a tie.
        top = np.argpartition(-scores, min(limit + 1, len(scores) - 1))[: limit + 1]
        top = top[np.argsort(-scores[top], kind="stable")]
        # The last digits depend on a row's position in memory.
        best = [(int(self.ids[n]), round(float(scores[n]), 5)) for n in top if np.isfinite(scores[n])]
        return cut_before_tie(best, limit)
