"""Two linear models over hashed features: is a statement lasting, and of which type. Made by `models/statements/train.py`."""

import math
import struct
import zlib
from array import array
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from holdfast.statements.features import BUCKETS

TYPES = ("decision", "rule", "preference", "gotcha", "fact", "trade_off")
WEIGHTS = Path(__file__).with_name("weights.bin")
_MAGIC = b"HFST1"
_HEAD = struct.Struct("<5sIBdd")


class Classifier:
    def __init__(self, lasting: bytes, scale: float, kinds: Sequence[bytes], type_scale: float) -> None:
        self._lasting, self._scale = array("b", lasting), scale
        self._kinds, self._type_scale = [array("b", one) for one in kinds], type_scale

    def probability(self, features: Sequence[int]) -> float:
        """That these words outlast the task."""
        weights = self._lasting
        score = sum([weights[n] for n in features]) * self._scale
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))

    def type_of(self, features: Sequence[int]) -> str:
        scores = [sum([kind[n] for n in features]) for kind in self._kinds]
        return TYPES[max(range(len(scores)), key=scores.__getitem__)]

    def encode(self) -> bytes:
        body = b"".join(one.tobytes() for one in (self._lasting, *self._kinds))
        return _HEAD.pack(_MAGIC, BUCKETS, len(self._kinds), self._scale, self._type_scale) + zlib.compress(body, 9)


def decode_classifier(content: bytes) -> Classifier:
    magic, buckets, kinds, scale, type_scale = _HEAD.unpack_from(content)
    if magic != _MAGIC or buckets != BUCKETS or kinds != len(TYPES):
        raise ValueError(
            "weights of another version of the statement classifier: run models/statements/train.py --write"
        )
    body = zlib.decompress(content[_HEAD.size :])
    parts = [body[n * buckets : (n + 1) * buckets] for n in range(kinds + 1)]
    return Classifier(parts[0], scale, parts[1:], type_scale)


@lru_cache(maxsize=1)
def load_classifier() -> Classifier:
    return decode_classifier(WEIGHTS.read_bytes())
