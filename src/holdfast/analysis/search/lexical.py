"""Full-text search: words by BM25, names, definitions and paths."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from holdfast.analysis.search.query import Query, dotted_name
from holdfast.analysis.search.tokens import bare_token, name_trigrams
from holdfast.analysis.search.vectors import cut_before_tie

NAME, PATH, BODY = 5.0, 3.0, 1.0
"""Weights of a word in the name, the path and the body of a chunk."""
MOST_TOKEN_CHUNKS = 300
MOST_PATHS = 20
MOST_SIMILAR = 40
MOST_NAMES_OF_A_TRIGRAM, MOST_COUNTED, MOST_COMPARED = 20_000, 20_000, 400
"""Definitions considered that share a trigram with a name, all its trigrams, and the most."""
LEAST_SIMILAR = 0.5
COVERED, NAMED = 0.5, 0.15
"""Bonus of a chunk with all words of the query, and more if they are in its name."""
COMMON = 2_000
"""A word in more chunks than this is as good as in all of them."""

Scored = list[tuple[int, float]]
"""(chunk, score), best first; more is better."""


def any_of(words: Sequence[str]) -> str:
    """Only letters and digits, so nothing in a query is syntax."""
    return " OR ".join(f'"{word}"' for word in words)


def best_by_words(db: apsw.Connection, words: tuple[str, ...], limit: int) -> Scored:
    if not words:
        return []
    return best_matches(db, any_of(words), (NAME, PATH, BODY), limit)


def best_matches(db: apsw.Connection, expression: str, weights: tuple[float, float, float], limit: int) -> Scored:
    """`weights`: of the name, the path and the body."""
    rows = db.execute(
        # SQLite's bm25 is smaller for a better match, hence the minus.
        "select rowid, -bm25(words, ?, ?, ?) s from words where words match ? order by s desc limit ?",
        (*weights, expression, limit + 1),
    )
    return cut_before_tie([(row[0], row[1]) for row in rows], limit)


class WordChunks:
    """Which chunks contain each word of a query, and its weight: about 0 for a word that is everywhere, about 10 for
    one in a single chunk. For common words only that is known."""

    def __init__(self, db: apsw.Connection, words: tuple[str, ...], chunks: int) -> None:
        self._db = db
        self.rarity: dict[str, float] = {}
        self.chunks: dict[str, frozenset[int]] = {}
        for word in words:
            matching = _chunks_matching(db, f'"{word}"')
            self.rarity[word] = math.log(1 + chunks / (0.5 + len(matching)))
            if len(matching) < COMMON:
                self.chunks[word] = matching

    def share_in(self, words: Sequence[str], text: str) -> float:
        """The weighted share of the words in a short text such as a path, as far as prefixes tell."""
        low = text.lower()
        telling = [word for word in words if self.chunks.get(word)]
        said = sum(self.rarity[word] for word in telling if len(word) > 3 and word[: max(4, len(word) - 3)] in low)
        return said / (sum(self.rarity[word] for word in telling) or 1.0)

    def coverage(self, words: Sequence[str], chunks: Iterable[int]) -> dict[int, float]:
        """For each chunk: the weighted share of the words it contains, counted again if its name contains them."""
        telling = [word for word in words if self.chunks.get(word)]
        total = sum(self.rarity[word] for word in telling) or 1.0
        shares = dict.fromkeys(chunks, 0.0)
        for word in telling:
            named = _chunks_matching(self._db, f'name:"{word}"')
            for chunk in self.chunks[word] & shares.keys():
                shares[chunk] += self.rarity[word] / total * (COVERED + NAMED * (chunk in named))
        return shares


def _chunks_matching(db: apsw.Connection, expression: str) -> frozenset[int]:
    return _rows_matching(db, "words", expression, COMMON)


def _rows_matching(db: apsw.Connection, table: str, expression: str, limit: int) -> frozenset[int]:
    """At most so many, in one value: a row each would cost more than finding them."""
    select = f"select group_concat(id, ' ') from (select rowid id from {table} where {table} match ? limit ?)"
    row = db.execute(select, (expression, limit)).fetchone()
    return frozenset(map(int, row[0].split())) if row and row[0] else frozenset()


def chunks_naming(db: apsw.Connection, names: Sequence[str], chunks: int, limit: int) -> Scored:
    """Chunks with the exact names; those with the rarest and most come first."""
    scores: dict[int, float] = {}
    for name in names:
        holding = _rows_matching(db, "tokens", f'"{name}"', COMMON)
        for chunk in holding:
            scores[chunk] = scores.get(chunk, 0.0) + math.log(1 + chunks / (0.5 + len(holding)))
    best = sorted(((chunk, round(score, 6)) for chunk, score in scores.items()), key=lambda one: -one[1])
    return cut_before_tie(best[: limit + 1], limit)


def chunks_with_token(db: apsw.Connection, token: str) -> list[int]:
    """Chunks with that whole name."""
    bare = bare_token(token)
    # Other characters of a token could end the quoted string of the full-text query.
    if len(bare) < 3 or not re.fullmatch(r"[\w$./:@#-]+", bare):
        return []
    rows = db.execute(
        "select t.rowid from tokens t join chunks c on c.id = t.rowid join files f on f.id = c.file where tokens match ?"
        " order by f.path, c.start limit ?", (f'"{bare}"', MOST_TOKEN_CHUNKS),
    )  # fmt: skip
    return [row[0] for row in rows]


def is_indexed(db: apsw.Connection, word: str) -> bool:
    return db.execute("select 1 from words where words match ? limit 1", (f'"{word}"',)).fetchone() is not None


class NamedChunk:
    """A found definition: its chunk, its symbol, its lines relative to the chunk's first."""

    __slots__ = ("chunk", "first", "kind", "last", "likeness", "name", "symbol")

    def __init__(self, row: tuple[Any, ...], likeness: float = 1.0) -> None:
        self.chunk, self.name, self.symbol, self.kind, self.first, self.last = row
        self.likeness = likeness


