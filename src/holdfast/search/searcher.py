"""Asking an index. One searcher per index lives as long as its process: what it loaded once stays in step by itself."""

import threading
from functools import lru_cache
from typing import Any

import apsw

from holdfast.search import choose, fulltext, fuse, rank, words
from holdfast.search.answer import Answer, Hit, Question
from holdfast.search.embedder import NoEmbedder
from holdfast.search.index import database
from holdfast.search.index.piece import unpacked
from holdfast.search.index.place import Place
from holdfast.search.memory import Vectors
from holdfast.search.settings import IndexSettings

LONGEST_EXCERPT = 5
LONGEST_LINE = 160
FILTERED_DEPTH = 2_000
FAR = 0.15
"""What shares no word with the question and is no nearer to it than this has nothing to do with it."""


class NoIndex(Exception):
    """There is none yet."""


class Searcher:
    def __init__(self, place: Place) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._db: apsw.Connection | None = None
        self._generation = 0
        self._seen = -1
        self._vectors: Vectors | None = None
        self._about: tuple[int, dict[str, int]] | None = None

    def ask(self, question: Question, settings: IndexSettings) -> Answer:
        with self._lock:
            db = self._open()
            try:
                with db:  # one state of the index for the whole answer, whatever a run writes meanwhile
                    answer = self._ask(db, question, settings)
            except database.DAMAGE as error:
                self.close()
                raise database.IndexDamaged(str(error), fix="Run: holdfast index rebuild") from None
        return answer

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
                if self._place.current() == generation:
                    raise
                return self._open()  # it was taken away for a newer one in this very moment
            self._generation = generation
        return self._db

    def _ask(self, db: apsw.Connection, question: Question, settings: IndexSettings) -> Answer:
        allowed = _allowed(db, question)
        meaning, note = self._meaning(db, question, settings, allowed)
        text = fulltext.best(db, question.text, fuse.DEPTH if allowed is None else FILTERED_DEPTH)
        kept = None if allowed is None else set(allowed)
        text = text if kept is None else [one for one in text if one[0] in kept]
        near, worded = dict(meaning), {c for c, _ in text}
        ranked = [
            one for one in rank.ranked(db, question.text, meaning, text, kept)
            if one[2] or one[0] in worded or near[one[0]] >= FAR
        ]  # fmt: skip
        hits = _shown(db, question, ranked[: question.limit], near, worded)
        return Answer(hits=hits, note=note, **self._sizes(db))

    def _sizes(self, db: apsw.Connection) -> dict[str, int]:
        version = int(db.pragma("data_version"))
        if self._about is None or self._about[0] != version:
            self._about = version, _about(db)
        return self._about[1]

    def _meaning(
        self, db: apsw.Connection, question: Question, settings: IndexSettings, allowed: list[int] | None
    ) -> tuple[list[tuple[int, float]], str]:
        try:
            embedder, note = choose.maker(database.meta(db, "model"), settings)
            return self._fresh(db, embedder.id).best(embedder.query(question.text), fuse.DEPTH, allowed), note
        except NoEmbedder as error:
            return [], f"full text only: {error}"

    def _fresh(self, db: apsw.Connection, model: str) -> Vectors:
        if self._vectors is None or self._vectors.model != model:
            self._vectors, self._seen = Vectors(model), -1
        version = int(db.pragma("data_version"))
        if version != self._seen:
            self._vectors.refresh(db, database.one(db, "select id from models where name = ?", (model,))[0])
            self._seen = version
        return self._vectors


@lru_cache(maxsize=8)
def searcher(place: Place) -> Searcher:
    return Searcher(place)


def _allowed(db: apsw.Connection, question: Question) -> list[int] | None:
    if not (question.lang or question.path or question.kind):
        return None
    glob = question.path if any(c in question.path for c in "*?[") else f"{question.path}*"
    rows = db.execute(
        "select c.id from chunks c join files f on f.id = c.file where (?1 = '' or f.lang = ?1)"
        " and (?2 = '' or f.path glob ?3) and (?4 = '' or c.kind = ?4)",
        (question.lang.lower(), question.path, glob, question.kind),
    )
    return [row[0] for row in rows]


def _shown(
    db: apsw.Connection, question: Question, ranked: Any, meaning: dict[int, float], text: set[int]
) -> list[Hit]:
    asked = {w for w in words.distinct([question.text]) if w not in words.STOPWORDS}
    texts: dict[int, list[str]] = {}
    return [_hit(db, one, asked, meaning, text, texts) for one in ranked]


def _hit(
    db: apsw.Connection,
    ranked: tuple[int, float, str],
    asked: set[str],
    meaning: dict[int, float],
    text: set[int],
    texts: dict[int, list[str]],
) -> Hit:
    chunk, score, exactly = ranked
    file, path, lang, symbol, kind, start, stop = database.one(
        db, "select f.id, f.path, f.lang, c.symbol, c.kind, c.start, c.stop from chunks c join files f on f.id = c.file"
        " where c.id = ?", (chunk,),
    )  # fmt: skip
    if file not in texts:
        texts[file] = unpacked(database.one(db, "select text from texts where file = ?", (file,))[0])
    body = "\n".join(texts[file][start - 1 : stop])
    why = [exactly] if exactly else []
    if chunk in text and (shared := _shared(asked, f"{symbol} {path} {body}")):
        why.append("words: " + ", ".join(shared[:6]))
    if chunk in meaning:
        why.append(f"meaning {meaning[chunk]:.2f}")
    return Hit(
        path=path, line=start, end=stop, symbol=symbol, kind=kind, lang=lang, score=round(score, 4), why=why,
        excerpt=_excerpt(body, set() if exactly else asked), chunk=chunk,
    )  # fmt: skip


def _shared(asked: set[str], text: str) -> list[str]:
    """Words of the question that are there, as far as their beginnings tell (`parsing` and `parse`)."""
    low = text.lower()
    return sorted(w for w in asked if w in low or (len(w) > 4 and w[: max(4, len(w) - 3)] in low))


def _excerpt(body: str, asked: set[str]) -> str:
    """The lines that say most of what was asked."""
    lines = body.split("\n")
    scores = [sum(w in low for w in asked) for low in body.lower().split("\n")]
    best = max(range(len(lines)), key=lambda n: sum(scores[n : n + LONGEST_EXCERPT])) if any(scores) else 0
    return "\n".join(line[:LONGEST_LINE].rstrip() for line in lines[best : best + LONGEST_EXCERPT])


def _about(db: apsw.Connection) -> dict[str, int]:
    at = database.meta(db, "at", "0")
    files, chunks = database.one(
        db, "select (select count(*) from files where left_out = ''), (select count(*) from chunks)"
    )
    return {"at": int(at) if at.isdecimal() else 0, "files": files, "chunks": chunks}
