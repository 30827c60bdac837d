"""Vectors as they lie in the index: one scale and one signed byte per dimension."""

from collections.abc import Iterable
from typing import Any

SCALE = 4
"""Bytes in front of each row."""


def packed(rows: Any) -> list[bytes]:
    import numpy as np

    scales = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-9).astype(np.float32) / 127
    small = np.rint(rows / scales).astype(np.int8)
    return [scales[n].tobytes() + small[n].tobytes() for n in range(len(rows))]


def unpacked(blobs: Iterable[bytes]) -> tuple[Any, Any]:
    """(int8 rows, their scales)"""
    import numpy as np

    blobs = list(blobs)
    if not blobs:
        return np.zeros((0, 0), np.int8), np.zeros(0, np.float32)
    width = len(blobs[0])
    whole = np.frombuffer(b"".join(blobs), np.uint8).reshape(-1, width)
    return whole[:, SCALE:].view(np.int8), np.ascontiguousarray(whole[:, :SCALE]).view(np.float32)[:, 0]