def definitions_named(db: apsw.Connection, name: str) -> list[NamedChunk]:
    """Definitions of exactly that name, ignoring case; `Class.method` names the method in that class."""
    whole = dotted_name(name).lower()
    last = whole.rpartition(".")[2]
    rows = db.execute(
        # Headings are no definitions, though they are in the same table.
        "select d.chunk, d.name, d.symbol, d.kind, d.first, d.last from definitions d join chunks c on c.id = d.chunk"
        " join files f on f.id = c.file where d.name = ? and d.kind <> 'section' order by f.path, c.start, d.first limit 400",
        (last,),
    )
    candidates = [NamedChunk(row) for row in rows]
    return [one for one in candidates if one.symbol.lower() == whole or one.symbol.lower().endswith(f".{whole}")]


def similar_names(db: apsw.Connection, name: str) -> list[NamedChunk]:
    """Definitions with a similar name, most similar first."""
    squeezed_name = squeeze_name(name)
    grams = name_trigrams(squeezed_name)
    # Shorter names are alike by chance; longer ones are no names.
    if not 4 <= len(squeezed_name) <= 60 or not grams:
        return []
    shared = _count_shared(db, grams).most_common(MOST_COMPARED + 1)
    # Of ties all or none, so that the index order has no effect.
    closest = [row for row, _ in cut_before_tie(shared, MOST_COMPARED)]
    rows = db.execute(
        "select d.chunk, d.name, d.symbol, d.kind, d.first, d.last from definitions d"
        f" join chunks c on c.id = d.chunk join files f on f.id = c.file where d.id in ({','.join('?' * len(closest))})"
        " and d.kind <> 'section' order by f.path, c.start, d.first", closest,
    )  # fmt: skip
    candidates = [NamedChunk(row, name_similarity(grams, row[1])) for row in rows]
    near = [one for one in candidates if one.likeness >= LEAST_SIMILAR]
    return sorted(near, key=lambda one: -one.likeness)[:MOST_SIMILAR]


