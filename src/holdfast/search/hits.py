"""From ranked chunks to what is shown: lines, the enclosing definition, why it was found, an excerpt."""

from collections.abc import Sequence

import apsw

from holdfast.search.answer import Hit
from holdfast.search.index import database
from holdfast.search.query import Query
from holdfast.search.ranking import Ranked, TextOf

LONGEST_EXCERPT = 5
LONGEST_LINE = 160
FEWEST_LINES = 4
"""A hit of fewer lines is shown with those around it."""


def shown(
    db: apsw.Connection, query: Query, ranked: Sequence[Ranked], meaning: dict[int, float], text: set[int],
    text_of: TextOf, limit: int,
) -> list[Hit]:  # fmt: skip
    asked = {word for word in query.telling_words}
    hits: list[Hit] = []
    for one in ranked:
        hit = _hit(db, one, asked, meaning, text, text_of)
        if not any(_covers(other, hit) for other in hits):
            hits.append(hit)
        if len(hits) >= limit:
            break
    return hits


def _covers(one: Hit, other: Hit) -> bool:
    """Windows of one text overlap; one of them is enough."""
    if one.path != other.path:
        return False
    shared = min(one.end, other.end) - max(one.line, other.line) + 1
    return shared > 0.5 * min(one.end - one.line + 1, other.end - other.line + 1)


def _hit(
    db: apsw.Connection, one: Ranked, asked: set[str], meaning: dict[int, float], text: set[int], text_of: TextOf
) -> Hit:
    file, path, lang, symbol, kind, start, stop = database.one(
        db, "select f.id, f.path, f.lang, c.symbol, c.kind, c.start, c.stop from chunks c join files f on f.id = c.file"
        " where c.id = ?", (one.chunk,),
    )  # fmt: skip
    lines = text_of(db, file)
    if one.symbol:
        first, last = start + one.first, min(start + one.last, stop)
        if last - first + 1 < FEWEST_LINES:
            first, last = max(start, first - 2), min(stop, last + 2)
        start, stop, symbol = first, last, one.symbol
    body = "\n".join(lines[start - 1 : stop])
    why = list(dict.fromkeys(one.why))
    if one.chunk in text and (shared := _shared(asked, f"{symbol} {path} {body}")):
        why.append("words: " + ", ".join(shared[:6]))
    if one.chunk in meaning:
        why.append(f"meaning {meaning[one.chunk]:.2f}")
    return Hit(
        path=path, line=start, end=stop, symbol=symbol, kind=kind, lang=lang, score=round(one.score, 4), why=why,
        excerpt=_excerpt(body, asked), chunk=one.chunk,
    )  # fmt: skip


def _shared(asked: set[str], text: str) -> list[str]:
    """Words of the question that are there, as far as their beginnings tell (`parsing` and `parse`)."""
    low = text.lower()
    return sorted(w for w in asked if w in low or (len(w) > 4 and w[: max(4, len(w) - 3)] in low))


def _excerpt(body: str, asked: set[str]) -> str:
    """The lines that say most of what was asked."""
    lines = body.split("\n")
    scores = [sum(w in low for w in asked) for low in body.lower().split("\n")]
    best = max(range(len(lines)), key=lambda n: sum(scores[n : n + LONGEST_EXCERPT])) if any(scores) else 0
    return "\n".join(line[:LONGEST_LINE].rstrip() for line in lines[best : best + LONGEST_EXCERPT])
