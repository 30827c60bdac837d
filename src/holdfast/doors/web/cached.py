"""Keeps an answer that is slow to find for a few seconds."""

import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Cached(Generic[T]):
    def __init__(self, look: Callable[..., T], seconds: float = 10.0) -> None:
        self._look, self._seconds = look, seconds
        self._known: tuple[float, object, T] | None = None

    def __call__(self, *asked: object, of: object = None) -> T:
        """`of` is what the answer belongs to; for another one it is found again."""
        now, known = time.monotonic(), self._known
        if known is None or now > known[0] or known[1] is not of:
            found = self._look(*asked)
            self._known = known = (time.monotonic() + self._seconds, of, found)
        return known[2]
