"""Turns ranked chunks into the blocks of lines that are shown."""

from collections.abc import Sequence

import apsw
import msgspec

from holdfast.analysis.search.answer import Hit, Question
from holdfast.analysis.search.index import database
from holdfast.analysis.search.query import Query
from holdfast.analysis.search.ranking import Ranked
from holdfast.analysis.search.references import TextOf

LONGEST_EXCERPT = 5
LONGEST_LINE = 160
FEWEST_LINES = 4
"""A shorter definition is shown with those after it."""


class Candidates(msgspec.Struct, frozen=True):
    """The similarity of each chunk, the chunks that share a word with the query, the weights of its words."""

    meaning: dict[int, float]
    text: set[int]
    rarity: dict[str, float]


class Block(msgspec.Struct):
    path: str
    lang: str
    symbol: str
    kind: str
    start: int
    stop: int
    focus: int
    lines: list[str]
    """Of the whole file."""

    @property
    def body(self) -> str:
        return "\n".join(self.lines[self.start - 1 : self.stop])


def build_hits(
    db: apsw.Connection,
    query: Query,
    ranked: Sequence[Ranked],
    matches: Candidates,
    text_of: TextOf,
    question: Question,
) -> list[Hit]:
    hits: list[Hit] = []
    for one in ranked:
        hit = _build_hit(db, one, query, matches, text_of, question.kind)
        if not any(_hits_overlap(other, hit) for other in hits):
            hits.append(hit)
        if len(hits) >= question.limit:
            break
    return hits


def _hits_overlap(one: Hit, other: Hit) -> bool:
    """Windows of one text overlap; one of them is enough."""
    if one.path != other.path:
        return False
    shared = min(one.end, other.end) - max(one.line, other.line) + 1
    return shared > 0.5 * min(one.end - one.line + 1, other.end - other.line + 1)


def _build_hit(db: apsw.Connection, one: Ranked, query: Query, matches: Candidates, text_of: TextOf, kind: str) -> Hit:
    query_words = set(query.telling_words)
    block = _load_block(db, one, text_of)
    if one.symbol:
        _narrow_to_symbol(block, one)
    else:
        _focus_block(db, block, one, query_words, matches.rarity, kind)
    at, excerpt = _cut_excerpt(block, query_words)
    return Hit(
        path=block.path, line=block.start, end=block.stop, symbol=block.symbol, kind=block.kind, lang=block.lang,
        score=round(one.score, 4), why=_hit_reasons(one, block, query_words, matches), focus=block.focus,
        excerpt=excerpt, excerpt_line=at, chunk=one.chunk,
    )  # fmt: skip


def _load_block(db: apsw.Connection, one: Ranked, text_of: TextOf) -> Block:
    file, path, lang, symbol, kind, start, stop = database.fetch_required_row(
        db, "select f.id, f.path, f.lang, c.symbol, c.kind, c.start, c.stop from chunks c join files f on f.id = c.file"
        " where c.id = ?", (one.chunk,),
    )  # fmt: skip
    return Block(path, lang, symbol, kind, start, stop, start, text_of(db, file))


def _narrow_to_symbol(block: Block, one: Ranked) -> None:
    """Narrow to the definition that was asked for by name."""
    whole = block.stop
    block.symbol, block.kind = one.symbol, one.kind or block.kind
    block.start, block.stop = block.start + one.first, min(block.start + one.last, whole)
    if block.stop - block.start + 1 < FEWEST_LINES:
        block.stop = min(whole, block.start + FEWEST_LINES - 1)
    block.focus = block.start


class Inner(msgspec.Struct, frozen=True):
    """A definition in a block; lines relative to the block's first."""

    symbol: str
    kind: str
    first: int
    last: int

    def holds(self, other: "Inner") -> bool:
        return self != other and self.first <= other.first and other.last <= self.last


def _focus_block(
    db: apsw.Connection, block: Block, one: Ranked, query_words: set[str], rarity: dict[str, float], kind: str
) -> None:
    """Of several definitions in a block the most relevant one; else the line with the name."""
    inner = _innermost_definitions(db, one.chunk, kind)
    if one.first >= 0:
        block.focus = block.start + one.first
        inner = [d for d in inner if d.first <= one.first <= d.last]
    if not inner:
        return

    def worth(defined: Inner) -> float:
        lines = block.lines[block.start - 1 + defined.first : block.start + defined.last]
        text = "\n".join([defined.symbol, *lines]).lower()
        # Of ties the first one.
        return sum(rarity.get(word, 1.0) for word in query_words if word in text) - defined.first / 1e4

    best = max(inner, key=worth)
    block.symbol, block.kind = best.symbol, best.kind
    if one.first < 0:
        block.focus = min(block.stop, block.start + best.first)


def _innermost_definitions(db: apsw.Connection, chunk: int, kind: str) -> list[Inner]:
    """None if there is only one. A class contains everything its methods say."""
    rows = db.execute("select symbol, kind, first, last from definitions where chunk = ?", (chunk,))
    defined = [Inner(*row) for row in rows]
    inner = [d for d in defined if kind in ("", d.kind) and not any(d.holds(other) for other in defined)]
    return inner if len(defined) > 1 else []


def _hit_reasons(one: Ranked, block: Block, query_words: set[str], matches: Candidates) -> list[str]:
    why = list(dict.fromkeys(one.why))
    if one.chunk in matches.text and (
        shared := _shared_words(query_words, f"{block.symbol} {block.path} {block.body}")
    ):
        why.append("words: " + ", ".join(shared[:6]))
    if one.chunk in matches.meaning:
        why.append(f"meaning {matches.meaning[one.chunk]:.2f}")
    return why


def _shared_words(query_words: set[str], text: str) -> list[str]:
    """Words of the query that occur, as far as prefixes tell (`parsing` and `parse`)."""
    low = text.lower()
    return sorted(w for w in query_words if w in low or (len(w) > 4 and w[: max(4, len(w) - 3)] in low))


def _cut_excerpt(block: Block, query_words: set[str]) -> tuple[int, str]:
    """(first line, text): from the focus line if the query names it; else the most relevant lines."""
    lines = block.lines[block.start - 1 : block.stop]
    best = block.focus - block.start
    # The focus is the first line if nothing points further down.
    if not best:
        scores = [sum(w in low for w in query_words) for low in (line.lower() for line in lines)]
        best = max(range(len(lines)), key=lambda n: sum(scores[n : n + LONGEST_EXCERPT])) if any(scores) else 0
    shown = "\n".join(line[:LONGEST_LINE].rstrip() for line in lines[best : best + LONGEST_EXCERPT])
    return block.start + best, shown
