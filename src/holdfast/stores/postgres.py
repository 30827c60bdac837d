"""PostgreSQL: daemons on several machines, one log. A lock in each transaction keeps it one writer at a time."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg.rows import dict_row

from holdfast.core.erase import Change
from holdfast.core.errors import StoreMoved, StoreUnavailable
from holdfast.core.event import Event
from holdfast.core.history import MARK, HistoryMark, history_entry
from holdfast.core.job import ClaimedJob, Job
from holdfast.core.ports import EventQuery, HistoryEntry, HistoryQuery, Ref, StateQuery, StateRow
from holdfast.stores import backup, erase
from holdfast.stores.body_cipher import ENCRYPTED_MARK, READING, BodyCipher
from holdfast.stores.postgres_connection import SQL, Link, for_reading, for_writing, translate_postgres_errors
from holdfast.stores.rows import (
    FACETS,
    PAGE,
    DecodedReads,
    as_event,
    body_rows,
    build_tsquery,
    decode,
    encode,
    key_range,
    select_events,
    select_marks,
    tsquery_of_file,
)

# The read side on PostgreSQL: its own read-only connection, one per thread. Each question is one statement or two.

NAME_COLUMNS = (1, 2, 4, 5, 6)
"""Where session, project, kind, tool and agent stand in a row of events."""


class PostgresReader(DecodedReads):
    def __init__(self, url: str, cipher: BodyCipher = READING) -> None:
        self._link, self._cipher = Link(url, for_reading), cipher
        self._names: dict[int, str] = {}
        with translate_postgres_errors(self._link):
            # Connects now, so that a wrong address fails when the store is opened and not at the first read.
            _ = self._link.db

    def head(self) -> int:
        value: int = self._all(SQL["head"])[0][0]
        return value

    def events(self, query: EventQuery) -> list[Event]:
        statement = select_events(query, self._ids(query).get, "%s")
        if statement is None:
            return []
        rows = self._all(statement[0].encode(), *statement[1])
        # All names of a page with one question, instead of one for each row.
        self._learn({row[i] for row in rows for i in NAME_COLUMNS})
        events = [as_event(row, self._names.__getitem__, self._cipher) for row in rows]
        return events[::-1] if query.newest else events

    def marks(self, query: EventQuery, every: int) -> list[int]:
        statement = select_marks(query, every, self._ids(query).get, "%s")
        return [seq for (seq,) in self._all(statement[0].encode(), *statement[1])] if statement else []

    def _ids(self, query: EventQuery) -> dict[str, int]:
        names = [query.session, query.project, query.tool, *query.kinds]
        return dict(self._all(SQL["name_ids"], names)) if any(names) else {}

    def event(self, seq: int) -> Event | None:
        events = self.events(EventQuery(after=seq - 1, before=seq + 1, limit=1, bodies=True))
        return events[0] if events else None

    def history(self, query: HistoryQuery) -> list[int]:
        clauses: list[tuple[str, Any]] = [
            ("h.words @@ to_tsquery('simple', %s)", build_tsquery(query)),
            ("h.paths @@ to_tsquery('simple', %s)", tsquery_of_file(query)),
            ("h.failed = %s", query.failed),
            *((f"e.{field} = (select id from names where name = %s)", getattr(query, field)) for field, _ in FACETS),
            ("e.kind in (select id from names where name = any(%s))", list(query.kinds)),
            ("e.at >= %s", query.since),
        ]
        conditions = [(clause, value) for clause, value in clauses if value]
        if not conditions:
            return []
        if query.before:
            conditions.append(("h.seq < %s", query.before))
        where = " and ".join(clause for clause, _ in conditions)
        # The clauses are fixed texts; everything that comes from outside is a parameter.
        sql = f"select h.seq from history h join events e on e.seq = h.seq where {where} order by h.seq desc limit %s"
        return [seq for (seq,) in self._all(sql.encode(), *(value for _, value in conditions), query.limit)]

    def document(self, ref: Ref) -> bytes | None:
        rows = self._all(SQL["state"], ref.kind, ref.key)
        return bytes(rows[0][0]) if rows else None

    def documents(self, query: StateQuery) -> list[tuple[str, bytes]]:
        clauses, values = ["kind = %s"], list[Any]([query.kind])
        if query.project:
            clauses.append("project = (select id from names where name = %s)")
            values.append(query.project)
        if query.status:
            clauses.append("status = %s")
            values.append(query.status)
        if query.prefix:
            clauses.append("key >= %s and key < %s")
            values.extend(key_range(query.prefix))
        if query.before:
            clauses.append("(at, key) < (%s, %s)")
            values.extend(query.before)
        sql = f"select key, doc from states where {' and '.join(clauses)} order by at desc, key desc limit %s"
        return [(key, bytes(doc)) for key, doc in self._all(sql.encode(), *values, query.limit)]

    def rows(self, feature: str) -> Iterator[StateRow]:
        # Paged by key instead of a server-side cursor, so that no transaction stays open.
        kind = key = ""
        while page := self._all(SQL["rows"], feature, kind, key, PAGE):
            for kind, key, *rest in page:
                yield StateRow(Ref(kind, key), *rest)

    def counts(self) -> dict[str, int]:
        return self._dicts(SQL["counts"])[0]

    def jobs(self, limit: int = 100) -> list[dict[str, Any]]:
        return self._dicts(SQL["jobs"], limit)

    def body_keys(self) -> dict[bytes, int]:
        return {bytes(name): count for name, count in self._all(SQL["body_keys"], ENCRYPTED_MARK)}

    def bodies_in_form(self, encrypted: bool, after: int, limit: int) -> list[int]:
        return [seq for (seq,) in self._all(SQL["bodies_in_form"], after, ENCRYPTED_MARK, encrypted, limit)]

    def any_due(self, now: int, kinds: Sequence[str]) -> bool:
        return bool(self._all(SQL["any_due"], now, now, list(kinds)))

    def seqs_of_keys(self, keys: Iterable[str]) -> dict[str, int]:
        return dict(self._all(SQL["known"], list(keys)))

    def meta(self, name: str) -> str:
        rows = self._all(SQL["meta"], name)
        return rows[0][0] if rows else ""

    def close(self) -> None:
        self._link.lose()

    def _learn(self, ids: set[int]) -> None:
        if missing := [id_ for id_ in ids if id_ not in self._names]:
            self._names.update(self._all(SQL["names"], missing))

    def _all(self, sql: bytes, *values: Any) -> list[tuple[Any, ...]]:
        with translate_postgres_errors(self._link):
            return self._link.db.execute(sql, values, binary=True).fetchall()

    def _dicts(self, sql: bytes, *values: Any) -> list[dict[str, Any]]:
        with translate_postgres_errors(self._link):
            return self._link.db.cursor(row_factory=dict_row).execute(sql, values).fetchall()


__all__ = ["PostgresReader", "PostgresStore"]

REMEMBERED_NAMES = 50_000


class PostgresStore:
    """Inside a transaction everything is sent in pipeline mode: writes travel with the commit, in one round trip."""

    def __init__(self, url: str, *, cipher: BodyCipher = READING) -> None:
        self.url, self._cipher = url, cipher
        self._link = Link(url, _prepare_for_writing, reconnects_beside=True)
        self._schema = backup.newest_version("postgres")
        self._assumes = False
        """Whether this transaction looks nothing up that the commit finds out anyway."""
        self._names: dict[str, int] = {}
        self._new_names: list[str] = []
        self._deferred: list[tuple[str, Sequence[Any]]] | None = None
        """What a transaction without the lock writes, until its commit."""
        with translate_postgres_errors(self._link):
            self._db = self._link.db

    shared = True

    @contextlib.contextmanager
    def transaction(
        self,
        *,
        lasting: bool = True,  # noqa: ARG002 - the server keeps all of it
        locked: bool = True,
        assumed_head: int = -1,
        patience_s: float = 0.0,
    ) -> Iterator[int]:
        with translate_postgres_errors(self._link), self._link.giving_up_after(patience_s):
            self._reach()
            try:
                if locked:
                    with self._db.pipeline():
                        yield self._begin()
                        # Inside of the pipeline, so that it travels with the writes.
                        commit = self._db.execute("commit")
                    self._check_commit(commit)
                else:
                    yield from self._without_lock(assumed_head)
            except BaseException:
                self._undo()
                raise
        self._new_names.clear()

    def _without_lock(self, assumed_head: int) -> Iterator[int]:
        """Reads first, each statement by itself; all writes and the commit travel together, under the lock.

        A daemon far from the server thus keeps no other one waiting while its answers are under way. New names are
        stored at once: within the transaction they could wait for the lock of somebody who waits for them.
        """
        self._assumes = assumed_head >= 0
        self._deferred = []
        try:
            head = assumed_head if self._assumes else self._head()
            yield head
            writes = self._deferred
        finally:
            self._deferred, self._assumes = None, False
        if not writes:
            return
        try:
            self._commit_all(head, writes)
        except psycopg.errors.UniqueViolation as error:
            if assumed_head < 0:
                raise
            # A delivery that came before: known, had it been looked up.
            raise StoreMoved("a delivery is known already", where=self._link.where) from error

    def _commit_all(self, head: int, writes: Sequence[tuple[str, Sequence[Any]]]) -> None:
        with self._db.pipeline():
            self._db.execute(SQL["begin"])
            self._db.execute(SQL["lock"], self._link.lock_key)
            # Divides by zero where the head moved, which fails everything behind it in the pipeline.
            self._db.execute(SQL["unmoved"], (head, self._schema), prepare=False)
            for (
                name,
                values,
            ) in writes:  # Not prepared: the driver would count on a statement that was skipped with the rest.
                self._db.execute(SQL[name], values, prepare=False)
            commit = self._db.execute("commit", prepare=False)
        self._check_commit(commit)

    def _check_commit(self, commit: psycopg.Cursor) -> None:
        # The server answers COMMIT with ROLLBACK, and no error, where the transaction had failed.
        if commit.statusmessage != "COMMIT":
            raise StoreUnavailable(f"commit became {commit.statusmessage}", where=self._link.where)

    def _reach(self) -> None:
        db = self._link.db
        if db is not self._db:
            # The server may have come back from a backup, where the same number is another name.
            self._names.clear()
            self._db = db

    def _begin(self) -> int:
        self._db.execute(SQL["begin"])
        self._db.execute(SQL["lock"], self._link.lock_key)
        return self._head()

    def _head(self) -> int:
        head, schema = self._all("head_and_schema")[0]
        # Another daemon may have been upgraded, and the tables with it, while this one ran.
        backup.refuse_newer(schema, backup.newest_version("postgres"), self._link.where)
        value: int = head
        return value

    def _undo(self) -> None:
        for name in self._new_names:
            self._names.pop(name, None)
        self._new_names.clear()
        try:
            self._db.execute("rollback")
        except psycopg.Error:
            # Not even a rollback went through: the state of the connection is not known.
            self._link.lose()

    def seqs_of_keys(self, keys: Sequence[str]) -> dict[str, int]:
        # A key that is there already fails the commit, and then it is looked up.
        return dict(self._all("known", list(keys))) if keys and not self._assumes else {}

    def session_agents(self, sessions: Sequence[str]) -> dict[str, str]:
        return dict(self._all("session_agents", list(sessions))) if sessions else {}

    def append(self, events: Sequence[Event]) -> None:
        ids = self._ids(name for e in events for name in (e.session, e.project, e.kind, e.tool, e.agent))
        self._columns(
            "add_events",
            [
                (e.seq, ids[e.session], ids[e.project], e.at, ids[e.kind], ids[e.tool], ids[e.agent], e.version)
                for e in events
            ],
        )  # fmt: skip
        self._columns("add_facts", [(e.seq, e.key, encode(e.data)) for e in events])
        self._columns("add_bodies", body_rows(events, self._cipher))

    def load(self, refs: Sequence[Ref]) -> dict[Ref, bytes]:
        rows = self._all("load", [r.kind for r in refs], [r.key for r in refs])
        return {Ref(kind, key): bytes(doc) for kind, key, doc in rows}

    def save(self, rows: Sequence[StateRow]) -> None:
        ids = self._ids(row.project for row in rows)
        last = {row.ref: row for row in rows}.values()  # one statement may touch a row only once
        self._columns(
            "save",
            [(r.ref.kind, r.ref.key, r.feature, r.version, ids[r.project], r.status, r.at, r.doc) for r in last],
        )

    def drop_states(self, feature: str) -> None:
        self._write("drop_states", (feature,))

    def enqueue(self, jobs: Sequence[Job], now: int) -> None:
        for job in jobs:
            self._write("enqueue", (job.kind, job.dedupe, job.run_at or now, encode(job.payload)))

    def claim(self, owner: str, now: int, lease_ms: int, limit: int, kinds: Sequence[str]) -> list[ClaimedJob]:
        values = {"owner": owner, "now": now, "until": now + lease_ms, "limit": limit, "kinds": list(kinds)}
        # Sorted by `run_at`, the first column: `returning` keeps no order.
        taken = sorted(self._db.execute(SQL["claim"], values).fetchall())
        return [
            ClaimedJob(id=id_, kind=kind, dedupe=dedupe, attempts=attempts, payload=decode(payload))
            for _run_at, id_, kind, dedupe, attempts, payload in taken
        ]

    def extend(self, job: int, owner: str, until: int) -> bool:
        return bool(self._all("extend", until, job, owner))

    def finish(self, job: int, owner: str) -> bool:
        return bool(self._all("run_again", job, owner) or self._all("finish", job, owner))

    def retry(self, job: int, owner: str, run_at: int, error: str, dead: bool) -> bool:
        return bool(self._all("retry", run_at, error, int(dead), job, owner))

    def release(self, owner: str) -> int:
        return len(self._all("release", owner))

    def set_meta(self, name: str, value: str) -> None:
        self._write("set_meta", (name, value))

    def expire_bodies(self, older_than: int, limit: int) -> int:
        return len(self._all("expire_bodies", limit, older_than))

    def change_bodies(self, seqs: Sequence[int]) -> int:
        return self._erase_sql().change_bodies(seqs)

    def index_history(self, entries: Sequence[HistoryEntry], before: str, after: str) -> bool:
        if not self._all("move_history_mark", after, before):
            return False
        self._columns("add_history", [(e.seq, e.words, e.paths, e.failed) for e in entries])
        return True

    def rows_with(self, probes: Iterable[bytes]) -> Iterator[erase.StoredRow]:
        return self._erase_sql().rows_with(probes)

    def rewrite(self, probes: Iterable[bytes], change: Change) -> int:
        self._names.clear()
        return self._erase_sql().rewrite(probes, change)

    def blank_events(self, sessions: Sequence[str], projects: Sequence[str]) -> int:
        ids = self._ids((erase.ERASED_KIND, ""))
        erased, nothing = ids[erase.ERASED_KIND], ids[""]
        self._names.clear()
        return self._erase_sql().blank_events(sessions, projects, erased, nothing)

    def _reindex(self, seqs: list[int]) -> None:
        """The words of rewritten events, as far as they are indexed."""
        if not seqs:
            return
        mark = HistoryMark.parse("".join(value for (value,) in self._all("meta", MARK)))
        # Dropped first, so that an event whose new text has no words leaves no entry behind.
        self._db.execute(SQL["drop_history"], (seqs,))
        rows = self._db.execute(SQL["events_of"], (seqs,), binary=True).fetchall()
        events = [as_event(row, str) for row in rows]
        # Only events up to the mark; the others are indexed when their turn comes.
        entries = [e for event in events if event.seq <= mark.seq and (e := history_entry(event))]
        self._columns("add_history", [(e.seq, e.words, e.paths, e.failed) for e in entries])
        self.set_meta(MARK, str(HistoryMark(mark.seq, mark.erasures + 1)))

    def vacuum_erased(self) -> None:
        """Tables are written anew, or old row versions would lie in them until the server's own vacuum comes by.
        The server's write-ahead log and its backups are the administrator's."""
        with translate_postgres_errors(self._link):
            self._reach()
            # VACUUM FULL writes a table anew; the plain one would leave the old bytes in their pages.
            self._db.execute("vacuum full facts, bodies, states, jobs, events, names")

    def truncate_log(self) -> None:
        """The server recycles its own."""

    def _erase_sql(self) -> erase.EraseSql:
        return erase.EraseSql(
            ask=lambda name, values: self._db.execute(SQL[name], values, binary=True).fetchall(),
            act=lambda name, values: self._db.execute(SQL[name], values),
            pack_ids=list,
            reindex=self._reindex,
            cipher=self._cipher,
        )

    def reader(self) -> PostgresReader:
        return PostgresReader(self.url, self._cipher)

    def close(self) -> None:
        self._link.close()

    def _all(self, name: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._db.execute(SQL[name], values, binary=True).fetchall()

    def _columns(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """One statement for all rows, each column as an array: as quick as COPY, and it may travel in a pipeline."""
        if rows:
            self._write(name, [list(column) for column in zip(*rows, strict=True)])

    def _write(self, name: str, values: Sequence[Any]) -> None:
        if self._deferred is None:
            self._db.execute(SQL[name], values)
        else:
            self._deferred.append((name, values))

    def _ids(self, names: Iterable[str]) -> dict[str, int]:
        """The numbers of these names; new ones are added, and forgotten again if the transaction fails."""
        if len(self._names) > REMEMBERED_NAMES:
            self._names.clear()
        missing = [name for name in dict.fromkeys(names) if name not in self._names]
        self._new_names.extend(missing)
        while missing:  # A name that another daemon adds at this moment is seen only by the next statement.
            self._names.update(self._all("intern", missing, missing))
            missing = [name for name in missing if name not in self._names]
        return self._names


def _prepare_for_writing(link: Link, db: psycopg.Connection) -> None:
    for_writing(db)
    backup.migrate_postgres(db, link)


def drop_tables(url: str) -> None:
    """Everything of ours on the server; its own log and backups are the administrator's."""
    link = Link(url, lambda _link, _db: None)
    with translate_postgres_errors(link):
        link.db.execute("drop table if exists events, facts, bodies, states, jobs, names, meta cascade")
    link.lose()
