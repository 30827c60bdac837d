"""Finds words of similar meaning for memory search."""

from contextlib import suppress
from functools import lru_cache

from holdfast.analysis.search import everyday, static_model
from holdfast.analysis.search.embedding_port import NoEmbedder
from holdfast.features.memory.state.words import stem_word

LIKE_LEAST, CODE_LIKE_LEAST = 0.4, 0.6
"""Minimum similarity in the everyday table and in the code model, where co-occurring words are closer."""
MOST = 60
"""Only a few of these will occur in the texts."""


@lru_cache(maxsize=20_000)
def similar_words(word: str) -> tuple[tuple[str, float], ...]:
    """Look up a word in the everyday table, or else in the code model."""
    similar: list[tuple[str, float]] = []
    with suppress(NoEmbedder):
        similar = everyday.load_everyday_words().like(stem_word(word), LIKE_LEAST, MOST)
    if not similar:
        with suppress(NoEmbedder):
            similar = static_model.load_model().like(word, CODE_LIKE_LEAST, MOST)
    stems: dict[str, float] = {}
    for other, likeness in similar:
        stems.setdefault(stem_word(other), likeness)
    return tuple(stems.items())
