"""Chooses the model that turns text into vectors."""

import os

from holdfast.analysis.search.embedding_port import Embedder, NoEmbedder
from holdfast.analysis.search.endpoint import Endpoint
from holdfast.analysis.search.settings import BUILTIN, OFF, IndexSettings
from holdfast.analysis.search.static_model import id_of, load_model


def choose_embedder(settings: IndexSettings) -> Embedder:
    """Raises NoEmbedder with the reason."""
    if settings.embedder == OFF:
        raise NoEmbedder("embeddings are switched off")
    if settings.embedder == BUILTIN:
        return load_model()
    return _make_endpoint(settings, settings.model)


def _make_endpoint(settings: IndexSettings, model: str) -> Embedder:
    try:
        # Reported here, instead of failing in the middle of a run.
        import numpy  # noqa: F401
    except ImportError:
        raise NoEmbedder("numpy is not installed") from None

    key = os.environ.get(settings.key_variable, "") if settings.key_variable else ""
    return Endpoint(settings.embedder, model, key)


def embedder_of(id_: str, settings: IndexSettings) -> tuple[Embedder, str]:
    """Return (the embedder of this id, a note). While another model takes over, the old one answers.

    An address that is no longer configured is not used: its vectors answer no queries.
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
