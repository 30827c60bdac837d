"""Definitions: the outline of a file, a name with its uses and tests, code similar to a line."""

import itertools
from collections.abc import Sequence

import apsw
import msgspec

from holdfast.analysis.search import languages, lexical
from holdfast.analysis.search.answer import Hit, Neighbour
from holdfast.analysis.search.evidence import name_in_lines
from holdfast.analysis.search.index.database import fetch_required_row
from holdfast.analysis.search.index.file_entry import unpack_text
from holdfast.analysis.search.query import dotted_name
from holdfast.analysis.search.references import TextOf

MOST_USES = 50
SPARE_LINES = 2
MOST_NEIGHBOURS = 5_000
"""Definitions of a file considered to name a hit's neighbours."""


class Outline(msgspec.Struct, frozen=True):
    path: str
    lang: str
    lines: int
    definitions: list[Neighbour]


class Occurrence(msgspec.Struct, frozen=True):
    path: str
    line: int
    symbol: str
    """The enclosing definition."""
    text: str
    end: int = 0


class Symbol(msgspec.Struct, frozen=True):
    name: str
    definitions: list[Occurrence]
    uses: list[Occurrence]
    tests: list[Occurrence]
    similar: list[str]
    """Similar names, if this one has no definition."""


def file_outline(db: apsw.Connection, path: str) -> Outline | None:
    """None if the file is not indexed."""
    row = db.execute("select id, lang from files where path = ? and left_out = ''", (path,)).fetchone()
    if row is None:
        return None
    lines = _file_lines(db, row[0])
    definitions = [_trim_neighbour(one, lines) for one in sorted(_definitions_of(db, row[0], -1), key=_position_key)]
    return Outline(path, row[1], len(lines), definitions)


def find_symbol(db: apsw.Connection, name: str) -> Symbol:
    """Definitions, lines that use it, and tests that do, each in path order."""
    named = lexical.definitions_named(db, name)
    definitions = [_definition_occurrence(db, named_chunk) for named_chunk in named]
    seen = {(o.path, o.line) for o in definitions}
    last = dotted_name(name).rpartition(".")[2]
    found = [o for o in _find_uses(db, last) if (o.path, o.line) not in seen]
    tests = list(filter(_is_test, found))
    similar = dict.fromkeys(one.symbol for one in lexical.similar_names(db, name)) if not named else {}
    return Symbol(
        name=name, definitions=definitions, tests=tests[:MOST_USES], similar=list(similar)[:5],
        uses=list(itertools.filterfalse(_is_test, found))[:MOST_USES],
    )  # fmt: skip


def _is_test(occurrence: Occurrence) -> bool:
    return languages.role_of_chunk(occurrence.path, occurrence.symbol) == languages.TEST


def name_neighbours(db: apsw.Connection, hits: Sequence[Hit], text_of: TextOf) -> None:
    """Add to each hit its enclosing definition and the ones before and after it."""
    by_path: dict[str, tuple[list[str], list[Neighbour]]] = {}
    for hit in hits:
        if hit.path not in by_path:
            file = fetch_required_row(db, "select id from files where path = ?", (hit.path,))[0]
            by_path[hit.path] = text_of(db, file), _definitions_of(db, file)
        lines, around = by_path[hit.path]
        near = (_enclosing(hit, around), *_beside(hit, around))
        hit.within, hit.before, hit.after = (one and _trim_neighbour(one, lines) for one in near)


def _enclosing(hit: Hit, around: Sequence[Neighbour]) -> Neighbour | None:
    """The smallest definition around the hit that is not the hit itself."""
    holders = (n for n in around if n.line <= hit.line and hit.end <= n.end and not _is_same(n, hit))
    return min(holders, key=lambda holder: holder.end - holder.line, default=None)