def _count_shared(db: apsw.Connection, grams: set[str]) -> Counter[int]:
    """How many of the trigrams each definition's name has. The index keeps no frequencies (detail=none) to order by:
    the rarest are counted first, because they say most."""
    shared: Counter[int] = Counter()
    room = MOST_COUNTED
    for count, gram in sorted((_count_names(db, gram), gram) for gram in grams if gram.isalnum()):
        room -= count
        if room < 0 and shared:
            break
        shared.update(_rows_matching(db, "names", f'"{gram}"', MOST_NAMES_OF_A_TRIGRAM))
    return shared


def _count_names(db: apsw.Connection, gram: str) -> int:
    select = "select count(*) from (select 1 from names where names match ? limit ?)"
    row = db.execute(select, (f'"{gram}"', MOST_NAMES_OF_A_TRIGRAM)).fetchone()
    return int(row[0]) if row else 0


def squeeze_name(name: str) -> str:
    """Without what people forget in a name: separators and case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def name_similarity(grams: set[str], name: str) -> float:
    """Shared trigrams over all of both (Dice)."""
    other = name_trigrams(squeeze_name(name))
    return 2 * len(grams & other) / max(1, len(grams) + len(other))


def spelled_right(db: apsw.Connection, word: str) -> str:
    """The indexed word that a missing one probably means; empty if there is none."""
    if len(word) < 5 or not word.isalpha() or not word.isascii():
        return ""
    rows = db.execute(
        "select term, doc from vocabulary where term >= ? and term < ? and length(term) between ? and ?",
        # All terms with the same first two letters: a wrong beginning is rare, and the scan stays small.
        (word[:2], word[:2] + "\x7f", len(word) - 3, len(word) + 2),
    )
    allowed = 1 if len(word) < 7 else 2
    near = [
        (distance, -count, term) for term, count in rows if (distance := edit_distance(word, term, allowed)) <= allowed
    ]
    return min(near)[2] if near else ""


def edit_distance(one: str, other: str, most: int) -> int:
    """Letters to insert, remove, change or swap to turn one into the other; more than `most` is `most` + 1.

    The index has stems, so a missing end of `other` costs little.
    """
    # Terms are stems: what the stemmer cut off is put back before counting.
    other = other if len(other) >= len(one) - 1 else other + one[len(other) :] if one.startswith(other[:4]) else other
    if abs(len(one) - len(other)) > most:
        return most + 1
    # Two rows back, for two swapped letters.
    before: list[int] = []
    above: list[int] = []
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        before, above, row = above, row, [i]
        for j, right in enumerate(other, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (left != right))
            if i > 1 and j > 1 and left == other[j - 2] and one[i - 2] == right:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]


def chunks_of_path(db: apsw.Connection, text: str) -> list[int]:
    """The first chunk of each file with that name."""
    text = text.strip().removeprefix("./")
    if not text or len(text) > 400 or " " in text or not ("/" in text or "." in text):
        return []
    rows = db.execute(
        # A backslash escapes % and _, which file names may contain.
        "select c.id, min(c.start) from files f join chunks c on c.file = f.id where f.path = ?1 or f.path like ?2 escape '\\'"
        " group by f.id order by f.path <> ?1, length(f.path), f.path limit ?3",
        (text, f"%/{_escape_like(text)}", MOST_PATHS),
    )
    return [row[0] for row in rows]


def _escape_like(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)


def correct_words(db: apsw.Connection, query: Query, rarity: dict[str, float], chunks: int) -> dict[str, str]:
    """Words missing from the index, mapped to their probable meaning."""
    # The rarity of a word in no chunk, less a rounding margin.
    unknown = math.log(1 + chunks / 0.5) - 1e-6
    corrections = {}
    for word in query.telling_words[:12]:
        if rarity.get(word, 0.0) >= unknown and (meant := spelled_right(db, word)):
            corrections[word] = meant
    return corrections
