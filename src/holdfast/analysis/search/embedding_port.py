"""The port of models that turn text into vectors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    import numpy as np


class Passage(msgspec.Struct, frozen=True):
    """A piece of text. A model may weigh its name and path separately from its body."""

    body: str
    name: str = ""
    path: str = ""


class Embedder(Protocol):
    id: str
    """Only vectors of the same id can be compared."""

    def documents(self, passages: Sequence[Passage]) -> "np.ndarray":
        """One unit-length float32 row per passage."""
        ...

    def query(self, text: str) -> "np.ndarray": ...


class NoEmbedder(Exception):
    """Why there are no vectors; full text then answers alone, with this note."""
