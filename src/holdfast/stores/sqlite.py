"""The SQLite store: WAL, synchronous FULL, one write connection, so that acknowledged means durable (P2)."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from holdfast.core.chain import BEGINNING, content_of, leaf_of, link_of, new_salts
from holdfast.core.erase import Change
from holdfast.core.event import Event
from holdfast.core.job import ClaimedJob, Job
from holdfast.core.ports import HistoryEntry, Ref, StateRow
from holdfast.stores import erase, migrations
from holdfast.stores.body_cipher import READING, BodyCipher
from holdfast.stores.checkpointer import Checkpointer
from holdfast.stores.rows import (
    body_rows,
    decode,
    encode,
    facet_words,
)
from holdfast.stores.sqlite_connection import for_writing, translate_sqlite_errors
from holdfast.stores.sqlite_reader import SQL, SqliteReader

REMEMBERED_NAMES = 50_000
# Documents whose time moved by less are written without updating the index that lists are read from.
AT_MAY_LAG_MS = 2_000


class SqliteStore:
    def __init__(self, path: Path, *, backups: Path | None = None, cipher: BodyCipher = READING) -> None:
        self.path, self._cipher = path, cipher
        with translate_sqlite_errors(path):
            self._db = for_writing(path)
            migrations.migrate_sqlite(self._db, path, backups)
            self._read_head()
        self._checkpointer = Checkpointer(path)
        self._checkpointer.watch(self._db)
        self._names: dict[str, int] = {}
        self._new_names: list[str] = []

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[int]:
        with translate_sqlite_errors(self.path), contextlib.nullcontext() if durable else self._not_lasting():
            # IMMEDIATE takes the write lock at once; taken after reads it could be refused in the middle.
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
        """Nothing is synced now; the next durable commit syncs it too, because SQLite's log is one file."""
        self._db.execute("pragma synchronous=normal")
        try:
            yield
        finally:
            self._db.execute("pragma synchronous=full")

    def _undo(self) -> None:
        if self._db.in_transaction:
            with contextlib.suppress(apsw.Error):
                self._db.execute("rollback")
        # Numbers of rolled-back names may be given to other names.
        for name in self._new_names:
            self._names.pop(name, None)
        self._new_names.clear()
        # A failed commit may still have happened (an error after the write): ask rather than assume.
        with contextlib.suppress(apsw.Error):
            self._read_head()

    def _read_head(self) -> None:
        self._head: int = self._value("head")
        self._link: bytes = self._value("last_link") or BEGINNING

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
        many(SQL["add_fact"], self._chained(events))
        many(SQL["add_body"], body_rows(events, self._cipher))
        self._head = events[-1].seq

    def _chained(self, events: Sequence[Event]) -> list[tuple[int, str, bytes, bytes, bytes]]:
        rows, link = [], self._link
        for e, salt in zip(events, new_salts(len(events)), strict=True):
            data = encode(e.data)
            names, numbers = (e.session, e.project, e.kind, e.tool, e.agent), (e.seq, e.at, e.version)
            link = link_of(link, leaf_of(content_of(names, numbers, e.key, data), salt))
            rows.append((e.seq, e.key, data, salt, link))
        self._link = link
        return rows

    @property
    def head(self) -> tuple[int, bytes]:
        """The last sequence number and its link, as of the last append."""
        return self._head, self._link

    def load(self, refs: Sequence[Ref]) -> dict[Ref, bytes]:
        with translate_sqlite_errors(self.path):
            return {ref: doc for ref in refs for (doc,) in self._db.execute(SQL["load"], (ref.kind, ref.key))}

    def save(self, rows: Sequence[StateRow]) -> None:
        name = self._name_id
        # Rows with unchanged facets need no index update.
        moved = [row for row in rows if not self._save_doc(row, name(row.project))]
        self._db.executemany(
            SQL["save"],
            [
                (r.ref.kind, r.ref.key, r.feature, r.version, name(r.project), r.status, r.at, r.doc)
                for r in moved
            ],
        )  # fmt: skip

    def _save_doc(self, row: StateRow, project: int) -> bool:
        """Return whether only the text had to be written."""
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
        # A job requested again while it ran is run once more instead of being removed.
        return self._changed("run_again", job, owner) or self._changed("finish", job, owner)

    def retry(self, job: int, owner: str, run_at: int, error: str, dead: bool) -> bool:
        return self._changed("retry", run_at, error, int(dead), job, owner)

    def release(self, owner: str) -> int:
        return len(list(self._db.execute(SQL["release"], (owner,))))

    def set_meta(self, name: str, value: str) -> None:
        self._db.execute(SQL["set_meta"], (name, value))

    def expire_bodies(self, older_than: int, limit: int) -> int:
        """Deleted bytes are overwritten in their page, so that no free page reveals them."""
        with self._overwriting():
            return len(list(self._db.execute(SQL["expire_bodies"], (limit, older_than))))

    def change_bodies(self, seqs: Sequence[int]) -> int:
        with self._overwriting():
            return erase.EraseSql(self._db, self._cipher).change_bodies(seqs)

    @contextlib.contextmanager
    def _overwriting(self) -> Iterator[None]:
        # Only here: overwriting every deleted byte would slow down ordinary writes.
        self._db.execute("pragma secure_delete = on").fetchall()
        try:
            yield
        finally:
            self._db.execute("pragma secure_delete = off").fetchall()

    def index_history(self, entries: Sequence[HistoryEntry], before: str, after: str) -> bool:
        # Only if the mark is where it was when they were read: text erased meanwhile must not return.
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

    def tombstones(self) -> int:
        return int(self._value("tombstones"))

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
        # The statements end with `returning`: a row comes back if one was changed.
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
