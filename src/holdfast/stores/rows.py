"""Maps events to rows, and questions to SQL and FTS5 expressions."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.history import split_words
from holdfast.core.kinds import decode_payload
from holdfast.core.ports import EventQuery, HistoryEntry, HistoryQuery
from holdfast.stores.body_cipher import READING, BodyCipher, place_of

# `enc_hook=str`: what JSON doesn't know is stored as text instead of failing the batch.
encode = msgspec.json.Encoder(enc_hook=str).encode
decode = msgspec.json.decode

EVENT = "e.seq, e.session, e.project, e.at, e.kind, e.tool, e.agent, e.v, f.key, f.data"
FROM = "from events e join facts f on f.seq = e.seq"
WITH_BODY = "left join bodies b on b.seq = e.seq"
BODY = "b.size, b.hash, b.body"

NameOf = Callable[[int], str]
IdOf = Callable[[str], int | None]


def as_event(row: Sequence[Any], name: NameOf, cipher: BodyCipher = READING) -> Event:
    # In the order of EVENT; a row with a body has three more columns (BODY).
    seq, session, project, at, kind_id, tool, agent, version, key, data = row[:10]
    kind = name(kind_id)
    size, digest, body = row[10:13] if len(row) > 10 else (0, "", b"")
    return Event(
        seq=seq,
        session=name(session),
        project=name(project),
        at=at,
        kind=kind,
        tool=name(tool),
        agent=name(agent),
        key=key,
        data=decode_payload(kind, version, bytes(data)),
        body=cipher.show(bytes(body or b""), seq),
        body_size=size or 0,
        body_hash=digest or "",
    )


def body_rows(events: Sequence[Event], cipher: BodyCipher) -> list[tuple[int, int, str, bytes]]:
    """(seq, size, hash, body) as stored: the one place where bodies of new events are written."""
    seal = cipher.sealer()
    sealed = [(e, seal(e.body, place_of(e.seq))) for e in events if e.body]
    return [(e.seq, e.body_size or len(e.body), e.body_hash, body) for e, body in sealed if body]


def key_range(prefix: str) -> tuple[str, str]:
    """The bounds of keys with this prefix; SQLite compares them as UTF-8."""
    # The largest code point sorts after everything that can follow the prefix.
    return prefix, prefix + "\U0010ffff"


def select_events(query: EventQuery, id_of: IdOf) -> tuple[str, list[Any]] | None:
    """The statement for a page of events; None if a name in it was never seen, so nothing can match."""
    conditions = _where_conditions(query, id_of)
    if conditions is None:
        return None
    condition, values = conditions
    parts = [
        f"select {EVENT}{', ' + BODY if query.bodies else ''} {FROM} {WITH_BODY if query.bodies else ''}",
        condition,
        f"order by e.seq {'desc' if query.newest else 'asc'} limit ?",
    ]
    return "\n".join(parts), [*values, query.limit]


def select_marks(query: EventQuery, every: int, id_of: IdOf) -> tuple[str, list[Any]] | None:
    """Only numbers are read, from the narrow table."""
    conditions = _where_conditions(query, id_of)
    if conditions is None:
        return None
    condition, values = conditions
    # From 0 on, so that the first match is always included.
    counted = f"select e.seq as seq, row_number() over (order by e.seq) - 1 as n from events e {condition}"
    return f"select seq from ({counted}) counted where mod(n, ?) = 0 order by seq", [*values, every]


def _where_conditions(query: EventQuery, id_of: IdOf) -> tuple[str, list[Any]] | None:
    where: list[tuple[str, Any]] = []
    for column, name in (("session", query.session), ("project", query.project), ("tool", query.tool)):
        if name:
            if (name_id := id_of(name)) is None:
                return None
            where.append((f"e.{column} = ?", name_id))
    for condition, value in (
        ("seq >", query.after),
        ("seq <", query.before),
        ("at >=", query.since),
        ("at <", query.until),
    ):
        if value:
            where.append((f"e.{condition} ?", value))
    # A kind that was never stored cannot match; others in the list still can.
    kinds = [name_id for kind in query.kinds if (name_id := id_of(kind)) is not None]
    if query.kinds and not kinds:
        return None
    clauses = [clause for clause, _ in where]
    if kinds:
        clauses.append(f"e.kind in ({', '.join(['?'] * len(kinds))})")
    if query.seqs:
        clauses.append(f"e.seq in ({', '.join(['?'] * len(query.seqs))})")
    condition = f"where {' and '.join(clauses)}" if clauses else ""
    return condition, [value for _, value in where] + kinds + list(query.seqs)


# Each with the prefix of its word in the index: `s12` is session 12.
FACETS = (("session", "s"), ("project", "p"), ("agent", "a"), ("tool", "t"))
FAILED = "failed"


def facet_words(entry: HistoryEntry, id_of: Callable[[str], int]) -> str:
    """What an entry can be filtered by, as words."""
    named = [(letter, getattr(entry, field)) for field, letter in (*FACETS, ("kind", "k"))]
    words = [f"{letter}{id_of(name)}" for letter, name in named if name]
    return " ".join([*words, FAILED] if entry.failed else words)


def match_expression(query: HistoryQuery, id_of: IdOf) -> str | None:
    """The FTS5 expression. None if a name was never seen, or nothing is asked for."""
    facets: list[str] = [FAILED] if query.failed else []
    for field, letter in FACETS:
        if name := getattr(query, field):
            if (name_id := id_of(name)) is None:
                return None
            facets.append(f"{letter}{name_id}")
    parts = [f"{{facets}} : ({' AND '.join(facets)})"] if facets else []
    if query.kinds:
        kind_facets = [f"k{name_id}" for kind in query.kinds if (name_id := id_of(kind)) is not None]
        if not kind_facets:
            return None
        parts.append(f"{{facets}} : ({' OR '.join(kind_facets)})")
    if file := _quote_phrase(query.file):
        parts.append(f"{{paths}} : ({file})")
    if quoted_phrases := [quoted for phrase in query.phrases if (quoted := _quote_phrase(phrase))]:
        # FTS5 reads `"two words" *` as a phrase whose last word is a prefix.
        quoted_phrases[-1] += " *" if query.prefix else ""
        parts.append(f"{{words}} : ({(' OR ' if query.any_phrase else ' AND ').join(quoted_phrases)})")
    return " AND ".join(parts) or None


def _quote_phrase(phrase: str) -> str:
    words = split_words(phrase)
    return f'"{" ".join(words)}"' if words else ""
