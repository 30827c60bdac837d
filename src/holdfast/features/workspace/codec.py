"""Encodes a version of a file compactly, as a difference to an earlier one where that is shorter."""

import struct
import zlib
from collections.abc import Callable

WINDOW = 32 * 1024
"""zlib looks back this far."""
LEVEL = 1
FULL, DELTA = b"F", b"D"
# Lengths of the common beginning and of the common end.
_HEAD = struct.Struct(">QQ")
# A difference is worth another read only if it saves at least this share.
_WORTH = 0.75

Fetch = Callable[[], bytes]


def encode(content: bytes, base: bytes | None) -> bytes:
    full = FULL + zlib.compress(content, LEVEL)
    if not base:
        return full
    delta = _encode_delta(content, base)
    return delta if len(delta) < len(full) * _WORTH else full


def decode(stored: bytes, base: Fetch) -> bytes:
    if stored[:1] == FULL:
        return zlib.decompress(stored[1:])
    start, end = _HEAD.unpack_from(stored, 1)
    before = base()
    middle = before[start : len(before) - end]
    unpack = zlib.decompressobj(zdict=middle[-WINDOW:]) if middle else zlib.decompressobj()
    changed = unpack.decompress(stored[1 + _HEAD.size :]) + unpack.flush()
    return before[:start] + changed + before[len(before) - end :]


def is_delta(stored: bytes) -> bool:
    return stored[:1] == DELTA


def _encode_delta(content: bytes, base: bytes) -> bytes:
    most = min(len(content), len(base))
    start = _common(lambda n: content[:n] == base[:n], most)
    end = _common(lambda n: content[len(content) - n :] == base[len(base) - n :], most - start)
    middle = base[start : len(base) - end]
    pack = zlib.compressobj(LEVEL, zdict=middle[-WINDOW:]) if middle else zlib.compressobj(LEVEL)
    changed = pack.compress(content[start : len(content) - end]) + pack.flush()
    return DELTA + _HEAD.pack(start, end) + changed


def _common(equal: Callable[[int], bool], most: int) -> int:
    """The largest n for which the first (or last) n bytes are equal."""
    low, high = 0, most
    while low < high:
        n = (low + high + 1) // 2
        if equal(n):
            low = n
        else:
            high = n - 1
    return low
