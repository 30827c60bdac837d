"""Finds references by name: a chunk that names many relevant definitions lists them, and a test's names are what it
tests."""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized

import apsw
import msgspec

from holdfast.analysis.search import languages, lexical
from holdfast.analysis.search.tokens import find_identifiers, is_compound

TextOf = Callable[[apsw.Connection, int], list[str]]


class ChunkRow(msgspec.Struct, frozen=True):
    file: int
    path: str
    start: int
    stop: int
    symbol: str
    kind: str

    @property
    def role(self) -> str:
        return languages.role_of_chunk(self.path, self.symbol)

    @property
    def name(self) -> str:
        """The lowercase name by which others refer to it: its class, function or file."""
        parts = self.symbol.split(".")
        if not self.symbol:
            parts = [self.path.rpartition("/")[2].partition(".")[0]]
        return parts[-2 if self.kind == "method" and len(parts) > 1 else -1].lower()


class ChunkReader:
    """The locations and lines of chunks, each read once."""

    def __init__(self, db: apsw.Connection, text_of: TextOf) -> None:
        self._db, self._text_of = db, text_of
        self._rows: dict[int, ChunkRow] = {}
        self._texts: dict[int, list[str]] = {}

    def __getitem__(self, chunk: int) -> ChunkRow:
        return self._rows[chunk]

    def location(self, chunk: int) -> tuple[str, int]:
        """Ties are ordered by location, not by indexing order."""
        row = self._rows[chunk]
        return row.path, row.start

    def load(self, chunks: Iterable[int]) -> None:
        missing = [chunk for chunk in dict.fromkeys(chunks) if chunk not in self._rows]
        # SQLite bounds the number of parameters in a statement.
        for at in range(0, len(missing), 500):
            batch = missing[at : at + 500]
            for id_, *row in self._db.execute(
                "select c.id, c.file, f.path, c.start, c.stop, c.symbol, c.kind from chunks c join files f on f.id = c.file"
                f" where c.id in ({_marks(batch)})", batch,
            ):  # fmt: skip
                self._rows[id_] = ChunkRow(*row)

    def lines(self, chunk: int) -> list[str]:
        row = self._rows[chunk]
        if row.file not in self._texts:
            self._texts[row.file] = self._text_of(self._db, row.file)
        return self._texts[row.file][row.start - 1 : row.stop]


FEWEST_LISTED = 3
"""Relevant definitions named in one place: fewer are chance."""
MOST_BY_TOKEN, MOST_BY_WORD = 40, 20
"""Chunks considered because they contain the names."""
MOST_OWN = 30
"""Chunks considered because they match themselves."""
SHORTEST_NAME = 3
# Every file imports what it uses; that is no list.
_IMPORT = re.compile(r"\s*(?:import|use|using|from|#include|require)\b|.*\brequire\(")


def weigh_listings(db: apsw.Connection, reader: ChunkReader, fitting: Mapping[int, float]) -> dict[int, float]:
    """From 0 to 1 per chunk that names several relevant ones: it lists, selects or registers them, whatever its own
    words say. `fitting` has the best first."""
    weights: dict[str, float] = {}
    for chunk, score in fitting.items():
        row = reader[chunk]
        if row.role == languages.CODE and len(row.name) >= SHORTEST_NAME and row.name.isidentifier():
            weights[row.name] = max(weights.get(row.name, 0.0), score)
    if len(weights) < FEWEST_LISTED:
        return {}
    candidates = [*_chunks_naming(db, list(weights)), *list(fitting)[:MOST_OWN]]
    reader.load(candidates)
    listings: dict[int, float] = {}
    for chunk in dict.fromkeys(candidates):
        row = reader[chunk]
        if row.role == languages.CODE:
            named = weights.keys() & _used_names(reader.lines(chunk)) - {row.name}
            if len(named) >= FEWEST_LISTED:
                listings[chunk] = sum(weights[name] for name in sorted(named))
    most = max(listings.values(), default=1.0)
    return {chunk: value / most for chunk, value in listings.items()}


def _chunks_naming(db: apsw.Connection, names: Sequence[str]) -> list[int]:
    """Those with most of the names."""
    total = db.execute("select count(*) from chunks").fetchone()
    found = [chunk for chunk, _ in lexical.chunks_naming(db, names, total[0] if total else 0, MOST_BY_TOKEN)]
    # A one-word name is not among the tokens, only among the words.
    if plain := [name for name in names if name.isalnum()]:
        in_body = f"body: ({lexical.any_of(plain)})"
        found += [chunk for chunk, _ in lexical.best_matches(db, in_body, (0, 0, 1), MOST_BY_WORD)]
    return found


def _used_names(lines: Sequence[str]) -> set[str]:
    return {name.lower() for line in lines if not _IMPORT.match(line) for name in find_identifiers(line)}


MOST_TESTS, MOST_NAMES = 8, 60
"""Tests considered, and names looked up for each."""
MOST_SHARING = 3
"""If more definitions share a name, the name does not say which is meant."""


def weigh_tested(db: apsw.Connection, reader: ChunkReader, fitting: Mapping[int, float]) -> dict[int, float]:
    """What relevant tests name, each test giving its score in equal parts: tests often describe in everyday words what
    the code does not. `fitting` has the best first."""
    tests = [chunk for chunk in fitting if reader[chunk].role == languages.TEST][:MOST_TESTS]
    names = {test: _compound_names(reader.lines(test)) for test in tests}
    defining = _chunks_defining(db, set(itertools.chain(*names.values())))
    reader.load(itertools.chain(*defining.values()))
    tested: dict[int, float] = {}
    for test, held in names.items():
        named = dict.fromkeys(itertools.chain.from_iterable(defining.get(name, ()) for name in held))
        meant = [chunk for chunk in named if reader[chunk].role == languages.CODE]
        for chunk in meant:
            tested[chunk] = min(1.0, tested.get(chunk, 0.0) + fitting[test] / len(meant))
    return tested


def _compound_names(lines: Sequence[str]) -> list[str]:
    names = dict.fromkeys(find_identifiers("\n".join(lines)))
    return [name.lower() for name in names if is_compound(name)][:MOST_NAMES]


def _chunks_defining(db: apsw.Connection, names: set[str]) -> dict[str, list[int]]:
    rows = db.execute(
        f"select lower(name), group_concat(chunk, ' ') from definitions where name in ({_marks(names)})"
        " and kind <> 'section' group by name having count(*) <= ?", (*sorted(names), MOST_SHARING),
    )  # fmt: skip
    return {name: [int(chunk) for chunk in chunks.split()] for name, chunks in rows}


def _marks(values: Sized) -> str:
    return ",".join("?" * len(values))
