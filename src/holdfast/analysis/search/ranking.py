"""Orders an answer: matches by name or verbatim first, then a mixture of meaning and full text."""

import math
from collections.abc import Callable, Sequence

import apsw
import msgspec

from holdfast.analysis.search import languages, lexical, references
from holdfast.analysis.search.evidence import alike_lines, examine_lines, listed_names
from holdfast.analysis.search.query import MOST_WORDS_OF_A_NAME, Query, dotted_name
from holdfast.analysis.search.references import ChunkReader, ChunkRow, TextOf
from holdfast.analysis.search.tokens import in_order

Scored = Sequence[tuple[int, float]]
MEANING, MEANING_OF_A_NAME = 0.68, 0.5
"""The share of meaning in the mixture, for a sentence and for a name; full text has the rest."""
DEPTH = 100
TEXT_DEPTH = 400
"""Full-text hits considered, to see which files have several."""
UNSURE, SURE = 0.5, 0.7
"""Similarity of the nearest chunk: above the second, one place says nearly what was asked."""
ASKED_DOCUMENT = 0.5
"""A long document contains every word: if documents are asked for, that says less."""
FILE_SHARE, CHUNKS_OF_A_FILE = 0.3, 3
"""Bonus of a chunk in the file whose best chunks match best by full text."""
NEAR_FILE_SHARE = 0.45
"""The same for the file whose best chunks are nearest in meaning."""
PATH_SHARE = 0.2
"""Bonus if its path says everything that the query says."""


class Weights(msgspec.Struct, frozen=True):
    phrase: float = 1.6
    whole_phrase: float = 1.0
    name: float = 1.2
    likeness: float = 0.9
    registry: float = 0.4
    uniform: float = 1.2
    listing: float = 0.4
    tested: float = 0.6
    class_head: float = 0.7
    brief: float = 0.4
    brief_list: float = 0.8


WEIGHTS = Weights()


def mix_rankings(meaning: Scored, text: Scored, share: float = MEANING) -> dict[int, float]:
    """Scale each ranking to between 0 and 1, then add it with its share."""
    mixed: dict[int, float] = {}
    for scored, weight in ((meaning, share), (text, 1 - share)):
        # Only the best of each: the tail would set the lower end of the scale.
        for chunk, score in _scale_scores(scored[:DEPTH]):
            mixed[chunk] = mixed.get(chunk, 0.0) + weight * score
    return mixed


def doubt_of(meaning: Scored) -> float:
    """From 0 (one place is so near in meaning that nothing else matters) to 1."""
    nearest = meaning[0][1] if meaning else 0.0
    return min(1.0, max(0.0, (SURE - nearest) / (SURE - UNSURE)))


FAR = 0.23
"""Farther chunks that share no word with the query are unrelated."""


def is_related(chunk: int, near: dict[int, float], worded: set[int]) -> bool:
    return chunk in worded or near.get(chunk, 0.0) >= FAR


def file_scores(text: Scored, file_of: Callable[[int], int]) -> dict[int, float]:
    """From 0 to 1 per file: how well its best chunks match, because a subject is often spread over a file."""
    best_scores: dict[int, list[float]] = {}
    for chunk, score in text:
        best = best_scores.setdefault(file_of(chunk), [])
        if len(best) < CHUNKS_OF_A_FILE:
            best.append(score)
    sums = {file: sum(best) for file, best in best_scores.items()}
    most = max(sums.values(), default=0.0)
    return {file: value / most for file, value in sums.items()} if most > 0 else {}


def _scale_scores(scored: Scored) -> list[tuple[int, float]]:
    if not scored:
        return []
    low, high = scored[-1][1], scored[0][1]
    width = high - low
    return [(chunk, (score - low) / width if width > 0 else 1.0) for chunk, score in scored]


