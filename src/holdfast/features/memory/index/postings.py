"""Word → in which texts, how often: one block of numpy arrays, and behind it a little that was added since.

The block is sorted by word, so that it can lie in a file as it is. What was added is merged into it now and then.
"""

from array import array
from collections.abc import Mapping
from typing import Any

MOST_ADDED = 50_000
"""So many a question may still look through one by one."""
LARGEST_COUNT = 65_535


class Postings:
    def __init__(self, np: Any) -> None:
        self._np = np
        self.numbers: dict[str, int] = {}
        self._begins: Any = np.zeros(1, np.int64)
        self._texts: Any = np.zeros(0, np.int32)
        self._often: Any = np.zeros(0, np.uint16)
        self._added = (array("i"), array("i"), array("H"))
        self._seen: tuple[Any, Any, Any] | None = None

    def add(self, text: int, counts: Mapping[str, int]) -> None:
        words, texts, often = self._added
        numbers = self.numbers
        for word, times in counts.items():
            words.append(numbers.setdefault(word, len(numbers)))
            texts.append(text)
            often.append(min(times, LARGEST_COUNT))
        self._seen = None
        if len(words) > max(MOST_ADDED, len(self._texts) // 4):
            self.settle()

    def of(self, word: str) -> tuple[Any, Any]:
        """(texts, how often)"""
        np, number = self._np, self.numbers.get(word, -1)
        begin, end = self._begins[number : number + 2] if 0 <= number < len(self._begins) - 1 else (0, 0)
        texts, often = self._texts[begin:end], self._often[begin:end]
        if number >= 0 and len(self._added[0]):
            words, new_texts, new_often = self._lately()
            here = np.flatnonzero(words == number)
            if len(here):
                return np.concatenate([texts, new_texts[here]]), np.concatenate([often, new_often[here]])
        return texts, often

    def count(self, word: str) -> int:
        """In how many texts it is, at least: what was added last is not counted."""
        number = self.numbers.get(word, -1)
        if 0 <= number < len(self._begins) - 1:
            return max(1, int(self._begins[number + 1] - self._begins[number]))
        return int(number >= 0)

    def ready(self) -> None:
        """Before a question."""
        if len(self._added[0]) > MOST_ADDED:
            self.settle()

    def settle(self) -> None:
        np = self._np
        words, texts, often = self._lately()
        old = np.repeat(np.arange(len(self._begins) - 1, dtype=np.int32), np.diff(self._begins))
        every = np.concatenate([old, words])
        order = np.argsort(every, kind="stable")
        self._texts = np.concatenate([self._texts, texts])[order]
        self._often = np.concatenate([self._often, often])[order]
        counts = np.bincount(every, minlength=len(self.numbers))
        self._begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
        self._added, self._seen = (array("i"), array("i"), array("H")), None

    def _lately(self) -> tuple[Any, Any, Any]:
        if self._seen is None:
            np = self._np
            words, texts, often = self._added
            self._seen = np.array(words, np.int32), np.array(texts, np.int32), np.array(often, np.uint16)
        return self._seen

    def dump(self) -> dict[str, Any]:
        self.settle()
        return {"begins": self._begins, "texts": self._texts, "often": self._often}

    def load(self, arrays: Mapping[str, Any], words: list[str]) -> None:
        self.numbers = {word: number for number, word in enumerate(words)}
        self._begins, self._texts, self._often = arrays["begins"], arrays["texts"], arrays["often"]
        if len(self._begins) != len(self.numbers) + 1 or self._begins[-1] != len(self._texts):
            raise ValueError("the words do not fit their places")
