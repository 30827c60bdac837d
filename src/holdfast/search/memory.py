"""The vectors of one index in memory, kept in step with its file."""

from typing import Any

import apsw

from holdfast.search.vectors import unpacked

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
        rows, scales = unpacked(row[1] for row in fresh)
        if self._rows is None or not len(self.ids):
            self.ids, self._rows, self._scales = np.array([r[0] for r in fresh], np.int64), rows, scales
            return
        kept = np.isin(self.ids, now, assume_unique=True)
        self.ids = np.concatenate([self.ids[kept], np.array([row[0] for row in fresh], np.int64)])
        if fresh:
            self._rows = np.concatenate([self._rows[kept], rows])
            self._scales = np.concatenate([self._scales[kept], scales])
        elif not kept.all():
            self._rows, self._scales = self._rows[kept], self._scales[kept]

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