ROLE_FACTORS: dict[str, tuple[tuple[str, float], ...]] = {
    "test": (("about_tests", 1.0), ("is_name", 0.5), ("", 0.6)),
    "translation": (("about_translations", 1.0), ("", 0.25)),
    "changelog": (("", 0.45),),
    "vendored": (("", 0.45),),
    "style": (("about_style", 1.0), ("is_name", 1.0), ("", 0.45)),
    "document": (("about_documents", 1.25), ("is_name", 1.0), ("", 0.7)),
    "automation": (("about_configuration", 1.25), ("", 0.7)),
    "configuration": (("about_configuration", 1.25),),
}
"""For each role of a file: properties of the query with their factor, of which the first that holds counts."""


def role_factor(query: Query, path: str, symbol: str = "") -> float:
    """Tests repeat the words of what they test, and translations those of their source: they rank behind it unless
    asked for. Documents and configuration rank first if the query asks for them."""
    factors = ROLE_FACTORS.get(languages.role_of_chunk(path, symbol), ())
    return next((factor for said, factor in factors if not said or getattr(query, said)), 1.0)


LONG_LINES = 80
"""From here on a chunk counts as long."""


def shape_factor(query: Query, row: ChunkRow, doubt: float) -> float:
    """A few lines rarely say how something is done, or list things; nor does the head of a class."""
    missing = 1 - min(1.0, math.log1p(row.stop - row.start + 1) / math.log1p(LONG_LINES))
    if query.is_task:
        return 1 - WEIGHTS.brief_list * missing
    return (WEIGHTS.class_head if row.kind == "class" else 1.0) * (1 - WEIGHTS.brief * missing * doubt)


class Ranked(msgspec.Struct):
    chunk: int
    score: float
    why: list[str] = []
    symbol: str = ""
    kind: str = ""
    first: int = -1
    last: int = -1
    """The relevant lines, from the chunk's first; -1: the whole chunk."""


EXAMINED = 50
"""How many full-text hits have their text read."""
EXAMINED_USES = 120
FITTING = 60
"""How many chunks' names are used to find others."""
LISTING, TESTED = "listing", "tested"
"""Reasons for a find by reference: it names many relevant ones, or a relevant test names it."""
SHORT_NAME, LONE_NAME = 0.75, 1.5
"""For words that may be a name typed apart, and for a query that is nothing but a name."""
LONG_WORD = 8
VERY_LIKE = 0.75
OTHER_CASE = 0.5
"""For a definition whose name differs in case."""
SOME_OF_IT, HALF_OF_IT, MOST_OF_IT = 0.25, 0.5, 0.8
"""Shares of a query found verbatim in one place: worth naming, more than chance, the place that is meant."""


