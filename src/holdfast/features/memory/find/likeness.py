"""Words of like meaning (`delete` and `remove`), by the vectors of the search library's own small model of code.

Without that model there are none. It knows programmers' words; everyday ones it hardly knows (tests/bench/memory.py).
"""

from collections.abc import Sequence
from typing import Any

from holdfast.features.memory.find.ranking import LIKE_LEAST, MOST_ALIKE, Alike
from holdfast.search import static
from holdfast.search.embedder import Embedder, NoEmbedder

ASKED_BEFORE = 5_000
MOST_COMPARED = 4_000
"""Of the vocabulary, the first so many: the common words come early, and a search stays quick."""


class Likeness:
    """Both words are taken as questions: then their vectors lie in one space, and a word is nearest to itself."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._rows: list[Any] = []
        self._matrix: Any = None
        self._asked: dict[str, list[tuple[int, float]]] = {}

    def __call__(self, word: str, vocabulary: Sequence[str]) -> list[tuple[int, float]]:
        """The vocabulary only ever grows at its end."""
        import numpy as np

        wanted = min(len(vocabulary), MOST_COMPARED)
        if len(self._rows) < wanted:
            self._rows += [self._embedder.query(one) for one in vocabulary[len(self._rows) : wanted]]
            self._matrix = np.stack(self._rows)
            self._asked.clear()
        if word not in self._asked:
            if len(self._asked) > ASKED_BEFORE:
                self._asked.clear()
            likeness = self._matrix @ self._embedder.query(word)
            near = np.flatnonzero(likeness > LIKE_LEAST)
            top = near[np.argsort(-likeness[near], kind="stable")][: MOST_ALIKE + 1]
            self._asked[word] = [(int(n), float(likeness[n])) for n in top]
        return self._asked[word]


def alike() -> Alike | None:
    try:
        return Likeness(static.load())
    except NoEmbedder:
        return None
