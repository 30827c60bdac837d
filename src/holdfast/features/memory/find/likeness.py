"""Words of like meaning, by the vectors of the search library's own small model. Without that model: none."""

from collections.abc import Sequence
from typing import Any

from holdfast.features.memory.find.ranking import LIKE_LEAST, MOST_ALIKE, Alike
from holdfast.search import static
from holdfast.search.embedder import Embedder, NoEmbedder, Passage

ASKED_BEFORE = 5_000


class Likeness:
    """Both words are taken as text: then the vectors lie in one space, and a word is nearest to itself."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._rows: Any = None
        self._asked: dict[str, list[tuple[int, float]]] = {}

    def __call__(self, word: str, vocabulary: Sequence[str]) -> list[tuple[int, float]]:
        """The vocabulary only ever grows at its end."""
        import numpy as np

        known = 0 if self._rows is None else len(self._rows)
        if known != len(vocabulary):
            fresh = self._embedder.documents([Passage(body=one) for one in vocabulary[known:]])
            self._rows = fresh if known == 0 else np.concatenate([self._rows, fresh])
            self._asked.clear()
        if word not in self._asked:
            likeness = self._rows @ self._embedder.documents([Passage(body=word)])[0]
            top = np.argsort(-likeness)[: MOST_ALIKE + 1]
            if len(self._asked) > ASKED_BEFORE:
                self._asked.clear()
            self._asked[word] = [(int(n), float(likeness[n])) for n in top if likeness[n] > LIKE_LEAST]
        return self._asked[word]


def alike() -> Alike | None:
    try:
        return Likeness(static.load())
    except NoEmbedder:
        return None
