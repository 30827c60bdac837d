"""The read side of the store, on its own read-only connection."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from holdfast.core.chain import ChainedRow, content_of
from holdfast.core.event import Event
from holdfast.core.ports import EventQuery, HistoryQuery, Ref, StateQuery, StateRow
from holdfast.stores.body_cipher import ENCRYPTED_MARK, READING, BodyCipher
from holdfast.stores.rows import as_event, decode, encode, key_range, match_expression, select_events, select_marks
from holdfast.stores.sqlite_connection import for_reading, translate_sqlite_errors
from holdfast.stores.statements import load_queries

SQL = load_queries()
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
        """In pages, so that no read transaction stays open long enough to delay a checkpoint."""
        while page := self.events(EventQuery(after=after, session=session, project=project, limit=PAGE)):
            yield from page
            after = page[-1].seq

    def chained(self) -> Iterator[ChainedRow]:
        after, name = 0, self._name
        while page := self._all(SQL["chained"], {"after": after, "limit": PAGE}):
            for seq, session, project, kind, tool, agent, at, version, key, data, salt, leaf, link in page:
                names = (name(session), name(project), name(kind), name(tool), name(agent))
                content = content_of(names, (seq, at, version), key, bytes(data))
                yield ChainedRow(seq, content, salt or b"", leaf or b"", link or b"")
            after = page[-1][0]

    def event(self, seq: int) -> Event | None:
        events = self.events(EventQuery(after=seq - 1, before=seq + 1, limit=1, bodies=True))
        return events[0] if events else None

    def history(self, query: HistoryQuery) -> list[int]:
        expression = match_expression(query, self._id_of)
        if expression is None:
            return []
        page = {"since": query.since, "before": query.before, "limit": query.limit}
        return [seq for (seq,) in self._all(SQL["find_history"], {"words": expression, **page})]

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
            # An unknown project has no number, and -1 matches no row.
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
        # Few keys share a prefix: they are found by key and then sorted. The unary plus keeps SQLite from using the
        # index on `at` for the order.
        order = "+at" if query.prefix else "at"
        sql = f"select key, doc from states where {' and '.join(clauses)} order by {order} desc, key desc limit ?"
        return [(key, doc) for key, doc in self._all(sql, [*values, query.limit])]

    def _listed_at(self, kind: str, at: int, key: str) -> int:
        """The position of the last row seen: slightly below its own time, because that may lag."""
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

    def next_due(self, now: int, kinds: Sequence[str]) -> int | None:
        rows = self._all(SQL["next_due"], [now, encode(kinds).decode()])
        return rows[0][0] if rows else None

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
        """Every read goes through here, so that damage is reported as damage everywhere."""
        with translate_sqlite_errors(self._path):
            return self._db.execute(sql, values).fetchall()

    def _value(self, name: str, *values: Any) -> Any:
        rows = self._all(SQL[name], values)
        return rows[0][0] if rows else None
