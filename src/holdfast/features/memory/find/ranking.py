"""The index itself: BM25 over stems, nearness in the conversation, the session as a whole, words of like meaning.

Why each is there (measured on tests/bench/memory.py): an answer often has none of the question's words, but its
neighbours do; a session that is about something as a whole is a better place to look; a question is seldom the answer.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from holdfast.features.memory.words import names, plain, stem

K1, B = 1.0, 0.3
NEIGHBOURS = ((1, 0.6), (2, 0.3), (-1, 0.4), (-2, 0.2))
"""(how far before, weight): what was said just before says most about what this is about."""
OF_SESSION = 2.0
QUESTION = 0.8
LIKE, LIKE_LEAST, MOST_ALIKE = 0.7, 0.4, 8

SORTED = 500

Alike = Callable[[str, Sequence[str]], list[tuple[int, float]]]
"""(word, vocabulary) → those of like meaning, by number, with how alike."""


class Postings:
    """Term → in which texts, how often. Appended to in Python, frozen into arrays when asked."""

    def __init__(self, np: Any) -> None:
        self._np = np
        self._lists: dict[str, tuple[list[int], list[int]]] = {}
        self._arrays: dict[str, tuple[Any, Any]] = {}
        self.lengths: list[float] = []

    def add(self, counts: Counter[str]) -> int:
        number = len(self.lengths)
        self.lengths.append(float(sum(counts.values())))
        for term, times in counts.items():
            at, often = self._lists.setdefault(term, ([], []))
            at.append(number)
            often.append(times)
            self._arrays.pop(term, None)
        return number

    def more(self, number: int, counts: Counter[str]) -> None:
        """To a text that is there already: the words of a session grow."""
        self.lengths[number] += sum(counts.values())
        for term, times in counts.items():
            at, often = self._lists.setdefault(term, ([], []))
            if at and at[-1] == number:
                often[-1] += times
            else:
                at.append(number)
                often.append(times)
            self._arrays.pop(term, None)

    def idf(self, term: str) -> float:
        found = len(self._lists[term][0]) if term in self._lists else 0
        return math.log(1 + (len(self.lengths) - found + 0.5) / (found + 0.5))

    def __contains__(self, term: str) -> bool:
        return term in self._lists

    def weights(self, term: str, norms: Any) -> tuple[Any, Any]:
        """(numbers, saturated frequencies)"""
        np = self._np
        if term not in self._arrays:
            at, often = self._lists.get(term, ([], []))
            self._arrays[term] = (np.array(at, np.int64), np.array(often, np.float32))
        at, often = self._arrays[term]
        return at, often * (K1 + 1) / (often + norms[at])

    def norms(self) -> Any:
        np = self._np
        lengths = np.array(self.lengths, np.float32)
        return K1 * (1 - B + B * lengths / max(1.0, float(lengths.mean()) if len(lengths) else 1.0))


class Ranking:
    def __init__(self, alike: Alike | None = None) -> None:
        import numpy as np

        self._np, self._alike = np, alike
        self._texts, self._sessions = Postings(np), Postings(np)
        self._place: dict[str, int] = {}
        self._session_of: list[int] = []
        self._asking: list[bool] = []
        self._words: dict[str, str] = {}
        self._frozen: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._session_of)

    def add(self, session: str, text: str) -> int:
        """Texts of one session come in their order. The number it has from now on."""
        words = plain(text)
        for word in words:
            self._words.setdefault(stem(word), word)
        counts = Counter([*map(stem, words), *names(text)])
        place = self._place.get(session)
        if place is None:
            place = self._place[session] = self._sessions.add(counts)
        else:
            self._sessions.more(place, counts)
        self._session_of.append(place)
        self._asking.append("?" in text)
        self._frozen.clear()
        return self._texts.add(counts)

    def scores(self, question: str) -> Any:
        """One for each text; 0 where nothing fits."""
        np = self._np
        if not len(self):
            return np.zeros(0, np.float32)
        self._freeze()
        own = self._by_words(question)
        near = self._spread(own)
        whole = self._of_sessions(question)
        return near * (1 + OF_SESSION * whole[self._frozen["session"]]) * self._frozen["damping"]

    def best(self, scores: Any) -> Iterator[int]:
        """Numbers, best first: the first hundreds are sorted by themselves, all of them only if that is not enough."""
        np = self._np
        first = np.argpartition(-scores, SORTED)[:SORTED] if len(scores) > SORTED else np.arange(len(scores))
        top = first[np.lexsort((first, -scores[first]))]
        yield from top.tolist()
        if len(top) < len(scores):
            rest = set(top.tolist())
            yield from (n for n in np.argsort(-scores, kind="stable").tolist() if n not in rest)

    def _freeze(self) -> None:
        if self._frozen:
            return
        np = self._np
        session = np.array(self._session_of, np.int64)
        # Neighbours are those in the same session, which may have others' texts between: sort by session once.
        order = np.argsort(session, kind="stable")
        self._frozen = {
            "session": session, "order": order, "sorted": session[order],
            "damping": np.where(np.array(self._asking), QUESTION, 1.0).astype(np.float32),
            "norms": self._texts.norms(), "session_norms": self._sessions.norms(),
            "vocabulary": list(self._words), "spelled": list(self._words.values()),
        }  # fmt: skip

    def _by_words(self, question: str) -> Any:
        np, texts, norms = self._np, self._texts, self._frozen["norms"]
        total = np.zeros(len(self), np.float32)
        for word in dict.fromkeys(plain(question)):
            self._add_word(total, word, norms)
        for name in dict.fromkeys(names(question)):
            at, weights = texts.weights(name, norms)
            total[at] += texts.idf(name) * weights
        return total

    def _add_word(self, total: Any, word: str, norms: Any) -> None:
        np, texts, term = self._np, self._texts, stem(word)
        idf = texts.idf(term)
        alike = self._of_like_meaning(word, term)
        if not alike:
            at, weights = texts.weights(term, norms)
            total[at] += idf * weights
            return
        best = np.zeros(len(self), np.float32)
        for other, likeness in alike:
            at, weights = texts.weights(other, norms)
            best[at] = np.maximum(best[at], LIKE * likeness**2 * min(idf, texts.idf(other)) * weights)
        at, weights = texts.weights(term, norms)
        best[at] = np.maximum(best[at], idf * weights)
        total += best

    def _of_like_meaning(self, word: str, term: str) -> list[tuple[str, float]]:
        if not self._alike:
            return []
        vocabulary = self._frozen["vocabulary"]
        found = self._alike(word, self._frozen["spelled"])
        return [(vocabulary[n], likeness) for n, likeness in found if vocabulary[n] != term][:MOST_ALIKE]

    def _spread(self, own: Any) -> Any:
        np, order, session = self._np, self._frozen["order"], self._frozen["sorted"]
        lined_up = own[order]
        near = lined_up.copy()
        for far, weight in NEIGHBOURS:
            later, earlier = (slice(far, None), slice(None, -far)) if far > 0 else (slice(None, far), slice(-far, None))
            together = session[later] == session[earlier]
            near[later] += weight * lined_up[earlier] * together
        result = np.empty_like(near)
        result[order] = near
        return result

    def _of_sessions(self, question: str) -> Any:
        np, sessions, norms = self._np, self._sessions, self._frozen["session_norms"]
        total = np.zeros(len(sessions.lengths), np.float32)
        for term in dict.fromkeys([*map(stem, plain(question)), *names(question)]):
            at, weights = sessions.weights(term, norms)
            total[at] += sessions.idf(term) * weights
        most = float(total.max()) if len(total) else 0.0
        return total / most if most > 0 else total