def _beside(hit: Hit, around: Sequence[Neighbour]) -> tuple[Neighbour | None, Neighbour | None]:
    before = max((n for n in around if n.end < hit.line), key=_position_key, default=None)
    return before, min((n for n in around if n.line > hit.end), key=_position_key, default=None)


def _trim_neighbour(neighbour: Neighbour, lines: Sequence[str]) -> Neighbour:
    """Without the empty lines up to the next definition."""
    last = min(neighbour.end, len(lines))
    while last > neighbour.line and not lines[last - 1].strip():
        last -= 1
    return msgspec.structs.replace(neighbour, end=last)


def _is_same(neighbour: Neighbour, hit: Hit) -> bool:
    """The hit itself, apart from trailing empty lines. A part of a long function is inside that function."""
    return neighbour.end - neighbour.line - (hit.end - hit.line) <= SPARE_LINES and neighbour.symbol == hit.symbol


def _position_key(neighbour: Neighbour) -> tuple[int, int]:
    return neighbour.line, -neighbour.end


def _definitions_of(db: apsw.Connection, file: int, limit: int = MOST_NEIGHBOURS) -> list[Neighbour]:
    rows = db.execute(
        "select d.symbol, d.kind, c.start + d.first, c.start + d.last from definitions d"
        " join chunks c on c.id = d.chunk where c.file = ? limit ?", (file, limit),
    )  # fmt: skip
    return [Neighbour(*row) for row in rows]


def chunk_at(db: apsw.Connection, path: str, line: int) -> int:
    """The chunk with a line, or the nearest before it; 0 if the file has none."""
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
    return ChunkLines(*fetch_required_row(db, select, (chunk,)))


OTHER_ROLE = 0.5
"""Factor for a hit of another role: to a function another function is closer than a document about it."""


def same_role_first(hits: Sequence[Hit], own: ChunkLines) -> list[Hit]:
    role = languages.role_of_chunk(own.path, own.symbol)

    def worth(hit: Hit) -> float:
        return hit.score if languages.role_of_chunk(hit.path, hit.symbol) == role else hit.score * OTHER_ROLE

    return sorted(hits, key=worth, reverse=True)


def _definition_occurrence(db: apsw.Connection, named_chunk: lexical.NamedChunk) -> Occurrence:
    file, path, start = fetch_required_row(
        db,
        "select f.id, f.path, c.start from chunks c join files f on f.id = c.file where c.id = ?",
        (named_chunk.chunk,),
    )
    lines = _file_lines(db, file)
    first, last = start + named_chunk.first, min(start + named_chunk.last, len(lines))
    # The chunk may begin with comments or decorators: the line with the name is shown.
    value, where = name_in_lines(named_chunk.name, lines[first - 1 : last])
    line = first + where if value else first
    return Occurrence(path, line, named_chunk.symbol, lines[line - 1].strip()[:200], last)


def _find_uses(db: apsw.Connection, name: str) -> list[Occurrence]:
    chunks = lexical.chunks_with_token(db, name) or [
        # A one-word name is not among the tokens, only among the words.
        c
        for c, _ in lexical.best_by_words(db, (name.lower(),), MOST_USES)
    ]
    occurrences: dict[tuple[str, int], Occurrence] = {}
    for chunk in chunks:
        file, path, start, stop, symbol = fetch_required_row(
            db, "select f.id, f.path, c.start, c.stop, c.symbol from chunks c join files f on f.id = c.file where c.id = ?",
            (chunk,),
        )  # fmt: skip
        value, where = name_in_lines(name, _file_lines(db, file)[start - 1 : stop])
        if value:
            line = start + where
            occurrences[path, line] = Occurrence(
                path, line, symbol, _file_lines(db, file)[line - 1].strip()[:200], line
            )
    return [occurrences[key] for key in sorted(occurrences)]


def _file_lines(db: apsw.Connection, file: int) -> list[str]:
    return unpack_text(fetch_required_row(db, "select text from texts where file = ?", (file,))[0])
