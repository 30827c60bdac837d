"""SQLite: WAL, synchronous FULL, one write connection. Acknowledged means durable (P2)."""

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from holdfast.core.erase import Change
from holdfast.core.event import Event
from holdfast.core.job import ClaimedJob, Job
from holdfast.core.ports import EventQuery, HistoryEntry, HistoryQuery, Ref, StateQuery, StateRow
from holdfast.stores import backup, erase
from holdfast.stores.body_cipher import ENCRYPTED_MARK, READING, BodyCipher
from holdfast.stores.rows import (
    as_event,
    body_rows,
    decode,
    encode,
    facet_words,
    key_range,
    load_queries,
    match_expression,
    select_events,
    select_marks,
)
from holdfast.stores.sqlite_connection import BUSY_MS, for_reading, for_writing, translate_sqlite_errors

# Carries SQLite's write-ahead log over into the database, in a thread of its own.

# In pages of the write-ahead log; SQLite's own default is a thousand, inside of a commit.
FULL_PAGES = 4000


class Checkpointer:
    """The thread begins with the first need: a store that is only looked at has none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._due, self._closing = threading.Event(), False
        self._thread: threading.Thread | None = None

    def watch(self, db: apsw.Connection) -> None:
        """In place of SQLite's own."""
        db.set_wal_hook(self._grown)

    def _grown(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        if pages >= FULL_PAGES and not self._due.is_set():
            self._due.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="checkpoint", daemon=True)
                self._thread.start()
        return apsw.SQLITE_OK

    def _run(self) -> None:
        db: apsw.Connection | None = None
        while self._due.wait():
            self._due.clear()  # Before the work, or what is asked for meanwhile would be forgotten.
            if self._closing:
                break
            # A disk that is full, or damage: the writer meets that too, and says so. The next commit asks again.
            with contextlib.suppress(apsw.Error):
                db = db or self._connection()
                # PASSIVE waits for nobody: neither the writer nor a reader is stopped by it.
                db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        if db:
            db.close()

    def _connection(self) -> apsw.Connection:
        db = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
        db.set_busy_timeout(BUSY_MS)
        db.pragma("journal_mode")  # Until it has looked into the file it knows of no log and carries nothing over.
        return db

    def close(self) -> None:
        self._closing = True
        self._due.set()
        if self._thread:
            self._thread.join()


# The read side on SQLite: its own read-only connection, so that a slow read never sits in front of a hook.

SQL = load_queries()
# The largest number of SQLite: stands for "no upper bound" in the query.
LARGEST_SEQ = (1 << 63) - 1
# Events in one page of a replay.
PAGE = 2_000


