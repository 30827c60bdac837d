"""Updates an index: reads and writes only what changed."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import apsw
import msgspec

from holdfast.analysis.search import embedder as embedders
from holdfast.analysis.search.chunks import Definition
from holdfast.analysis.search.embedding_port import Embedder, Passage
from holdfast.analysis.search.index import checkout
from holdfast.analysis.search.index.database import fetch_required_row, set_meta
from holdfast.analysis.search.index.file_entry import (
    NOTHING,
    ChunkKey,
    FileChunk,
    FileEntry,
    KnownFile,
    read_entry,
    searchable_words,
    trusted_mtime,
    unpack_text,
)
from holdfast.analysis.search.index.process_map import Map, process_map
from holdfast.analysis.search.lexical import squeeze_name
from holdfast.analysis.search.settings import BUILTIN, IndexSettings
from holdfast.analysis.search.vectors import pack_vectors

T = TypeVar("T")
# Files per transaction; from how many on other processes help; chunks embedded at a time.
BATCH_FILES = 50
MANY_FILES = 300
MANY_CHUNKS = 4_000
BATCH_CHUNKS = 1_000
MOST_SPARE = 20_000
"""How many vectors of removed chunks are kept."""

# rtrim removes every character of the path but the slash from the right, leaving the folder; replacing that by nothing
# leaves the file name.
CONTENT = "hex(c.hash) || c.symbol || '/' || replace(f.path, rtrim(f.path, replace(f.path, '/', '')), '')"
"""What a vector was made of, except the folders of its file, which weigh least."""
KEEP_VECTOR = (
    f"insert into spare_vectors (model, content, vector) select v.model, {CONTENT}, v.vector"
    " from chunks c join files f on f.id = c.file join vectors v on v.chunk = c.id and v.model in (select id from models)"
    " where c.id = ?"
)
Tell = Callable[[str, int, int], None]
"""(current step, done, total). Raises when the run is to stop."""


class Counts(msgspec.Struct):
    files: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    left_out: int = 0
    chunks: int = 0
    embedded: int = 0


class Row(msgspec.Struct, frozen=True):
    id: int
    size: int
    mtime: int
    ctime: int
    hash: bytes
    left_out: str


Batch = list[tuple[checkout.ListedFile, KnownFile]]
"""Files to read, each with what the index has of it."""


def prepare_entries(root: str, settings: IndexSettings, batch: Batch) -> list[FileEntry | None]:
    """Everything that needs no database; may run in another process."""
    return [read_entry(root, listed_file, settings, known) for listed_file, known in batch]


class Update:
    def __init__(self, db: apsw.Connection, root: str, settings: IndexSettings, tell: Tell) -> None:
        self._db, self._root, self._settings, self._tell = db, root, settings, tell
        self.counts = Counts()

    def run(self, listing: checkout.Listing) -> Counts:
        known_rows = self._indexed_files()
        changed = [
            listed_file
            for listed_file in listing.files
            if not _is_same_file(known_rows.get(listed_file.name), listed_file)
        ]
        gone = known_rows.keys() - {listed_file.name for listed_file in listing.files}
        # Removed first: a renamed file finds the vectors of its old chunks among the spare ones.
        self._remove([known_rows[path].id for path in gone])
        with process_map(len(changed) >= MANY_FILES) as each:
            self._write_all(changed, known_rows, each)
        self.counts.files = len(listing.files)
        self.counts.left_out = fetch_required_row(self._db, "select count(*) from files where left_out <> ''")[0]
        return self.counts

    def _indexed_files(self) -> dict[str, Row]:
        rows = self._db.execute("select path, id, size, mtime, ctime, hash, left_out from files")
        return {row[0]: Row(*row[1:]) for row in rows}

    def _remove(self, gone: Sequence[int]) -> None:
        for batch in _split_batches(gone, BATCH_FILES):
            with self._db:
                files = [(file,) for file in batch]
                self._drop([row[0] for row in self._db.executemany("select id from chunks where file = ?", files)])
                self._db.executemany("delete from texts where file = ?", files)
                self._db.executemany("delete from files where id = ?", files)
        self.counts.removed += len(gone)

    def _write_all(
        self, changed: Sequence[checkout.ListedFile], known_rows: dict[str, Row], each: Map[Any, Any]
    ) -> None:
        done = 0
        self._tell("index", done, len(changed))
        # Looked up per batch: data of all files at once would fill the memory.
        given = (
            [(f, self._known_file(known_rows.get(f.name))) for f in b] for b in _split_batches(changed, BATCH_FILES)
        )
        made = each(partial(prepare_entries, self._root, self._settings), given)
        for batch, pieces in zip(_split_batches(changed, BATCH_FILES), made, strict=True):
            self._write(batch, pieces, known_rows)
            done += len(batch)
            self._tell("index", done, len(changed))

    def _known_file(self, row: Row | None) -> KnownFile:
        # An excluded file has no chunks to keep, whatever its hash.
        if row is None or row.left_out:
            return NOTHING
        chunks = self._db.execute("select kind, symbol, hash from chunks where file = ?", (row.id,))
        return KnownFile(row.hash, tuple(chunks))

    def _write(
        self, batch: Sequence[checkout.ListedFile], pieces: Sequence[FileEntry | None], known_rows: dict[str, Row]
    ) -> None:
        with self._db:
            dropped: list[int] = []
            for listed_file, made in zip(batch, pieces, strict=True):
                if made is None:
                    self._touch(known_rows[listed_file.name].id, listed_file)
                else:
                    dropped += self._write_file(known_rows.get(listed_file.name), made)
            self._drop(dropped)

    def _touch(self, file: int, listed_file: checkout.ListedFile) -> None:
        times = (listed_file.size, trusted_mtime(listed_file), listed_file.ctime, file)
        self._db.execute("update files set size = ?, mtime = ?, ctime = ? where id = ?", times)

    def _write_file(self, row: Row | None, made: FileEntry) -> list[int]:
        """Return chunks that are no longer in it, still to be dropped."""
        listed_file = made.listed_file
        values = (
            listed_file.name,
            listed_file.size,
            made.mtime,
            listed_file.ctime,
            made.hash,
            made.lang,
            made.left_out,
        )
        file = fetch_required_row(
            self._db, "insert into files (path, size, mtime, ctime, hash, lang, left_out) values (?, ?, ?, ?, ?, ?, ?)"
            " on conflict (path) do update set size = excluded.size, mtime = excluded.mtime, ctime = excluded.ctime,"
            " hash = excluded.hash, lang = excluded.lang, left_out = excluded.left_out returning id", values,
        )[0]  # fmt: skip
        self.counts.changed += row is not None
        self.counts.added += row is None
        # An excluded file keeps its row, with the reason, but no text.
        if made.parts:
            self._db.execute("insert or replace into texts values (?, ?)", (file, made.text))
        else:
            self._db.execute("delete from texts where file = ?", (file,))
        return self._put_parts(file, listed_file.name, made.parts)

    def _put_parts(self, file: int, path: str, parts: Sequence[FileChunk]) -> list[int]:
        """Existing chunks keep their row, words and vector."""
        old: dict[ChunkKey, list[int]] = {}
        for id_, kind, symbol, digest in self._db.execute(
            # Popped from the end: equal chunks are matched in order.
            "select id, kind, symbol, hash from chunks where file = ? order by id desc",
            (file,),
        ):
            old.setdefault((kind, symbol, digest), []).append(id_)
        for part in parts:
            same = old.get(part.key)
            if same:
                self._db.execute(
                    "update chunks set start = ?, stop = ? where id = ?", (part.start, part.stop, same.pop())
                )
            else:
                self._insert(file, path, part)
        return list(itertools.chain(*old.values()))

    def _insert(self, file: int, path: str, part: FileChunk) -> None:
        values = (file, part.kind, part.symbol, part.start, part.stop, part.hash)
        self._db.execute("insert into chunks (file, kind, symbol, start, stop, hash) values (?, ?, ?, ?, ?, ?)", values)
        id_ = self._db.last_insert_rowid()
        named = searchable_words(" ".join(dict.fromkeys((part.symbol, *(d.symbol for d in part.definitions)))))
        self._db.execute(
            "insert into words (rowid, name, path, body) values (?, ?, ?, ?)",
            (id_, named, searchable_words(path), part.words),
        )
        self._db.execute("insert into tokens (rowid, token) values (?, ?)", (id_, part.tokens))
        for defined in part.definitions:
            self._define(id_, defined)
        self.counts.chunks += 1

    def _define(self, chunk: int, one: Definition) -> None:
        self._db.execute(
            "insert into definitions (chunk, name, symbol, kind, first, last) values (?, ?, ?, ?, ?, ?)",
            (chunk, one.name, one.symbol, one.kind, one.start, one.end),
        )
        id_ = self._db.last_insert_rowid()
        self._db.execute("insert into names (rowid, name) values (?, ?)", (id_, squeeze_name(one.name)))

    def _drop(self, chunks: Sequence[int]) -> None:
        """Their vectors are kept for a while: the content may return under another path or branch."""
        parameters = [(c,) for c in chunks]
        self._db.executemany(KEEP_VECTOR, parameters)
        of_any_model = "delete from vectors where model in (select id from models) and chunk = ?"
        self._db.executemany(of_any_model, parameters)
        self._db.executemany("delete from words where rowid = ?", parameters)
        self._db.executemany("delete from tokens where rowid = ?", parameters)
        # By id: with a subquery the same rows took four times as long.
        defined = list(self._db.executemany("select id from definitions where chunk = ?", parameters))
        self._db.executemany("delete from names where rowid = ?", defined)
        self._db.executemany("delete from definitions where chunk = ?", parameters)
        self._db.executemany("delete from chunks where id = ?", parameters)


def _is_same_file(row: Row | None, listed_file: checkout.ListedFile) -> bool:
    return row is not None and (row.size, row.mtime, row.ctime) == (
        listed_file.size,
        listed_file.mtime,
        listed_file.ctime,
    )


def _split_batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]


class Page(msgspec.Struct):
    """Chunks to embed, (id, file, start, stop, symbol, path) in id order, and the texts of their files."""

    chunks: list[tuple[Any, ...]]
    texts: dict[int, bytes]


def embed_page(embedder: Embedder, page: Page) -> list[bytes]:
    lines = {file: unpack_text(text) for file, text in page.texts.items()}
    return pack_vectors(
        embedder.documents(
            [
                Passage("\n".join(lines[file][start - 1 : stop]), symbol, path)
                for _, file, start, stop, symbol, path in page.chunks
            ]
        )
    )


def embedded_by(settings: IndexSettings, page: Page) -> list[bytes]:
    """In another process: an embedder cannot be pickled, settings can."""
    return embed_page(embedders.choose_embedder(settings), page)


class Embedding:
    """Gives every chunk a vector of one model; the answering model changes only when the last one is there."""

    def __init__(self, db: apsw.Connection, settings: IndexSettings, tell: Tell) -> None:
        self._db, self._settings, self._tell = db, settings, tell

    def run(self, embedder: Embedder) -> int:
        model = self._model(embedder.id)
        self._reuse(model)
        missing = self._missing(model)
        # An endpoint does the work itself: more processes would only load it.
        many = len(missing) >= MANY_CHUNKS and self._settings.embedder == BUILTIN
        work = partial(embedded_by, self._settings) if many else partial(embed_page, embedder)
        with process_map(many) as each:
            self._write_all(model, missing, each, work)
        with self._db:
            # In one transaction with the removal of the other model's vectors: an answer never mixes two.
            set_meta(self._db, model=embedder.id)
            self._db.execute("delete from vectors where model <> ?", (model,))
            self._db.execute("delete from models where id <> ?", (model,))
            self._db.execute("delete from spare_vectors where model <> ?", (model,))
            self._db.execute(
                "delete from spare_vectors where id <= (select max(id) from spare_vectors) - ?", (MOST_SPARE,)
            )
        return len(missing)

    def _write_all(
        self, model: int, missing: Sequence[int], each: Map[Any, Any], work: Callable[[Page], list[bytes]]
    ) -> None:
        done = 0
        for ids, vectors in zip(
            _split_batches(missing, BATCH_CHUNKS),
            each(work, map(self._page, _split_batches(missing, BATCH_CHUNKS))),
            strict=True,
        ):
            self._tell("embed", done, len(missing))
            with self._db:
                rows = [(model, id_, vector) for id_, vector in zip(ids, vectors, strict=True)]
                self._db.executemany("insert or replace into vectors values (?, ?, ?)", rows)
            done += len(ids)

    def _model(self, name: str) -> int:
        with self._db:
            self._db.execute("insert or ignore into models (name) values (?)", (name,))
        return int(fetch_required_row(self._db, "select id from models where name = ?", (name,))[0])

    def _reuse(self, model: int) -> None:
        """Chunks whose content had a vector before, in another file or branch, get it back."""
        with self._db:
            # "or ignore": two spare vectors may have the same content; the first one is used.
            self._db.execute(
                "insert or ignore into vectors select ?1, c.id, s.vector from chunks c join files f on f.id = c.file"
                f" join spare_vectors s on s.model = ?1 and s.content = {CONTENT}"
                " where not exists (select 1 from vectors v where v.model = ?1 and v.chunk = c.id)", (model,),
            )  # fmt: skip

    def _missing(self, model: int) -> list[int]:
        rows = self._db.execute(
            "select id from chunks except select chunk from vectors where model = ? order by 1", (model,)
        )
        return [row[0] for row in rows]

    def _page(self, ids: Sequence[int]) -> Page:
        marks = ",".join("?" * len(ids))
        chunks = self._db.execute(
            "select c.id, c.file, c.start, c.stop, c.symbol, f.path from chunks c join files f on f.id = c.file"
            f" where c.id in ({marks}) order by c.id", tuple(ids),
        ).fetchall()  # fmt: skip
        texts = self._db.execute(
            f"select file, text from texts where file in (select file from chunks where id in ({marks}))", tuple(ids)
        )
        return Page(chunks, dict(texts))
