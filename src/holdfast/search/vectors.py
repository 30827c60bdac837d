"""Vectors as they lie in the index: one scale, then half a byte per dimension.

A whole byte finds nothing better (0.640 against 0.639, tests/bench/search.py) and would be a third of the index.
"""

from collections.abc import Iterable
from typing import Any

SCALE = 4
"""Bytes in front of each row."""
STEPS = 7
"""To each side of nought."""


def packed(rows: Any) -> list[bytes]:
    import numpy as np

    scales = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-9).astype(np.float32) / STEPS
    steps = (np.rint(rows / scales) + STEPS).astype(np.uint8)
    if steps.shape[1] % 2:
        steps = np.pad(steps, ((0, 0), (0, 1)), constant_values=STEPS)
    halves = (steps[:, 0::2] << 4) | steps[:, 1::2]
    return [scales[n].tobytes() + halves[n].tobytes() for n in range(len(rows))]


def unpacked(blobs: Iterable[bytes]) -> tuple[Any, Any]:
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
