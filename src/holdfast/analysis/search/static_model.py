"""The bundled embedding model: a vector is a weighted sum over words."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from holdfast.analysis.search.embedding_port import NoEmbedder, Passage
from holdfast.analysis.search.tokens import find_identifiers, identifier_parts

FOLDER = Path(__file__).with_name("model")
FIELDS = ("body", "name", "path")
BATCH = 512
MOST_WORDS = 4_000
"""Distinct words of a passage that are used."""
MOST_COMPARED = 8_000
"""The commonest words of the vocabulary, with which a word is compared."""


def id_of(folder: Path = FOLDER) -> str:
    """The id of the installed model, without loading it; empty if there is none."""
    try:
        return str(msgspec.json.decode((folder / "about.json").read_bytes())["id"])
    except (OSError, KeyError, TypeError, msgspec.DecodeError):
        return ""


@lru_cache(maxsize=2)
def load_model(folder: Path = FOLDER) -> "StaticModel":
    try:
        import numpy as np
    except ImportError:
        raise NoEmbedder("numpy is not installed") from None
    try:
        return StaticModel(folder, np)
    except (OSError, ValueError, KeyError, msgspec.DecodeError) as error:
        raise NoEmbedder(f"the search model cannot be read: {error}") from None


class StaticModel:
    def __init__(self, folder: Path, np: Any) -> None:
        self._np = np
        about = msgspec.json.decode((folder / "about.json").read_bytes())
        self.id: str = about["id"]
        self.dims: int = about["dims"]
        self._factors = [float(about["factors"][field]) for field in FIELDS]
        self._spelled = (folder / "words.txt").read_text("utf-8").split("\n")
        self._known = {word: n for n, word in enumerate(self._spelled)}
        self._longest = max(map(len, self._known))
        self._documents = _Table(folder, "documents", np)
        self._queries = _Table(folder, "queries", np)
        self._ids: dict[str, tuple[int, ...]] = {}

    def documents(self, passages: Sequence[Passage]) -> Any:
        parts = [self._batch(passages[at : at + BATCH]) for at in range(0, len(passages), BATCH)]
        # The dimensions must match even if there is nothing to embed.
        return self._np.concatenate(parts) if parts else self._np.zeros((0, self.dims), "float32")

    def query(self, text: str) -> Any:
        token_counts = self._counted([text])
        if not token_counts:
            return self._np.zeros(self.dims, "float32")
        return self._unit(self._queries.sums([token_counts]))[0]

    def like(self, word: str, least: float, most: int) -> list[tuple[str, float]]:
        """Words that queries use alike, most similar first; none for an unknown word."""
        number = self._known.get(word)
        if number is None:
            return []
        likeness = self._queries.likeness(number, MOST_COMPARED)
        near = self._np.flatnonzero(likeness > least)
        # Ties keep the order of the vocabulary, commoner words first.
        top = near[self._np.argsort(-likeness[near], kind="stable")][:most]
        return [(self._spelled[n], float(likeness[n])) for n in top]

    def _batch(self, passages: Sequence[Passage]) -> Any:
        total = self._np.zeros((len(passages), self.dims), "float32")
        for field, factor in zip(FIELDS, self._factors, strict=True):
            counts = [self._counted([getattr(passage, field)]) for passage in passages]
            rows = [n for n, token_counts in enumerate(counts) if token_counts]
            if rows:
                total[rows] += factor * self._documents.sums([counts[n] for n in rows])
        return self._unit(total)

    def _unit(self, rows: Any) -> Any:
        lengths = self._np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / self._np.maximum(lengths, 1e-9)

    def _counted(self, texts: Iterable[str]) -> dict[int, int]:
        token_counts: dict[int, int] = {}
        for text in texts:
            for identifier, times in Counter(find_identifiers(text)).items():
                for number in self._numbers(identifier):
                    token_counts[number] = token_counts.get(number, 0) + times
        return token_counts if len(token_counts) <= MOST_WORDS else dict(list(token_counts.items())[:MOST_WORDS])

    def _numbers(self, identifier: str) -> tuple[int, ...]:
        token_ids = self._ids.get(identifier)
        if token_ids is None:
            token_ids = tuple(n for part in identifier_parts(identifier) for n in self._pieces(part))
            # Caps the memory: identifiers of a huge repository mostly occur once.
            if len(self._ids) > 500_000:
                self._ids.clear()
            self._ids[identifier] = token_ids
        return token_ids

    def _pieces(self, word: str) -> list[int]:
        """Split an unknown word into the longest known pieces."""
        return split_word_pieces(word, self._known, self._longest)


def split_word_pieces(word: str, token_table: dict[str, int], longest: int) -> list[int]:
    if (whole := token_table.get(word)) is not None:
        return [whole]
    token_ids, at = [], 0
    while at < len(word):
        for end in range(min(len(word), at + longest), at, -1):
            if (number := token_table.get(word[at:end])) is not None:
                token_ids.append(number)
                at = end
                break
        else:
            at += 1
    return token_ids


class _Table:
    """int8 rows with a scale each; read from disk on demand."""

    def __init__(self, folder: Path, name: str, np: Any) -> None:
        self._np = np
        # Only the rows that a query needs are read from disk.
        self._rows = np.load(folder / f"{name}.npy", mmap_mode="r")
        self._scales = np.load(folder / f"{name}-scales.npy")

    def sums(self, counts: Sequence[dict[int, int]]) -> Any:
        """For each: Σ (1 + log tf)·row / √Σ (1 + log tf)."""
        np = self._np
        numbers = np.fromiter((n for token_counts in counts for n in token_counts), dtype=np.int64)
        weights = np.fromiter(
            (1.0 + math.log(t) for token_counts in counts for t in token_counts.values()), dtype=np.float32
        )
        # `reduceat` sums from each start to the next; empty groups would break it, so callers omit them.
        starts = np.cumsum([0, *(len(token_counts) for token_counts in counts[:-1])])
        rows = self._rows[numbers].astype(np.float32)
        rows *= (weights * self._scales[numbers])[:, None]
        totals = np.add.reduceat(weights, starts)
        return np.add.reduceat(rows, starts, axis=0) / np.sqrt(totals)[:, None]

    def likeness(self, number: int, most: int) -> Any:
        """The cosine of one row with each of the first."""
        np = self._np
        one = self._rows[number].astype(np.float32)
        rows = self._rows[:most].astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows)) * max(1e-9, float(np.linalg.norm(one)))
        return (rows @ one) / np.maximum(lengths, 1e-9)
