"""What turns text into vectors: the port."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

# The port to whatever turns text into vectors, and the choice among those by the settings.

if TYPE_CHECKING:
    import numpy as np

if TYPE_CHECKING:
    import numpy as np


class Passage(msgspec.Struct, frozen=True):
    """What is known of a piece of text. A model may weigh its name and its path apart from its body."""

    body: str
    name: str = ""
    path: str = ""


class Embedder(Protocol):
    id: str
    """Vectors of one id can be compared with one another, and with no others."""

    def documents(self, passages: Sequence[Passage]) -> "np.ndarray":
        """One row of length 1 for each, float32."""
        ...

    def query(self, text: str) -> "np.ndarray": ...


class NoEmbedder(Exception):
    """Why there are no vectors: full text answers alone and says this."""