class SqliteReader:
    def __init__(self, path: Path, cipher: BodyCipher = READING) -> None:
        self._path, self._cipher = path, cipher
        with translate_sqlite_errors(path):
            self._db = for_reading(path)
        self._names: dict[int, str] = {}

    def head(self) -> int:
        value: int = self._value("head")
        return value

    def events(self, query: EventQuery) -> list[Event]:
        statement = select_events(query, self._id_of)
        if statement is None:
            return []
        events = [as_event(row, self._name, self._cipher) for row in self._all(*statement)]
        return events[::-1] if query.newest else events

    def marks(self, query: EventQuery, every: int) -> list[int]:
        statement = select_marks(query, every, self._id_of)
        return [seq for (seq,) in self._all(*statement)] if statement else []

    def replay(self, after: int = 0, session: str = "", project: str = "") -> Iterator[Event]:
        """In pages, so that no read transaction stays open long enough to hold back a checkpoint."""
        while page := self.events(EventQuery(after=after, session=session, project=project, limit=PAGE)):
            yield from page
            after = page[-1].seq

    def event(self, seq: int) -> Event | None:
        events = self.events(EventQuery(after=seq - 1, before=seq + 1, limit=1, bodies=True))
        return events[0] if events else None

    def history(self, query: HistoryQuery) -> list[int]:
        expression = match_expression(query, self._id_of)
        if expression is None:
            return []
        before = query.before or LARGEST_SEQ
        if query.since:
            rows = self._all(SQL["find_history_since"], [expression, before, query.since, query.limit])
        else:
            rows = self._all(SQL["find_history"], [expression, before, query.limit])
        return [seq for (seq,) in rows]

    def document(self, ref: Ref) -> bytes | None:
        doc: bytes | None = self._value("state", ref.kind, ref.key)
        return doc

    def state(self, ref: Ref) -> dict[str, Any] | None:
        doc = self.document(ref)
        return None if doc is None else decode(doc)

    def states(self, query: StateQuery) -> list[tuple[Ref, dict[str, Any]]]:
        return [(Ref(query.kind, key), decode(doc)) for key, doc in self.documents(query)]

    def documents(self, query: StateQuery) -> list[tuple[str, bytes]]:
        clauses: list[str] = ["kind = ?"]
        values: list[Any] = [query.kind]
        if query.project:
            clauses.append("project = ?")
            # A project that was never seen has no number: -1 matches no row.
            values.append(self._id_of(query.project) or -1)
        if query.status:
            clauses.append("status = ?")
            values.append(query.status)
        if query.prefix:
            clauses.append("key >= ? and key < ?")
            values.extend(key_range(query.prefix))
        if query.before:
            clauses.append("(at, key) < (?, ?)")
            values.extend((self._listed_at(query.kind, *query.before), query.before[1]))
        # Few keys begin alike: they are found by key and then sorted, not filtered out of all in order of time.
        # The unary plus keeps SQLite from using the index on `at` for the order.
        order = "+at" if query.prefix else "at"
        sql = f"select key, doc from states where {' and '.join(clauses)} order by {order} desc, key desc limit ?"
        return [(key, doc) for key, doc in self._all(sql, [*values, query.limit])]

    def _listed_at(self, kind: str, at: int, key: str) -> int:
        """Where the last row seen stands in the list: a little below its own time, because that may lag."""
        value: int = min((at, *(listed_at for (listed_at,) in self._all(SQL["listed_at"], [kind, key]))))
        return value

    def rows(self, feature: str) -> Iterator[StateRow]:
        with translate_sqlite_errors(self._path):
            for kind, key, *rest in self._db.execute(SQL["rows"], (feature,)):
                yield StateRow(Ref(kind, key), *rest)

    def counts(self) -> dict[str, int]:
        names = ("events", "jobs", "dead_jobs", "oldest_body")
        return dict(zip(names, self._all(SQL["counts"])[0], strict=True))

    def jobs(self, limit: int = 100) -> list[dict[str, Any]]:
        names = ("id", "kind", "dedupe", "run_at", "attempts", "owner", "lease_until", "dead", "error")
        return [dict(zip(names, row, strict=True)) for row in self._all(SQL["jobs"], [limit])]

    def body_keys(self) -> dict[bytes, int]:
        return dict(self._all(SQL["body_keys"], {"mark": ENCRYPTED_MARK}))

    def bodies_in_form(self, encrypted: bool, after: int, limit: int) -> list[int]:
        values = {"mark": ENCRYPTED_MARK, "encrypted": encrypted, "after": after, "limit": limit}
        return [seq for (seq,) in self._all(SQL["bodies_in_form"], values)]

    def any_due(self, now: int, kinds: Sequence[str]) -> bool:
        return bool(self._all(SQL["any_due"], [now, now, encode(kinds).decode()]))

    def seqs_of_keys(self, keys: Iterable[str]) -> dict[str, int]:
        return dict(self._all(SQL["known"], [encode(list(keys)).decode()]))

    def meta(self, name: str) -> str:
        return self._value("meta", name) or ""

    def close(self) -> None:
        self._db.close()

    def _name(self, id_: int) -> str:
        name = self._names.get(id_)
        if name is None:
            name = self._names[id_] = self._value("name", id_) or ""
        return name

    def _id_of(self, name: str) -> int | None:
        value: int | None = self._value("name_id", name)
        return value

    def _all(self, sql: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Every read goes through here, so that damage is called damage at every door."""
        with translate_sqlite_errors(self._path):
            return self._db.execute(sql, values).fetchall()

    def _value(self, name: str, *values: Any) -> Any:
        rows = self._all(SQL[name], values)
        return rows[0][0] if rows else None


REMEMBERED_NAMES = 50_000
# Documents whose time moved by less are written without touching the index that lists are read from.
AT_MAY_LAG_MS = 2_000


class SqliteStore:
    def __init__(self, path: Path, *, backups: Path | None = None, cipher: BodyCipher = READING) -> None:
        self.path, self._cipher = path, cipher
        with translate_sqlite_errors(path):
            self._db = for_writing(path)
            backup.migrate_sqlite(self._db, path, backups)
            self._head: int = self._value("head")
        self._checkpointer = Checkpointer(path)
        self._checkpointer.watch(self._db)
        self._names: dict[str, int] = {}
        self._new_names: list[str] = []

    @contextlib.contextmanager
    def transaction(self, *, lasting: bool = True) -> Iterator[int]:
        with translate_sqlite_errors(self.path), contextlib.nullcontext() if lasting else self._not_lasting():
            # IMMEDIATE takes the write lock at once; one taken after reads could be refused in the middle.
            self._db.execute("begin immediate")
            try:
                yield self._head
                self._db.execute("commit")
            except BaseException:
                self._undo()
                raise
        self._new_names.clear()

    @contextlib.contextmanager
    def _not_lasting(self) -> Iterator[None]:
        """Nothing is synced now; the next lasting commit syncs this one with it, for the log of SQLite is one file."""
        self._db.execute("pragma synchronous=normal")
        try:
            yield
        finally:
            self._db.execute("pragma synchronous=full")

    def _undo(self) -> None:
        if self._db.in_transaction:
            with contextlib.suppress(apsw.Error):
                self._db.execute("rollback")
        # Numbers of names that were rolled back may be given to other names.
        for name in self._new_names:
            self._names.pop(name, None)
        self._new_names.clear()
        # A commit that failed may still have happened (an error after the write): ask rather than assume.
        with contextlib.suppress(apsw.Error):
            self._head = self._value("head")

    def seqs_of_keys(self, keys: Sequence[str]) -> dict[str, int]:
        with translate_sqlite_errors(self.path):
            return dict(self._db.execute(SQL["known"], (encode(list(keys)).decode(),)))

    def session_agents(self, sessions: Sequence[str]) -> dict[str, str]:
        with translate_sqlite_errors(self.path):
            return dict(self._db.execute(SQL["session_agents"], (encode(list(sessions)).decode(),)))

    def append(self, events: Sequence[Event]) -> None:
        many, name = self._db.executemany, self._name_id
        many(
            SQL["add_event"],
            [
                (e.seq, name(e.session), name(e.project), e.at, name(e.kind), name(e.tool), name(e.agent), e.version)
                for e in events
            ],
        )
        many(SQL["add_fact"], [(e.seq, e.key, encode(e.data)) for e in events])
        many(SQL["add_body"], body_rows(events, self._cipher))
        self._head = events[-1].seq

    def load(self, refs: Sequence[Ref]) -> dict[Ref, bytes]:
        with translate_sqlite_errors(self.path):
            return {ref: doc for ref in refs for (doc,) in self._db.execute(SQL["load"], (ref.kind, ref.key))}

    def save(self, rows: Sequence[StateRow]) -> None:
        name = self._name_id
        # Rows whose facets stay as they are need no change of any index.
        moved = [row for row in rows if not self._save_doc(row, name(row.project))]
        self._db.executemany(
            SQL["save"],
            [
                (r.ref.kind, r.ref.key, r.feature, r.version, name(r.project), r.status, r.at, r.doc)
                for r in moved
            ],
        )  # fmt: skip

    def _save_doc(self, row: StateRow, project: int) -> bool:
        """Whether only the text had to be written."""
        where = (row.ref.kind, row.ref.key, project, row.status, row.at - AT_MAY_LAG_MS, row.at)
        return self._changed("save_doc", row.doc, row.version, *where)

    def drop_states(self, feature: str) -> None:
        self._db.execute(SQL["drop_states"], (feature,))

    def enqueue(self, jobs: Sequence[Job], now: int) -> None:
        rows = [(j.kind, j.dedupe, j.run_at or now, encode(j.payload)) for j in jobs]
        self._db.executemany(SQL["enqueue"], rows)

    def claim(self, owner: str, now: int, lease_ms: int, limit: int, kinds: Sequence[str]) -> list[ClaimedJob]:
        due = list(self._db.execute(SQL["due"], (now, now, encode(kinds).decode(), limit)))
        for row in due:
            self._db.execute(SQL["take"], (owner, now + lease_ms, row[0]))
        return [
            ClaimedJob(id=id_, kind=kind, dedupe=dedupe, attempts=attempts + 1, payload=decode(payload))
            for id_, kind, dedupe, attempts, payload in due
        ]

    def extend(self, job: int, owner: str, until: int) -> bool:
        return self._changed("extend", until, job, owner)

    def finish(self, job: int, owner: str) -> bool:
        # A job that was asked for again while it ran is run once more instead of being removed.
        return self._changed("run_again", job, owner) or self._changed("finish", job, owner)

    def retry(self, job: int, owner: str, run_at: int, error: str, dead: bool) -> bool:
        return self._changed("retry", run_at, error, int(dead), job, owner)

    def release(self, owner: str) -> int:
        return len(list(self._db.execute(SQL["release"], (owner,))))

    def set_meta(self, name: str, value: str) -> None:
        self._db.execute(SQL["set_meta"], (name, value))

    def expire_bodies(self, older_than: int, limit: int) -> int:
        """What is deleted is overwritten in its page, so that no free page tells it."""
        with self._overwriting():
            return len(list(self._db.execute(SQL["expire_bodies"], (limit, older_than))))

    def change_bodies(self, seqs: Sequence[int]) -> int:
        with self._overwriting():
            return erase.EraseSql(self._db, self._cipher).change_bodies(seqs)

    @contextlib.contextmanager
    def _overwriting(self) -> Iterator[None]:
        # Only here: overwriting every deleted byte would make ordinary writes slower.
        self._db.execute("pragma secure_delete = on").fetchall()
        try:
            yield
        finally:
            self._db.execute("pragma secure_delete = off").fetchall()

    def index_history(self, entries: Sequence[HistoryEntry], before: str, after: str) -> bool:
        # Only from where the mark stood when they were read: text erased meanwhile must not come back.
        if not self._changed("move_history_mark", after, before):
            return False
        rows = [(e.seq, e.words, e.paths, facet_words(e, self._name_id)) for e in entries]
        self._db.executemany(SQL["add_history"], rows)
        return True

    def rows_with(self, probes: Iterable[bytes]) -> Iterator[erase.StoredRow]:
        return erase.EraseSql(self._db, self._cipher).rows_with(probes)

    def rewrite(self, probes: Iterable[bytes], change: Change) -> int:
        # Names may be rewritten too, and the cache would give new events the old ones.
        self._names.clear()
        return erase.EraseSql(self._db, self._cipher).rewrite(probes, change)

    def blank_events(self, sessions: Sequence[str], projects: Sequence[str]) -> int:
        erased, nothing = self._name_id(erase.ERASED_KIND), self._name_id("")
        self._names.clear()
        return erase.EraseSql(self._db, self._cipher).blank_events(sessions, projects, erased, nothing)

    def vacuum_erased(self) -> None:
        with translate_sqlite_errors(self.path):
            erase.vacuum_erased(self._db, self.path)

    def truncate_log(self) -> None:
        with translate_sqlite_errors(self.path):
            erase.truncate_log(self._db, self.path)

    def reader(self) -> SqliteReader:
        return SqliteReader(self.path, self._cipher)

    def close(self) -> None:
        self._checkpointer.close()
        self._db.close()

    def _changed(self, name: str, *values: Any) -> bool:
        # The statements end with `returning`: a row comes back where one was changed.
        return bool(list(self._db.execute(SQL[name], values)))

    def _value(self, name: str, *values: Any) -> Any:
        return self._db.execute(SQL[name], values).get

    def _name_id(self, name: str) -> int:
        known_id = self._names.get(name)
        return self._intern(name) if known_id is None else known_id

    def _intern(self, name: str) -> int:
        if len(self._names) > REMEMBERED_NAMES:
            self._names.clear()
        name_id = self._value("name_id", name)
        if name_id is None:
            name_id = self._value("add_name", name)
            self._new_names.append(name)
        self._names[name] = name_id
        value: int = name_id
        return value
