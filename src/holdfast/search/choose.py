"""From settings to the embedder they name."""

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
    try:
        import numpy  # noqa: F401
    except ImportError:
        raise NoEmbedder("numpy is not installed") from None
    from holdfast.search.endpoint import Endpoint

    return Endpoint(
        settings.embedder, settings.model, os.environ.get(settings.key_variable, "") if settings.key_variable else ""
    )
