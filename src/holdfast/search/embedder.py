"""The port to whatever turns text into vectors, and the choice among those by the settings."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from holdfast.search.settings import BUILTIN, OFF, IndexSettings

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


def choose_embedder(settings: IndexSettings) -> Embedder:
    """Raises NoEmbedder, with the reason, where there is none."""
    if settings.embedder == OFF:
        raise NoEmbedder("embeddings are switched off")
    if settings.embedder == BUILTIN:
        from holdfast.search import static_model

        return static_model.load()
    return _endpoint(settings, settings.model)


def _endpoint(settings: IndexSettings, model: str) -> Embedder:
    try:
        import numpy  # noqa: F401
    except ImportError:
        raise NoEmbedder("numpy is not installed") from None
    from holdfast.search.endpoint import Endpoint

    key = os.environ.get(settings.key_variable, "") if settings.key_variable else ""
    return Endpoint(settings.embedder, model, key)


def embedder_of(id_: str, settings: IndexSettings) -> tuple[Embedder, str]:
    """(who made the vectors of this id, what to say of it). While another model takes over, the old one answers.

    An address that is no longer in the settings is asked nothing any more: its vectors answer no questions.
    """
    wanted = choose_embedder(settings)
    if wanted.id == id_:
        return wanted, ""
    from holdfast.search import static_model

    if id_ and id_ == static_model.id_of():
        return static_model.load(), _meanwhile(wanted.id, id_)
    address, _, model = wanted.id.partition("#")
    if model and id_.startswith(f"{address}#"):
        return _endpoint(settings, id_.removeprefix(f"{address}#")), _meanwhile(wanted.id, id_)
    raise NoEmbedder(f"vectors of {wanted.id} are not there yet")


def _meanwhile(wanted: str, answering: str) -> str:
    return f"vectors of {wanted} are not there yet, those of {answering} answer until then"
