"""From settings to the embedder they name, and from vectors that are there to the one that made them."""

import os

from holdfast.search.embedder import Embedder, NoEmbedder
from holdfast.search.settings import BUILTIN, OFF, IndexSettings


def embedder(settings: IndexSettings) -> Embedder:
    """Raises NoEmbedder, with the reason, where there is none."""
    if settings.embedder == OFF:
        raise NoEmbedder("embeddings are switched off")
    if settings.embedder == BUILTIN:
        from holdfast.search import static

        return static.load()
    return _endpoint(settings, settings.model)


def _endpoint(settings: IndexSettings, model: str) -> Embedder:
    try:
        import numpy  # noqa: F401
    except ImportError:
        raise NoEmbedder("numpy is not installed") from None
    from holdfast.search.endpoint import Endpoint

    key = os.environ.get(settings.key_variable, "") if settings.key_variable else ""
    return Endpoint(settings.embedder, model, key)


def maker(id_: str, settings: IndexSettings) -> tuple[Embedder, str]:
    """(who made the vectors of this id, what to say of it). While another model takes over, the old one answers.

    An address that is no longer in the settings is asked nothing any more: its vectors answer no questions.
    """
    wanted = embedder(settings)
    if wanted.id == id_:
        return wanted, ""
    from holdfast.search import static

    if id_ and id_ == static.id_of():
        return static.load(), _meanwhile(wanted.id, id_)
    address, _, model = wanted.id.partition("#")
    if model and id_.startswith(f"{address}#"):
        return _endpoint(settings, id_.removeprefix(f"{address}#")), _meanwhile(wanted.id, id_)
    raise NoEmbedder(f"vectors of {wanted.id} are not there yet")


def _meanwhile(wanted: str, answering: str) -> str:
    return f"vectors of {wanted} are not there yet, those of {answering} answer until then"
