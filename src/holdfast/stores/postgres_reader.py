"""The read side on PostgreSQL: its own read-only connection, one per thread. Each question is one statement or two."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from psycopg.rows import dict_row

from holdfast.core.event import Event
from holdfast.core.ports import EventQuery, HistoryQuery, Ref, StateQuery, StateRow
from holdfast.stores.postgres_connection import SQL, Link, for_reading, translated
from holdfast.stores.rows import (
    FACETS,
    as_event,
    decode,
    key_range,
    select_events,
    select_marks,
    tsquery,
    tsquery_of_file,
)

PAGE = 2_000
NAME_COLUMNS = (1, 2, 4, 5, 6)
"""Where session, project, kind, tool and agent stand in a row of events."""


class PostgresReader:
    def __init__(self, url: str) -> None:
        self._link = Link(url, for_reading)
        self._names: dict[int, str] = {}
        with translated(self._link):
            _ = self._link.db

    def head(self) -> int:
        value: int = self._all(SQL["head"])[0][0]
        return value

    def events(self, query: EventQuery) -> list[Event]:
        wanted = select_events(query, self._ids(query).get, "%s")
        if wanted is None:
            return []
        found = self._all(wanted[0].encode(), *wanted[1])
        self._learn({row[i] for row in found for i in NAME_COLUMNS})
        events = [as_event(row, self._names.__getitem__) for row in found]
        return events[::-1] if query.newest else events

    def marks(self, query: EventQuery, every: int) -> list[int]:
        wanted = select_marks(query, every, self._ids(query).get, "%s")
        return [seq for (seq,) in self._all(wanted[0].encode(), *wanted[1])] if wanted else []

    def _ids(self, query: EventQuery) -> dict[str, int]:
        asked = [query.session, query.project, query.tool, *query.kinds]
        return dict(self._all(SQL["name_ids"], asked)) if any(asked) else {}

    def event(self, seq: int) -> Event | None:
        found = self.events(EventQuery(after=seq - 1, before=seq + 1, limit=1, bodies=True))
        return found[0] if found else None

    def history(self, query: HistoryQuery) -> list[int]:
        clauses: list[tuple[str, Any]] = [
            ("h.words @@ to_tsquery('simple', %s)", tsquery(query)),
            ("h.paths @@ to_tsquery('simple', %s)", tsquery_of_file(query)),
            ("h.failed = %s", query.failed),
            *((f"e.{field} = (select id from names where name = %s)", getattr(query, field)) for field, _ in FACETS),
            ("e.kind in (select id from names where name = any(%s))", list(query.kinds)),
            ("e.at >= %s", query.since),
        ]
        asked = [(clause, value) for clause, value in clauses if value]
        if not asked:
            return []
        if query.before:
            asked.append(("h.seq < %s", query.before))
        where = " and ".join(clause for clause, _ in asked)
        sql = f"select h.seq from history h join events e on e.seq = h.seq where {where} order by h.seq desc limit %s"
        return [seq for (seq,) in self._all(sql.encode(), *(value for _, value in asked), query.limit)]

    def replay(self, after: int = 0, session: str = "", project: str = "") -> Iterator[Event]:
        while page := self.events(EventQuery(after=after, session=session, project=project, limit=PAGE)):
            yield from page
            after = page[-1].seq

    def document(self, ref: Ref) -> bytes | None:
        found = self._all(SQL["state"], ref.kind, ref.key)
        return bytes(found[0][0]) if found else None

    def state(self, ref: Ref) -> dict[str, Any] | None:
        doc = self.document(ref)
        return None if doc is None else decode(doc)

    def states(self, query: StateQuery) -> list[tuple[Ref, dict[str, Any]]]:
        return [(Ref(query.kind, key), decode(doc)) for key, doc in self.documents(query)]

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
        kind = key = ""
        while page := self._all(SQL["rows"], feature, kind, key, PAGE):
            for kind, key, *rest in page:
                yield StateRow(Ref(kind, key), *rest)

    def counts(self) -> dict[str, int]:
        return self._dicts(SQL["counts"])[0]

    def jobs(self, limit: int = 100) -> list[dict[str, Any]]:
        return self._dicts(SQL["jobs"], limit)

    def any_due(self, now: int, kinds: Sequence[str]) -> bool:
        return bool(self._all(SQL["any_due"], now, now, list(kinds)))

    def known(self, keys: Iterable[str]) -> dict[str, int]:
        return dict(self._all(SQL["known"], list(keys)))

    def meta(self, name: str) -> str:
        found = self._all(SQL["meta"], name)
        return found[0][0] if found else ""

    def close(self) -> None:
        self._link.lose()

    def _learn(self, ids: set[int]) -> None:
        if missing := [id_ for id_ in ids if id_ not in self._names]:
            self._names.update(self._all(SQL["names"], missing))

    def _all(self, sql: bytes, *values: Any) -> list[tuple[Any, ...]]:
        with translated(self._link):
            return self._link.db.execute(sql, values, binary=True).fetchall()

    def _dicts(self, sql: bytes, *values: Any) -> list[dict[str, Any]]:
        with translated(self._link):
            return self._link.db.cursor(row_factory=dict_row).execute(sql, values).fetchall()