class Ranking:
    """Everything known about the chunks that may answer one query."""

    def __init__(
        self,
        db: apsw.Connection,
        query: Query,
        words: lexical.WordChunks,
        text_of: TextOf,
        allowed: set[int] | None,
        kind: str = "",
    ) -> None:
        self._db, self._query, self._allowed = db, query, allowed
        self._chunks = ChunkReader(db, text_of)
        self._words, self._rarity = words, words.rarity
        self._kind = kind
        self._found: dict[int, Ranked] = {}

    def ranked(self, meaning: Scored, text: Scored) -> list[Ranked]:
        one_word = self._query.is_name or len(self._query.text.split()) == 1
        uses = self._uses()
        self._chunks.load([*uses, *(chunk for chunk, _ in (*meaning, *text))])
        meaning, text = self._by_place(meaning), self._by_place(text)
        mixed = mix_rankings(meaning, text, MEANING_OF_A_NAME if one_word else MEANING)
        for chunk, score in mixed.items():
            self._one(chunk).score = score
        self._weigh_subject(text, meaning)
        fitting = self._fitting(mixed, meaning, text)
        if self._query.is_task:
            self._weigh_registries({chunk: mixed[chunk] for chunk in fitting})
        else:
            self._weigh_tested(mixed, fitting)
        # Reading texts is costly: only the best by full text, and chunks with the name itself.
        self._weigh_evidence([*dict.fromkeys([*(c for c, _ in text[:EXAMINED]), *uses])])
        self._weigh_definitions()
        # After all additions, so that evidence in a test counts less, too.
        self._weigh_kinds(doubt_of(meaning))
        # Last, because a typed path sets the score instead of adding to it.
        self._weigh_paths()
        scores = self._by_place([(chunk, one.score) for chunk, one in self._found.items()])
        return [self._found[chunk] for chunk, _ in scores]

    def _fitting(self, mixed: dict[int, float], meaning: Scored, text: Scored) -> list[int]:
        near, worded = dict(meaning), {chunk for chunk, _ in text}
        best = [chunk for chunk, _ in self._by_place([*mixed.items()])][:FITTING]
        return [chunk for chunk in best if is_related(chunk, near, worded)]

    def _weigh_kinds(self, doubt: float) -> None:
        """By the roles of files and the shapes of chunks."""
        for chunk, one in self._found.items():
            row = self._chunks[chunk]
            one.score *= role_factor(self._query, row.path, one.symbol or row.symbol)
            # What was named or occurs verbatim is meant, however short it is.
            if not self._query.names and not {*one.why} - {LISTING, TESTED}:
                one.score *= shape_factor(self._query, row, doubt)

    def _by_place(self, scored: Scored) -> list[tuple[int, float]]:
        """Best first, ties by location; scores that differ by less are rounded to equal."""
        return sorted(scored, key=lambda one: (-round(one[1], 6), self._chunks.location(one[0])))

    def _one(self, chunk: int) -> Ranked:
        return self._found.setdefault(chunk, Ranked(chunk, 0.0))

    def _uses(self) -> list[int]:
        """Chunks in which a name of the query occurs."""
        using_chunks: dict[int, None] = {}
        for name in self._query.names:
            for chunk in lexical.chunks_with_token(self._db, name):
                if self._allowed is None or chunk in self._allowed:
                    using_chunks.setdefault(chunk)
        return list(using_chunks)[:EXAMINED_USES]

    def _weigh_subject(self, text: Scored, meaning: Scored) -> None:
        """What a single chunk does not show: its file is about the query, or it has all of its words. A typed name, or
        one place very near in meaning, needs no more."""
        share = max(0.0, 1.0 - self._share_of_names()) * doubt_of(meaning)
        if not share:
            return
        share *= ASKED_DOCUMENT if self._query.about_documents else 1.0
        worded = file_scores(text, lambda chunk: self._chunks[chunk].file)
        near = file_scores(meaning, lambda chunk: self._chunks[chunk].file)
        covered = self._words.coverage(self._query.telling_words, self._found)
        for chunk, one in self._found.items():
            row = self._chunks[chunk]
            file_score = FILE_SHARE * worded.get(row.file, 0.0) + NEAR_FILE_SHARE * near.get(row.file, 0.0)
            path_score = PATH_SHARE * self._words.share_in(self._query.telling_words, row.path)
            one.score += share * (file_score + path_score + covered[chunk])

    def _weigh_evidence(self, chunks: Sequence[int]) -> None:
        names = self._query.names
        share = self._share_of_names()
        for chunk in chunks:
            evidence = examine_lines(self._query, names, self._chunks.lines(chunk), self._rarity)
            one = self._one(chunk)
            if evidence.phrase:
                # Less than half of the query verbatim counts less than in proportion.
                one.score += WEIGHTS.phrase * evidence.phrase * min(1.0, evidence.phrase / HALF_OF_IT)
                if evidence.phrase > MOST_OF_IT and len(self._query.words) > MOST_WORDS_OF_A_NAME:
                    one.score += WEIGHTS.whole_phrase
                if evidence.phrase > SOME_OF_IT:
                    one.why = [*one.why, "phrase"]
            if evidence.name:
                one.score += WEIGHTS.name * evidence.name * share
                one.why = [*one.why, "name"]
                one.first = one.last = evidence.line

    def _weigh_registries(self, fitting: dict[int, float]) -> None:
        """To add one more of a kind, one needs the place where the others are listed."""
        for chunk, one in self._found.items():
            lines = self._chunks.lines(chunk)
            names, alike = listed_names(self._query.telling_words, lines), alike_lines(lines)
            one.score *= 1 + WEIGHTS.registry * names + WEIGHTS.uniform * alike
        best = max((one.score for one in self._found.values()), default=0.0)
        listings = references.weigh_listings(self._db, self._chunks, fitting)
        self._add_scores(listings, WEIGHTS.listing * best, LISTING)

    def _weigh_tested(self, mixed: dict[int, float], chunks: Sequence[int]) -> None:
        """If no name is asked for, what tests say of the code counts for the code."""
        if not self._query.names:
            tested = references.weigh_tested(self._db, self._chunks, {c: mixed[c] for c in chunks})
            self._add_scores(tested, WEIGHTS.tested, TESTED)

    def _add_scores(self, scores: dict[int, float], weight: float, why: str) -> None:
        for chunk, score in scores.items():
            if self._allowed is None or chunk in self._allowed:
                one = self._one(chunk)
                one.score += weight * score
                one.why = [*one.why, why]

    def _share_of_names(self) -> float:
        """The share of the query's meaning that its names carry."""
        if self._query.is_name or len(self._query.text.split()) == 1:
            # A query that is just a name says more by it than a sentence that mentions it.
            return 1.5
        total = sum(self._rarity.get(word, 0.0) for word in self._query.telling_words)
        in_names = {part for name in self._query.names for part in in_order(name)}
        named_weight = sum(self._rarity.get(word, 0.0) for word in in_names)
        return named_weight / total if total else 0.0

    def _weigh_definitions(self) -> None:
        share = self._share_of_names()
        for name in self._query.names:
            named = lexical.definitions_named(self._db, name)
            last = dotted_name(name).rpartition(".")[2]
            for one in named:
                # A class or function of that name precedes methods, many of which share a name.
                worth = (1.3 + 0.2 * (one.kind != "method")) * max(share, 0.5)
                self._take_definition(one, worth if one.name == last else worth * OTHER_CASE, "symbol")
            # Similar names only if the name itself occurs nowhere; a route or path is no definition's name.
            if not named and "/" not in name and not lexical.chunks_with_token(self._db, name):
                self._weigh_similar(name, LONE_NAME if self._query.is_name else 1.0)
        self._weigh_typed_apart(self._query.text.split())

    def _weigh_typed_apart(self, words: list[str]) -> None:
        """A few words may be a name."""
        if 1 < len(words) <= 4:
            unknown = [word for word in words if not self._is_known(word)]
            # If all words are known, a similar name must be very close; else the words are meant as words.
            self._weigh_similar("".join(words), SHORT_NAME, least=0.0 if unknown else VERY_LIKE)
            for word in unknown:
                if len(word) >= LONG_WORD:
                    self._weigh_similar(word, SHORT_NAME)

    def _is_known(self, word: str) -> bool:
        return all(lexical.is_indexed(self._db, part) for part in in_order(word))

    def _weigh_similar(self, name: str, weight: float, least: float = 0.0) -> None:
        for one in lexical.similar_names(self._db, name):
            if one.likeness < least:
                break
            # 0.4 of the weight at LEAST_SIMILAR, 1.4 at full similarity.
            self._take_definition(one, WEIGHTS.likeness * weight * (2 * one.likeness - 0.6), "similar name")

    def _take_definition(self, named: lexical.NamedChunk, worth: float, why: str) -> None:
        if self._kind not in ("", named.kind) or (self._allowed is not None and named.chunk not in self._allowed):
            return
        self._chunks.load([named.chunk])
        one = self._one(named.chunk)
        if why in one.why:
            return
        one.score += worth
        one.why = [why, *one.why]
        one.symbol, one.kind, one.first, one.last = named.symbol, named.kind, named.first, named.last

    def _weigh_paths(self) -> None:
        for number, chunk in enumerate(lexical.chunks_of_path(self._db, self._query.text)):
            if self._allowed is None or chunk in self._allowed:
                self._chunks.load([chunk])
                one = self._one(chunk)
                # Far above the other weights; the closest paths first.
                one.score, one.why = 10.0 - number / 100, ["path", *one.why]
