"""Erases rows in the live database and in copies of it."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import apsw
import msgspec

from holdfast.core.chain import content_of, leaf_of
from holdfast.core.erase import Change
from holdfast.core.errors import StoreUnavailable
from holdfast.core.history import MARK, HistoryMark, history_entry
from holdfast.core.ports import HistoryEntry
from holdfast.paths import sync_path
from holdfast.stores.body_cipher import ENCRYPTED_MARK, READING, BodyCipher, BodyUnreadable, is_encrypted, place_of
from holdfast.stores.rows import EVENT, FROM, as_event, facet_words
from holdfast.stores.sqlite_connection import BUSY_MS, translate_sqlite_errors
from holdfast.stores.statements import load_queries

SQL = load_queries()
TABLES = {"facts": ("key",), "bodies": ("key",), "states": ("kind", "key")}
"""The tables with JSON, and the parameters that name a row."""
ERASED_KIND = "event.erased"
# Numbers per statement.
AT_ONCE = 10_000
# Encrypted bodies read at once: each may be some hundred kilobytes.
ENCRYPTED_AT_ONCE = 100


class StoredRow(msgspec.Struct, frozen=True):
    """One row of JSON, or the words of one background job."""

    table: str
    key: tuple[Any, ...]
    content: bytes


class EraseSql:
    """Runs the erasing statements on one connection."""

    def __init__(self, db: apsw.Connection, cipher: BodyCipher = READING) -> None:
        self._db, self._cipher = db, cipher

    def _run(self, query: str, /, **values: Any) -> list[tuple[Any, ...]]:
        return self._db.execute(SQL[query], values).fetchall()

    def rows_with(self, probes: Iterable[bytes]) -> Iterator[StoredRow]:
        """Yield every row that contains one of these probes, once, and every job."""
        # A row can contain several probes; it is rewritten once.
        seen: set[tuple[Any, ...]] = set()
        probes = tuple(probes)
        yield from self._encrypted_with(probes)
        for probe in probes:
            for table in TABLES:
                for *key, content in self._run(f"{table}_with", probe=probe.decode()):
                    if (table, *key) not in seen and not (table == "bodies" and is_encrypted(bytes(content))):
                        seen.add((table, *key))
                        yield StoredRow(table, tuple(key), bytes(content))
        # Jobs are few: all are searched, in every column.
        for number, dedupe, error, payload in self._run("all_jobs"):
            job_row = msgspec.json.encode([dedupe, error, bytes(payload).decode("utf-8", "replace")])
            yield StoredRow("jobs", (number,), job_row)

    def _encrypted_with(self, probes: Sequence[bytes]) -> Iterator[StoredRow]:
        """No statement can search these: each is opened. One that no key opens is skipped."""
        for seq, stored in self._encrypted_bodies():
            try:
                body = self._cipher.open(stored, place_of(seq))
            except BodyUnreadable:
                continue
            small = body.lower()
            if any(probe in small for probe in probes):
                yield StoredRow("bodies", (seq,), body)

    def _encrypted_bodies(self) -> Iterator[tuple[int, bytes]]:
        after = 0
        while page := self._run("encrypted_bodies", after=after, mark=ENCRYPTED_MARK, limit=ENCRYPTED_AT_ONCE):
            for seq, stored in page:
                yield seq, bytes(stored)
            after = page[-1][0]

    def _drop_unreadable(self) -> None:
        """Drop bodies that nobody can read, so nobody can tell whether they quote it."""
        gone: list[int] = []
        for seq, stored in self._encrypted_bodies():
            try:
                self._cipher.open(stored, place_of(seq))
            except BodyUnreadable:
                gone.append(seq)
        if gone:
            self._run("blank_bodies", ids=_pack_ids(gone))

    def change_bodies(self, seqs: Sequence[int]) -> int:
        """Inside a transaction: convert these bodies to the wanted form; return how many changed."""
        changed = 0
        for seq, stored in self._run("bodies_of", ids=_pack_ids(seqs)):
            after = self._cipher.change_form(bytes(stored), seq)
            if after != bytes(stored):
                self._run("set_bodies", key=seq, row=after)
                changed += 1
        return changed

    def change_all_bodies(self) -> int:
        """The same for a copy that nobody serves from."""
        changed = after = 0
        while seqs := self._bodies_to_change(after):
            changed += self.change_bodies(seqs)
            after = seqs[-1]
        return changed

    def has_bodies_to_change(self) -> bool:
        return bool(self._bodies_to_change(0))

    def _bodies_to_change(self, after: int) -> list[int]:
        rows = self._run(
            "bodies_in_form",
            mark=ENCRYPTED_MARK,
            encrypted=not self._cipher.wanted,
            after=after,
            limit=ENCRYPTED_AT_ONCE,
        )
        return [seq for (seq,) in rows]

    def rewrite(self, probes: Iterable[bytes], change: Change) -> int:
        """Inside a transaction: return how many rows changed; a job that quotes it is dropped."""
        changed, events = 0, list[int]()
        self._drop_unreadable()
        for row in list(self.rows_with(probes)):
            after = change(row.content)
            if after == row.content:
                continue
            changed += 1
            events += [row.key[0]] if row.table == "facts" else []
            if row.table == "facts":
                self.freeze([row.key[0]])
            if row.table == "jobs":
                self._run("drop_job", key=row.key[0])
            else:
                where = dict(zip(TABLES[row.table], row.key, strict=True))
                stored = self._reseal(row.key[0], after) if row.table == "bodies" else after
                self._run(f"set_{row.table}", **where, row=stored)
        reindex_history(self._db, events)
        return changed + self._rename(change)

    def freeze(self, seqs: Sequence[int]) -> None:
        """Before content is erased: keep the hash that the chain needs, and forget its salt."""
        if not self._run("has_chain"):
            return  # A backup from before the chain.
        for seq, *names, at, version, key, data, salt in self._run("unfrozen", ids=_pack_ids(seqs)):
            leaf = leaf_of(content_of(names, (seq, at, version), key, bytes(data)), bytes(salt))
            self._run("freeze", key=seq, leaf=leaf)

    def _reseal(self, seq: int, body: bytes) -> bytes:
        """Keep the form of the row."""
        for _seq, stored in self._run("bodies_of", ids=_pack_ids([seq])):
            return self._cipher.reseal(bytes(stored), body, place_of(seq))
        return body

    def _rename(self, change: Change) -> int:
        """Sessions and projects whose name quotes it."""
        changed = 0
        for number, name in self._run("place_names"):
            plain = msgspec.json.encode(name)
            if (after := change(plain)) != plain:
                self.freeze([seq for (seq,) in self._run("events_named", ids=_pack_ids([number]))])
                # With its number, because two names may become the same text and names are unique.
                self._run("set_name", name=f"{msgspec.json.decode(after)} {number}", key=number)
                changed += 1
        return changed

    def blank_events(self, sessions: Sequence[str], projects: Sequence[str], erased: int, nothing: int) -> int:
        """Events keep their number, key and time, and nothing else; return how many."""
        ids = self._places(sessions, projects)
        if not ids:
            return 0
        seqs = [seq for (seq,) in self._run("events_named", ids=_pack_ids(ids))]
        for start in range(0, len(seqs), AT_ONCE):
            portion = _pack_ids(seqs[start : start + AT_ONCE])
            self.freeze(seqs[start : start + AT_ONCE])
            self._run("blank_facts", ids=portion)
            self._run("blank_bodies", ids=portion)
            self._run("blank_events", ids=portion, none=nothing, kind=erased)
        reindex_history(self._db, seqs)
        self._run("drop_states_of", ids=_pack_ids(ids))
        self._run("drop_names", ids=_pack_ids(ids))
        return len(seqs)

    def _places(self, sessions: Sequence[str], projects: Sequence[str]) -> list[int]:
        named = [(int(number), str(name)) for number, name in self._run("place_names")]
        inside = [number for number, name in named if any(_is_under(name, project) for project in projects)]
        # A session that worked only in the erased folders goes too, even if named elsewhere.
        only_there = self._run("sessions_only_in", ids=_pack_ids(inside)) if inside else []
        numbers = {number for number, name in named if name in sessions}
        return sorted(numbers.union(inside, (int(number) for (number,) in only_there)))


def _is_under(name: str, folder: str) -> bool:
    # `/a/bc` is not below `/a/b`.
    return name == folder or name.startswith(f"{folder.rstrip('/')}/")


def _pack_ids(ids: Sequence[int]) -> str:
    return msgspec.json.encode(list(ids)).decode()


def reindex_history(db: apsw.Connection, seqs: Sequence[int]) -> None:
    """Reindex rewritten events, as far as they are indexed. A backup may be older than the index."""
    if not seqs or not db.execute(SQL["has_history"]).fetchall():
        return
    mark = HistoryMark.parse(cast(str, db.execute(SQL["meta"], (MARK,)).get or ""))
    for seq in seqs:
        db.execute(SQL["drop_history"], (seq,))
        # Later events are indexed later, from their current text.
        entry = _load_history_entry(db, seq) if seq <= mark.seq else None
        if entry:
            db.execute(SQL["add_history"], (seq, entry.words, entry.paths, facet_words(entry, _number_of(db))))
    # Counted: an indexing job that read the old text finds another mark and writes nothing.
    db.execute(SQL["set_meta"], (MARK, str(HistoryMark(mark.seq, mark.erasures + 1))))


def _load_history_entry(db: apsw.Connection, seq: int) -> HistoryEntry | None:
    row = db.execute(f"select {EVENT} {FROM} where e.seq = ?", (seq,)).fetchall()[0]
    return history_entry(as_event(row, lambda number: cast(str, db.execute(SQL["name"], (number,)).get or "")))


def _number_of(db: apsw.Connection) -> Callable[[str], int]:
    return lambda name: cast(int, db.execute(SQL["name_id"], (name,)).get)


def merge_history(db: apsw.Connection) -> None:
    """Merge the index, so that no words of deleted entries remain in older segments."""
    if db.execute(SQL["has_history"]).fetchall():
        db.execute(SQL["merge_history"])


def name_id(db: apsw.Connection, name: str) -> int:
    known_id = db.execute(SQL["name_id"], (name,)).get
    return int(db.execute(SQL["add_name"], (name,)).get if known_id is None else known_id)


def drop_documents(db: apsw.Connection) -> None:
    """In a copy nobody serves from: documents are rebuilt from its log if it is ever restored."""
    db.execute("delete from states")
    # Without a version every feature is rebuilt when the copy is opened.
    db.execute("update meta set value = '' where name like 'feature:%'")


def vacuum_erased(db: apsw.Connection, path: Path) -> None:
    """Deleted rows remain in free pages and the write-ahead log until both are rewritten."""
    merge_history(db)
    db.execute("vacuum")
    truncate_log(db, path)


def truncate_log(db: apsw.Connection, path: Path) -> None:
    """Raises while a reader holds old pages; the caller must retry."""
    # TRUNCATE empties the log, if no reader needs it.
    db.execute("pragma wal_checkpoint(truncate)").fetchall()
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        raise StoreUnavailable("a reader holds its old pages", where=str(log), fix="It is tried again.")


def rewrite_copy(path: Path, work: Callable[[apsw.Connection], int]) -> int:
    """Change a copy of the file, vacuum it and put it in place. Returns what `work` returns."""
    partial = path.with_name(f".{path.name}.erasing.partial")
    with translate_sqlite_errors(path):
        _copy_private(path, partial)
        db = apsw.Connection(str(partial), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            db.set_busy_timeout(BUSY_MS)
            # In memory: a rollback journal on disk would hold the old text again.
            db.pragma("journal_mode", "memory")
            db.execute("begin immediate")
            changed = work(db)
            db.execute("commit")
            merge_history(db)
            db.execute("vacuum")
        finally:
            db.close()
        sync_path(partial)
        partial.replace(path)
        sync_path(path.parent)
    return changed


def _copy_private(path: Path, partial: Path) -> None:
    """Copied by SQLite itself, so that a log next to the file is read too; the log is removed with the exchange."""
    partial.unlink(missing_ok=True)
    os.close(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    source, target = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE), apsw.Connection(str(partial))
    try:
        source.set_busy_timeout(BUSY_MS)
        # All pages at once: nobody else writes to a copy.
        with target.backup("main", source, "main") as copy:
            copy.step()
        target.pragma("journal_mode", "delete")
    finally:
        target.close()
        source.close()
