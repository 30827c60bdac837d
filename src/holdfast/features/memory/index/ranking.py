"""Ranks texts: BM25 over stems, proximity in the conversation, the session as a whole, similar words."""

# Measured with tests/bench/memory.py: an answer often shares no word with the question but its neighbours do; a
# session about the subject is a better place to look; a question is rarely the answer.

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from holdfast.features.memory.state.words import exact_names, plain_words, stem_word

# An inverted index: numpy arrays, plus a small unmerged tail.

MOST_ADDED = 50_000
"""The most entries that a query scans one by one."""
LARGEST_COUNT = 65_535


class Postings:
    def __init__(self, np: Any) -> None:
        self._np = np
        self.numbers: dict[str, int] = {}
        self._begins: Any = np.zeros(1, np.int64)
        self._texts: Any = np.zeros(0, np.int32)
        self._often: Any = np.zeros(0, np.uint16)
        # (word, text, count), three columns that grow together.
        self._added = (array("i"), array("i"), array("H"))
        self._seen: tuple[Any, Any, Any] | None = None

    def add(self, text: int, counts: Mapping[str, int]) -> None:
        words, texts, often = self._added
        numbers = self.numbers
        words.extend([numbers.setdefault(word, len(numbers)) for word in counts])
        texts.extend([text] * len(counts))
        often.extend([min(times, LARGEST_COUNT) for times in counts.values()])
        self._seen = None
        # A quarter of the block: the cost of merging is proportional to all of it.
        if len(words) > max(MOST_ADDED, len(self._texts) // 4):
            self.flush_pending()

    def of(self, word: str) -> tuple[Any, Any]:
        """Return (texts, counts)."""
        np, number = self._np, self.numbers.get(word, -1)
        # A word newer than the block has no entry there yet.
        begin, end = self._begins[number : number + 2] if 0 <= number < len(self._begins) - 1 else (0, 0)
        texts, often = self._texts[begin:end], self._often[begin:end]
        if number >= 0 and len(self._added[0]):
            words, new_texts, new_often = self._lately()
            here = np.flatnonzero(words == number)
            if len(here):
                return np.concatenate([texts, new_texts[here]]), np.concatenate([often, new_often[here]])
        return texts, often

    def count(self, word: str) -> int:
        """In how many texts it occurs, without the unmerged tail."""
        number = self.numbers.get(word, -1)
        if 0 <= number < len(self._begins) - 1:
            return max(1, int(self._begins[number + 1] - self._begins[number]))
        return int(number >= 0)

    def ready(self) -> None:
        """Call before a query."""
        if len(self._added[0]) > MOST_ADDED:
            self.flush_pending()

    def flush_pending(self) -> None:
        np = self._np
        words, texts, often = self._lately()
        old = np.repeat(np.arange(len(self._begins) - 1, dtype=np.int32), np.diff(self._begins))
        every = np.concatenate([old, words])
        # Stable, so that texts stay in order within each word.
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
        self.flush_pending()
        return {"begins": self._begins, "texts": self._texts, "often": self._often}

    def load(self, arrays: Mapping[str, Any], words: list[str]) -> None:
        self.numbers = {word: number for number, word in enumerate(words)}
        self._begins, self._texts, self._often = arrays["begins"], arrays["texts"], arrays["often"]
        if len(self._begins) != len(self.numbers) + 1 or self._begins[-1] != len(self._texts):
            raise ValueError("the words do not fit their places")


# The parameters of BM25: saturation of repeats, and normalisation by length.
K1, B = 1.0, 0.3
BEFORE, AFTER = (0.6, 0.3), (0.4, 0.2)
"""Weights of texts one and two places before or after: what was said just before is most indicative."""
# The best session as a whole triples the score of its texts.
OF_SESSION = 2.0
# Factor for a text that contains a question mark.
QUESTION = 0.8
# Factor of a similar word relative to the exact one; how many are tried.
LIKE, MOST_ALIKE = 0.7, 8
COMMON, FEW = 0.03, 2_000
"""A word in this share of very many texts is no sign of similarity and slow to process."""

WELL, HARDLY = 0.25, 0.01
"""Shares of the best score: above the first a text may be shown, below the second it passes nothing to its neighbours."""

Alike = Callable[[str], Sequence[tuple[str, float]]]
"""Returns stems similar to a word, most similar first, with their similarity. Knows nothing of the texts."""


class Ranking:
    def __init__(self, alike: Alike | None = None) -> None:
        import numpy as np

        self._np, self._alike = np, alike
        self._postings = Postings(np)
        self._numbers: dict[str, int] = {}
        """Session numbers by session."""
        self._names: list[str] = []
        self._lengths, self._asking = array("f"), array("b")
        self._session, self._before, self._after = array("i"), array("i"), array("i")
        """For each text: its session and its neighbours in it (-1: none)."""
        self._last, self._session_lengths = array("i"), array("f")
        self._frozen: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._session)

    def add(self, session: str, text: str) -> int:
        """Add the texts of a session in order; return the number."""
        counts = Counter([*map(stem_word, plain_words(text)), *exact_names(text)])
        number, length = len(self), float(sum(counts.values()))
        session_number = self._number_session(session)
        self._before.append(self._last[session_number])
        self._after.append(-1)
        if self._last[session_number] >= 0:
            self._after[self._last[session_number]] = number
        self._last[session_number] = number
        self._session_lengths[session_number] += length
        self._session.append(session_number)
        self._lengths.append(length)
        self._asking.append("?" in text)
        self._postings.add(number, counts)
        # The numpy copies are rebuilt before the next query.
        self._frozen = {}
        return number

    def _number_session(self, session: str) -> int:
        session_number = self._numbers.setdefault(session, len(self._numbers))
        if session_number == len(self._last):
            self._names.append(session)
            self._last.append(-1)
            self._session_lengths.append(0.0)
        return session_number

    def session_of(self, number: int) -> str:
        return self._names[self._session[number]]

    # ── asking ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def scores(self, question: str) -> Any:
        """One per text; 0 if nothing matches."""
        np = self._np
        if not len(self):
            return np.zeros(0, np.float32)
        self._freeze()
        own, whole = self._by_words(question)
        most = float(whole.max())
        sessions = 1 + OF_SESSION * (whole / most if most > 0 else whole)
        return self._spread(own) * sessions[self._frozen["session"]] * self._frozen["damping"]

    def best(self, scores: Any) -> Iterator[int]:
        """Return text numbers, best first; the top is sorted first, everything only if that isn't enough."""
        np = self._np
        first = np.flatnonzero(scores > WELL * scores.max()) if len(scores) else np.arange(0)
        # By score, then by number, so that equal scores have a fixed order.
        top = first[np.lexsort((first, -scores[first]))]
        yield from top.tolist()
        if len(top) < len(scores):
            rest = set(top.tolist())
            yield from (n for n in np.argsort(-scores, kind="stable").tolist() if n not in rest)

    def _freeze(self) -> None:
        self._postings.ready()
        if self._frozen:
            return
        np = self._np
        self._frozen = {
            "session": np.array(self._session, np.int64), "before": np.array(self._before, np.int64),
            "after": np.array(self._after, np.int64),
            "damping": np.where(np.array(self._asking, np.bool_), QUESTION, 1.0).astype(np.float32),
            "norms": self._norms(self._lengths), "session_norms": self._norms(self._session_lengths),
        }  # fmt: skip

    def _norms(self, raw_lengths: Any) -> Any:
        np = self._np
        lengths = np.array(raw_lengths, np.float32)
        return K1 * (1 - B + B * lengths / max(1.0, float(lengths.mean())))

    def _by_words(self, question: str) -> tuple[Any, Any]:
        """Return (score of each text, score of each session)."""
        np = self._np
        texts, sessions = np.zeros(len(self), np.float32), np.zeros(len(self._names), np.float32)
        for word in dict.fromkeys(plain_words(question)):
            self._add_word(texts, sessions, stem_word(word), self._of_like_meaning(word))
        for name in dict.fromkeys(exact_names(question)):
            self._add_word(texts, sessions, name, [])
        return texts, sessions

    def _add_word(self, texts: Any, sessions: Any, term: str, alike: list[tuple[str, float]]) -> None:
        """Scores the exact term or its closest variant, whichever is higher."""
        np = self._np
        at, weights, rare, of_sessions, rare_there = self._weighed(term)
        if not alike:
            texts[at] += rare * weights
            sessions += rare_there * of_sessions
            return
        best, whole = np.zeros(len(self), np.float32), rare_there * of_sessions
        for other, likeness in alike:
            there, theirs, rarity, in_sessions, rarity_there = self._weighed(other)
            # Squared, so that weak similarity hardly counts; never rarer than the exact word.
            best[there] = np.maximum(best[there], LIKE * likeness**2 * min(rare, rarity) * theirs)
            whole = np.maximum(whole, LIKE * likeness**2 * min(rare_there, rarity_there) * in_sessions)
        best[at] = np.maximum(best[at], rare * weights)
        texts += best
        sessions += whole

    def _weighed(self, term: str) -> tuple[Any, Any, float, Any, float]:
        """Return (texts, weight in each, rarity; weight in each session, rarity there)."""
        np, norms, session_norms = self._np, self._frozen["norms"], self._frozen["session_norms"]
        at, counts = self._postings.of(term)
        often = counts.astype(np.float32)
        times = np.bincount(self._frozen["session"][at], often, len(session_norms)).astype(np.float32)
        return (
            at, often * (K1 + 1) / (often + norms[at]), _inverse_frequency(len(self), len(at)),
            times * (K1 + 1) / (times + session_norms), _inverse_frequency(len(session_norms), int(np.count_nonzero(times))),
        )  # fmt: skip

    def _of_like_meaning(self, word: str) -> list[tuple[str, float]]:
        if not self._alike:
            return []
        most, term = max(FEW, COMMON * len(self)), stem_word(word)
        there = ((other, like) for other, like in self._alike(word) if other != term)
        return [(other, like) for other, like in there if 0 < self._postings.count(other) <= most][:MOST_ALIKE]

    def _spread(self, own: Any) -> Any:
        """Pass scores from relevant texts to their neighbours."""
        np, near = self._np, own.copy()
        giving = np.flatnonzero(own > HARDLY * own.max())
        # "after" passes a text's score to the next one, for which it comes before.
        for neighbour, weights in (("after", BEFORE), ("before", AFTER)):
            others, gift = giving, own[giving]
            for weight in weights:
                others = self._frozen[neighbour][others]
                # -1 marks the end of a session.
                others, gift = others[others >= 0], gift[others >= 0]
                near[others] += weight * gift
        return near

    # ── as arrays ──────────────────────────────────────────────────────────────────────────────────────────────────

    def dump(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return (arrays, words) for a file that `load` reads."""
        np = self._np
        columns = {name: np.array(getattr(self, f"_{name}")) for name in COLUMNS}
        return {**columns, **self._postings.dump()}, {
            "words": "\n".join(self._postings.numbers), "sessions": self._names,
        }  # fmt: skip

    def load(self, arrays: Mapping[str, Any], words: Mapping[str, Any]) -> None:
        for name, kind in COLUMNS.items():
            setattr(self, f"_{name}", array(kind, arrays[name].tobytes()))
        self._names = words["sessions"]
        self._numbers = {session: number for number, session in enumerate(self._names)}
        self._postings.load(arrays, words["words"].split("\n") if words["words"] else [])
        # A cut or mixed file must not be searched.
        per_text = {len(getattr(self, f"_{name}")) for name in ("lengths", "asking", "session", "before", "after")}
        if len(per_text) != 1 or len(self._numbers) != len(self._last):
            raise ValueError("the columns do not fit one another")


COLUMNS = {
    "lengths": "f", "asking": "b", "session": "i", "before": "i", "after": "i", "last": "i", "session_lengths": "f",
}  # fmt: skip


def _inverse_frequency(all_of_them: int, matching: int) -> float:
    return math.log(1 + (all_of_them - matching + 0.5) / (matching + 0.5))
