"""Similarity of everyday words, from a small table of vectors."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from holdfast.analysis.search.embedding_port import NoEmbedder

FOLDER = Path(__file__).with_name("everyday")


class Everyday:
    def __init__(self, folder: Path = FOLDER) -> None:
        import numpy as np

        self._np = np
        self.words = (folder / "words.txt").read_text("utf-8").split("\n")
        self.numbers = {word: number for number, word in enumerate(self.words)}
        rows = np.load(folder / "words.npy").astype(np.float32)
        if len(rows) != len(self.words):
            raise ValueError("the words do not fit their vectors")
        self._rows: Any = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def like(self, word: str, least: float, most: int) -> list[tuple[str, float]]:
        """Similar words, most similar first; none for an unknown word."""
        np, number = self._np, self.numbers.get(word)
        if number is None:
            return []
        likeness = self._rows @ self._rows[number]
        near = np.flatnonzero(likeness > least)
        top = near[np.argsort(-likeness[near], kind="stable")][:most]
        return [(self.words[n], float(likeness[n])) for n in top]


@lru_cache(maxsize=1)
def load_everyday_words() -> Everyday:
    try:
        return Everyday()
    except (ImportError, OSError, ValueError) as error:
        raise NoEmbedder(f"the table of everyday words cannot be read: {error}") from None
