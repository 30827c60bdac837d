"""Turns text into vectors, with the model that the settings choose."""

import os
from typing import TYPE_CHECKING

# The port to whatever turns text into vectors, and the choice among those by the settings.
from holdfast.analysis.search.embedding_port import Embedder, NoEmbedder
from holdfast.analysis.search.endpoint import Endpoint
from holdfast.analysis.search.settings import BUILTIN, OFF, IndexSettings
from holdfast.analysis.search.static_model import id_of, load_model

if TYPE_CHECKING:
    pass


def choose_embedder(settings: IndexSettings) -> Embedder:
    """Raises NoEmbedder, with the reason, where there is none."""
    if settings.embedder == OFF:
        raise NoEmbedder("embeddings are switched off")
    if settings.embedder == BUILTIN:
        return load_model()
    return _make_endpoint(settings, settings.model)


def _make_endpoint(settings: IndexSettings, model: str) -> Embedder:
    try:
        # Said here, with a reason, instead of failing in the middle of a run.
        import numpy  # noqa: F401
    except ImportError:
        raise NoEmbedder("numpy is not installed") from None

    key = os.environ.get(settings.key_variable, "") if settings.key_variable else ""
    return Endpoint(settings.embedder, model, key)


def embedder_of(id_: str, settings: IndexSettings) -> tuple[Embedder, str]:
    """(who made the vectors of this id, what to say of it). While another model takes over, the old one answers.

    An address that is no longer in the settings is asked nothing any more: its vectors answer no questions.
    """
    configured = choose_embedder(settings)
    if configured.id == id_:
        return configured, ""

    if id_ and id_ == id_of():
        return load_model(), _meanwhile_note(configured.id, id_)
    # An endpoint's id is its address, "#" and the model.
    address, _, model = configured.id.partition("#")
    if model and id_.startswith(f"{address}#"):
        return _make_endpoint(settings, id_.removeprefix(f"{address}#")), _meanwhile_note(configured.id, id_)
    raise NoEmbedder(f"vectors of {configured.id} are not there yet")


def _meanwhile_note(configured_id: str, answering: str) -> str:
    return f"vectors of {configured_id} are not there yet, those of {answering} answer until then"
