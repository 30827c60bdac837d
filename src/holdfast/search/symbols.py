"""What is defined where: the outline of a file, a name with its definition, uses and tests, what is like a line."""

from collections.abc import Sequence

import apsw
import msgspec

from holdfast.search import languages, lexical
from holdfast.search.index.database import one
from holdfast.search.index.file_entry import unpack_text
from holdfast.search.query import dotted
from holdfast.search.ranking import name_in_lines
from holdfast.search.results import Hit, Neighbour

MOST_USES = 50
MOST_NEIGHBOURS = 5_000
"""Definitions of one file that are looked at to name what is next to a hit."""


class Outlined(msgspec.Struct, frozen=True):
    symbol: str
    kind: str
    line: int
    end: int


class Outline(msgspec.Struct, frozen=True):
    path: str
    lang: str
    lines: int
    definitions: list[Outlined]


class Occurrence(msgspec.Struct, frozen=True):
    path: str
    line: int
    symbol: str
    """Of the definition around it."""
    text: str
    end: int = 0


class Symbol(msgspec.Struct, frozen=True):
    name: str
    definitions: list[Occurrence]
    uses: list[Occurrence]
    tests: list[Occurrence]
    similar: list[str]
    """Names that are nearly the same, where there is no definition of this one."""


def outline(db: apsw.Connection, path: str) -> Outline | None:
    """None where the file is not in the index."""
    row = db.execute("select id, lang from files where path = ? and left_out = ''", (path,)).fetchone()
    if row is None:
        return None
    found = db.execute(
        "select d.symbol, d.kind, c.start + d.first, c.start + d.last from definitions d join chunks c on c.id = d.chunk"
        " where c.file = ? order by 3, 4 desc", (row[0],),
    )  # fmt: skip
    lines = len(_lines(db, row[0]))
    return Outline(
        path, row[1], lines, [Outlined(symbol, kind, first, min(last, lines)) for symbol, kind, first, last in found]
    )


def find_symbol(db: apsw.Connection, name: str) -> Symbol:
    """Definitions, the lines that use it, and tests that do, each in the order of their paths."""
    named = lexical.definitions_named(db, name)
    definitions = [_definition(db, found) for found in named]
    seen = {(o.path, o.line) for o in definitions}
    last = dotted(name).rpartition(".")[2]
    uses = [o for o in _uses(db, last) if (o.path, o.line) not in seen]
    tests = [o for o in uses if _is_test(o)]
    similar = [] if named else list(dict.fromkeys(one_.symbol for one_ in lexical.similar_names(db, name)))[:5]
    return Symbol(
        name=name, definitions=definitions, tests=tests[:MOST_USES], similar=similar,
        uses=[o for o in uses if not _is_test(o)][:MOST_USES],
    )  # fmt: skip


def _is_test(found: Occurrence) -> bool:
    return languages.role_of_chunk(found.path, found.symbol) == languages.TEST


def name_neighbours(db: apsw.Connection, hits: Sequence[Hit]) -> None:
    """Says of each hit which definition it lies in, and which ones stand before and after it in the file."""
    known: dict[str, list[Neighbour]] = {}
    for hit in hits:
        if hit.path not in known:
            known[hit.path] = _definitions_of(db, hit.path)
        around = known[hit.path]
        holders = [
            d for d in around if d.line <= hit.line and hit.end <= d.end and (d.line, d.end) != (hit.line, hit.end)
        ]
        hit.within = min(holders, key=lambda d: d.end - d.line, default=None)
        outer = {id(d) for d in holders}
        hit.before = max((d for d in around if d.end < hit.line and id(d) not in outer), key=_position, default=None)
        hit.after = min((d for d in around if d.line > hit.end), key=_position, default=None)


def _position(found: Neighbour) -> tuple[int, int]:
    return found.line, -found.end


def _definitions_of(db: apsw.Connection, path: str) -> list[Neighbour]:
    rows = db.execute(
        "select d.symbol, d.kind, c.start + d.first, c.start + d.last from definitions d"
        " join chunks c on c.id = d.chunk join files f on f.id = c.file where f.path = ? limit ?", (path, MOST_NEIGHBOURS),
    )  # fmt: skip
    return [Neighbour(*row) for row in rows]


def chunk_at(db: apsw.Connection, path: str, line: int) -> int:
    """The chunk a line is in, or the nearest before it; 0 where the file has none."""
    row = db.execute(
        "select c.id from chunks c join files f on f.id = c.file where f.path = ? and c.start <= ?"
        " order by c.stop >= ? desc, c.start desc limit 1", (path, line, line),
    ).fetchone()  # fmt: skip
    return int(row[0]) if row else 0


class ChunkLines(msgspec.Struct, frozen=True):
    path: str
    start: int
    stop: int
    symbol: str

    def covers(self, path: str, line: int) -> bool:
        return path == self.path and self.start <= line <= self.stop


def chunk_lines(db: apsw.Connection, chunk: int) -> ChunkLines:
    select = "select f.path, c.start, c.stop, c.symbol from chunks c join files f on f.id = c.file where c.id = ?"
    return ChunkLines(*one(db, select, (chunk,)))


OTHER_ROLE = 0.5
"""What a hit of another role counts: to a function another function is nearer than a document about it."""


def same_role_first(hits: Sequence[Hit], own: ChunkLines) -> list[Hit]:
    role = languages.role_of_chunk(own.path, own.symbol)

    def worth(hit: Hit) -> float:
        return hit.score if languages.role_of_chunk(hit.path, hit.symbol) == role else hit.score * OTHER_ROLE

    return sorted(hits, key=worth, reverse=True)


def _definition(db: apsw.Connection, found: lexical.NamedChunk) -> Occurrence:
    file, path, start = one(
        db, "select f.id, f.path, c.start from chunks c join files f on f.id = c.file where c.id = ?", (found.chunk,)
    )
    lines = _lines(db, file)
    first, last = start + found.first, min(start + found.last, len(lines))
    value, where = name_in_lines(found.name, lines[first - 1 : last])
    line = first + where if value else first
    return Occurrence(path, line, found.symbol, lines[line - 1].strip()[:200], last)


def _uses(db: apsw.Connection, name: str) -> list[Occurrence]:
    chunks = lexical.chunks_with_token(db, name) or [
        c for c, _ in lexical.best_by_words(db, (name.lower(),), MOST_USES)
    ]
    found: dict[tuple[str, int], Occurrence] = {}
    for chunk in chunks:
        file, path, start, stop, symbol = one(
            db, "select f.id, f.path, c.start, c.stop, c.symbol from chunks c join files f on f.id = c.file where c.id = ?",
            (chunk,),
        )  # fmt: skip
        value, where = name_in_lines(name, _lines(db, file)[start - 1 : stop])
        if value:
            line = start + where
            found[path, line] = Occurrence(path, line, symbol, _lines(db, file)[line - 1].strip()[:200], line)
    return [found[key] for key in sorted(found)]


def _lines(db: apsw.Connection, file: int) -> list[str]:
    return unpack_text(one(db, "select text from texts where file = ?", (file,))[0])
