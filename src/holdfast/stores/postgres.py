"""PostgreSQL: daemons on several machines, one log. A lock in each transaction keeps it one writer at a time."""

import contextlib
import random
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg.rows import dict_row

from holdfast.core.erase import Change
from holdfast.core.errors import StoreMoved, StoreUnavailable
from holdfast.core.event import Event
from holdfast.core.history import MARK, HistoryMark, history_entry
from holdfast.core.job import ClaimedJob, Job
from holdfast.core.ports import (
    NOTHING_WANTED,
    EventQuery,
    HistoryEntry,
    HistoryQuery,
    Ref,
    StateQuery,
    StateRow,
    Wanted,
)
from holdfast.stores import backup, erase
from holdfast.stores.body_cipher import ENCRYPTED_MARK, READING, BodyCipher
from holdfast.stores.postgres_connection import SQL, Link, for_reading, for_writing, translate_postgres_errors
from holdfast.stores.rows import (
    FACETS,
    PAGE,
    DecodedReads,
    WriteBatch,
    as_columns,
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


TURN_AFTER, SHORTEST_TURN_MS, LONGEST_TURN_MS = 4, 50, 500
"""Overtaken so often, a daemon asks the others to hold back for as long as it needs. Not sooner: one that is far off
and writes without a pause would have the database to itself."""
LOOK_AGAIN_S = 0.01


class PostgresStore:
    """What a transaction writes travels as one call, which takes the writers' lock and leaves it: nobody waits for our way.

    Only who rewrites the log (`locked`: an erasure, say) keeps the lock while it reads."""

    def __init__(self, url: str, *, cipher: BodyCipher = READING) -> None:
        self.url, self._cipher = url, cipher
        self._link = Link(url, _prepare_for_writing, reconnects_beside=True)
        self._schema = backup.newest_version("postgres")
        self._assumes = False
        """Whether this transaction looks nothing up that the commit finds out anyway."""
        self._names: dict[str, int] = {}
        self._new_names: list[str] = []
        self._deferred: WriteBatch | None = None
        """What a transaction without the lock writes, until its commit."""
        self._known_ahead: dict[str, int | None] = {}
        self._docs_ahead: dict[Ref, bytes | None] = {}
        """What was read with the head; None is known not to be there."""
        self._writer = secrets.token_hex(8)
        self._overtaken = 0
        """How many attempts in a row were in vain, because another daemon's commit came before ours."""
        self._took_s = 0.0
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
        wanted: Wanted = NOTHING_WANTED,
    ) -> Iterator[int]:
        with translate_postgres_errors(self._link), self._link.giving_up_after(patience_s):
            self._reach()
            try:
                if locked:
                    with self._db.pipeline():
                        yield self._begin()
                        # Inside of the pipeline, so that it travels with the writes.
                        commit = self._db.execute("commit")
                    # The server answers COMMIT with ROLLBACK, and no error, where the transaction had failed.
                    if commit.statusmessage != "COMMIT":
                        raise StoreUnavailable(f"commit became {commit.statusmessage}", where=self._link.where)
                else:
                    yield from self._without_lock(assumed_head, wanted)
            except BaseException:
                self._undo()
                raise
        self._new_names.clear()

    def _without_lock(self, assumed_head: int, wanted: Wanted) -> Iterator[int]:
        """Reads first, what is `wanted` with one way there and back; all writes travel together, and are committed under the lock."""
        began = time.monotonic()
        self._assumes, self._deferred = assumed_head >= 0, (writes := WriteBatch())
        try:
            head = assumed_head if self._assumes else self._read_ahead(wanted)
            yield head
        finally:
            self._deferred, self._assumes = None, False
            self._known_ahead, self._docs_ahead = {}, {}
        if writes:
            self._commit_all(head, writes, began, assumed=assumed_head >= 0)

    def _read_ahead(self, wanted: Wanted) -> int:
        """The head first: where another daemon writes meanwhile, what is read after it is too new, and the commit finds out."""
        with self._db.pipeline():
            head = self._db.execute(SQL["head_and_schema"], binary=True)
            known = self._db.execute(SQL["known"], (list(wanted.keys),), binary=True)
            kinds, keys = [r.kind for r in wanted.refs], [r.key for r in wanted.refs]
            docs = self._db.execute(SQL["load"], (kinds, keys), binary=True)
        self._known_ahead = dict.fromkeys(wanted.keys) | dict(known.fetchall())
        self._docs_ahead = dict.fromkeys(wanted.refs) | {Ref(*row[:2]): bytes(row[2]) for row in docs}
        return self._checked_head(*head.fetchall()[0])

    def _commit_all(self, head: int, writes: WriteBatch, began: float, *, assumed: bool) -> None:
        # From one attempt to the next, with something to spare.
        turn_ms = min(LONGEST_TURN_MS, int(1500 * self._took_s) + SHORTEST_TURN_MS)
        turn_ms = turn_ms if self._overtaken >= TURN_AFTER else 0
        # Without events nothing depends on where the log ends.
        checked_head = head if writes.depends_on_head else None
        values = (*self._link.lock_key, checked_head, self._schema, self._writer, turn_ms, *writes.values())
        try:
            while (outcome := self._call_write_batch(values)) > 0:
                # It is another daemon's turn. Mostly that is over sooner; not all who hold back come at the same moment.
                time.sleep(min(outcome / 1000, LOOK_AGAIN_S) * random.uniform(0.5, 1.5))  # noqa: S311
        except psycopg.errors.UniqueViolation as error:
            if not assumed:
                raise
            # A delivery that came before: known, had it been looked up.
            raise StoreMoved("a delivery is known already", where=self._link.where) from error
        self._took_s = time.monotonic() - began
        self._overtaken = self._overtaken + 1 if outcome < 0 else 0
        if outcome < 0:
            raise StoreMoved("another daemon wrote meanwhile", where=self._link.where)

    def _call_write_batch(self, values: Sequence[Any]) -> int:
        # Not prepared: that is a way of its own, for every combination of types that the arrays come in.
        outcome: int = self._db.execute(SQL["write_batch"], values, prepare=False).fetchall()[0][0]
        return outcome

    def _reach(self) -> None:
        db = self._link.db
        if db is not self._db:
            # The server may have come back from a backup, where the same number is another name.
            self._names.clear()
            self._db = db

    def _begin(self) -> int:
        self._db.execute(SQL["begin"])
        self._db.execute(SQL["lock"], self._link.lock_key)
        return self._checked_head(*self._all("head_and_schema")[0])

    def _checked_head(self, head: int, schema: int) -> int:
        # Another daemon may have been upgraded, and the tables with it, while this one ran.
        backup.refuse_newer(schema, backup.newest_version("postgres"), self._link.where)
        return head

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
        if not keys or self._assumes:
            return {}
        if self._known_ahead.keys() >= set(keys):
            return {key: seq for key in keys if (seq := self._known_ahead[key])}
        return dict(self._all("known", list(keys)))

    def session_agents(self, sessions: Sequence[str]) -> dict[str, str]:
        return dict(self._all("session_agents", list(sessions))) if sessions else {}

    def append(self, events: Sequence[Event]) -> None:
        names = dict.fromkeys(name for e in events for name in (e.session, e.project, e.kind, e.tool, e.agent))
        if self._deferred is not None:
            self._deferred.names |= names
            self._deferred.events += [
                (e.seq, e.session, e.project, e.at, e.kind, e.tool, e.agent, e.version, e.key, encode(e.data))
                for e in events
            ]
            self._deferred.bodies += body_rows(events, self._cipher)
            return
        ids = self._ids(names)
        rows = [
            (e.seq, ids[e.session], ids[e.project], e.at, ids[e.kind], ids[e.tool], ids[e.agent], e.version)
            for e in events
        ]
        self._columns("add_events", rows)
        self._columns("add_facts", [(e.seq, e.key, encode(e.data)) for e in events])
        self._columns("add_bodies", body_rows(events, self._cipher))

    def load(self, refs: Sequence[Ref]) -> dict[Ref, bytes]:
        ahead = {ref: doc for ref in refs if (doc := self._docs_ahead.get(ref))}
        refs = [ref for ref in refs if ref not in self._docs_ahead]
        rows = self._all("load", [r.kind for r in refs], [r.key for r in refs]) if refs else []
        return ahead | {Ref(kind, key): bytes(doc) for kind, key, doc in rows}

    def save(self, rows: Sequence[StateRow]) -> None:
        # One statement may touch a row only once.
        last = {r.ref: r for r in rows}
        if self._deferred is not None:
            self._deferred.names |= dict.fromkeys(r.project for r in rows)
            self._deferred.documents |= {ref: _state_columns(r, r.project) for ref, r in last.items()}
        else:
            ids = self._ids(r.project for r in rows)
            self._columns("save", [_state_columns(r, ids[r.project]) for r in last.values()])

    def drop_states(self, feature: str) -> None:
        if self._deferred is not None:
            self._deferred.dropped.append((feature,))
        else:
            self._db.execute(SQL["drop_states"], (feature,))

    def enqueue(self, jobs: Sequence[Job], now: int) -> None:
        rows = [(job.kind, job.dedupe, job.run_at or now, encode(job.payload)) for job in jobs]
        if self._deferred is not None:
            self._deferred.jobs += rows
            return
        for row in rows:
            self._db.execute(SQL["enqueue"], row)

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
        if self._deferred is not None:  # Where it is another's job by then, the commit raises `LeaseLost`.
            self._deferred.finished.append((job,))
            self._deferred.owner = owner
            return True
        return bool(self._all("run_again", job, owner) or self._all("finish", job, owner))

    def retry(self, job: int, owner: str, run_at: int, error: str, dead: bool) -> bool:
        if self._deferred is not None:
            self._deferred.retried.append((job, run_at, error, int(dead)))
            self._deferred.owner = owner
            return True
        return bool(self._all("retry", run_at, error, int(dead), job, owner))

    def release(self, owner: str) -> int:
        return len(self._all("release", owner))

    def set_meta(self, name: str, value: str) -> None:
        if self._deferred is not None:
            self._deferred.meta[name] = (name, value)
        else:
            self._db.execute(SQL["set_meta"], (name, value))

    def expire_bodies(self, older_than: int, limit: int) -> int:
        return len(self._all("expire_bodies", limit, older_than))

    def change_bodies(self, seqs: Sequence[int]) -> int:
        return self._erase_sql().change_bodies(seqs)

    def index_history(self, entries: Sequence[HistoryEntry], before: str, after: str) -> bool:
        columns = as_columns([(e.seq, e.words, e.paths, e.failed) for e in entries], 4)
        moved: bool = self._all("index_history", *self._link.lock_key, before, after, *columns)[0][0]
        return moved

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
            self._db.execute(SQL[name], as_columns(rows, len(rows[0])))

    def _ids(self, names: Iterable[str]) -> dict[str, int]:
        """Under the lock: the numbers of these names; new ones are added, and forgotten again if the transaction fails."""
        if len(self._names) > REMEMBERED_NAMES:
            self._names.clear()
        missing = [name for name in dict.fromkeys(names) if name not in self._names]
        self._new_names.extend(missing)
        if missing:
            self._names.update(self._all("intern", missing, missing))
        return self._names


def _state_columns(row: StateRow, project: int | str) -> tuple[Any, ...]:
    return row.ref.kind, row.ref.key, row.feature, row.version, project, row.status, row.at, row.doc


def _prepare_for_writing(link: Link, db: psycopg.Connection) -> None:
    for_writing(db)
    backup.migrate_postgres(db, link)
