"""Queries an index."""

# One searcher per index lives as long as its process and keeps its data current.

import contextlib
import threading
from collections.abc import Iterator
from functools import lru_cache

import apsw

from holdfast.analysis.search import embedder as embedders
from holdfast.analysis.search import lexical, symbols
from holdfast.analysis.search.answer import Answer, Question
from holdfast.analysis.search.embedding_port import NoEmbedder
from holdfast.analysis.search.index import database
from holdfast.analysis.search.index.file_entry import unpack_text
from holdfast.analysis.search.index.places import IndexDir
from holdfast.analysis.search.query import parse_query
from holdfast.analysis.search.ranking import DEPTH, TEXT_DEPTH, Ranked, Ranking, is_related
from holdfast.analysis.search.results import Candidates, build_hits
from holdfast.analysis.search.settings import IndexSettings
from holdfast.analysis.search.vectors import Vectors

# Words of a query; files whose lines are cached.
MOST_WORDS = 32
MOST_TEXTS = 300
RELATED_SPARE = 40
"""More than shown: windows of the same text are dropped, and code precedes documents that mention it."""
# With a filter more are fetched, because most will be dropped.
FILTERED_DEPTH = 2_000


class NoIndex(Exception):
    """There is no index yet."""


class Searcher:
    def __init__(self, index_dir: IndexDir) -> None:
        self._place = index_dir
        self._lock = threading.Lock()
        self._db: apsw.Connection | None = None
        self._generation = 0
        self._seen = -1
        self._vectors: Vectors | None = None
        self._texts: dict[int, list[str]] = {}
        self._texts_version = -1
        self._about: tuple[int, dict[str, int]] | None = None

    def answer(self, question: Question, settings: IndexSettings) -> Answer:
        with self._lock:
            db = self._open()
            try:
                with db:  # one state of the index for the whole answer, whatever a run writes meanwhile
                    answer = self._answer_question(db, question, settings)
            except database.DAMAGE as error:
                self.close()
                raise database.IndexDamaged(str(error), fix="Run: holdfast search index rebuild") from None
            return answer

    def related(self, path: str, line: int, limit: int, settings: IndexSettings) -> Answer:
        """The chunks most similar to the one with that line; without vectors, those that share its name's words."""
        with self.read() as db:
            return self._related(db, path, line, limit, settings)

    def _related(self, db: apsw.Connection, path: str, line: int, limit: int, settings: IndexSettings) -> Answer:
        chunk = symbols.chunk_at(db, path, line)
        sizes = self._sizes(db)
        if not chunk:
            return Answer(hits=[], note=f"{path} is not in the index", **sizes)
        try:
            embedder, note = embedders.embedder_of(database.get_meta(db, "model"), settings)
            nearest = self._fresh(db, embedder.id).nearest(chunk, limit + RELATED_SPARE)
        except NoEmbedder as error:
            nearest, note = [], f"no vectors: {error}"
        # No query: only similarity ranks.
        query = parse_query("")
        own = symbols.chunk_lines(db, chunk)
        ranked = [Ranked(other, score) for other, score in nearest if other != chunk]
        question = Question(text="", limit=limit + RELATED_SPARE)
        hits = build_hits(db, query, ranked, Candidates(dict(nearest), set(), {}), self._text_of, question)
        # Parts of the source itself are no news.
        hits = symbols.same_role_first([hit for hit in hits if not own.covers(hit.path, hit.line)], own)[:limit]
        symbols.name_neighbours(db, hits, self._text_of)
        return Answer(hits=hits, note=note, **sizes)

    @contextlib.contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """The current index, for lookups in it."""
        with self._lock:
            db = self._open()
            with db:
                yield db

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
        self._db, self._vectors, self._about, self._seen = None, None, None, -1

    def _open(self) -> apsw.Connection:
        generation = self._place.current()
        if not generation:
            raise NoIndex
        if self._db is None or generation != self._generation:
            self.close()
            try:
                self._db = database.open_to_read(self._place.database(generation))
            except database.IndexDamaged:
                # The same generation cannot be read: it is damaged, not replaced.
                if self._place.current() == generation:
                    raise
                return self._open()  # it was taken away for a newer one in this very moment
            self._generation = generation
        return self._db

    def _answer_question(self, db: apsw.Connection, question: Question, settings: IndexSettings) -> Answer:
        allowed = _allowed_chunks(db, question)
        sizes = self._sizes(db)
        query = parse_query(question.text)
        word_chunks = lexical.WordChunks(db, query.words[:MOST_WORDS], sizes["chunks"])
        rarity = word_chunks.rarity
        # A misspelt word is searched together with its correction, never replaced by it.
        meant = lexical.correct_words(db, query, rarity, sizes["chunks"])
        meaning, note = self._meaning(db, " ".join([question.text, *meant.values()]), settings, allowed)
        words = tuple(dict.fromkeys([*query.telling_words, *meant.values()]))
        text = lexical.best_by_words(db, words, TEXT_DEPTH if allowed is None else FILTERED_DEPTH)
        allowed_chunks = None if allowed is None else set(allowed)
        text = text if allowed_chunks is None else [one for one in text if one[0] in allowed_chunks]
        near, worded = dict(meaning), {chunk for chunk, _ in text}
        ranked = Ranking(db, query, word_chunks, self._text_of, allowed_chunks, question.kind).ranked(meaning, text)
        ranked = [one for one in ranked if one.why or is_related(one.chunk, near, worded)]
        hits = build_hits(db, query, ranked, Candidates(near, worded, rarity), self._text_of, question)
        symbols.name_neighbours(db, hits, self._text_of)
        return Answer(hits=hits, note=note, **sizes)

    def _text_of(self, db: apsw.Connection, file: int) -> list[str]:
        """The lines of an indexed file; those of recent queries are cached."""
        # SQLite changes it when another connection has written.
        version = int(db.pragma("data_version"))
        if version != self._texts_version:
            self._texts.clear()
            self._texts_version = version
        if file not in self._texts:
            if len(self._texts) >= MOST_TEXTS:
                # Dicts keep insertion order, so the oldest goes.
                self._texts.pop(next(iter(self._texts)))
            self._texts[file] = unpack_text(
                database.fetch_required_row(db, "select text from texts where file = ?", (file,))[0]
            )
        return self._texts[file]

    def _sizes(self, db: apsw.Connection) -> dict[str, int]:
        version = int(db.pragma("data_version"))
        if self._about is None or self._about[0] != version:
            self._about = version, _index_facts(db)
        return self._about[1]

    def _meaning(
        self, db: apsw.Connection, text: str, settings: IndexSettings, allowed: list[int] | None
    ) -> tuple[list[tuple[int, float]], str]:
        try:
            embedder, note = embedders.embedder_of(database.get_meta(db, "model"), settings)
            return self._fresh(db, embedder.id).best(embedder.query(text), DEPTH, allowed), note
        except NoEmbedder as error:
            return [], f"full text only: {error}"

    def _fresh(self, db: apsw.Connection, model: str) -> Vectors:
        if self._vectors is None or self._vectors.model != model:
            self._vectors, self._seen = Vectors(model), -1
        version = int(db.pragma("data_version"))
        if version != self._seen:
            self._vectors.refresh(
                db, database.fetch_required_row(db, "select id from models where name = ?", (model,))[0]
            )
            self._seen = version
        return self._vectors


@lru_cache(maxsize=8)
def cached_searcher(place: IndexDir) -> Searcher:
    return Searcher(place)


def _allowed_chunks(db: apsw.Connection, question: Question) -> list[int] | None:
    if not (question.lang or question.path or question.kind):
        return None
    # A path prefix becomes a glob; `glob` is SQLite's own, which is case-sensitive.
    glob = question.path if any(c in question.path for c in "*?[") else f"{question.path}*"
    rows = db.execute(
        "select c.id from chunks c join files f on f.id = c.file where (?1 = '' or f.lang = ?1)"
        " and (?2 = '' or f.path glob ?3) and (?4 = '' or c.kind = ?4"
        " or exists (select 1 from definitions d where d.chunk = c.id and d.kind = ?4))",
        (question.lang.lower(), question.path, glob, question.kind),
    )
    return [row[0] for row in rows]


def _index_facts(db: apsw.Connection) -> dict[str, int]:
    at = database.get_meta(db, "at", "0")
    files, chunks = database.fetch_required_row(
        db, "select (select count(*) from files where left_out = ''), (select count(*) from chunks)"
    )
    return {"at": int(at) if at.isdecimal() else 0, "files": files, "chunks": chunks}
